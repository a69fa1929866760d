"""What a run does when something goes wrong. The defaults stop rather than guess."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from .errors import ConfigurationError
from .limits import RunLimits
from .retry import FallbackPolicy, RetryPolicy

if TYPE_CHECKING:
    from .model import ResponseFormat

__all__ = (
    "CachePolicy",
    "InvalidArgsPolicy",
    "LimitBehavior",
    "PayloadCapture",
    "RunPolicy",
    "ToolErrorPolicy",
    "ToolTimeoutSettings",
    "UnknownToolPolicy",
    "UnsupportedPolicy",
)

LimitBehavior: TypeAlias = Literal["error", "stop_with_partial", "final_answer"]
"""At a limit: raise, end the run with what there is, or ask once more with the tools off."""

InvalidArgsPolicy: TypeAlias = Literal[
    "fail", "return_tool_error", "normalize_then_return_tool_error"
]
"""Arguments that do not fit the schema: raise, tell the model, or try to repair and then tell it."""

ToolErrorPolicy: TypeAlias = Literal["fail", "return_to_model"]
"""What goes wrong with a tool: raise, or tell the model, and let it go on."""


UnsupportedPolicy: TypeAlias = Literal["fail", "degrade"]
"""What a model is known not to take: raise, or leave it out or say it in words, and tell so."""


_CHOICES: dict[str, tuple[str, ...]] = {
    "on_limit": get_args(LimitBehavior),
    "on_wall_clock": ("error", "stop_with_partial"),
    "invalid_args": get_args(InvalidArgsPolicy),
    "tool_errors": get_args(ToolErrorPolicy),
    "tool_timeouts": get_args(ToolErrorPolicy),
    "refused_tools": get_args(ToolErrorPolicy),
    "truncated_calls": ("fail", "tell_model"),
    "unsupported": get_args(UnsupportedPolicy),
}


@dataclass(frozen=True, slots=True)
class UnknownToolPolicy:
    """What happens when the model calls a tool that does not exist."""

    action: Literal["fail", "return_tool_error", "rewrite"] = "fail"
    tool_name: str | None = None
    """Where ``rewrite`` sends the call; a missing target becomes a tool error."""

    @classmethod
    def fail(cls) -> "UnknownToolPolicy":
        """Raise :class:`~tinyagents.harness.errors.ToolNotFoundError`."""
        return cls()

    @classmethod
    def return_tool_error(cls) -> "UnknownToolPolicy":
        """Tell the model which tools there are."""
        return cls("return_tool_error")

    @classmethod
    def rewrite(cls, tool_name: str) -> "UnknownToolPolicy":
        """Call this tool instead, with the same arguments."""
        return cls("rewrite", tool_name)


@dataclass(frozen=True, slots=True)
class ToolTimeoutSettings:
    """How long tools may run, in seconds. A tool's own timeout is held between the bounds."""

    inherited: float | None = None
    """For tools that set none."""
    minimum: float = 0.001
    maximum: float = 3600.0
    grace: float = 0.0
    """Added to a tool's own timeout before it is cut."""

    def resolve(self, own: "float | Literal['inherit'] | None") -> float | None:
        """Return the seconds until a tool is cut; ``None`` never cuts it.

        Args:
            own: The tool's own timeout in seconds, ``None`` for unbounded, or ``"inherit"``.
        """
        if own == "inherit":
            return self.inherited
        if own is None:
            return None
        return min(max(own, self.minimum), max(self.maximum, self.minimum)) + self.grace


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadCapture:
    """Which payloads the events carry. None by default: they may hold secrets and private data."""

    model_io: bool = False
    """Prompts, answers and streamed text."""
    tool_io: bool = False
    """Arguments and results of tools."""

    @classmethod
    def all(cls) -> "PayloadCapture":
        """Capture everything."""
        return cls(model_io=True, tool_io=True)

    def is_disabled(self) -> bool:
        """Whether nothing is captured."""
        return not (self.model_io or self.tool_io)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """How a run uses the response cache of its harness, and the prompt caches of providers."""

    response_cache_enabled: bool = True
    """Whether stored responses may answer; without a cache nothing follows from it."""
    multi_turn: bool = False
    """Let stored responses answer conversations too, and what follows tool calls."""
    ttl: float | None = None
    """Seconds until a response that is stored expires; ``None`` leaves it to the cache."""
    namespace: str | None = None
    """Keeps responses apart, such as those of tenants: only runs of the same namespace share them."""
    coalesce: bool = True
    """Let identical calls at the same time wait for the first of them and share its answer."""
    required: bool = False
    """Raise :class:`~tinyagents.harness.errors.CacheError` where the cache fails, and not go on."""
    protect_prompt_prefix: bool = False
    """Lay the prompt out in segments, so that providers cache its beginning, and tell of what loses it."""

    def __post_init__(self) -> None:
        if self.ttl is not None and not self.ttl > 0:
            raise ConfigurationError(
                f"`CachePolicy.ttl` is {self.ttl}: it is seconds, more than 0, or `None`"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """What a run does when something goes wrong, and how much it may use."""

    limits: RunLimits = field(default_factory=RunLimits)
    on_limit: LimitBehavior = "error"
    on_wall_clock: Literal["error", "stop_with_partial"] = "error"
    unknown_tool: UnknownToolPolicy = UnknownToolPolicy()
    invalid_args: InvalidArgsPolicy = "return_tool_error"
    tool_errors: ToolErrorPolicy = "return_to_model"
    tool_timeouts: ToolErrorPolicy = "return_to_model"
    refused_tools: ToolErrorPolicy = "fail"
    """A call that a hook refuses, or of a tool that was hidden: raise, or tell the model why."""
    tool_timeout_settings: ToolTimeoutSettings = ToolTimeoutSettings()
    retry: RetryPolicy = RetryPolicy()
    fallback: FallbackPolicy = FallbackPolicy()
    truncated_calls: Literal["fail", "tell_model"] = "tell_model"
    """When an answer was cut by the token limit with tool calls in it; none of them ever runs."""
    truncated_calls_retries: int = 2
    """How often in a row the model is told so before the run ends with the error."""
    truncated_empty_retries: int = 1
    """How often an empty answer cut by the token limit is asked for again, with a larger limit."""
    error_on_empty_response: bool = False
    """Raise when the final answer is blank."""
    structured_retries: int = 2
    """How often an answer that does not fit the asked-for type is asked for again."""
    default_response_format: "ResponseFormat | None" = None
    """What runs without an ``output`` of their own answer with; the value is their output."""
    unsupported: UnsupportedPolicy = "fail"
    """A request that holds what its model is known not to take, such as images or tools."""
    capture: PayloadCapture = PayloadCapture()
    cache: CachePolicy = CachePolicy()

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            chosen = getattr(self, name)
            if chosen not in allowed:
                raise ConfigurationError(
                    f"`RunPolicy.{name}` is {chosen!r}; it may be "
                    f"{', '.join(repr(value) for value in allowed)}"
                )

    @classmethod
    def strict(cls) -> "RunPolicy":
        """Return the defaults: whatever a caller could overlook raises."""
        return cls()

    @classmethod
    def resilient(cls) -> "RunPolicy":
        """Return the policy that goes on: the model or the caller gets what there is."""
        return cls(
            on_limit="stop_with_partial",
            on_wall_clock="stop_with_partial",
            unknown_tool=UnknownToolPolicy.return_tool_error(),
            invalid_args="normalize_then_return_tool_error",
            refused_tools="return_to_model",
            unsupported="degrade",
        )

    def with_limits(self, limits: RunLimits) -> "RunPolicy":
        """Return the policy with other limits."""
        return replace(self, limits=limits)
