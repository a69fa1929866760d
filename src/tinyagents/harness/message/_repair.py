"""Making a broken history one that every provider accepts."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ._blocks import ToolCallBlock
from ._messages import AssistantMessage, Message, ToolMessage, ToolOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A repaired history and what was wrong with it."""

    messages: list[Message]
    """The history: the same message objects, but for the results that were added."""
    added: list[str] = field(default_factory=list[str])
    """Ids of calls that had no result and got one that says so."""
    dropped: list[str] = field(default_factory=list[str])
    """Ids of results that belonged to no call, or were a second one for theirs."""
    moved: list[str] = field(default_factory=list[str])
    """Ids of calls whose result stood in another place than right after them, in call order."""

    @property
    def changed(self) -> bool:
        """Whether anything was wrong."""
        return bool(self.added or self.dropped or self.moved)


def repair_messages(messages: Sequence[Message], *, waiting: Collection[str] = ()) -> Repair:
    """Give every tool call exactly one result, right after its message and in call order.

    Missing results are filled with an error result, duplicate and foreign ones dropped, misplaced
    ones moved; what stood between a call and its result comes after it. A result belongs to the
    latest message before it that calls with its id, so ids that repeat from turn to turn pair up
    with their own turn; where an id repeats within one message, the first result goes with the
    first call. Repairing twice changes nothing.

    A call that the provider ran itself, with its ``tool_result`` block in the same message, has
    its result there.

    Args:
        messages: The history; it is not changed.
        waiting: Ids of calls that wait for an answer (an approval, another process). They stay
            unanswered in the last assistant message; further back nobody waits for them any more.
    """
    if _well_formed(messages):
        return Repair(messages=list(messages))
    pairing = _pair(messages)
    repair = Repair(messages=[], dropped=pairing.dropped)
    places = _places(len(messages), pairing.foreign)
    waiting = frozenset(waiting)
    for position, message in enumerate(messages):
        if message.role == "tool":
            continue
        repair.messages.append(message)
        if message.role == "assistant" and (turn := pairing.turns.get(position)):
            due = places[position]
            for call, result in zip(turn.calls, turn.results, strict=True):
                if result is not None:
                    due += 1
                    repair.messages.append(messages[result])
                    if places[result] != due:
                        repair.moved.append(call.id)
                elif position != pairing.last_assistant or call.id not in waiting:
                    repair.messages.append(_lost_result(message, call))
                    repair.added.append(call.id)
    return repair


def unanswered_calls(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the tool calls of the history that have no result, in order."""
    if _well_formed(messages):
        return []
    return [
        call.id
        for turn in _pair(messages).turns.values()
        for call, result in zip(turn.calls, turn.results, strict=True)
        if result is None
    ]


@dataclass(slots=True)
class _Turn:
    calls: list[ToolCallBlock]
    results: list[int | None]
    """The position of each call's result in the history."""


@dataclass(slots=True)
class _Pairing:
    turns: dict[int, _Turn] = field(default_factory=dict[int, _Turn])
    """By the position of the assistant message."""
    foreign: list[int] = field(default_factory=list[int])
    """Positions of results that pair with no call."""
    dropped: list[str] = field(default_factory=list[str])
    """The ids in those results."""
    last_assistant: int = -1


def _well_formed(messages: Sequence[Message]) -> bool:
    """Whether there is nothing to repair, which is the usual case: one cheap pass.

    It may say no where a call was answered by its provider; then the long way finds nothing.
    """
    due: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not due or due.pop() != message.tool_call_id:
                return False
        elif due:
            return False
        elif message.role == "assistant":
            due = [block.id for block in message.content if block.type == "tool_call"]
            due.reverse()
    return not due


def _pair(messages: Sequence[Message]) -> _Pairing:
    pairing = _Pairing()
    # For each id the message that called with it last, and which of its calls is answered next.
    open_calls: dict[str, tuple[_Turn, Iterator[int]]] = {}
    for position, message in enumerate(messages):
        if message.role == "assistant":
            pairing.last_assistant = position
            calls = message.open_calls
            if calls:
                turn = _Turn(calls, [None] * len(calls))
                pairing.turns[position] = turn
                by_id: dict[str, list[int]] = {}
                for index, call in enumerate(calls):
                    by_id.setdefault(call.id, []).append(index)
                open_calls.update((id, (turn, iter(found))) for id, found in by_id.items())
        elif message.role == "tool":
            called = open_calls.get(message.tool_call_id)
            answers = None if called is None else next(called[1], None)
            if called is None or answers is None:
                pairing.foreign.append(position)
                pairing.dropped.append(message.tool_call_id)
            else:
                called[0].results[answers] = position
    return pairing


def _places(count: int, without: Sequence[int]) -> dict[int, int]:
    """Return where each of ``count`` messages stands once those at some positions are gone."""
    gone = set(without)
    kept = [position for position in range(count) if position not in gone]
    return {position: place for place, position in enumerate(kept)}


def _lost_result(message: AssistantMessage, call: ToolCallBlock) -> ToolMessage:
    outcome: ToolOutcome = "not_started"
    if call.invalid is not None:
        text = f"This call did not run: {call.invalid.reason}"
    elif message.state == "partial":
        text = "This call did not run: the answer that made it was cut off."
    else:
        # Nobody knows whether it ran; to say that it may have is the safe thing.
        outcome = "interrupted"
        text = (
            "The result of this call was lost: the run ended before it was recorded. "
            "The tool may have run, in full or in part; check before calling it again."
        )
    return ToolMessage(
        tool_call_id=call.id, name=call.name or None, content=text, is_error=True, outcome=outcome
    )
