"""AgentHarness: an agent as a value, and the ways to run it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, overload

import anyio
from typing_extensions import Unpack

from ..agent_loop import AgentRun, AgentSpec, RunSnapshot, drive, step
from ..clock import Clock, Sleep, SystemClock
from ..concurrency import in_event_loop
from ..context import RunConfig
from ..errors import ConfigurationError, InvalidRequestError, ResumeError
from ..events import ListenerLike
from ..ids import IdGenerator, RandomIds
from ..limits import RunLimits
from ..middleware import Middleware, MiddlewareStack
from ..model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRegistry,
    ModelResponse,
    ModelSettings,
    ResponseFormat,
)
from ..options import check_list
from ..policy import RunPolicy
from ..structured import OutputSpec, OutputType, OutputValidator, check_validators, spec_of_format
from ..tool import ToolContext, ToolLike, ToolRegistry
from ._handle import ChunkLog, RunHandle
from ._open import (
    as_messages,
    begin,
    check_fallbacks,
    event_listeners,
    model_registry,
    new_snapshot,
    open_run,
    own_token,
    stream_modes,
    system_prompt,
    with_model,
)
from ._options import DEFAULT_MODES, AgentInput, ModelLike, RunOptions, SystemPrompt
from ._production import Production
from ._resume import continued, copied, reconfigured
from ._stream import AgentStream
from ._workspace import WorkspaceLike, workspace_parts

if TYPE_CHECKING:
    from ..cache import AttachedCache, ResponseCache
    from ..stream import StreamMode

StateT = TypeVar("StateT")
T = TypeVar("T")


class AgentHarness:
    """An agent: models, tools, instructions and policies, shared freely by any number of runs.

    It never changes once it is built; :meth:`replace` makes a changed copy. What belongs to a run
    is in the run's own objects.

    Args:
        model: The model, registered as ``default``; or the name of one of ``models`` to use.
        models: Further models by name. The first one is the default when ``model`` is not given.
        tools: Tools, or functions to make tools of.
        middleware: Hooks around the agent, its model calls and its tool calls; tools of theirs are
            added to the agent's own.
        system: Instructions for the model: text, a message, a :class:`PromptTemplate` that is filled
            from the run's ``data`` and ``config.configurable``, or a function of the run's context.
            They go with each call and are not part of the transcript.
        policy: What happens when something goes wrong; :meth:`RunPolicy.strict` by default.
        limits: How much a run may use; replaces the policy's own limits.
        settings: How the models answer, such as the temperature.
        listeners: Functions or objects that see every event of every run.
        clock: Tells the time; a test's own where time must stand still.
        ids: Makes identifiers; a test's own where they must repeat.
        sleep: Waits between attempts; a test's own where nothing should wait.
        name: What events call the agent.
        workspace: The files that tools may touch: a folder, a :class:`WorkspaceDescriptor`, or a
            :class:`WorkspaceIsolation`, which gives each run files of its own.
        output_validators: Functions that look at the typed answer of every run before it is used:
            see :data:`~tinyagents.harness.structured.OutputValidator`.
        cache: Keeps responses, which answer the same request the next time: see
            :mod:`tinyagents.harness.cache`. ``RunPolicy.cache`` says for which calls.

    Raises:
        ConfigurationError: No model is given, or ``model`` names none of ``models``; or
            ``workspace``, ``cache``, a validator or the policy's response format is none.
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
        workspace: WorkspaceLike | None = None,
        output_validators: Sequence[OutputValidator] = (),
        cache: "ResponseCache | None" = None,
    ) -> None:
        policy = policy or RunPolicy()
        if limits is not None:
            policy = policy.with_limits(limits)
        shared, isolation = workspace_parts(workspace)
        check_list("tools", tools)
        stack = MiddlewareStack(middleware)
        self._spec = AgentSpec(
            name=name or "agent",
            models=model_registry(model, models or {}),
            tools=ToolRegistry((*tools, *stack.tools)),
            middleware=stack,
            system=system_prompt(system),
            settings=settings or ModelSettings(),
            policy=policy,
            clock=clock or SystemClock(),
            ids=ids or RandomIds(),
            sleep=sleep or anyio.sleep,
            listeners=event_listeners(listeners),
            output=_default_output(policy),
            output_validators=check_validators(output_validators),
            workspace=shared,
            isolation=isolation,
            cache=_attached(cache),
        )
        check_fallbacks(policy, self._spec.models)

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
        workspace: WorkspaceLike | None = None,
        output_validators: Sequence[OutputValidator] | None = None,
        cache: "ResponseCache | None" = None,
    ) -> "AgentHarness":
        """Return a copy with what is given in place of its own; what is ``None`` stays."""
        old = self._spec
        changed_policy = policy or old.policy
        if limits is not None:
            changed_policy = changed_policy.with_limits(limits)
        shared, isolation = old.workspace, old.isolation
        if workspace is not None:
            shared, isolation = workspace_parts(workspace)
        check_list("tools", tools or ())
        stack, own = old.middleware, tools
        if middleware is not None:
            stack = MiddlewareStack(middleware)
            own = old.tools.without_tools(*old.middleware.tools.names) if tools is None else tools
        spec = replace_fields(
            old,
            name=name or old.name,
            models=_changed_models(old.models, model, models),
            tools=old.tools if own is None else ToolRegistry((*own, *stack.tools)),
            middleware=stack,
            system=old.system if system is None else system_prompt(system),
            policy=changed_policy,
            settings=settings or old.settings,
            listeners=old.listeners if listeners is None else event_listeners(listeners),
            output=old.output if policy is None else _default_output(policy),
            output_validators=(
                old.output_validators
                if output_validators is None
                else check_validators(output_validators)
            ),
            clock=clock or old.clock,
            ids=ids or old.ids,
            sleep=sleep or old.sleep,
            workspace=shared,
            isolation=isolation,
            cache=old.cache if cache is None else _attached(cache),
        )
        check_fallbacks(changed_policy, spec.models)
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
        output: Callable[..., Awaitable[T]],
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    async def invoke(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: OutputType[T],
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
            output: What the final answer must be: a type, a function that takes it, a list of these,
                a JSON schema, or one of them in an :class:`~tinyagents.harness.structured.Output`.
            options: ``data`` (the run's dependencies, ``ctx.data`` for tools and hooks), ``config``
                (a :class:`RunConfig`: identity, tags, lower limits), ``context`` (the run that this
                one is part of; or a tool's own context, and then the tool call waits for what this
                run waits for, and goes on with it), ``model`` and ``tools`` (others for this run),
                ``cancellation`` (a token that stops the run) and ``answers`` (with a snapshot, to
                its interrupts).

        Raises:
            InvalidRequestError: The input is empty, or cannot work.
            TinyAgentsError: What ended the run, with the run so far as ``error.run``.
        """
        call = options.get("context")
        if isinstance(call, ToolContext):
            from ._nested import invoke_in_call

            return await invoke_in_call(self._spec, call, state, input, output, options)
        return await drive(
            open_run(self._spec, state, begin(self._spec, input, options), output, options)
        )

    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: None = None,
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, None]: ...
    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Callable[..., Awaitable[T]],
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, T]: ...
    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: OutputType[T],
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, T]: ...
    @overload
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any,
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, Any]: ...
    def stream(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any = None,
        modes: "Iterable[StreamMode] | StreamMode" = DEFAULT_MODES,
        **options: Unpack[RunOptions],
    ) -> AgentStream[StateT, Any]:
        """Run the agent and hand out what happens piece by piece; the consumer owns the run.

        The run begins with the first step of the iteration.

        Args:
            state: The application's own object, handed on to tools and hooks as it is.
            input: The user's words, messages, or a snapshot to go on from.
            output: What the final answer must be: a type, a function that takes it, a list of these,
                a JSON schema, or one of them in an :class:`~tinyagents.harness.structured.Output`.
            modes: Which chunks the stream holds: see :mod:`tinyagents.harness.stream`.
            options: Those of :meth:`invoke`.

        Raises:
            InvalidRequestError: The input is empty, or a mode is unknown. Everything else is raised
                by the iteration.
        """
        token = options["cancellation"] = own_token(options)
        wanted = stream_modes(modes)
        snapshot = begin(self._spec, input, options)
        return AgentStream(open_run(self._spec, state, snapshot, output, options), token, wanted)

    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: None = None,
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, None]: ...
    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Callable[..., Awaitable[T]],
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, T]: ...
    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: OutputType[T],
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, T]: ...
    @overload
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any,
        modes: "Iterable[StreamMode] | StreamMode" = ...,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, Any]: ...
    def start(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: Any = None,
        modes: "Iterable[StreamMode] | StreamMode" = DEFAULT_MODES,
        **options: Unpack[RunOptions],
    ) -> RunHandle[StateT, Any]:
        """Begin a run in the background and return a handle to it; call it inside an event loop.

        Args:
            state: The application's own object, handed on to tools and hooks as it is.
            input: The user's words, messages, or a snapshot to go on from.
            output: What the final answer must be: a type, a function that takes it, a list of these,
                a JSON schema, or one of them in an :class:`~tinyagents.harness.structured.Output`.
            modes: Which chunks the handle keeps for its subscribers, from the first one on: see
                :mod:`tinyagents.harness.stream`. With ``()`` it keeps none.
            options: Those of :meth:`invoke`.

        Raises:
            InvalidRequestError: The input is empty, a mode is unknown, or there is no event loop.
                Everything else is raised by the handle.
        """
        if not in_event_loop():
            raise InvalidRequestError(
                "`start` was called outside an event loop, in which the run would live: call it "
                "from a coroutine, or use `invoke_sync`"
            )
        token = options["cancellation"] = own_token(options)
        wanted = stream_modes(modes)
        snapshot = begin(self._spec, input, options)
        run = open_run(self._spec, state, snapshot, output, options)
        log = ChunkLog()
        production: Production[StateT, Any] = Production(run, token, log, wanted)
        production.start()
        return RunHandle(production, log)

    @overload
    async def resume(
        self,
        snapshot: RunSnapshot | str | bytes | Mapping[str, Any],
        state: StateT,
        *,
        output: None = None,
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, None]: ...
    @overload
    async def resume(
        self,
        snapshot: RunSnapshot | str | bytes | Mapping[str, Any],
        state: StateT,
        *,
        output: Callable[..., Awaitable[T]],
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    async def resume(
        self,
        snapshot: RunSnapshot | str | bytes | Mapping[str, Any],
        state: StateT,
        *,
        output: OutputType[T],
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    async def resume(
        self,
        snapshot: RunSnapshot | str | bytes | Mapping[str, Any],
        state: StateT,
        *,
        output: Any,
        input: AgentInput | None = ...,
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, Any]: ...
    async def resume(
        self,
        snapshot: RunSnapshot | str | bytes | Mapping[str, Any],
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
            output: What the final answer must be: a type, a function that takes it, a list of these,
                a JSON schema, or one of them in an :class:`~tinyagents.harness.structured.Output`.
            options: See :class:`RunOptions`; ``answers`` holds the answers to the run's interrupts.

        Raises:
            ResumeError: The snapshot cannot go on, or not with these answers.
            TinyAgentsError: What ended the run, with the run so far as ``error.run``.
        """
        snapshot = continued(
            snapshot, options.get("answers"), [] if input is None else as_messages(input)
        )
        snapshot = reconfigured(snapshot, options.get("config"))
        return await drive(open_run(self._spec, state, snapshot, output, options))

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
        a run whose phase is ``done`` has ended. The limit ``wall_clock`` does not hold here: how
        long a run waits between its phases, and how long one may take, is the engine's to say.

        A run that waits is taken up with its ``answers``.

        Raises:
            ResumeError: The run has ended, or waits for other answers.
            TinyAgentsError: What ended the run, with the run so far as ``error.run``.
        """
        answers = options.get("answers")
        if answers is not None:
            snapshot = continued(snapshot, answers, [])
        elif snapshot.phase == "done":
            raise ResumeError(f"the run has ended as `{snapshot.status}`: there is no next phase")
        else:
            snapshot = copied(snapshot)
        snapshot = reconfigured(snapshot, options.get("config"))
        run = open_run(self._spec, state, snapshot, output, options, announce=answers is not None)
        await step(run)
        return run.result().snapshot

    def snapshot(self, input: AgentInput, *, config: RunConfig | None = None) -> RunSnapshot:
        """Return the state of a run that has not begun, for :meth:`step`.

        Raises:
            InvalidRequestError: The input is empty.
        """
        return new_snapshot(self._spec, as_messages(input), config, None)

    async def invoke_model(
        self, input: AgentInput, *, output: Any = None, **options: Unpack[RunOptions]
    ) -> ModelResponse:
        """Call the model once, without the loop: no tool is run.

        Hooks, retries, fallbacks, limits and events are those of a run. Tools are offered only
        when they are given here; what the model calls of them is for the caller.

        Args:
            input: The user's words or messages.
            output: The type that the answer must have; the value is the response's ``structured``.
            options: Those of :meth:`invoke`.

        Raises:
            InvalidRequestError: The input is empty, or cannot work; or a hook has stopped the call.
            TinyAgentsError: The call failed.
        """
        options.setdefault("tools", ())
        run = open_run(self._spec, None, begin(self._spec, input, options), output, options)
        run.single_call = True
        finished = await drive(run)
        response = finished.response
        withheld = finished.snapshot.final_text is not None
        if response is None or withheld or finished.status in ("interrupted", "paused"):
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
        output: Callable[..., Awaitable[T]],
        **options: Unpack[RunOptions],
    ) -> AgentRun[StateT, T]: ...
    @overload
    def invoke_sync(
        self,
        state: StateT,
        input: AgentInput | RunSnapshot,
        *,
        output: OutputType[T],
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
            run: AgentRun[StateT, Any] = await self.invoke(state, input, output=output, **options)
            return run

        return anyio.run(main)


def _changed_models(
    old: ModelRegistry, model: ModelLike | None, models: Mapping[str, ModelLike] | None
) -> ModelRegistry:
    if models is not None:
        return model_registry(model, models)
    return old if model is None else with_model(old, model)


def _default_output(policy: RunPolicy) -> OutputSpec[Any] | None:
    wanted = policy.default_response_format
    if wanted is None:
        return None
    if not _is_format(wanted):
        raise ConfigurationError(
            f"`RunPolicy.default_response_format` is {wanted!r}: pass a `JsonSchemaFormat` or a "
            "`JsonObjectFormat`, and types as the `output` of a run"
        )
    return spec_of_format(wanted)


def _is_format(wanted: object) -> TypeGuard[ResponseFormat]:
    return isinstance(wanted, JsonObjectFormat | JsonSchemaFormat)


def _attached(cache: "ResponseCache | None") -> "AttachedCache | None":
    if cache is None:
        return None
    from ..cache import attach

    return attach(cache)
