"""A model for tests and demonstrations, which answers by itself."""

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..ids import RandomIds
from ..message import AssistantMessage, Message, TextBlock, ToolCallBlock, UserMessage
from ..model import (
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
    ToolCallDelta,
    UsageDelta,
    merge_stream,
)
from ..text import dump_json
from ..usage import Usage, estimate_tokens

if TYPE_CHECKING:
    from ..context import RunContext

Answer: TypeAlias = str | AssistantMessage | ModelResponse
"""What a scripted mock says next."""

_TOOL_CALL_TOKENS = 5
_IDS = RandomIds()
_PROFILE = ModelProfile.permissive("mock", "mock")


class MockModel:
    """Answers without a network. ``MockModel()`` repeats the last text of the user.

    The other behaviours have constructors of their own: :meth:`constant`, :meth:`scripted`,
    :meth:`tool_call` and :meth:`items`. Message ids count up, ``mock-msg-1`` and so on; usage is
    estimated at four bytes a token. For scripts that check what they are asked, see
    ``tinyagents.testkit``.

    Args:
        profile: What the model claims to do: by default everything.
    """

    def __init__(self, *, profile: ModelProfile | None = None) -> None:
        self._profile = profile or _PROFILE
        self._answer: Callable[[ModelRequest, int], Answer] = _echo
        self._items: Sequence[ModelStreamItem] | None = None
        self._count = itertools.count(1)
        self._calls = 0
        self.cache_identity: str = _IDS.new("mock")
        """Unlike any other's: what a mock says is kept for this very object alone."""

    @classmethod
    def constant(cls, text: str, *, profile: ModelProfile | None = None) -> Self:
        """Return a model that always says ``text``."""
        return cls._answering(lambda _request, _number: text, profile)

    @classmethod
    def scripted(cls, answers: Sequence[Answer], *, profile: ModelProfile | None = None) -> Self:
        """Return a model that gives the answers in order, and from the first one again.

        Raises:
            InvalidRequestError: There are no answers.
        """
        if not answers:
            raise InvalidRequestError("a scripted mock needs at least one answer")
        script = tuple(answers)
        return cls._answering(lambda _request, number: script[(number - 1) % len(script)], profile)

    @classmethod
    def tool_call(
        cls,
        name: str,
        arguments: dict[str, JsonValue] | None = None,
        *,
        profile: ModelProfile | None = None,
    ) -> Self:
        """Return a model that always calls the tool ``name``."""

        def answer(_request: ModelRequest, number: int) -> AssistantMessage:
            call = ToolCallBlock(id=f"mock-tool-{number}", name=name, arguments=arguments or {})
            return AssistantMessage(content=[call])

        return cls._answering(answer, profile)

    @classmethod
    def items(
        cls, items: Sequence[ModelStreamItem], *, profile: ModelProfile | None = None
    ) -> Self:
        """Return a model whose streams are exactly these items; a plain call merges them."""
        made = cls(profile=profile)
        made._items = tuple(items)
        return made

    @classmethod
    def _answering(
        cls, answer: Callable[[ModelRequest, int], Answer], profile: ModelProfile | None
    ) -> Self:
        made = cls(profile=profile)
        made._answer = answer
        return made

    @property
    def profile(self) -> ModelProfile:
        """What the model claims to do."""
        return self._profile

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return self._calls

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece."""
        number = self._next()
        if self._items is not None:
            return merge_stream(self._items)
        return self._respond(request, number)

    async def stream(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer piece by piece: text comes in two halves."""
        number = self._next()
        if self._items is not None:
            for item in self._items:
                yield item
            return
        response = self._respond(request, number)
        yield StreamStarted(response_id=response.response_id, model=response.model)
        for delta in _deltas(response.message):
            yield delta
        if response.message.usage is not None:
            yield UsageDelta(response.message.usage)
        yield StreamCompleted(response)

    def _next(self) -> int:
        # `next` on a counter cannot give two threads the same number.
        number = self._calls = next(self._count)
        return number

    def _respond(self, request: ModelRequest, number: int) -> ModelResponse:
        answer = self._answer(request, number)
        if isinstance(answer, ModelResponse):
            return answer
        message = AssistantMessage(content=answer) if isinstance(answer, str) else answer
        changes: dict[str, Any] = {}
        if message.id is None:
            changes["id"] = f"mock-msg-{number}"
        if message.usage is None:
            changes["usage"] = _estimate(request.messages, message)
        message = message.model_copy(update=changes)
        return ModelResponse(
            message=message,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            response_id=message.id,
            model=self._profile.model,
        )


def _echo(request: ModelRequest, _number: int) -> str:
    said = [message for message in request.messages if isinstance(message, UserMessage)]
    return said[-1].text if said else ""


def _deltas(message: AssistantMessage) -> list[ModelStreamItem]:
    items: list[ModelStreamItem] = []
    for index, block in enumerate(message.content):
        match block:
            case TextBlock(text=text):
                half = (len(text) + 1) // 2
                items.extend(MessageDelta(part) for part in (text[:half], text[half:]) if part)
            case ToolCallBlock():
                arguments = dump_json(block.arguments)
                items.append(ToolCallDelta(block.id, block.name, arguments, index))
            case _:
                continue
    return items


def _estimate(messages: Sequence[Message], answer: AssistantMessage) -> Usage:
    output = _TOOL_CALL_TOKENS if answer.tool_calls else _tokens(answer.text)
    return Usage(
        input_tokens=sum(_tokens(message.text) for message in messages),
        output_tokens=output,
        source="estimated",
    )


def _tokens(text: str) -> int:
    return estimate_tokens(len(text.encode()))
