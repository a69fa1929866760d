"""What a scripted model is told to do, one step for each of its calls."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import anyio
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from ..model import FinishReason, ModelRequest, ModelResponse, ModelStreamItem
from ..text import dump_json
from ..usage import Usage


@dataclass(frozen=True, slots=True)
class Words:
    """A part of a reply that is read: text, reasoning or a refusal."""

    kind: Literal["text", "reasoning", "refusal"]
    pieces: tuple[str, ...]
    """One piece is cut by the model that streams it; several are streamed exactly as they are."""
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """A part of a reply that calls a tool."""

    name: str
    arguments: str
    """As the model writes them: JSON, unless a test wants otherwise."""
    id: str | None = None
    """The model that serves it makes one where there is none."""


Part: TypeAlias = Words | Called


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model, made by :func:`say`, :func:`call`, :func:`think` and their sums.

    ``think("hm") + say("Let me look.") + call("search", query="x")`` is one answer of three parts.
    What a later part of a sum sets (usage, finish reason, …) stands.
    """

    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    """``None`` for the model's own estimate."""
    finish_reason: FinishReason | None = None
    """``None`` for what fits the parts: ``tool_calls``, ``refusal`` or ``stop``."""
    response_id: str | None = None
    model: str | None = None

    def replace(
        self,
        *,
        usage: Usage | None = None,
        finish_reason: FinishReason | None = None,
        response_id: str | None = None,
        model: str | None = None,
    ) -> "Reply":
        """Return the reply with what is given in place of its own; what is ``None`` stays."""
        return Reply(
            self.parts,
            usage or self.usage,
            finish_reason or self.finish_reason,
            response_id or self.response_id,
            model or self.model,
        )

    def __add__(self, following: "Reply | str") -> "Reply":
        other = say(following) if isinstance(following, str) else cast("object", following)
        if not isinstance(other, Reply):
            return NotImplemented
        return Reply(
            _joined(self.parts, other.parts),
            other.usage or self.usage,
            other.finish_reason or self.finish_reason,
            other.response_id or self.response_id,
            other.model or self.model,
        )


def _joined(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    # What a stream joins into one block is one part here, so that both ways give one message.
    if not first or not second:
        return first + second
    last, following = first[-1], second[0]
    if isinstance(last, Words) and isinstance(following, Words) and last.kind == following.kind:
        signature = following.signature or last.signature
        words = Words(last.kind, last.pieces + following.pieces, signature)
        return (*first[:-1], words, *second[1:])
    return first + second


@dataclass(frozen=True, slots=True)
class Failure:
    """The call fails; see :func:`fail`."""

    error: BaseException | type[BaseException]
    after: Reply

    def __radd__(self, before: "Reply | str") -> "Failure":
        return replace(self, after=joined([before, self.after]))


@dataclass(frozen=True, slots=True)
class Delay:
    """The step happens later; see :func:`delay`."""

    seconds: float
    step: "Step"


class Hang:
    """The call does not end; see :func:`hang`."""

    __slots__ = ("_started", "after")

    def __init__(self, after: Reply) -> None:
        self.after: Reply = after
        self._started: anyio.Event | None = None

    @property
    def started(self) -> anyio.Event:
        """Set once a model hangs here, with everything before it streamed."""
        # Made at first use: a script is often written where no event loop runs.
        if self._started is None:
            self._started = anyio.Event()
        return self._started

    async def reach(self) -> None:
        """Hang until cancelled."""
        self.started.set()
        await anyio.sleep_forever()


PlainStep: TypeAlias = (
    Reply
    | Failure
    | Delay
    | Hang
    | ModelResponse
    | BaseModel
    | str
    | Sequence[Reply | str | ModelStreamItem]
)
"""What a function of a script gives: any step but a bare exception, which it can raise."""

Step: TypeAlias = (
    PlainStep
    | BaseException
    | type[BaseException]
    | Callable[[ModelRequest], PlainStep | Awaitable[PlainStep]]
)
"""What a model does for one call.

A string is text; an exception is a failure; a message or a response is the answer, any other
pydantic model is text as its JSON; a list of replies is one reply of all of them; stream items are
served exactly as they are, and merged for a plain call; a function, async or not, is called with the
request and gives the step.
"""


def say(
    *pieces: str | BaseModel,
    usage: Usage | None = None,
    finish_reason: FinishReason | None = None,
) -> Reply:
    """Answer with text.

    Args:
        pieces: The text. Given in several pieces it is streamed in exactly these. A pydantic model
            stands for its JSON.
        usage: What the answer cost; estimated when it is not given.
        finish_reason: Why the answer ended, such as ``length``.
    """
    texts = [_json_text(piece) if isinstance(piece, BaseModel) else piece for piece in pieces]
    return _words("text", texts, usage=usage, finish_reason=finish_reason)


def say_json(
    value: Any, *, usage: Usage | None = None, finish_reason: FinishReason | None = None
) -> Reply:
    """Answer with a value as compact JSON: a pydantic model, a dataclass, a dict and so on."""
    return _words("text", [_json_text(value)], usage=usage, finish_reason=finish_reason)


def think(*pieces: str, signature: str | None = None) -> Reply:
    """Show reasoning; usually before something else: ``think("hm") + say("Yes.")``.

    Args:
        pieces: The reasoning. Given in several pieces it is streamed in exactly these.
        signature: The provider's seal over it, which must be sent back.
    """
    return _words("reasoning", pieces, signature=signature)


def refuse(*pieces: str) -> Reply:
    """Decline to answer, in these words."""
    return _words("refusal", pieces)


def call(
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    id: str | None = None,
    raw: str | None = None,
    **more: Any,
) -> Reply:
    """Call a tool: ``call("get_weather", city="Paris")``.

    Args:
        tool: The tool's name.
        arguments: The arguments as a mapping, for those that are named ``id`` or ``raw``:
            ``call("delete", {"id": "a1"})``.
        id: The id of the call; the model counts ``call_1``, ``call_2``, … when it is not given.
        raw: The arguments exactly as the model writes them, broken JSON too.
        more: The arguments by name; dates, pydantic models and the like become their JSON form.

    Raises:
        TypeError: ``raw`` and arguments were both given, or an argument has no JSON form.
    """
    call_id = cast("object", id)
    if call_id is not None and not isinstance(call_id, str):
        raise TypeError(
            f"`id` is the call's id and must be a string, not `{type(call_id).__name__}`; a tool's own "
            f"argument of that name is given as call({tool!r}, {{'id': …}})"
        )
    given = {**(arguments or {}), **more}
    if raw is None:
        raw = dump_json(to_jsonable_python(given))
    elif given:
        raise TypeError(f"the call of `{tool}` has raw arguments and others: give one of them")
    return Reply((Called(tool, raw, id),))


def calls(
    *several: Reply, usage: Usage | None = None, finish_reason: FinishReason | None = None
) -> Reply:
    """Make several calls in one turn; a list of calls as a step does the same."""
    return joined(several).replace(usage=usage, finish_reason=finish_reason)


def fail(error: BaseException | type[BaseException], *, after: Reply | str = "") -> Failure:
    """Fail with this error, a new one for each call where a class is given.

    Args:
        error: What is raised.
        after: What is streamed before that; ``say("Sun") + fail(NetworkError)`` says the same.
    """
    return Failure(error, joined([after]))


def delay(seconds: float, step: "Step") -> Delay:
    """Do ``step`` after so many seconds; with 0 the event loop gets a turn all the same."""
    return Delay(seconds, step)


def hang(*, after: Reply | str = "") -> Hang:
    """Never end, until cancelled; ``await step.started.wait()`` waits for the model to be there.

    Args:
        after: What is streamed before that.
    """
    return Hang(joined([after]))


def joined(replies: Iterable[Reply | str]) -> Reply:
    """Return the sum of the replies."""
    total = Reply()
    for reply in replies:
        if reply != "":
            total = total + reply
    return total


def _words(
    kind: Literal["text", "reasoning", "refusal"],
    pieces: Sequence[str],
    *,
    signature: str | None = None,
    usage: Usage | None = None,
    finish_reason: FinishReason | None = None,
) -> Reply:
    texts = tuple(piece for piece in pieces if piece)
    parts = (Words(kind, texts, signature),) if texts or signature else ()
    return Reply(parts, usage, finish_reason)


def _json_text(value: Any) -> str:
    return dump_json(to_jsonable_python(value))
