"""The base class of middleware and what its hooks are given."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias

from pydantic import JsonValue
from typing_extensions import TypeVar

from ..context import RunContext
from ..message import AssistantMessage, Message
from ..model import MessageDelta, ModelRequest, ModelResponse, ToolCallDelta
from ..tool import Tool, ToolLike, ToolResult

if TYPE_CHECKING:
    from ..agent_loop import AgentRun
    from ..approval import ApprovalNeed, Approver, DecisionKind

DataT = TypeVar("DataT", default=Any)


@dataclass(slots=True)
class ToolCall:
    """A tool call on its way to the tool. Hooks may change its name and arguments."""

    id: str
    name: str
    arguments: dict[str, JsonValue]
    tool: Tool | None = None
    """The tool that will run; ``None`` while no tool of the name is known."""
    approvals: "list[ApprovalNeed] | None" = field(default=None, repr=False, compare=False)
    """What makes the call need approval: see :meth:`require_approval`."""
    refusal: str | None = None
    """Why the call is not run: see :meth:`refuse`."""
    answered: ToolResult | None = field(default=None, repr=False, compare=False)
    """What stands for the tool's result: see :meth:`answer`."""

    def require_approval(
        self,
        reason: str | None = None,
        *,
        when: Callable[[], bool | Awaitable[bool]] | None = None,
        approver: "Approver | None" = None,
        expires_in: float | None = None,
        allow: "Collection[DecisionKind] | None" = None,
        may_remember: bool = True,
    ) -> None:
        """Run the call only when somebody agrees; for ``before_tool`` hooks.

        Where several ask for it, one request states all their reasons and takes only what all of
        them take, and it is decided in place only where each has an approver; these are asked in
        turn, until one does not approve.

        Args:
            reason: Why, for whoever decides.
            when: Whether it is needed. Called once the call has been checked, so that its
                ``name``, ``tool`` and ``arguments`` are what will really run; what it raises ends
                the run.
            approver: Decides in place, while the other calls of the turn run. Without one, or where
                it returns ``None``, the run ends ``interrupted`` and is resumed with the decision.
            expires_in: Seconds from the request until it lapses.
            allow: The decisions that it takes; all of them by default, and a rejection always.
            may_remember: Whether an approval may stand for later calls of the run.

        Raises:
            ConfigurationError: There is no such decision, or the time is not above 0.
        """
        from ..approval import ALL_DECISIONS, ApprovalNeed

        need = ApprovalNeed(
            reason=reason,
            when=when,
            approver=approver,
            expires_in=expires_in,
            allow=ALL_DECISIONS if allow is None else tuple(allow),
            may_remember=may_remember,
        )
        self.approvals = [*(self.approvals or ()), need]

    def refuse(self, reason: str) -> None:
        """Do not run the call; for ``before_tool`` hooks. The hooks that follow do not see it.

        ``RunPolicy.refused_tools`` says whether the run ends with a ``ToolRefusedError`` or the
        model is told.

        Args:
            reason: Why, for the model too: a part of a sentence, without a full stop.
        """
        self.refusal = reason or "it is not allowed"

    def answer(self, result: ToolResult) -> None:
        """Do not run the call, and let this be its result; for ``before_tool`` hooks.

        The hooks that follow do not see the call, nobody is asked to approve it, and ``wrap_tool``
        hooks are not called; ``after_tool`` hooks are.
        """
        self.answered = result


@dataclass(slots=True)
class ToolDelta:
    """What a running tool reports."""

    call_id: str
    tool_name: str
    content: str


ModelDelta: TypeAlias = MessageDelta | ToolCallDelta
ModelHandler: TypeAlias = Callable[[ModelRequest], Awaitable[ModelResponse]]
ToolHandler: TypeAlias = Callable[[ToolCall], Awaitable[ToolResult]]


class DeltaFilter(Protocol):
    """What stands between the pieces of one streamed answer and whoever sees them."""

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        """Take the next piece, and return what is shown now: it, others in its place, or nothing."""
        ...

    def flush(self) -> Iterable[ModelDelta]:
        """Return what is still held back, at the end of an answer that came whole."""
        ...


MessageT = TypeVar("MessageT", bound=Message, default=Message)


class Redaction(Protocol):
    """What one run's texts and messages pass, so that what is to be hidden stays hidden."""

    def text(self, text: str) -> str:
        """Return any text of the run without it: of events, errors and logs."""
        ...

    def message(self, message: MessageT) -> MessageT:
        """Return a message without it."""
        ...

    def partial(self, message: AssistantMessage) -> AssistantMessage:
        """Return an answer that was broken off without it, nor what may have been its beginning."""
        ...

    def check(self) -> None:
        """Raise, or ask for a stop, where a message held what the run must not go on with."""
        ...


class Middleware(Generic[DataT]):
    """Looks at a run and changes it at fixed places. Override the hooks that you need.

    ``before_*`` and delta hooks run in the order of registration, ``after_*`` hooks in reverse,
    and wraps nest with the first registered outermost. Hooks change what they are given in place.
    One that is not overridden costs nothing. What a hook raises ends the run.

    A middleware is shared by the runs of its harness: what belongs to a run goes into the context.
    """

    @property
    def name(self) -> str:
        """How events and errors call it."""
        return type(self).__name__

    @property
    def tools(self) -> Sequence[ToolLike]:
        """Tools that an agent has because it has this middleware."""
        return ()

    async def before_agent(self, ctx: RunContext[DataT]) -> None:
        """Called once, before the first model call; not again when the run is resumed."""

    async def after_agent(self, ctx: RunContext[DataT], run: "AgentRun[Any, Any]") -> None:
        """Called when the run ends without an error, and when it stops to wait for answers."""

    async def compact(
        self, ctx: RunContext[DataT], messages: Sequence[Message]
    ) -> Sequence[Message] | None:
        """Called with the transcript before a run's first model call and after each turn of tools.

        What it returns takes the transcript's place for the rest of the run, in ``run.messages``
        too; ``None`` leaves it. Calls and results that have lost each other are mended.
        """

    async def before_model(self, ctx: RunContext[DataT], request: ModelRequest) -> None:
        """Called before each model call; a change of the request is sent and is not kept."""

    def filter_deltas(self, ctx: RunContext[DataT]) -> "DeltaFilter | None":
        """Return what the pieces of an answer pass before anybody sees them; not a coroutine.

        Called for each attempt at a streamed answer, so that a filter may remember what it has seen of
        it. Filters come before the ``on_model_delta`` hooks; the answer itself stays as it is. What
        an answer has of a kind (text, reasoning, refusal, tool calls) of which nothing was shown is
        shown whole, as the ``after_model`` hooks left it, when it is complete: so a filter that lets
        nothing pass holds an answer back until it was judged.
        """

    def redaction(self, ctx: RunContext[DataT]) -> "Redaction | None":
        """Return what hides something in all that leaves the run; not a coroutine.

        Called once, before the run begins. It sees what no other hook does: the input before anything
        is done with it, requests after the last hook, answers that were broken off, and the texts of
        events and errors.
        """

    async def on_model_delta(self, ctx: RunContext[DataT], delta: ModelDelta) -> None:
        """Called for each piece of a streamed answer; a change is shown, the answer stays as it is."""

    async def after_model(self, ctx: RunContext[DataT], response: ModelResponse) -> None:
        """Called with each answer before the run uses it."""

    async def before_tool(self, ctx: RunContext[DataT], call: ToolCall) -> None:
        """Called for each tool call before it is checked, in call order.

        ``call.tool`` is the tool that will really run. Where a hook gives the call to another tool,
        those that have seen it as it was see it again; so do all where a person has changed the
        arguments.
        """

    def on_tool_delta(self, ctx: RunContext[DataT], delta: ToolDelta) -> None:
        """Called for each report of a running tool, from inside it: not a coroutine."""

    async def after_tool(self, ctx: RunContext[DataT], call: ToolCall, result: ToolResult) -> None:
        """Called with each result, in call order, when the calls of the turn have ended."""

    async def before_steering(self, ctx: RunContext[DataT], command: object) -> None:
        """Called with each steering command before it is applied."""

    async def after_steering(self, ctx: RunContext[DataT], command: object) -> None:
        """Called with each steering command after it was applied."""

    async def on_error(self, ctx: RunContext[DataT], error: BaseException) -> None:
        """Called once when the run fails; what it raises itself is seen in the events only."""

    async def wrap_model(
        self, ctx: RunContext[DataT], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Stand around the model call: call ``call_next`` never, once or several times."""
        return await call_next(request)

    async def wrap_tool(
        self, ctx: RunContext[DataT], call: ToolCall, call_next: ToolHandler
    ) -> ToolResult:
        """Stand around the tool itself: call ``call_next`` never, once or several times."""
        return await call_next(call)
