"""How a model of the testkit does one step of a script."""

import copy
import inspect
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import attrgetter
from threading import Lock
from typing import Any, TypeAlias, cast

import anyio
from pydantic import BaseModel

from ..context import RunContext
from ..message import AssistantMessage, Block, ReasoningBlock
from ..model import (
    FinishReason,
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
    merge_stream,
)
from ..text import dump_json
from ..usage import Usage, estimate_tokens
from ._script import Called, Delay, Failure, Hang, Part, Reply, Words, joined, say_json

TOKENS_PER_MESSAGE = 10
"""What a scripted model counts for each message of its prompt."""
_permissive_profile = lru_cache(maxsize=64)(ModelProfile.permissive)

Items: TypeAlias = tuple[ModelStreamItem, ...]


@lru_cache(maxsize=4096)
def estimate(messages: int, output_tokens: int) -> Usage:
    """Return the usage of an answer of so many tokens to so many messages."""
    return Usage(
        input_tokens=TOKENS_PER_MESSAGE * messages, output_tokens=output_tokens, source="estimated"
    )


def count_tokens(parts: Iterable[Part]) -> int:
    """Return what an answer of these parts counts in tokens: at least one."""
    characters = 0
    for part in parts:
        if isinstance(part, Called):
            characters += len(part.name) + len(part.arguments)
        else:
            characters += sum(map(len, part.pieces))
    return max(1, estimate_tokens(characters))


class Plan:
    """A reply worked out for one model."""

    __slots__ = ("_blocks", "_first", "finish_reason", "ids", "output_tokens", "reply")

    def __init__(self, reply: Reply, first: int) -> None:
        self.reply = reply
        self.finish_reason: FinishReason = reply.finish_reason or _finish_reason(reply.parts)
        self.output_tokens = count_tokens(reply.parts)
        self.ids = sum(isinstance(part, Called) and part.id is None for part in reply.parts)
        """How many of its calls have no id of their own."""
        self._first = first
        self._blocks = _blocks(reply.parts, first)

    def blocks(self, first: int) -> list[Block]:
        """Return the content of the message; calls without an id are numbered from ``first``."""
        if first == self._first or not self.ids:
            return self._blocks.copy()
        return _blocks(self.reply.parts, first)


@dataclass(frozen=True, slots=True)
class Later:
    """A step that is made ready already, and a wait before it."""

    seconds: float
    step: "Prepared"


@dataclass(frozen=True, slots=True)
class Given:
    """An answer that the test made itself."""

    response: ModelResponse
    parts: tuple[Part, ...]


Resolved: TypeAlias = "Plan | Given | Items | Failure | Hang"
Prepared: TypeAlias = "Resolved | Later | Any"
"""A step made ready; ``Any`` stands for a function of the request."""


class Cursor:
    """How far a script has come, for one run or for all."""

    __slots__ = ("next_id", "position")

    def __init__(self) -> None:
        self.position = 0
        self.next_id = 1


class StepModel:
    """A chat model that does one step for each call; which one, its subclasses say."""

    def __init__(
        self, *, profile: ModelProfile | None, name: str, chunk_size: int | None, record: bool
    ) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"chunk_size is {chunk_size}: it must be at least 1, or None")
        self.name = name
        self.profile: ModelProfile = profile or _permissive_profile("scripted", name)
        self.calls: int = 0
        """How often the model was called, failures included. Counted before anything is awaited."""
        self.requests: list[ModelRequest] = []
        """A copy of each request, in order, which later changes to the request do not reach."""
        self._size = chunk_size
        self._record = record
        self._lock = Lock()
        self._shares_errors = False
        """Whether one step can fail several calls, so that each needs an error of its own."""

    @property
    def cache_identity(self) -> str:
        """Models of one name are taken for the same: a response cache mixes their answers."""
        return f"testkit:{self.name}"

    async def invoke(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> ModelResponse:
        """Do the next step and answer in one piece."""
        cursor, number, taken = self._take(request, ctx)
        step = taken if type(taken) is Plan else await self._resolve(taken, request, cursor)
        match step:
            case Plan():
                return self._response(step, request, self._reserve(cursor, step), number)
            case Given():
                return _fresh(step.response)
            case Failure():
                raise self._error(step)
            case Hang():
                await step.reach()
            case tuple():
                return merge_stream(_verbatim(step))
        raise AssertionError("a step that hangs has ended")

    async def stream(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> AsyncGenerator[ModelStreamItem]:
        """Do the next step and answer piece by piece."""
        cursor, number, taken = self._take(request, ctx)
        step = taken if type(taken) is Plan else await self._resolve(taken, request, cursor)
        match step:
            case Plan():
                first = self._reserve(cursor, step)
                response = self._response(step, request, first, number)
                yield StreamStarted(response.response_id, response.model)
                for item in pieces_of(step.reply.parts, self._size, first):
                    yield item
                yield StreamCompleted(response)
            case Given():
                response = _fresh(step.response)
                yield StreamStarted(response.response_id, response.model)
                for item in pieces_of(step.parts, self._size):
                    yield item
                yield StreamCompleted(response)
            case Failure() | Hang():
                if step.after.parts:
                    yield StreamStarted(self._response_id(number), self.name)
                    for item in pieces_of(step.after.parts, self._size, cursor.next_id):
                        yield item
                if isinstance(step, Hang):
                    await step.reach()
                else:
                    raise self._error(step)
            case tuple():
                for item in _verbatim(step):
                    yield item

    def _next(
        self, request: ModelRequest, ctx: RunContext[Any] | None
    ) -> tuple[Cursor, int, Prepared]:
        """Return whose turn it is, the number of the call, and the step. Called under the lock."""
        raise NotImplementedError

    def _take(
        self, request: ModelRequest, ctx: RunContext[Any] | None
    ) -> tuple[Cursor, int, Prepared]:
        with self._lock:
            self.calls += 1
            if self._record:
                self.requests.append(copied(request))
            return self._next(request, ctx)

    async def _resolve(self, step: Prepared, request: ModelRequest, cursor: Cursor) -> Resolved:
        while True:
            if isinstance(step, Later):
                await anyio.sleep(step.seconds)
                step = step.step
            elif callable(step):
                made: object = step(request)
                if inspect.isawaitable(made):
                    made = await made
                step = prepare(made, self.name, cursor.next_id)
            else:
                return cast("Resolved", step)

    def _reserve(self, cursor: Cursor, plan: Plan) -> int:
        """Return the number of the reply's first call, and go on counting after its last."""
        if not plan.ids:
            return cursor.next_id
        with self._lock:
            first = cursor.next_id
            cursor.next_id = first + plan.ids
        return first

    def _response(
        self, plan: Plan, request: ModelRequest, first: int, number: int
    ) -> ModelResponse:
        reply = plan.reply
        usage = reply.usage or estimate(len(request.messages), plan.output_tokens)
        return ModelResponse(
            AssistantMessage(content=plan.blocks(first), usage=usage),
            plan.finish_reason,
            None,
            reply.response_id or self._response_id(number),
            reply.model or self.name,
        )

    def _response_id(self, number: int) -> str:
        return f"{self.name}-{number}"

    def _error(self, step: Failure) -> BaseException:
        error = error_of(step.error)
        if not self._shares_errors or error is not step.error:
            return error
        # A run writes on the error that ends it.
        try:
            return copy.copy(error)
        except TypeError:  # its class needs more than its `args`
            return error


def prepare(step: object, name: str, first_id: int) -> Prepared:
    """Make a step ready for the model of that name; its calls are counted from ``first_id``.

    Raises:
        TypeError: It is no step.
    """
    match step:
        case Delay():
            return Later(step.seconds, prepare(step.step, name, first_id))
        case Failure():
            error_of(step.error)
            return step
        case Hang():
            return step
        case ModelResponse():
            return Given(step, _parts(step.message))
        case AssistantMessage():
            parts = _parts(step)
            return Given(ModelResponse(step, _finish_reason(parts), model=name), parts)
        case BaseException():
            return Failure(step, Reply())
        case type():
            if not issubclass(step, BaseException):
                raise TypeError(f"the class `{step.__name__}` is no step: give an instance")
            return prepare(Failure(step, Reply()), name, first_id)
        case _ if callable(step):
            return step
        case _:
            pass
    reply = _as_reply(step)
    return reply if isinstance(reply, tuple) else Plan(reply, first_id)


def error_of(error: BaseException | type[BaseException]) -> BaseException:
    """Return the error that a step fails with, or a new one of its class.

    Raises:
        TypeError: The class needs more than a message.
    """
    if isinstance(error, BaseException):
        return error
    try:
        return error("scripted failure")
    except TypeError:
        name = error.__name__
        raise TypeError(f"`{name}` needs more than a message: give an instance of it") from None


def pieces_of(
    parts: Iterable[Part], size: int | None, first_id: int = 1
) -> Iterator[ModelStreamItem]:
    """Cut the parts of a reply into what is streamed of it, ``size`` characters at a time."""
    index = 0
    for part in parts:
        if isinstance(part, Called):
            call_id = part.id
            if call_id is None:
                call_id, first_id = f"call_{first_id}", first_id + 1
            yield ToolCallDelta(call_id, part.name, "", index)
            for text in _cut(part.arguments, size):
                yield ToolCallDelta("", "", text, index)
            index += 1
            continue
        for text in part.pieces if len(part.pieces) > 1 else _cut("".join(part.pieces), size):
            match part.kind:
                case "text":
                    yield MessageDelta(text)
                case "reasoning":
                    yield MessageDelta("", text)
                case "refusal":
                    yield MessageDelta("", "", text)


def _cut(text: str, size: int | None) -> Iterable[str]:
    if size is None or len(text) <= size:
        return (text,) if text else ()
    return (text[start : start + size] for start in range(0, len(text), size))


def _blocks(parts: Sequence[Part], first_id: int) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, Words) and part.kind == "reasoning":
            blocks.append(ReasoningBlock(text="".join(part.pieces), signature=part.signature))
            continue
        # Made by merging, so that a stream without its last item gives the same message.
        merged = merge_stream(pieces_of([part], None, first_id)).message
        blocks.extend(merged.content)
        first_id += isinstance(part, Called) and part.id is None
    return blocks


def _parts(message: AssistantMessage) -> tuple[Part, ...]:
    """Return what can be streamed of a message piece by piece."""
    parts: list[Part] = []
    for block in message.content:
        match block.type:
            case "text" | "reasoning" | "refusal":
                if block.text:
                    parts.append(Words(block.type, (block.text,)))
            case "tool_call":
                raw = block.invalid.raw if block.invalid else dump_json(block.arguments)
                parts.append(Called(block.name, raw, block.id))
            case _:
                pass
    return tuple(parts)


def _finish_reason(parts: Sequence[Part]) -> FinishReason:
    if any(isinstance(part, Called) for part in parts):
        return "tool_calls"
    refused = any(isinstance(part, Words) and part.kind == "refusal" for part in parts)
    return "refusal" if refused else "stop"


def _as_reply(step: object) -> Reply | Items:
    if isinstance(step, Reply):
        return step
    if isinstance(step, str):
        return joined([step])
    if isinstance(step, BaseModel):
        return say_json(step)
    if not isinstance(step, Sequence):
        raise TypeError(f"`{type(step).__name__}` is no step: {step!r}")
    items = cast("Sequence[object]", step)
    if items and all(isinstance(item, ModelStreamItem) for item in items):
        return cast("Items", tuple(items))
    for item in items:
        if not isinstance(item, Reply | str):
            raise TypeError(
                "a list as a step holds replies, or else stream items, and no "
                f"`{type(item).__name__}`: {item!r}"
            )
    return joined(cast("Sequence[Reply | str]", items))


def _verbatim(items: Items) -> Iterator[ModelStreamItem]:
    for item in items:
        match item:
            case StreamCompleted():
                yield StreamCompleted(_fresh(item.response))
            case _:
                yield item


def _fresh(response: ModelResponse) -> ModelResponse:
    """Return a copy for one run to write on."""
    return replace(response, timing=replace(response.timing))


_REQUEST_FIELDS = attrgetter(*(field.name for field in fields(ModelRequest)))


def copied(request: ModelRequest) -> ModelRequest:
    """Return a copy that does not change when hooks change the request later."""
    # Messages and settings are frozen. Thrice as fast as `dataclasses.replace`.
    kept = ModelRequest(*_REQUEST_FIELDS(request))
    kept.messages = request.messages.copy()
    kept.tools = tuple(request.tools)
    if request.metadata:
        kept.metadata = dict(request.metadata)
    return kept
