"""Driving a run through its phases, and ending it cleanly however it ends."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio

from ..concurrency import CLEAN_UP_SECONDS, thread_safe
from ..errors import RunCancelledError, RunTimeoutError, TinyAgentsError
from ..middleware import run_error_hooks
from ..text import error_text
from ._account import end_open_call
from ._phases import PHASES, check_boundary, wall_clock_over
from ._result import AgentRun
from ._run import LoopRun
from ._tool_calls import settle
from ._workspace import leave_workspace_quietly

_log = logging.getLogger("tinyagents.agent_loop")


async def drive(run: LoopRun) -> AgentRun[Any, Any]:
    """Run all phases to the end.

    Raises:
        Exception: What ended the run, with the run so far as its ``run``. A cancellation of the
            calling task passes through as it is; ``on_error`` hooks see it with its ``run``.
    """
    try:
        if run.guarded or run.limits.wall_clock is not None:
            await _in_scope(run, _advance, run.limits.wall_clock)
        else:
            await _advance(run)
    except BaseException as error:
        await _end_failed(run, error)
        raise
    return run.result()


async def step(run: LoopRun) -> None:
    """Perform exactly one phase."""
    try:
        if run.guarded:
            await _in_scope(run, _whole_phase, None)
        else:
            await _whole_phase(run)
    except BaseException as error:
        await _end_failed(run, error)
        raise


async def _end_failed(run: LoopRun, error: BaseException) -> None:
    """End the run over an error; raises another in its place where that must not be shown."""
    shown = error
    if run.redaction is not None and isinstance(error, Exception):
        shown = run.redaction.error(error)
    await _fail(run, shown)
    if shown is not error:
        raise shown from None


async def _advance(run: LoopRun) -> None:
    snapshot, ctx = run.snapshot, run.ctx
    while (phase := snapshot.phase) != "done":
        # The common case in one test: nobody has asked for anything.
        if ctx.control is not None or ctx.cancellation.cancelled or run.deadline is not None:
            await _one_phase(run)
        else:
            snapshot.phase = await PHASES[phase](run)


async def _one_phase(run: LoopRun) -> None:
    snapshot = run.snapshot
    phase = snapshot.phase
    if phase not in ("finish", "start"):
        elsewhere = check_boundary(run)
        if elsewhere is not None:
            snapshot.phase = elsewhere
            return
    snapshot.phase = await PHASES[phase](run)


async def _whole_phase(run: LoopRun) -> None:
    """Perform one phase with what was asked for in it."""
    snapshot, ctx = run.snapshot, run.ctx
    await _one_phase(run)
    # What a hook asked for is not in the snapshot: it takes effect now or never.
    asked = ctx.control is not None or ctx.cancellation.cancelled
    if asked and snapshot.phase not in ("finish", "done"):
        snapshot.phase = check_boundary(run) or snapshot.phase


async def _in_scope(
    run: LoopRun, advance: Callable[[LoopRun], Awaitable[None]], seconds: float | None
) -> None:
    """Advance where a token or the wall clock can reach whatever is waited for."""
    scope = anyio.CancelScope()
    if seconds is not None:
        scope.deadline = anyio.current_time() + seconds
        run.deadline = run.ctx.clock.monotonic() + seconds
    forget = run.ctx.cancellation.on_cancel(thread_safe(scope.cancel))
    try:
        with scope:
            await advance(run)
    finally:
        forget()
    if not scope.cancelled_caught:
        return
    run.ctx.cancellation.raise_if_cancelled()
    end_open_call(run, None)
    run.snapshot.phase = wall_clock_over(run)
    await _advance(run)


async def _fail(run: LoopRun, error: BaseException) -> None:
    snapshot, ctx = run.snapshot, run.ctx
    cancelled = isinstance(error, RunCancelledError | anyio.get_cancelled_exc_class())
    cancelled = cancelled or not isinstance(error, Exception)
    why = "the run was cancelled" if cancelled else "the run failed"
    if isinstance(error, RunTimeoutError):
        why = "the run's time was up"
    for tidy in (
        partial(end_open_call, run, None if cancelled else error),
        partial(settle, run, why),
    ):
        try:
            tidy()
        except Exception:  # noqa: BLE001 - the run ends, whatever shape a hook has left things in
            _log.exception("the run `%s` could not be tidied up", ctx.run_id)
    snapshot.status = "cancelled" if cancelled else "failed"
    snapshot.reason = error_text(error) or type(error).__name__
    snapshot.phase = "done"
    # Before the hooks, so that they can save what there is. A frozen or slotted exception of the
    # application may have no room for it.
    try:
        error.run = run.result()  # type: ignore[attr-defined]
    except AttributeError:
        _log.debug("`%s` cannot carry its run", type(error).__name__)
    hooks = run.spec.middleware.on_error
    try:
        if hooks:
            with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
                await run_error_hooks(hooks, ctx, error)
        await leave_workspace_quietly(run)
    finally:
        # A native cancellation breaks into both; the run ends with its event all the same.
        ctx.emit(
            "run.failed",
            error=snapshot.reason,
            error_kind=error.kind if isinstance(error, TinyAgentsError) else type(error).__name__,
            reason=_reason(error, cancelled),
        )
        ctx.ended = True
        snapshot.next_event = ctx.events.next_offset


def _reason(error: BaseException, cancelled: bool) -> str:
    if cancelled:
        return "cancelled"
    return "timeout" if isinstance(error, RunTimeoutError) else "error"
