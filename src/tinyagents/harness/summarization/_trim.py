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
    step: int = 1

    def __post_init__(self) -> None:
        for name, least in (("last", 0), ("first", 0), ("limit", 0), ("step", 1)):
            value: object = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ConfigurationError(
                    f"`{name}` is {value!r}: it is a number of {least} or more"
                )

    @classmethod
    def keep_last(cls, count: int, *, step: int = 1) -> "TrimStrategy":
        """Keep the system messages and so many of the last others.

        With a ``step`` up to ``step - 1`` more are kept, so that the cut moves by so many messages at
        once and a growing conversation begins the same way in between.
        """
        return cls("keep_last", last=count, step=step)

    @classmethod
    def keep_first_and_last(cls, first: int, last: int, *, step: int = 1) -> "TrimStrategy":
        """Keep the system messages, and of the others so many at the start and at the end.

        ``step`` is as for :meth:`keep_last`.
        """
        return cls("keep_first_and_last", first=first, last=last, step=step)

    @classmethod
    def max_tokens(cls, limit: int, *, step: int = 1) -> "TrimStrategy":
        """Keep the newest messages that are so many tokens together.

        System messages go last: only where they alone are more than that. With a ``step`` up to so
        many fewer messages are kept, so that the cut moves by so many at once.
        """
        return cls("max_tokens", limit=limit, step=step)


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
        keep_user_turn: Where a part of a turn is kept, keep what the user said at its beginning as
            well, so that what is kept begins with a user's message.
        estimate: Counts a message's tokens; :class:`TokenEstimator` by default.
    """
    system: list[Message] = [m for m in messages if m.role == "system"]
    rest = exchanges([m for m in messages if m.role != "system"])
    if repair_tool_pairs:
        rest = [each for each in rest if each.messages[0].role != "tool"]
    count = estimate or _ESTIMATOR.message
    openers = _openers(rest) if keep_user_turn else [None] * len(rest)
    if strategy.kind == "max_tokens":
        left = strategy.limit - sum(map(count, system))
        kept = _newest(rest, left, count, openers, strategy.step)
    else:
        kept = _counted(rest, strategy, openers)
    kept = _bounded(kept, start_on, end_on)
    if strategy.kind == "max_tokens":
        left = strategy.limit - sum(map(count, _joined(kept)))
        alone = exchanges(system)
        system = _joined(_newest(alone, left, count, [None] * len(alone)))
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
    kept: list[Exchange] = []
    total = sum(map(count, messages))
    for each in exchanges(messages):
        stays = each.trusted or (preserve_system and each.messages[0].role == "system")
        if stays or total <= limit:
            kept.append(each)
        else:
            total -= sum(map(count, each.messages))
    while drop_leading_orphan_tools and kept and kept[0].messages[0].role == "tool":
        kept.pop(0)
    return _joined(kept)


def _counted(
    rest: Sequence[Exchange], strategy: TrimStrategy, openers: Sequence[int | None]
) -> list[Exchange]:
    total = sum(len(each.messages) for each in rest)
    dropped = total - strategy.first - strategy.last
    if dropped < strategy.step:
        return list(rest)
    begin = strategy.first + dropped - dropped % strategy.step
    kept: set[int] = set()
    end = 0
    for place, each in enumerate(rest):
        end += len(each.messages)
        # A beginning never takes in an exchange that it would cut; an end moves back before it.
        if end <= strategy.first or end > begin or each.trusted:
            kept.add(place)
            opener = openers[place]
            if opener is not None:
                kept.add(opener)
    return [each for place, each in enumerate(rest) if place in kept]


def _newest(
    rest: Sequence[Exchange],
    limit: int,
    count: Estimate,
    openers: Sequence[int | None],
    step: int = 1,
) -> list[Exchange]:
    """Drop from the front until what is left is within the limit."""
    sizes = [sum(map(count, each.messages)) for each in rest]
    newer, always = sum(sizes), 0
    kept: set[int] = set()
    """What is kept of the messages before the cut, with what belongs to it."""
    for cut, each in enumerate(rest):
        before = rest[cut - 1].start if cut else -1
        # With steps, the cut is only where another so many messages are before it.
        if each.start // step > before // step:
            opener = openers[cut]
            added = sizes[opener] if opener is not None and opener not in kept else 0
            if newer + always + added <= limit:
                in_front = kept if opener is None else kept | {opener}
                return [*(rest[place] for place in sorted(in_front)), *rest[cut:]]
        newer -= sizes[cut]
        if each.trusted:
            opener = openers[cut]
            together = {cut} if opener is None else {opener, cut}
            always += sum(sizes[place] for place in together - kept)
            kept |= together
    if step > 1:
        return _newest(rest, limit, count, openers)
    return [rest[place] for place in sorted(kept)]


def _openers(rest: Sequence[Exchange]) -> list[int | None]:
    """Return for each exchange the place of what the user said before it, if it is a part of a turn."""
    openers: list[int | None] = []
    latest: int | None = None
    for place, each in enumerate(rest):
        is_user = each.messages[0].role == "user"
        openers.append(None if is_user else latest)
        if is_user:
            latest = place
    return openers


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
