"""Opening a run: from what the caller gives to the live run that the loop drives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from typing_extensions import TypeIs

from ..agent_loop import AgentSpec, LoopRun, RunSnapshot, SystemFunction
from ..cancel import CancellationToken
from ..context import RunConfig, RunContext
from ..errors import ConfigurationError, InvalidRequestError, ResumeError
from ..events import EventOrigin, EventSink, ListenerLike
from ..message import (
    AssistantMessage,
    Message,
    MessageBase,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from ..model import ChatModel, ModelRegistry
from ..policy import RunPolicy
from ..prompt import PromptTemplate
from ..structured import output_spec
from ..tool import ToolContext, ToolRegistry
from ._options import AgentInput, ModelLike, RunOptions, SystemPrompt
from ._resume import check_config, continued, reconfigured
from ._workspace import run_workspace

if TYPE_CHECKING:
    from ..stream import StreamMode

_DEFAULT_MODEL = "default"


def begin(spec: AgentSpec, input: AgentInput | RunSnapshot, options: RunOptions) -> RunSnapshot:
    """Return the snapshot that a call begins with: a new run's, or the one to go on from."""
    if isinstance(input, RunSnapshot):
        snapshot = continued(input, options.get("answers"), [])
        return reconfigured(snapshot, options.get("config"))
    if options.get("answers") is not None:
        raise InvalidRequestError(
            "`answers` belong to the snapshot of a run that waits for them: pass it as the input, "
            "or use `resume`"
        )
    return new_snapshot(spec, as_messages(input), options.get("config"), _parent(options))


def open_run(
    spec: AgentSpec,
    state: Any,
    snapshot: RunSnapshot,
    output: Any,
    options: RunOptions,
    *,
    announce: bool = True,
    check: bool = True,
) -> LoopRun:
    """Make the live run around a snapshot, which is the run's own from now on.

    Args:
        spec: The agent.
        state: The application's own object.
        snapshot: The run's state.
        output: The type of its answer.
        options: What the call was told.
        announce: Whether an event says that it goes on.
        check: Whether answers that do not fit are refused; the loop would ask for others.

    Raises:
        TypeError: There is no option of that name.
        ResumeError: The snapshot needs an output type to go on.
        ApprovalError: What was answered to a call does not fit its tool.
        InvalidRequestError: The run around it is none, or belongs to another thread.
    """
    if unknown := options.keys() - RunOptions.__optional_keys__:
        names = ", ".join(f"`{name}`" for name in sorted(unknown))
        known = ", ".join(sorted(RunOptions.__optional_keys__))
        hint = "; limits go into config=RunConfig(limits=…)" if "limits" in unknown else ""
        raise TypeError(f"a run has no option {names}; there are {known}{hint}")
    if snapshot.phase == "structured" and output is None and spec.output is None:
        raise ResumeError("the run's typed answer is yet to be read: pass `output=` as before")
    parent = _parent(options)
    if parent is not None and parent.is_foreign_thread():
        raise InvalidRequestError(
            "a run inside another one needs that one's event loop, and a tool that is a plain `def` "
            "runs in a thread: make it `async def` and await the inner run"
        )
    model, tools, override = options.get("model"), options.get("tools"), None
    if model is not None:
        models, override = _with_override(spec.models, model)
        spec = replace(spec, models=models)
    registry = spec.tools if tools is None else ToolRegistry(tools)
    token = options.get("cancellation")
    ctx = _new_context(spec, snapshot, registry, state, options.get("data"), parent, token)
    run = LoopRun(
        spec,
        snapshot,
        ctx,
        tools=registry,
        output=spec.output if output is None else output_spec(output),
        guarded=token is not None,
        override=override,
    )
    if check and any(call.interrupt for call in snapshot.pending):
        from ..agent_loop import check_answers

        check_answers(run)
    if snapshot.phase != "start":
        run.continue_from_snapshot(announce=announce)
    return run


def stream_modes(modes: "Iterable[StreamMode] | StreamMode") -> "frozenset[StreamMode]":
    """Return the modes, or the one mode, as a set, and refuse one that does not exist."""
    from ..stream import ALL_MODES  # loaded only where somebody streams

    wanted: frozenset[StreamMode] = frozenset((modes,) if _is_one(modes) else modes)
    if unknown := wanted - ALL_MODES:
        names = ", ".join(sorted(f"`{mode}`" for mode in unknown))
        raise InvalidRequestError(
            f"unknown stream mode {names}; there are {', '.join(sorted(ALL_MODES))}"
        )
    return wanted


def _is_one(modes: "Iterable[StreamMode] | StreamMode") -> "TypeIs[StreamMode]":
    return isinstance(modes, str)


def own_token(options: RunOptions) -> CancellationToken:
    """Return a token that stops this run alone, and is cancelled with the one it was given."""
    outer = _parent(options)
    given = options.get("cancellation") or (outer.cancellation if outer is not None else None)
    return CancellationToken() if given is None else given.child()


def _parent(options: RunOptions) -> RunContext[Any] | None:
    parent = options.get("context")
    _check_context(parent)
    return None if isinstance(parent, ToolContext) else parent


def _check_context(context: object) -> None:
    kind = type(context).__name__
    if context is None or isinstance(context, RunContext):
        return
    only = "; only `invoke` takes a tool's own context" if isinstance(context, ToolContext) else ""
    raise InvalidRequestError(
        f"`context` is a `{kind}`, not a `RunContext`: in a tool, pass `ctx.run`{only}"
    )


def system_prompt(system: SystemPrompt) -> SystemMessage | SystemFunction | None:
    """Return the instructions in the form that the loop takes; an empty text is none.

    Raises:
        ConfigurationError: They are of another type.
    """
    if isinstance(system, str):
        return SystemMessage(content=system) if system else None
    if isinstance(system, PromptTemplate):
        # One without variables is the same message at each call.
        return system.for_run if system.variables else system_prompt(system.render_text())
    if system is None or isinstance(system, SystemMessage) or callable(system):
        return system
    raise ConfigurationError(
        f"`system` is a text, a `SystemMessage`, a template or a function of the run's context, "
        f"not a {type(system).__name__}"
    )


def event_listeners(listeners: Sequence[ListenerLike]) -> tuple[ListenerLike, ...]:
    """Return the listeners.

    Raises:
        ConfigurationError: One is no function and has no method `on_event`.
    """
    for listener in listeners:
        if isinstance(listener, type) or not (
            callable(listener) or callable(getattr(listener, "on_event", None))
        ):
            raise ConfigurationError(
                f"{listener!r} is no listener: pass a function, or an object with `on_event(event)`"
            )
    return tuple(listeners)


def model_registry(model: ModelLike | None, models: Mapping[str, ModelLike]) -> ModelRegistry:
    """Return the registry of a harness: see :class:`AgentHarness`."""
    named = {name: _as_model(item, models) for name, item in models.items()}
    if isinstance(model, str) and model in named:
        return ModelRegistry(named, default=model)
    if model is not None:
        made = _as_model(model, models)
        return ModelRegistry({_DEFAULT_MODEL: made, **named}, default=_DEFAULT_MODEL)
    if not named:
        raise ConfigurationError(
            "a harness needs a model: pass `model=` (a model, or a name such as "
            "`openai:gpt-5-mini`) or `models={name: model}`"
        )
    return ModelRegistry(named)


def check_fallbacks(policy: RunPolicy, models: ModelRegistry) -> None:
    """Refuse a policy that falls back on models that there are not.

    Raises:
        ConfigurationError: Naming them.
    """
    if unknown := [name for name in policy.fallback.models if name not in models]:
        names = ", ".join(f"`{name}`" for name in unknown)
        listed = ", ".join(f"`{name}`" for name in models)
        raise ConfigurationError(
            f"the fallback policy names {names}, which is not registered; there are {listed}"
        )


def with_model(models: ModelRegistry, model: ModelLike) -> ModelRegistry:
    """Return a registry that also holds ``model``, as its default."""
    if isinstance(model, str) and model in models:
        return models.with_default(model)
    known = {name: models[name] for name in models if name != _DEFAULT_MODEL}
    made = _as_model(model, known)
    return ModelRegistry({_DEFAULT_MODEL: made, **known}, default=_DEFAULT_MODEL)


def _with_override(models: ModelRegistry, model: ModelLike) -> tuple[ModelRegistry, str]:
    """Return a registry that also holds a run's own model, and the name of that one."""
    if isinstance(model, str) and model in models:
        return models, model
    made = _as_model(model, models)
    name = stem = model if isinstance(model, str) else made.profile.model or "override"
    count = 2
    while name in models:
        name, count = f"{stem} {count}", count + 1
    return models.with_model(name, made), name


def _as_model(model: ModelLike, known: Iterable[str] = ()) -> ChatModel:
    if not isinstance(model, str):
        missing = [name for name in ("profile", "invoke", "stream") if not hasattr(model, name)]
        if missing or isinstance(model, type):
            what = f"the class `{model.__name__}`" if isinstance(model, type) else repr(model)
            raise ConfigurationError(
                f"{what} is no model: pass an object with `profile`, `invoke` and `stream`, "
                "or a name such as `openai:gpt-5-mini`"
            )
        return model
    from ..providers import resolve_model

    try:
        return resolve_model(model)
    except ConfigurationError as error:
        if not known:
            raise
        listed = ", ".join(f"`{name}`" for name in known)
        raise ConfigurationError(f"{error}; registered are {listed}") from None


def as_messages(input: AgentInput) -> list[Message]:
    """Return the input as messages, and refuse an empty one."""
    if isinstance(input, str):
        return [UserMessage(content=input)] if input.strip() else _refuse_empty()
    if not hasattr(input, "__iter__"):
        raise InvalidRequestError(
            f"the input is a `{type(input).__name__}`: pass the user's words or messages"
        )
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


def new_snapshot(
    spec: AgentSpec,
    messages: list[Message],
    config: RunConfig | None,
    parent: RunContext[Any] | None,
) -> RunSnapshot:
    check_config(config)
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
    tools: ToolRegistry,
    state: Any,
    data: Any,
    parent: RunContext[Any] | None,
    token: CancellationToken | None,
) -> RunContext[Any]:
    config = snapshot.config = run_workspace(spec, snapshot, parent)
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
        if token is not None and token is not parent.cancellation:
            token = parent.cancellation.child(token)
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
        tools=tools,
        models=spec.models,
        parent=parent,
        usage=snapshot.usage,
        cost=snapshot.cost,
        answers=snapshot.answers,
        hidden_tools=snapshot.hidden_tools,
        notes=snapshot.notes,
        workspace=config.workspace,
        protects_prompt=spec.policy.cache.protect_prompt_prefix,
    )
