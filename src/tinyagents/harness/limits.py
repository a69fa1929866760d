"""How much a run may use, and the count of what it has used."""

from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt

__all__ = ("LimitKind", "RunLimits")

LimitKind: TypeAlias = Literal["model_calls", "tool_calls", "wall_clock"]


class RunLimits(BaseModel):
    """The most that one run may use. A limit is reached when the next call would exceed it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    max_model_calls: NonNegativeInt = 25
    max_tool_calls: NonNegativeInt = 50
    max_concurrency: PositiveInt | None = None
    """How many tools of one turn run at once; ``None`` for all of them."""
    max_retries_per_call: NonNegativeInt = 3
    """How often a failed model call is made again, whatever the retry policy would allow."""
    max_depth: NonNegativeInt = 8
    """How deep runs may nest inside each other."""
    wall_clock: PositiveFloat | None = None
    """Seconds for the whole run."""
    model_timeout: PositiveFloat | None = None
    """Seconds for each attempt at a model call."""
    max_output_tokens: PositiveInt | None = None
    """The most tokens of each answer; lowers what the settings ask for, never raises it."""

    def tightened(self, other: "RunLimits | None") -> "RunLimits":
        """Return these limits, with each that ``other`` sets in its place where it is lower."""
        if other is None:
            return self
        changes: dict[str, float | None] = {}
        for name in other.model_fields_set:
            mine: float | None = getattr(self, name)
            theirs: float | None = getattr(other, name)
            if theirs is not None and (mine is None or theirs < mine):
                changes[name] = theirs
        return self.model_copy(update=changes) if changes else self
