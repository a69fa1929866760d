"""The phases of a run: each takes it one step on and names the next one.

start → compact → prepare → call_model → decide ─┬→ call_tools → compact → prepare
                                                 ├→ structured → prepare
                                                 └→ finish → done
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ..context import Control, Interrupt, Jump, Pause, StopWithFinal
from ..errors import (
    EmptyResponseError,
    InvalidRequestError,
    LimitExceededError,
    RunTimeoutError,
    SubAgentDepthError,
    TruncatedResponseError,
)
from ..limits import LimitKind
from ..message import AssistantMessage, UserMessage
from ..middleware import run_compact_hooks, run_hooks
from ._model_call import call_model
from ._output import raise_if_cut, structured, take_last_answer, take_output_calls
from ._run import LoopRun, waiting_requests
from ._snapshot import InterruptRequest, Phase
from ._tool_calls import (
    close_turn,
    fresh_calls,
    hold_back,
    last_answer,
    open_turn,
    run_calls,
    settle,
)
from ._workspace import leave_workspace, take_workspace

_MOST_RAISED = 4
"""An output limit is raised to at most so many times what it was."""

PhaseFunction: TypeAlias = Callable[[LoopRun], Awaitable[Phase]]


def check_boundary(run: LoopRun) -> Phase | None:
    """Look at everything that may stop a run between two phases.

    Cancellation comes first, then what a hook asked for, then the deadline; limits are reserved
    by the phases that use them.

    Returns:
        Where to go instead of the next phase; ``None`` to go on.
    """
    ctx = run.ctx
    ctx.cancellation.raise_if_cancelled()
    control = ctx.take_control()
    if control is not None:
        return _apply_control(run, control)
    if run.deadline is not None and ctx.clock.monotonic() > run.deadline:
        return wall_clock_over(run)
    return None


def _apply_control(run: LoopRun, control: Control) -> Phase:
    snapshot, ctx = run.snapshot, run.ctx
    match control:
        case StopWithFinal(text=text):
            detail = text if run.policy.capture.model_io else None
            ctx.emit("control.applied", control=control.label, detail=detail)
            snapshot.final_text = run.hide(text)
            return stop(run, "stop_with_final")
        case Interrupt():
            ctx.emit("control.applied", control=control.label, detail=control.message)
            number = len(snapshot.answers) + len(snapshot.interrupts)
            request = InterruptRequest(
                f"{ctx.run_id}.control.{number}",
                run.hide({"message": control.message, "payload": control.payload}),
            )
            snapshot.interrupts = [request]
            snapshot.resume_phase = snapshot.phase
            snapshot.status, snapshot.reason = "interrupted", run.hide(control.message)
            return "finish"
        case Pause(reason=reason):
            ctx.emit("control.applied", control=control.label, detail=reason)
            snapshot.resume_phase = snapshot.phase
            snapshot.status, snapshot.reason = "paused", run.hide(reason)
            return "finish"
        case Jump(to=to):
            ctx.emit("control.applied", control=control.label, detail=to)
            if to == "model":
                settle(run, "the run went on without it")
                # Not back from `compact` to itself: a hook there may ask each time.
                return "prepare" if snapshot.phase == "prepare" else _next_turn(run)
            return stop(run, "jump_to_end")


def stop(run: LoopRun, reason: str) -> Phase:
    """End the run with what there is."""
    snapshot = run.snapshot
    settle(run, f"the run was stopped ({reason})")
    snapshot.status, snapshot.reason = "stopped", reason
    return "finish"


def wall_clock_over(run: LoopRun) -> Phase:
    """End the run because its time is up.

    Raises:
        RunTimeoutError: Unless the policy is to stop with what there is.
    """
    seconds = run.limits.wall_clock or 0.0
    run.ctx.emit("limit.reached", limit_kind="wall_clock", maximum=seconds)
    if run.policy.on_wall_clock == "stop_with_partial":
        return stop(run, "wall_clock")
    raise RunTimeoutError(
        f"the run did not end within its limit of {seconds:g} s (`RunLimits.wall_clock`)",
        seconds=seconds,
    )


def _limit_over(run: LoopRun, kind: LimitKind, maximum: int) -> Phase:
    snapshot = run.snapshot
    run.ctx.emit("limit.reached", limit_kind=kind, maximum=maximum)
    if run.policy.on_limit == "final_answer" and not snapshot.tools_off:
        snapshot.tools_off = True
        snapshot.reason = f"max_{kind}"
        return "call_model"
    if run.policy.on_limit != "error":
        return stop(run, f"max_{kind}")
    counters = snapshot.counters
    raise LimitExceededError(
        f"the run has used all of its {maximum} {kind.replace('_', ' ')} "
        f"(`RunLimits.max_{kind}`); `error.run` holds what it has done",
        limit=kind,
        maximum=maximum,
        counters={"model_calls": counters.model_calls, "tool_calls": counters.tool_calls},
    )


async def start(run: LoopRun) -> Phase:
    """Announce the run, check what it was given, and let hooks prepare it."""
    ctx, snapshot = run.ctx, run.snapshot
    redaction = run.redaction
    if redaction is not None:
        snapshot.messages = redaction.messages(snapshot.messages)
    ctx.emit("run.started")
    if redaction is not None:
        redaction.check()
    if ctx.depth > run.limits.max_depth:
        raise SubAgentDepthError(
            f"a run at depth {ctx.depth} is deeper than `RunLimits.max_depth` allows "
            f"({run.limits.max_depth})",
            depth=ctx.depth,
            maximum=run.limits.max_depth,
        )
    if run.output is not None:
        for name in run.output.tool_names:
            if name in run.tools:
                raise InvalidRequestError(
                    f"the output type and a tool are both named `{name}`: rename one"
                )
    if len(snapshot.messages) > 1 or snapshot.messages[0].role in ("assistant", "tool"):
        run.repair_input()
        if not snapshot.messages:
            raise InvalidRequestError(
                "the input holds nothing but results of tool calls that nobody has made"
            )
    await take_workspace(run)
    hooks = run.spec.middleware.before_agent
    if hooks:
        await run_hooks(hooks, "before_agent", ctx)
    return _next_turn(run)


def _next_turn(run: LoopRun) -> Phase:
    return "compact" if run.spec.middleware.compact else "prepare"


async def compact(run: LoopRun) -> Phase:
    """Let hooks put a shorter transcript in the place of the one so far."""
    hooks = run.spec.middleware.compact
    if hooks:
        shorter = await run_compact_hooks(hooks, run.ctx, run.snapshot.messages)
        if shorter is not None:
            run.replace_messages(shorter)
    return "prepare"


async def prepare(run: LoopRun) -> Phase:
    """Make sure that the limits allow one more model call."""
    if run.spec.isolation is not None:
        await take_workspace(run)  # one that was cleaned up, and goes on after all
    used, maximum = run.snapshot.counters.model_calls, run.limits.max_model_calls
    if used >= maximum:
        return _limit_over(run, "model_calls", maximum)
    return "call_model"


async def decide(run: LoopRun) -> Phase:
    """Choose what follows from the last answer."""
    snapshot, message = run.snapshot, last_answer(run)
    repeats = snapshot.repeats
    calls = run.calls
    if calls and snapshot.finish_reason == "length":
        raise_if_cut(run)
        return _truncated_calls(run, len(calls))
    repeats.truncated_calls = 0
    if calls and run.single_call and not _gives_output(run):
        settle(run, "a single model call runs no tools")
        snapshot.status = "completed"
        return "finish"
    if snapshot.tools_off:
        await take_last_answer(run)
        return stop(run, snapshot.reason or "limit")
    cut_to_nothing = not calls and snapshot.finish_reason == "length" and _is_blank(message)
    if cut_to_nothing and repeats.truncated_empty < run.policy.truncated_empty_retries:
        return _ask_for_more(run)
    if repeats.truncated_empty:
        repeats.truncated_empty, repeats.max_tokens = 0, None
    if calls:
        return "call_tools"
    if snapshot.finish_reason == "pause":
        return "prepare"
    if snapshot.continue_turn is not None:
        snapshot.messages.append(UserMessage(content=snapshot.continue_turn))
        snapshot.continue_turn = None
        return "prepare"
    if run.output is not None:
        return "structured"
    if run.policy.error_on_empty_response and _is_blank(message):
        snapshot.messages.pop()
        raise EmptyResponseError("the model's final answer is empty")
    snapshot.status = "completed"
    return "finish"


def _gives_output(run: LoopRun) -> bool:
    output = run.output
    return output is not None and any(call.name in output.tool_names for call in run.calls)


def _is_blank(message: AssistantMessage) -> bool:
    return not message.text.strip() and not any(
        block.type in ("image", "audio", "file", "json", "refusal") for block in message.content
    )


def _truncated_calls(run: LoopRun, count: int) -> Phase:
    """Run none of the calls of a cut answer, for their arguments may be cut too."""
    snapshot, policy = run.snapshot, run.policy
    repeats = snapshot.repeats
    settle(
        run,
        "your answer was cut at the output token limit, so its tool calls may be incomplete; "
        "make them again in a shorter answer",
    )
    repeats.truncated_calls += 1
    may_repeat = policy.truncated_calls == "tell_model" and not snapshot.tools_off
    if may_repeat and repeats.truncated_calls <= policy.truncated_calls_retries:
        return "prepare"
    resolved = snapshot.resolved_model
    raise TruncatedResponseError(
        f"the answer was cut by the token limit in the middle of {count} tool call(s), "
        f"{repeats.truncated_calls} time(s) in a row; raise `max_tokens`",
        provider=resolved.provider if resolved else None,
        model=resolved.name if resolved else None,
    )


def _ask_for_more(run: LoopRun) -> Phase:
    """Ask again for an answer of which the token limit has left nothing, with a larger limit."""
    snapshot = run.snapshot
    repeats, original = snapshot.repeats, run.settings.max_tokens
    if original is not None:
        sent = repeats.max_tokens or original
        repeats.max_tokens = min(sent * 2, original * _MOST_RAISED)
    repeats.truncated_empty += 1
    snapshot.messages.pop()
    run.ctx.emit(
        "retry.scheduled",
        call_id=run.model_call_id,
        attempt=repeats.truncated_empty,
        error="the answer was cut by the token limit before it had any text",
        error_kind=EmptyResponseError.kind,
    )
    return "prepare"


async def call_tools(run: LoopRun) -> Phase:
    """Run the calls of the last answer, as many as the limit allows."""
    snapshot = run.snapshot
    if run.spec.isolation is not None:
        await take_workspace(run)  # of a run that begins here, as one that makes a single call does
    if not snapshot.pending:
        open_turn(run)
        if run.output is not None:
            phase = await take_output_calls(run, run.output)
            if phase is not None:
                return phase
    remaining = run.limits.max_tool_calls - snapshot.counters.tool_calls
    over = len(run.calls) > remaining and len(fresh_calls(run)) > remaining
    if over:
        hold_back(run, remaining, "the run's limit of tool calls is reached")
    await run_calls(run)
    waiting = waiting_requests(snapshot.pending)
    if waiting:
        # The calls wait on while a hook's own question is answered; a stop or a jump drops them.
        elsewhere = check_boundary(run) if run.ctx.control is not None else None
        if elsewhere is not None:
            return elsewhere
        snapshot.interrupts = waiting
        snapshot.status = "interrupted"
        snapshot.reason = f"{len(waiting)} tool call(s) wait for an answer"
        return "finish"
    close_turn(run)
    # What a hook has asked for comes before limits, at the boundary that follows.
    if over and run.ctx.control is None:
        return _limit_over(run, "tool_calls", run.limits.max_tool_calls)
    return _next_turn(run)


async def finish(run: LoopRun) -> Phase:
    """Let hooks see the run, and announce its end."""
    snapshot, ctx = run.snapshot, run.ctx
    hooks = run.spec.middleware.after_agent
    if hooks:
        await run_hooks(hooks, "after_agent", ctx, run.result())
    await leave_workspace(run)
    match snapshot.status:
        case "interrupted":
            ids = tuple(request.id for request in snapshot.interrupts)
            ctx.emit("run.interrupted", interrupts=ids)
        case "paused":
            ctx.emit("run.paused", reason=snapshot.reason)
        case status:
            ctx.emit("run.completed", status=status, reason=snapshot.reason)
    ctx.ended = True
    return "done"


PHASES: dict[Phase, PhaseFunction] = {
    "start": start,
    "compact": compact,
    "prepare": prepare,
    "call_model": call_model,
    "decide": decide,
    "call_tools": call_tools,
    "structured": structured,
    "finish": finish,
}
