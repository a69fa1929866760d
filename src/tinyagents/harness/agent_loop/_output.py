"""The typed answer of a run: taken out of what the model said, or asked for again."""

from collections.abc import Collection, Sequence
from typing import Any

from ..errors import StructuredOutputError
from ..message import (
    AssistantMessage,
    Block,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from ..structured import (
    FoundAnswer,
    OutputSpec,
    complete_output,
    is_whole,
    raise_for_outcome,
    stored_output,
    truncated,
)
from ..text import dump_json
from ._run import LoopRun
from ._snapshot import Phase
from ._tool_calls import close_turn, last_answer, settle


async def structured(run: LoopRun) -> Phase:
    """Take the typed answer out of the last answer's text, or ask again."""
    snapshot, output = run.snapshot, run.output
    assert output is not None
    message = last_answer(run)
    if snapshot.has_structured and not message.text.strip():
        return await _accept(run, output, _answer_before(run, output))
    raise_for_outcome(output, message, snapshot.finish_reason)
    try:
        found = output.find(message.text, may_close=is_whole(snapshot.finish_reason))
    except StructuredOutputError as error:
        if not snapshot.has_structured:
            return _ask_in_words(run, output, error)
        found = _answer_before(run, output)
    return await _accept(run, output, found)


async def take_output_calls(run: LoopRun, output: OutputSpec[Any]) -> Phase | None:
    """Take the answer out of the calls of the output's tools.

    Returns:
        Where to go when there are no other calls to run; ``None`` to run those.
    """
    snapshot = run.snapshot
    found: FoundAnswer | None = None
    problem: StructuredOutputError | None = None
    others = False
    for pending, call in zip(snapshot.pending, run.calls, strict=True):
        if call.name not in output.tool_names:
            others = True
            continue
        error = None
        try:
            found = output.find_in_call(call, may_close=is_whole(snapshot.finish_reason))
        except StructuredOutputError as exc:
            problem = error = exc
        pending.state = "done"
        pending.result = _told(output, call, error)
    if found is None and problem is None:
        return None
    if others and not run.single_call:
        run.ctx.emit("control.applied", control="structured_with_tool_calls")
        if found is not None:
            _remember(run, found)
        return None
    if found is not None:
        return await _accept(run, output, found)
    assert problem is not None
    return _ask_by_results(run, problem)


async def take_last_answer(run: LoopRun) -> None:
    """Take the typed answer out of the last answer of a run that may ask for no other.

    One that does not fit is left where it is.
    """
    output = run.output
    if output is None:
        return
    try:
        found = _found_anywhere(run, output)
        value = await _completed(run, output, found)
    except StructuredOutputError as error:
        _announce_invalid(run, error, asks_again=False)
        return
    _keep(run, output, found, value)


def raise_if_cut(run: LoopRun) -> None:
    """Raise where the answer was cut in the middle of calls that were to give the output.

    Raises:
        OutputTruncatedError: There are no others beside them.
    """
    output = run.output
    if output is not None and all(call.name in output.tool_names for call in run.calls):
        raise truncated(output, last_answer(run))


async def _accept(run: LoopRun, output: OutputSpec[Any], found: FoundAnswer) -> Phase:
    """End the run with an answer, once its function and the validators have taken it."""
    snapshot = run.snapshot
    try:
        value = await _completed(run, output, found)
    except StructuredOutputError as error:
        snapshot.has_structured, run.output_value = False, None
        if not snapshot.pending:
            return _ask_in_words(run, output, error)
        for pending, call in zip(snapshot.pending, run.calls, strict=True):
            if call.name in output.tool_names:
                pending.result = _told(output, call, error)
        return _ask_by_results(run, error)
    _keep(run, output, found, value)
    snapshot.status = "completed"
    return "finish"


def _found_anywhere(run: LoopRun, output: OutputSpec[Any]) -> FoundAnswer:
    """Return the answer that a call of the last turn gives, or its text, or a turn before."""
    try:
        return _found_in_last(run, output)
    except StructuredOutputError:
        if not run.snapshot.has_structured:
            raise
        return _answer_before(run, output)


def _found_in_last(run: LoopRun, output: OutputSpec[Any]) -> FoundAnswer:
    message, reason = last_answer(run), run.snapshot.finish_reason
    raise_for_outcome(output, message, reason)
    for call in run.calls:
        if call.name in output.tool_names:
            return output.find_in_call(call, may_close=is_whole(reason))
    return output.find(message.text, may_close=is_whole(reason))


async def _completed(run: LoopRun, output: OutputSpec[Any], found: FoundAnswer) -> Any:
    if found.step != "strict":
        run.ctx.emit(
            "output.recovered",
            call_id=run.model_call_id,
            schema_name=found.member.name,
            step=found.step,
        )
    if run.has_plain_output:
        return found.value
    return await complete_output(
        output,
        found,
        run.ctx,
        call_id=run.model_call_id,
        validators=run.spec.output_validators,
    )


def _keep(run: LoopRun, output: OutputSpec[Any], found: FoundAnswer, value: Any) -> None:
    """Put the output where the run's result and its snapshot have it."""
    snapshot = run.snapshot
    run.output_value = value
    snapshot.structured = found.json if run.has_plain_output else stored_output(value)
    snapshot.structured_as = found.member.name
    snapshot.has_structured = snapshot.structured_done = True
    snapshot.repeats.structured = 0
    if run.calls:
        _end_turn(run, output, found)


def _end_turn(run: LoopRun, output: OutputSpec[Any], found: FoundAnswer) -> None:
    """Put the answer into the transcript as text, as every other way of asking leaves it there."""
    snapshot, message = run.snapshot, last_answer(run)
    if any(call.name not in output.tool_names for call in run.calls):
        settle(run, "no more tools are run")
        return
    calls = {call.id for call in run.calls}
    content = [left for block in message.content if (left := _left(block, calls)) is not None]
    answer = dump_json(found.json)
    content.append(TextBlock(text=f"\n\n{answer}" if message.text else answer))
    snapshot.messages[-1] = message.model_copy(update={"content": content})
    snapshot.pending, run.calls, run.slots = [], [], []


def _left(block: Block, calls: Collection[str]) -> Block | None:
    """Return what stays of a block when these calls go."""
    if block.type == "tool_call" and block.id in calls:
        return None
    if block.type == "reasoning":
        # Its seal is for the provider, with the call that it led to.
        return ReasoningBlock(text=block.text) if block.text else None
    return block


def _remember(run: LoopRun, found: FoundAnswer) -> None:
    """Keep an answer that came beside calls, for the case that none follows it."""
    snapshot = run.snapshot
    snapshot.structured, snapshot.has_structured = found.json, True
    snapshot.structured_as = found.member.name
    if run.has_plain_output:
        run.output_value = found.value


def _answer_before(run: LoopRun, output: OutputSpec[Any]) -> FoundAnswer:
    """Return the answer that came beside calls in a turn before."""
    snapshot = run.snapshot
    return output.take(snapshot.structured, member=output.member(snapshot.structured_as))


def _told(
    output: OutputSpec[Any], call: ToolCallBlock, error: StructuredOutputError | None
) -> ToolMessage:
    text = "The answer was received."
    if error is not None:
        text = f"{output.retry_message(error)}. Call `{call.name}` again with a full answer."
    return ToolMessage(
        tool_call_id=call.id, name=call.name, content=text, is_error=error is not None
    )


def _ask_in_words(run: LoopRun, output: OutputSpec[Any], error: StructuredOutputError) -> Phase:
    phase = _ask_again(run, error)
    way = "as JSON alone"
    if run.snapshot.structured_by_tool:
        way = f"by calling {_any_of(output.tool_names)}"
    run.snapshot.messages.append(
        UserMessage(content=f"{output.retry_message(error)}. Give the whole answer again, {way}.")
    )
    return phase


def _ask_by_results(run: LoopRun, error: StructuredOutputError) -> Phase:
    answer = last_answer(run)
    close_turn(run)
    return _ask_again(run, error, answer)


def _ask_again(
    run: LoopRun, error: StructuredOutputError, answer: AssistantMessage | None = None
) -> Phase:
    repeats = run.snapshot.repeats
    error.answer = answer or last_answer(run)
    repeats.structured += 1
    asks_again = repeats.structured <= run.policy.structured_retries
    _announce_invalid(run, error, asks_again=asks_again)
    if not asks_again:
        raise error
    run.ctx.emit(
        "retry.scheduled",
        call_id=run.model_call_id,
        attempt=repeats.structured,
        error=f"the answer is no valid `{error.schema_name}`",
        error_kind=error.kind,
    )
    return "prepare"


def _announce_invalid(run: LoopRun, error: StructuredOutputError, *, asks_again: bool) -> None:
    run.ctx.emit(
        "output.invalid",
        call_id=run.model_call_id,
        schema_name=error.schema_name,
        attempt=max(1, run.snapshot.repeats.structured),
        problems=len(error.errors),
        errors=error.errors if run.policy.capture.model_io else None,
        asks_again=asks_again,
    )


def _any_of(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)
