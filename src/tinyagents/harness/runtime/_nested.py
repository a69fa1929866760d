"""A run that is part of a tool call: what it waits for, the call and the run around it wait for."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

from ..agent_loop import AgentRun, AgentSpec, InterruptRequest, NestedRun, RunSnapshot, drive
from ..errors import InvalidRequestError
from ..message import dump_messages
from ..tool import InterruptSignal, ToolContext
from ._open import as_messages, begin, open_run
from ._options import AgentInput, RunOptions
from ._resume import continued, copied_end


async def invoke_in_call(
    spec: AgentSpec,
    call: ToolContext[Any],
    state: Any,
    input: AgentInput | RunSnapshot,
    output: Any,
    options: RunOptions,
) -> AgentRun[Any, Any]:
    """Run an agent inside a tool call, or go on with it where the call is made again.

    Raises:
        InterruptSignal: The run waits for somebody outside; it is kept with the call.
        InvalidRequestError: The input is empty, or a snapshot, or there are answers.
        TinyAgentsError: What ended the run.
    """
    if isinstance(input, RunSnapshot) or options.get("answers") is not None:
        raise InvalidRequestError(
            "a run inside a tool call is kept with the call, and goes on by itself with the answers "
            "of the run around it: pass its input, or go on with a snapshot under `context=ctx.run`"
        )
    inside = options.copy()
    inside["context"] = call.run
    input_hash = sha256(dump_messages(as_messages(input)).encode()).hexdigest()
    kept: NestedRun | None = call.take_nested(spec.name, input_hash)
    if kept is None:
        snapshot = begin(spec, input, inside)
    elif not kept.requests:
        # It had ended when the call was interrupted, and its work is not done twice.
        ended = open_run(spec, state, copied_end(kept.snapshot), output, inside, announce=False)
        return ended.result()
    else:
        given = call.answers_to(kept.requests)
        if not given:
            raise InterruptSignal
        prefix = _prefix(call, kept.snapshot)
        answers = {id.removeprefix(prefix): answer for id, answer in given.items()}
        snapshot = continued(kept.snapshot, answers, [])
        # Should it fail, another try of the call begins anew rather than do twice what came after.
        call.drop_nested(kept)
    run = await drive(open_run(spec, state, snapshot, output, inside, check=False))
    waits = run.status == "interrupted"
    requests = [_outer(request, call, run.snapshot) for request in run.interrupts] if waits else []
    call.keep_nested(NestedRun(spec.name, input_hash, run.snapshot, requests))
    if waits:
        raise InterruptSignal
    return run


def _prefix(call: ToolContext[Any], snapshot: RunSnapshot) -> str:
    # With the run's id, as several runs in one call may each have a call of the same id.
    return f"{call.call_id}/{snapshot.config.run_id}/"


def _outer(
    request: InterruptRequest, call: ToolContext[Any], snapshot: RunSnapshot
) -> InterruptRequest:
    """Return a request of the inner run as one of the run around it."""
    return replace(
        request,
        id=_prefix(call, snapshot) + request.id,
        call_id=call.call_id,
        tool_name=call.tool_name,
    )
