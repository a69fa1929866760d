"""Who a run is and what it carries: its identity as data, and the live container around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_serializer
from typing_extensions import TypeVar

from .cancel import CancellationToken
from .clock import Clock, Sleep
from .cost import CostTotals
from .errors import InvalidRequestError
from .events import EventOrigin, EventSink
from .ids import IdGenerator, RunId, ThreadId
from .limits import RunLimits
from .text import clean_json, clean_text
from .usage import Usage, UsageTotals
from .workspace import WorkspaceDescriptor

if TYPE_CHECKING:
    from .model import ModelRegistry
    from .tool import ToolRegistry

__all__ = (
    "Control",
    "Interrupt",
    "Jump",
    "Pause",
    "RunConfig",
    "RunContext",
    "StopWithFinal",
)

DataT = TypeVar("DataT", default=Any)


class RunConfig(BaseModel):
    """Identity and policy of one run, as data that can be stored and sent."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    run_id: RunId = ""
    """A new one is made when it is empty."""
    parent_run_id: RunId | None = None
    root_run_id: RunId = ""
    """The run itself when it is empty."""
    thread_id: ThreadId | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, JsonValue] = Field(default_factory=lambda: {})
    configurable: Mapping[str, JsonValue] = Field(default_factory=lambda: {})
    """Values that the application's own tools and hooks read."""
    limits: RunLimits | None = None
    """Lowers the harness's limits for this run; it never raises one."""
    depth: Annotated[int, Field(ge=0)] = 0
    """How many runs this one is inside of."""
    workspace: WorkspaceDescriptor | None = None
    """The files that the run may touch: a part of what its harness and the run around it have."""

    @field_serializer("limits")
    def _only_what_is_set(self, limits: RunLimits | None) -> dict[str, Any] | None:
        # Loaded again, a default that was written out would lower what the harness allows.
        return None if limits is None else limits.model_dump(exclude_unset=True)


@dataclass(frozen=True, slots=True)
class StopWithFinal:
    """End the run with this text as its answer."""

    text: str
    label: ClassVar[str] = "stop_with_final"
    rank: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean_text(self.text))


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the run as interrupted; it can be resumed, in another process too."""

    message: str
    payload: JsonValue = None
    """What whoever answers needs to know; a copy is kept."""
    label: ClassVar[str] = "interrupt"
    rank: ClassVar[int] = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", clean_text(self.message))
        object.__setattr__(self, "payload", _as_json(self.payload, "an interrupt"))


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at another place: ask the ``model`` again, or go to the ``end``."""

    to: Literal["model", "end"]
    label: ClassVar[str] = "jump"
    rank: ClassVar[int] = 0


def _as_json(payload: JsonValue, whose: str) -> JsonValue:
    try:
        return clean_json(payload)
    except (TypeError, ValueError) as exc:
        raise InvalidRequestError(f"the payload of {whose} is no JSON: {exc}") from exc


@dataclass(frozen=True, slots=True)
class Pause:
    """End the run as paused; it goes on where it was when it is resumed."""

    reason: str | None = None
    label: ClassVar[str] = "paused"
    rank: ClassVar[int] = 1


Control: TypeAlias = StopWithFinal | Interrupt | Pause | Jump
"""What a hook can ask of the run; the strongest request of a turn wins."""


class RunContext(Generic[DataT]):
    """Everything that belongs to one run while it lives. Handed to hooks, models and tools.

    A run inside another one gets a context of its own, with the outer one as its ``parent``.
    """

    __slots__ = (
        "_post",
        "_thread",
        "answers",
        "cancellation",
        "clock",
        "config",
        "control",
        "cost",
        "data",
        "ended",
        "events",
        "hidden_tools",
        "ids",
        "limits",
        "model_call_id",
        "model_override",
        "models",
        "notes",
        "origin",
        "parent",
        "protects_prompt",
        "scratch",
        "sleep",
        "state",
        "streaming",
        "tools",
        "usage",
        "workspace",
    )

    def __init__(
        self,
        config: RunConfig,
        data: DataT,
        *,
        state: Any,
        events: EventSink,
        origin: EventOrigin,
        limits: RunLimits,
        clock: Clock,
        ids: IdGenerator,
        sleep: Sleep,
        cancellation: CancellationToken,
        tools: "ToolRegistry",
        models: "ModelRegistry",
        streaming: bool = False,
        parent: "RunContext[Any] | None" = None,
        usage: UsageTotals | None = None,
        cost: CostTotals = CostTotals.ZERO,
        answers: Mapping[str, JsonValue] | None = None,
        hidden_tools: dict[str, str] | None = None,
        notes: dict[str, JsonValue] | None = None,
        workspace: WorkspaceDescriptor | None = None,
        protects_prompt: bool = False,
    ) -> None:
        self.config: RunConfig = config
        self.data: DataT = data
        """The application's dependencies for this run."""
        self.state: Any = state
        """The application's own object, as it was passed in."""
        self.events: EventSink = events
        self.origin: EventOrigin = origin
        self.limits: RunLimits = limits
        self.clock: Clock = clock
        self.ids: IdGenerator = ids
        self.sleep: Sleep = sleep
        self.cancellation: CancellationToken = cancellation
        self.tools: ToolRegistry = tools
        """The tools that the run has, those that are hidden from the model too."""
        self.models: ModelRegistry = models
        """The models that the run has: ``models.resolve(request)`` tells which would answer."""
        self.model_call_id: str | None = None
        """The id of the latest model call, by which its events and pieces call it."""
        self.model_override: str | None = None
        """The registered name of the model that was chosen for this run; the usual one where ``None``."""
        self.streaming: bool = streaming
        self.parent: RunContext[Any] | None = parent
        self.usage: UsageTotals = usage if usage is not None else UsageTotals()
        """The tokens of the run so far, those of runs inside it too."""
        self.cost: CostTotals = cost
        """The cost of the run so far, that of runs inside it too."""
        self.answers: Mapping[str, JsonValue] = answers or {}
        """What was answered to the :class:`Interrupt` requests of hooks, in the order of asking."""
        self.hidden_tools: dict[str, str] = hidden_tools if hidden_tools is not None else {}
        """Tools whose calls are refused until the next model call, each with who has hidden it.

        They are part of the snapshot, so that a run that is resumed does not forget them.
        """
        self.notes: dict[str, JsonValue] = notes if notes is not None else {}
        """What middlewares keep with the run, as JSON, each under a key of its own.

        It is part of the snapshot, so that a run that is resumed still has it; see ``scratch`` for
        what need not last.
        """
        self.scratch: dict[object, Any] = {}
        """What middlewares note for this run, each under a key of its own, such as itself.

        It lives as long as this context: a run that is resumed begins with nothing in it.
        """
        self.workspace: WorkspaceDescriptor | None = workspace
        """The files that the run may touch; ``None`` where nobody has said."""
        self.protects_prompt: bool = protects_prompt
        """Whether the policy is to keep the beginning of prompts as providers cache it."""
        self.ended: bool = False
        """Whether the run has ended: nothing that is emitted now is recorded."""
        self.control: Control | None = None
        """What was asked of the run and has not taken effect yet."""
        self._post: Callable[[Callable[[], None]], None] | None = None
        self._thread = 0
        """The thread of the run's event loop, known once tools run in other threads."""

    @property
    def run_id(self) -> RunId:
        """The run's id."""
        return self.origin.run_id

    @property
    def root_run_id(self) -> RunId:
        """The id of the outermost run around this one."""
        return self.origin.root_run_id

    @property
    def parent_run_id(self) -> RunId | None:
        """The id of the run that started this one."""
        return self.origin.parent_run_id

    @property
    def thread_id(self) -> ThreadId | None:
        """The conversation that the run is part of."""
        return self.origin.thread_id

    @property
    def depth(self) -> int:
        """How many runs this one is inside of."""
        return self.origin.depth

    def emit(self, kind: str, **payload: Any) -> None:
        """Record an event of this run; ``payload`` holds the fields of its kind.

        A tool may call it from its worker thread: the event is recorded by the run's event loop.
        After the end of the run nothing is recorded any more.
        """
        if self._post is None:
            self._emit(kind, payload)
        else:
            self._post(partial(self._emit, kind, payload))

    def emit_custom(self, name: str, payload: JsonValue = None) -> None:
        """Record an event of the application's own: a copy of ``payload``.

        Raises:
            InvalidRequestError: The payload has no JSON form.
        """
        self.emit("custom", name=name, payload=_as_json(payload, f"the event `{name}`"))

    def add_usage(self, usage: Usage | None) -> None:
        """Count a model call for this run and all runs around it; ``None`` is not known."""
        context: RunContext[Any] | None = self
        while context is not None:
            context.usage.add(usage)
            context = context.parent

    def add_cost(self, cost: CostTotals) -> None:
        """Count what a call cost for this run and all runs around it."""
        context: RunContext[Any] | None = self
        while context is not None:
            context.cost = context.cost + cost
            context = context.parent

    def request_control(self, control: Control) -> None:
        """Ask the run to stop, pause, interrupt or jump at its next boundary.

        Of several requests the strongest wins: an interrupt over a stop over a pause over a jump;
        of equals the first.
        """
        if self.control is None or control.rank > self.control.rank:
            self.control = control

    def take_control(self) -> Control | None:
        """Return the pending request, if there is one, and forget it."""
        control, self.control = self.control, None
        return control

    def loggable(self, error: BaseException) -> BaseException:
        """Return an exception for a log, without what the run hides; it is cleaned in place."""
        if self.origin.redact is None:
            return error
        from .redaction import redact_error

        return redact_error(self.origin.redact, error)

    def enter_thread(self, post: Callable[[Callable[[], None]], None]) -> None:
        """From now on tools may emit from other threads; ``post`` reaches the run's event loop."""
        self._post = post
        self._thread = get_ident()

    def is_foreign_thread(self) -> bool:
        """Whether the caller is a tool in another thread than the run's event loop."""
        return self._post is not None and get_ident() != self._thread

    def _emit(self, kind: str, payload: dict[str, Any]) -> None:
        if not self.ended:
            self.events.emit(kind, self.origin, payload)
