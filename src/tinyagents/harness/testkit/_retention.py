"""Whether facts survive when a conversation is made shorter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from typing_extensions import TypeIs

from ..cancel import CancellationToken
from ..context import RunConfig, RunContext
from ..events import EventOrigin, EventSink
from ..limits import RunLimits
from ..message import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
    dump_messages,
)
from ..model import ModelRegistry
from ..summarization import (
    ContextStep,
    ShorteningTask,
    Summarize,
    Summarizer,
    apply_steps,
    is_summary,
    is_well_paired,
    render_message,
)
from ..token_estimation import TokenEstimator
from ..tool import ToolRegistry
from ._time import DeterministicClock, DeterministicIds, FakeSleep

_FILLER: Final = "Nothing that matters was said here, and it was said at length. " * 8
_WHOLE: Final = 10**9
_RUN: Final = "retention"

Place: TypeAlias = Literal[
    "system", "user", "assistant", "arguments", "result", "trusted_result", "latest"
]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is said once in a conversation, and where."""

    text: str
    place: Place = "user"
    """Who says it, in an old turn: the instructions (``system``), the user, the assistant, the
    ``arguments`` of a call, its ``result``, a ``trusted_result``; or the ``latest`` message."""


ESSENTIAL_FACTS: Final = (
    Fact("The house rule is number 17.", "system"),
    Fact("The contract ends on 2031-05-09.", "trusted_result"),
    Fact("Now tell me the price of the blue one.", "latest"),
)
"""What no way to make a conversation shorter may lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCheck:
    """A conversation that was made shorter and has kept its facts."""

    messages: list[Message]
    from_tokens: int
    to_tokens: int
    steps: tuple[str, ...]
    """What has made it shorter."""


async def check_retention(
    strategy: ContextStep | Summarizer | Sequence[ContextStep],
    facts: Iterable[Fact | str] = ESSENTIAL_FACTS,
    *,
    turns: int = 12,
    share: float = 0.5,
) -> RetentionCheck:
    """Assert that a way to make conversations shorter does so, and keeps these facts.

    The conversation is one of an assistant that calls a tool in each turn; the facts stand in its
    older turns, in words of their own among others that do not matter. What comes out must also be
    sound: shorter, every call with its result, trusted results as they were, the system messages
    in front, and a user's turn or a summary behind them; and what went in must not have changed.

    Args:
        strategy: A step, several in their order, or a summariser, whose summary takes the place of
            all but the last two messages.
        facts: What must survive, word for word; a text is said by the user.
        turns: How many turns the conversation has, beside those that say the facts.
        share: The size to come to, as a share of the size that it has.

    Raises:
        AssertionError: A fact is lost, or the conversation is not sound; the message says what.
    """
    known = [Fact(fact) if isinstance(fact, str) else fact for fact in facts]
    conversation = _conversation(known, turns)
    estimator = TokenEstimator()
    size = estimator.messages(conversation)
    before = dump_messages(conversation)
    task = ShorteningTask(
        ctx=_context(),
        target=int(size * share),
        estimator=estimator,
        goal=conversation[-1].text,
        reason="to see what is kept",
        by=_RUN,
    )
    shortened = await apply_steps(_steps(strategy), conversation, task)
    problems = [*_problems(conversation, shortened.messages)]
    if not shortened.steps:
        problems.append(f"it is not shorter: it has {size} tokens still")
    if dump_messages(conversation) != before:
        problems.append("the messages that went in were changed")
    said = "\n".join(render_message(message, most=_WHOLE) for message in shortened.messages)
    problems += [
        f"lost, from {fact.place}: {fact.text!r}" for fact in known if fact.text not in said
    ]
    if problems:
        raise AssertionError("the conversation was not kept well:\n- " + "\n- ".join(problems))
    return RetentionCheck(
        messages=shortened.messages,
        from_tokens=size,
        to_tokens=shortened.tokens,
        steps=shortened.steps,
    )


def _steps(
    strategy: ContextStep | Summarizer | Sequence[ContextStep],
) -> Sequence[ContextStep]:
    if isinstance(strategy, Sequence):
        return strategy
    if _is_step(strategy):
        return [strategy]
    return [Summarize(strategy, keep_last=2, on_failure="abort")]


def _is_step(strategy: ContextStep | Summarizer) -> TypeIs[ContextStep]:
    return hasattr(strategy, "shorten")


def _conversation(facts: Sequence[Fact], turns: int) -> list[Message]:
    rules = " ".join(fact.text for fact in facts if fact.place == "system")
    latest = " ".join(fact.text for fact in facts if fact.place == "latest")
    old = [fact for fact in facts if fact.place not in ("system", "latest")]
    messages: list[Message] = [SystemMessage(content=f"You are helpful. {rules}")]
    for number, fact in enumerate([*old, *[None] * turns]):
        messages += _turn(number, fact)
    return [*messages, UserMessage(content=f"And now? {latest}")]


def _turn(number: int, fact: Fact | None) -> list[Message]:
    def said(*places: Place) -> str:
        return f"{fact.text} {_FILLER}" if fact and fact.place in places else _FILLER

    call = ToolCallBlock(
        id=f"call-{number}", name="look_up", arguments={"query": said("arguments")}
    )
    return [
        UserMessage(content=said("user")),
        AssistantMessage(content=[call]),
        ToolMessage(
            tool_call_id=call.id,
            name="look_up",
            content=said("result", "trusted_result"),
            trusted_verbatim=fact is not None and fact.place == "trusted_result",
        ),
        AssistantMessage(content=said("assistant")),
    ]


def _problems(before: Sequence[Message], after: Sequence[Message]) -> Iterable[str]:
    """Yield what is wrong with the shorter conversation, whatever it was to keep."""
    if not is_well_paired(after):
        yield "calls and results have lost each other"
    others = [place for place, message in enumerate(after) if message.role != "system"]
    first = after[others[0]] if others else None
    summarised = any(is_summary(message) for message in after[: others[0]]) if others else False
    if first is None:
        yield "nothing but system messages is left"
    elif first.role != "user" and not summarised:
        yield f"it begins with a message of the role {first.role}"
    if others and any(message.role == "system" for message in after[others[0] :]):
        yield "a system message stands among the others"
    trusted = [m for m in before if m.role == "tool" and m.trusted_verbatim]
    if any(message not in after for message in trusted):
        yield "a trusted result was changed, or is gone"
    if before[-1] not in after:
        yield "the latest message is gone"


def _context() -> RunContext[Any]:
    clock = DeterministicClock()
    return RunContext(
        RunConfig(run_id=_RUN, root_run_id=_RUN),
        None,
        state=None,
        events=EventSink(_RUN, clock),
        origin=EventOrigin(run_id=_RUN, root_run_id=_RUN),
        limits=RunLimits(),
        clock=clock,
        ids=DeterministicIds(),
        sleep=FakeSleep(),
        cancellation=CancellationToken(),
        tools=ToolRegistry(),
        models=ModelRegistry(),
    )
