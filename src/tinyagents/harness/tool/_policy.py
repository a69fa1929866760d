"""What a tool does and needs, as data that hosts and middleware decide by."""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, model_validator

from ..errors import ConfigurationError

ToolTimeout: TypeAlias = Annotated[float, Field(gt=0)] | None | Literal["inherit"]
"""Seconds, ``None`` for no limit, or whatever the run says for tools that set none."""


SideEffect: TypeAlias = Literal[
    "writes_files", "network", "installs_dependencies", "destructive", "external_service", "payment"
]
"""What a call may do beyond giving its result."""

SIDE_EFFECTS: tuple[SideEffect, ...] = get_args(SideEffect)


class ToolSideEffects(BaseModel):
    """What a call may change."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    read_only: bool = False
    writes_files: bool = False
    network: bool = False
    installs_dependencies: bool = False
    destructive: bool = False
    external_service: bool = False
    payment: bool = False

    @property
    def named(self) -> tuple[SideEffect, ...]:
        """The names of those that are set; ``read_only`` is none."""
        return tuple(name for name in SIDE_EFFECTS if getattr(self, name))


class ToolRuntime(BaseModel):
    """How a call runs."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    timeout: ToolTimeout = "inherit"
    """Holds for the call as a whole, its retries included."""
    max_retries: NonNegativeInt = 0
    """How often a failed call is made again; only ever done where ``idempotent`` is set."""
    idempotent: bool = False
    """Doing it twice is the same as doing it once."""
    exclusive: bool = False
    """No other tool of the turn runs at the same time."""
    cancelable: bool = False
    """Leaves nothing half done when it is cancelled."""
    sandbox: Literal["inherit", "disabled", "required"] = "inherit"
    max_result_chars: PositiveInt | None = None
    """How much text of a result the model gets; what is longer is cut, and says so."""
    max_result_bytes: PositiveInt | None = None
    """How many bytes of UTF-8 the text of a result may have; ``ToolPolicyMiddleware`` enforces it."""
    streaming: bool = False
    """Reports progress while it runs."""


class ToolAccess(BaseModel):
    """What a call needs to be allowed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    workspace: Literal["none", "scoped", "any"] = "none"
    trusted_roots: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    """The names of the credentials that it uses, never their values."""
    approval_required: bool = False
    """A call runs only when somebody agrees."""
    background_safe: bool = False


class ToolDisplay(BaseModel):
    """How a call is shown to people."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    label: str | None = None
    detail: str | None = None


class ToolPolicy(BaseModel):
    """What a tool does and needs. The harness describes it; middleware and hosts enforce it.

    Only ``runtime`` and ``access.approval_required`` steer the harness itself.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    classified: bool = False
    """Somebody has judged the tool; set by giving side effects, runtime or access."""
    side_effects: ToolSideEffects = ToolSideEffects()
    runtime: ToolRuntime = ToolRuntime()
    access: ToolAccess = ToolAccess()
    display: ToolDisplay = ToolDisplay()

    @model_validator(mode="before")
    @classmethod
    def _classify(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        given = cast("dict[str, Any]", values)
        if "classified" in given or not given.keys() & {"side_effects", "runtime", "access"}:
            return given
        return {**given, "classified": True}

    @classmethod
    def read_only(cls) -> "ToolPolicy":
        """Return the policy of a tool that only looks: it may be repeated, cut and run unwatched."""
        return cls(
            side_effects=ToolSideEffects(read_only=True),
            runtime=ToolRuntime(idempotent=True, cancelable=True),
            access=ToolAccess(background_safe=True),
        )

    @classmethod
    def affecting(
        cls,
        *effects: SideEffect,
        approval_required: bool = False,
        background_safe: bool = False,
    ) -> "ToolPolicy":
        """Return the policy of a tool with side effects: ``ToolPolicy.affecting("payment")``.

        Args:
            effects: What a call does beyond giving its result.
            approval_required: Somebody has to agree to each call.
            background_safe: It may run while nobody watches.

        Raises:
            ConfigurationError: There is no such side effect.
        """
        if unknown := [name for name in effects if name not in SIDE_EFFECTS]:
            raise ConfigurationError(
                f"there is no side effect {unknown[0]!r}; there are {', '.join(SIDE_EFFECTS)}"
            )
        return cls(
            side_effects=ToolSideEffects(**dict.fromkeys(effects, True)),
            access=ToolAccess(approval_required=approval_required, background_safe=background_safe),
        )

    @property
    def has_side_effects(self) -> bool:
        """Whether a call may change anything, as far as the policy says."""
        return bool(self.side_effects.named)
