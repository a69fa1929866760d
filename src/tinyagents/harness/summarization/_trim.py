"""Keeping a part of a conversation, without a call that has lost its result or the other way round."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import ConfigurationError
from ..message import Message
from ..token_estimation import TokenEstimator
from ._exchanges import Exchange, exchanges

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Estimate: TypeAlias = Callable[[Message], int]
"""Tells how many tokens a message is."""

_ESTIMATOR = TokenEstimator()


@dataclass(frozen=True, slots=True)
class TrimStrategy:
    """Which part of a conversation to keep: made by its class methods."""

    kind: Literal["keep_last", "keep_first_and_last", "max_tokens"]
    last: int = 0
    first: int = 0
    limit: int = 0

    def __post_init__(self) -> None:
        for name in ("last", "first", "limit"):
            value: object = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"`{name}` is {value!r}: it is a number of 0 or more")

    @classmethod
    def keep_last(cls, count: int) -> "TrimStrategy":
        """Keep the system messages and so many of the last others."""
        return cls("keep_last", last=count)

    @classmethod
    def keep_first_and_last(cls, first: int, last: int) -> "TrimStrategy":
        """Keep the system messages, and of the others so many at the start and at the end."""
        return cls("keep_first_and_last", first=first, last=last)

    @classmethod
    def max_tokens(cls, limit: int) -> "TrimStrategy":
        """Keep the newest messages that are so many tokens together.

        System messages go last: only where they alone are more than that.
        """
        return cls("max_tokens", limit=limit)


def trim_messages(
    messages: Sequence[Message],
    strategy: TrimStrategy,
    *,
    repair_tool_pairs: bool = True,
    start_on: Collection[Role] = (),
    end_on: Collection[Role] = (),
    keep_user_turn: bool = False,
    estimate: Estimate | None = None,
) -> list[Message]:
    """Return the part of a conversation that a strategy keeps: system messages, then the others.

    A cut that would fall inside an exchange, between an answer and the results of its calls or
    the reasoning that led to it, moves back before it where messages are counted; where tokens
    are, the exchange goes. Results that are ``trusted_verbatim`` stay with their exchange.

    Args:
        messages: The conversation; it is not changed.
        strategy: What to keep.
        repair_tool_pairs: Drop results of calls that are not there, too.
        start_on: Roles that what is kept, but for system messages, may begin with; others are
            dropped from its front. All where there is none.
        end_on: Roles that it may end with.
        keep_user_turn: Where what is kept would begin in the middle of a turn, keep what the user said
            at its beginning as well, so that it begins with a user's message.
        estimate: Counts a message's tokens; :class:`TokenEstimator` by default.
    """
    system: list[Message] = [m for m in messages if m.role == "system"]
    rest = exchanges([m for m in messages if m.role != "system"])
    if repair_tool_pairs:
        rest = [each for each in rest if each.messages[0].role != "tool"]
    count = estimate or _ESTIMATOR.message
    if strategy.kind == "max_tokens":
        kept = _newest(rest, strategy.limit - sum(map(count, system)), count, keep_user_turn)
    else:
        kept = _counted(rest, strategy)
        if keep_user_turn:
            kept = [*_user_turn_before(rest, kept), *kept]
    kept = _bounded(kept, start_on, end_on)
    if strategy.kind == "max_tokens":
        left = strategy.limit - sum(map(count, _joined(kept)))
        system = _joined(_newest(exchanges(system), left, count, keep_user_turn=False))
    return [*system, *_joined(kept)]


def trim_to_budget(
    messages: Sequence[Message],
    limit: int,
    *,
    estimate: Estimate | None = None,
    preserve_system: bool = False,
    drop_leading_orphan_tools: bool = False,
) -> list[Message]:
    """Return the newest messages that are within a budget, in their order.

    Unlike :func:`trim_messages` it does not put system messages first.

    Args:
        messages: The conversation.
        limit: Tokens.
        estimate: Counts a message's tokens; :class:`TokenEstimator` by default.
        preserve_system: Keep system messages whatever they take of the budget.
        drop_leading_orphan_tools: Drop results at the front whose calls are not there.
    """
    count = estimate or _ESTIMATOR.message
    kept = list(exchanges(messages))
    total = sum(map(count, messages))
    for each in list(kept):
        if total <= limit:
            break
        if each.trusted or (preserve_system and each.messages[0].role == "system"):
            continue
        kept.remove(each)
        total -= sum(map(count, each.messages))
    while drop_leading_orphan_tools and kept and kept[0].messages[0].role == "tool":
        kept.pop(0)
    return _joined(kept)


def _counted(rest: Sequence[Exchange], strategy: TrimStrategy) -> list[Exchange]:
    total = sum(len(each.messages) for each in rest)
    if strategy.first + strategy.last >= total:
        return list(rest)
    kept: list[Exchange] = []
    end = 0
    for each in rest:
        end += len(each.messages)
        # A beginning never takes in an exchange that it would cut; an end moves back before it.
        if end <= strategy.first or end > total - strategy.last or each.trusted:
            kept.append(each)
    return kept


def _newest(
    rest: Sequence[Exchange], limit: int, count: Estimate, keep_user_turn: bool
) -> list[Exchange]:
    """Drop from the front until what is left is within the limit."""
    sizes = [sum(map(count, each.messages)) for each in rest]
    total = sum(sizes)
    trusted: list[Exchange] = []
    turn: Exchange | None = None
    turn_size = 0
    for place, each in enumerate(rest):
        if total + turn_size <= limit:
            in_front = [turn] if turn is not None and not trusted else []
            return [*in_front, *trusted, *rest[place:]]
        if each.trusted:
            trusted.append(each)
            continue
        total -= sizes[place]
        following = rest[place + 1].messages[0].role if place + 1 < len(rest) else "user"
        if keep_user_turn and each.messages[0].role == "user":
            turn, turn_size = each, sizes[place]
        if following == "user":
            turn, turn_size = None, 0
    return trusted


def _user_turn_before(rest: Sequence[Exchange], kept: Sequence[Exchange]) -> list[Exchange]:
    """Return what the user said last before what is kept, where that does not begin with it."""
    if not kept or kept[0].messages[0].role == "user":
        return []
    before = [e for e in rest if e.start < kept[0].start and e.messages[0].role == "user"]
    return before[-1:]


def _bounded(
    kept: list[Exchange], start_on: Collection[Role], end_on: Collection[Role]
) -> list[Exchange]:
    """Drop what may not stand at the end, and then what may not stand at the front."""
    last, first = len(kept), 0
    while end_on and last and kept[last - 1].messages[-1].role not in end_on:
        last -= 1
    while start_on and first < last and kept[first].messages[0].role not in start_on:
        first += 1
    return kept[first:last]


def _joined(kept: Sequence[Exchange]) -> list[Message]:
    return [message for each in kept for message in each.messages]
