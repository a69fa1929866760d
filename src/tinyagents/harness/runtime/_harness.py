"""AgentHarness: an agent as a value, and the ways to run it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, overload

import anyio
from typing_extensions import TypedDict, Unpack

from ..agent_loop import (
    AgentRun,
    AgentSpec,
    LoopRun,
    RunSnapshot,
    SystemFunction,
    drive,
    step,
)
from ..cancel import CancellationToken
from ..clock import Clock, Sleep, SystemClock
from ..concurrency import in_event_loop
from ..context import RunConfig, RunContext
from ..errors import ConfigurationError, InvalidRequestError, ResumeError
from ..events import EventOrigin, EventSink, ListenerLike
from ..ids import IdGenerator, RandomIds
from ..limits import RunLimits
from ..message import (
    AssistantMessage,
    Message,
    MessageBase,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from ..middleware import Middleware, MiddlewareStack
from ..model import ChatModel, ModelRegistry, ModelResponse, ModelSettings
from ..policy import RunPolicy
from ..structured import OutputSpec
from ..tool import Tool, ToolRegistry
from ._handle import ChunkLog, RunHandle
from ._resume import continued, copied
from ._stream import AgentStream

if TYPE_CHECKING:
    from ..stream import StreamMode

StateT = TypeVar("StateT")
T = TypeVar("T")

AgentInput: TypeAlias = str | MessageBase | Sequence[MessageBase]
"""What a run is given: the user's words, a message, or a whole history.

Written with the base class, which is what type checkers make of a list of several kinds.
"""

ModelLike: TypeAlias = ChatModel | str
"""A model, or a name such as ``openai:gpt-5-mini`` that makes one."""

ToolLike: TypeAlias = Tool | Callable[..., Any]
"""A tool, or a function to make one of."""


class RunOptions(TypedDict, total=False):
    """What every way of running an agent can be told besides its input."""

    data: Any
    """The run's dependencies, handed to tools and hooks as ``ctx.data``."""
    config: RunConfig | None
    """The run's identity, tags, metadata, and lower limits."""
    context: RunContext[Any] | None
    """The run that this one is part of, as a sub-agent is."""
    model: ModelLike | None
    """Another model for this run: a registered name, a model, or ``provider:model``."""
    tools: Iterable[ToolLike] | None
    """Other tools for this run."""
    cancellation: CancellationToken | None
    """A token that stops the run when it is cancelled."""
    answers: Any
    """Answers to the interrupts of a snapshot: a mapping from their ids, or the one answer."""


SystemPrompt: TypeAlias = str | SystemMessage | SystemFunction | None
"""Instructions: text, a message, or a function that gives them for each model call."""

_DEFAULT_MODES: "tuple[StreamMode, ...]" = ("messages", "tools", "final")
_DEFAULT_MODEL = "default"


class AgentHarness:
    """An agent: models, tools, instructions and policies, shared freely by any number of runs.

    It never changes once it is built; :meth:`replace` makes a changed copy. What belongs to a run
    is in the run's own objects.

    Args:
        model: The model, registered as ``default``; or the name of one of ``models`` to use.
        models: Further models by name. The first one is the default when ``model`` is not given.
        tools: Tools, or functions to make tools of.
        middleware: Hooks around the agent, its model calls and its tool calls.
        system: Instructions for the model: text, a message, or a function of the run's context.
            They go with each call and are not part of the transcript.
        policy: What happens when something goes wrong; :meth:`RunPolicy.strict` by default.
        limits: How much a run may use; replaces the policy's own limits.
        settings: How the models answer, such as the temperature.
        listeners: Functions or objects that see every event of every run.
        clock: Tells the time; a test's own where time must stand still.
        ids: Makes identifiers; a test's own where they must repeat.
        sleep: Waits between attempts; a test's own where nothing should wait.
        name: What events call the agent.

    Raises:
        ConfigurationError: No model is given, or ``model`` names none of ``models``.
        DuplicateNameError: Two models or two tools share a name.
    """

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        models: Mapping[str, ModelLike] | None = None,
        tools: Iterable[ToolLike] = (),
        middleware: Sequence[Middleware[Any]] = (),
        system: SystemPrompt = None,
        policy: RunPolicy | None = None,
        limits: RunLimits | None = None,
        settings: ModelSettings | None = None,
        listeners: Sequence[ListenerLike] = (),
        clock: Clock | None = None,
        ids: IdGenerator | None = None,
        sleep: Sleep | None = None,
        name: str | None = None,
    ) -> None:
        policy = policy or RunPolicy()
        if limits is not None:
            policy = policy.with_limits(limits)
        self._spec = AgentSpec(
            name=name or "agent",
            models=_registry(model, models or {}),
            tools=ToolRegistry(tools),
            middleware=MiddlewareStack(middleware),
            system=_system(system),
            settings=settings or ModelSettings(),
            policy=policy,
            clock=clock or SystemClock(),
            ids=ids or RandomIds(),
            sleep=sleep or anyio.sleep,
            listeners=tuple(listeners),
        )

    @property
    def name(self) -> str:
        """What events call the agent."""
        return self._spec.name

    @property
    def models(self) -> ModelRegistry:
        """The models by name."""
        return self._spec.models

    @property
    def tools(self) -> ToolRegistry:
        """The tools by name."""
        return self._spec.tools

    @property
    def middleware(self) -> tuple[Middleware[Any], ...]:
        """The middlewares in the order of registration."""
        return self._spec.middleware.items

    @property
    def policy(self) -> RunPolicy:
        """What happens when something goes wrong."""
        return self._spec.policy

    def replace(
        self,
        *,
        model: ModelLike | None = None,
        models: Mapping[str, ModelLike] | None = None,
        tools: Iterable[ToolLike] | None = None,
        middleware: Sequence[Middleware[Any]] | None = None,
        system: SystemPrompt = None,
        policy: RunPolicy | None = None,
        limits: RunLimits | None = None,
        settings: ModelSettings | None = None,
        listeners: Sequence[ListenerLike] | None = None,
        clock: Clock | None = None,
        ids: IdGenerator | None = None,
        sleep: Sleep | None = None,
        name: str | None = None,
    ) -> "AgentHarness":
        """Return a copy with what is given in place of its own; what is ``None`` stays."""
        old = self._spec
        changed_policy = policy or old.policy
        if limits is not None:
            changed_policy = changed_policy.with_limits(limits)
        spec = replace_fields(
            old,
            name=name or old.name,
            models=old.models
            if model is None and models is None
            else _registry(model, models or {}),
            tools=old.tools if tools is None else ToolRegistry(tools),
            middleware=old.middleware if middleware is None else MiddlewareStack(middleware),
            system=old.system if system is None else _system(system),
            policy=changed_policy,
            settings=settings or old.settings,
            listeners=old.listeners if listeners is None else tuple(listeners),
            clock=clock or old.clock,
            ids=ids or old.ids,
            sleep=sleep or old.sleep,
        )
        copy = object.__new__(AgentHarness)
        copy._spec = spec
        return copy

    def __repr__(self) -> str:
        return f"AgentHarness({self.name!r}, models={self.models.names}, tools={self.tools.names})"

    @overload
    async def invoke(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: None = None,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, None]: ...
    @overload
    async def invoke(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: type[T],
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    async def invoke(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]: ...
    async def invoke(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any = None,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]:
        """Run the agent to its end.

        Args:
            state: The application's own object, handed on to tools and hooks as it is.
            input: The user's words, messages, or a snapshot to go on from.
            output: The type that the final answer must have, or a JSON schema.
            options: See :class:`RunOptions`.

        Raises:
            InvalidRequestError: The input is empty, or cannot work.
            TinyAgentsError: What ended the run, with the run so far as ``error.run``.
        """
        return await drive(self._open(state, self._begin(input, options), output, options))

    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: None = None,
        modes: "Iterable[StreamMode]" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, None]: ...
    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: type[T],
        modes: "Iterable[StreamMode]" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, T]: ...
    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any,
        modes: "Iterable[StreamMode]" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, Any]: ...
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any = None,
        modes: "Iterable[StreamMode]" = _DEFAULT_MODES,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, Any]:
        """Run the agent and hand out what happens piece by piece; the consumer owns the run.

        The run begins with the first step of the iteration.

        Args:
            state: The application's own object, handed on to tools and hooks as it is.
            input: The user's words, messages, or a snapshot to go on from.
            output: The type that the final answer must have, or a JSON schema.
            modes: Which chunks the stream holds: see :mod:`tinyagents.harness.stream`.
            options: See :class:`RunOptions`.

        Raises:
            InvalidRequestError: The input is empty, or a mode is unknown. Everything else is raised
                by the iteration.
        """
        token = options["cancellation"] = _own_token(options)
        wanted = _modes(modes)
        snapshot = self._begin(input, options)
        return AgentStream(self._open(state, snapshot, output, options), token, wanted)

    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: None = None,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, None]: ...
    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: type[T],
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, T]: ...
    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, Any]: ...
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any = None,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, Any]:
        """Begin a run in the background and return a handle to it; call it inside an event loop.

        Args:
            state: The application's own object, handed on to tools and hooks as it is.
            input: The user's words, messages, or a snapshot to go on from.
            output: The type that the final answer must have, or a JSON schema.
            options: See :class:`RunOptions`.

        Raises:
            InvalidRequestError: The input is empty. Everything else is raised by the handle.
        """
        token = options["cancellation"] = _own_token(options)
        snapshot = self._begin(input, options)
        return RunHandle(self._open(state, snapshot, output, options), ChunkLog(), token)

    @overload
    async def resume(
        self,
        snapshot: RunSnapshot,
        state: StateT,
        *,
        output: None = None,
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, None]: ...
    @overload
    async def resume(
        self,
        snapshot: RunSnapshot,
        state: StateT,
        *,
        output: type[T],
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    async def resume(
        self,
        snapshot: RunSnapshot,
        state: StateT,
        *,
        output: Any,
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]: ...
    async def resume(
        self,
        snapshot: RunSnapshot,
        state: StateT,
        *,
        input: AgentInput | None = None,
        output: Any = None,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]:
        """Go on with a run that was interrupted, paused or stopped, in this process or another one.

        Calls that have a result are not made again. The snapshot is not changed.

        Args:
            snapshot: The run's ``snapshot``, or what it was stored as.
            state: The application's own object; it is not part of the snapshot.
            input: What the user says now, added to the transcript.
            output: The type that the final answer must have, or a JSON schema.
            options: See :class:`RunOptions`; ``answers`` holds the answers to the run's interrupts.

        Raises:
            ResumeError: The snapshot cannot go on, or not with these answers.
            TinyAgentsError: What ended the run, with the run so far as ``error.run``.
        """
        snapshot = continued(snapshot, options.get("answers"), _messages(input) if input else [])
        return await drive(self._open(state, snapshot, output, options))

    async def step(
        self,
        snapshot: RunSnapshot,
        state: Any,
        *,
        output: Any = None,
        **options: Unpack[RunOptions],
    ) -> RunSnapshot:
        """Perform exactly one phase of a run and return the next snapshot.

        For engines that store the run between its phases. :meth:`snapshot` makes the first one;
        a run whose phase is ``done`` has ended.

        Raises:
            ResumeError: The run has ended.
            TinyAgentsError: What ended the run, with the run so far as ``error.run``.
        """
        if snapshot.phase == "done":
            raise ResumeError(f"the run has ended as `{snapshot.status}`: there is no next phase")
        run = self._open(state, copied(snapshot), output, options, announce=False)
        await step(run)
        return run.result().snapshot

    def snapshot(self, input: AgentInput, *, config: RunConfig | None = None) -> RunSnapshot:
        """Return the state of a run that has not begun, for :meth:`step`.

        Raises:
            InvalidRequestError: The input is empty.
        """
        return _new_snapshot(self._spec, _messages(input), config, None)

    async def invoke_model(
        self, input: AgentInput, *, output: Any = None, **options: Unpack[RunOptions]
    ) -> ModelResponse:
        """Call the model once, without the loop: no tool is run.

        Hooks, retries, fallbacks, limits and events are those of a run. Tools are offered only
        when they are given here; what the model calls of them is for the caller.

        Args:
            input: The user's words or messages.
            output: The type that the answer must have; the value is the response's ``structured``.
            options: See :class:`RunOptions`.

        Raises:
            InvalidRequestError: The input is empty, or cannot work.
            TinyAgentsError: The call failed.
        """
        options.setdefault("tools", ())
        run = self._open(None, self._begin(input, options), output, options)
        run.single_call = True
        finished = await drive(run)
        response = finished.response
        if response is None:
            raise InvalidRequestError(f"the call was stopped by a hook: {finished.reason}")
        response.structured = finished.output
        return response

    @overload
    def invoke_sync(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: None = None,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, None]: ...
    @overload
    def invoke_sync(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: type[T],
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    def invoke_sync(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]: ...
    def invoke_sync(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any = None,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]:
        """Run the agent to its end, from a script without an event loop: see :meth:`invoke`.

        Raises:
            InvalidRequestError: There is an event loop in this thread; await :meth:`invoke` there.
        """
        if in_event_loop():
            raise InvalidRequestError(
                "`invoke_sync` was called inside an event loop, which it would block: "
                "use `await harness.invoke(...)`"
            )

        async def main() -> AgentRun[StateT, Any]:
            return await self.invoke(state, input, output=output, **options)

        return anyio.run(main)

    def _begin(self, input: AgentInput | RunSnapshot, options: RunOptions) -> RunSnapshot:
        """Return the snapshot that a call begins with: a new run's, or the one to go on from."""
        if isinstance(input, RunSnapshot):
            return continued(input, options.get("answers"), [])
        return _new_snapshot(
            self._spec, _messages(input), options.get("config"), options.get("context")
        )

    def _open(
        self,
        state: Any,
        snapshot: RunSnapshot,
        output: Any,
        options: RunOptions,
        *,
        announce: bool = True,
    ) -> LoopRun:
        """Make the live run around a snapshot, which is the run's own from now on."""
        spec = self._spec
        parent = options.get("context")
        model, tools = options.get("model"), options.get("tools")
        if model is not None:
            spec = replace_fields(spec, models=_with_model(spec.models, model))
        registry = spec.tools if tools is None else ToolRegistry(tools)
        token = options.get("cancellation")
        ctx = _new_context(spec, snapshot, state, options.get("data"), parent, token)
        run = LoopRun(
            spec,
            snapshot,
            ctx,
            tools=registry,
            output=None if output is None else _output_spec(output),
            guarded=token is not None,
        )
        if snapshot.phase != "start":
            run.continue_from_snapshot(announce=announce)
        return run


_ALL_MODES: "frozenset[StreamMode]" = frozenset(("messages", "tools", "updates", "events", "final"))


def _modes(modes: "Iterable[StreamMode]") -> "frozenset[StreamMode]":
    wanted = frozenset(modes)
    if unknown := wanted - _ALL_MODES:
        names = ", ".join(sorted(f"`{mode}`" for mode in unknown))
        raise InvalidRequestError(
            f"unknown stream mode {names}; there are {', '.join(sorted(_ALL_MODES))}"
        )
    return wanted


def _own_token(options: RunOptions) -> CancellationToken:
    """Return a token that stops this run alone, and is cancelled with the one it was given."""
    outer = options.get("context")
    given = options.get("cancellation") or (outer.cancellation if outer is not None else None)
    return CancellationToken() if given is None else given.child()


def _system(system: SystemPrompt) -> SystemMessage | SystemFunction | None:
    if isinstance(system, str):
        return SystemMessage(content=system) if system else None
    return system


def _registry(model: ModelLike | None, models: Mapping[str, ModelLike]) -> ModelRegistry:
    named = {name: _as_model(item) for name, item in models.items()}
    if isinstance(model, str) and model in named:
        return ModelRegistry(named, default=model)
    if model is not None:
        return ModelRegistry({_DEFAULT_MODEL: _as_model(model), **named}, default=_DEFAULT_MODEL)
    if not named:
        raise ConfigurationError(
            "a harness needs a model: pass `model=` (a model, or a name such as "
            "`openai:gpt-5-mini`) or `models={name: model}`"
        )
    return ModelRegistry(named)


def _with_model(models: ModelRegistry, model: ModelLike) -> ModelRegistry:
    """Return a registry for one run whose default is ``model``."""
    known = {name: models.get(name) for name in models}
    if isinstance(model, str) and model in known:
        return ModelRegistry(known, default=model)
    known.pop(_DEFAULT_MODEL, None)
    return ModelRegistry({_DEFAULT_MODEL: _as_model(model), **known}, default=_DEFAULT_MODEL)


def _as_model(model: ModelLike) -> ChatModel:
    if not isinstance(model, str):
        return model
    from ..providers import resolve_model

    return resolve_model(model)


def _messages(input: AgentInput) -> list[Message]:
    if isinstance(input, str):
        return [UserMessage(content=input)] if input.strip() else _refuse_empty()
    given = [input] if isinstance(input, MessageBase) else input
    messages: list[Message] = []
    for message in given:
        if not isinstance(message, SystemMessage | UserMessage | AssistantMessage | ToolMessage):
            raise InvalidRequestError(
                f"the input holds a `{type(message).__name__}`, which is no message; "
                "`load_messages` reads messages from JSON"
            )
        messages.append(message)
    return messages or _refuse_empty()


def _refuse_empty() -> NoReturn:
    raise InvalidRequestError("the input is empty: pass the user's words or messages")


def _new_snapshot(
    spec: AgentSpec,
    messages: list[Message],
    config: RunConfig | None,
    parent: RunContext[Any] | None,
) -> RunSnapshot:
    run_id = (config.run_id if config is not None else "") or spec.ids.new("run")
    if config is None and parent is None:
        config = RunConfig(run_id=run_id, root_run_id=run_id)
    else:
        config = _placed(config or RunConfig(), run_id, parent)
    return RunSnapshot(config=config, messages=messages, input_length=len(messages))


def _placed(config: RunConfig, run_id: str, parent: RunContext[Any] | None) -> RunConfig:
    """Return the configuration with its place in the tree of runs filled in."""
    if parent is None:
        return config.model_copy(
            update={"run_id": run_id, "root_run_id": config.root_run_id or run_id}
        )
    own = parent.config
    return config.model_copy(
        update={
            "run_id": run_id,
            "parent_run_id": parent.run_id,
            "root_run_id": parent.root_run_id,
            "thread_id": config.thread_id or own.thread_id,
            "tags": tuple(dict.fromkeys((*own.tags, *config.tags))),
            "metadata": {**own.metadata, **config.metadata},
            "configurable": {**own.configurable, **config.configurable},
            "depth": own.depth + 1,
        }
    )


def _new_context(
    spec: AgentSpec,
    snapshot: RunSnapshot,
    state: Any,
    data: Any,
    parent: RunContext[Any] | None,
    token: CancellationToken | None,
) -> RunContext[Any]:
    config = snapshot.config
    origin = EventOrigin(
        run_id=config.run_id,
        root_run_id=config.root_run_id,
        parent_run_id=config.parent_run_id,
        thread_id=config.thread_id,
        component=spec.name,
        depth=config.depth,
        tags=config.tags,
    )
    if parent is not None:
        events, clock, ids, sleep = parent.events, parent.clock, parent.ids, parent.sleep
        token = token or parent.cancellation
        data = parent.data if data is None else data
    else:
        clock, ids, sleep = spec.clock, spec.ids, spec.sleep
        events = EventSink(
            config.root_run_id, clock, spec.listeners, next_offset=snapshot.next_event
        )
    return RunContext(
        config,
        data,
        state=state,
        events=events,
        origin=origin,
        limits=spec.policy.limits.tightened(config.limits),
        clock=clock,
        ids=ids,
        sleep=sleep,
        cancellation=token or CancellationToken(),
        parent=parent,
        usage=snapshot.usage,
        cost=snapshot.cost,
    )


def _output_spec(output: Any) -> OutputSpec[Any]:
    return output if isinstance(output, OutputSpec) else OutputSpec(output)
