"""From what a call of Ollama's ``/api/chat`` answers, whole or line by line, to one response."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..errors import MalformedResponseError
from ..ids import IdGenerator
from ..message import (
    AssistantMessage,
    Block,
    ProviderExtensionBlock,
    ReasoningBlock,
    ToolCallBlock,
)
from ..model import (
    FinishReason,
    MessageDelta,
    ModelResponse,
    ModelStreamItem,
    StreamStarted,
    UsageDelta,
)
from ..text import JsonObject
from ..usage import Usage
from ._endpoint import Origin
from ._json import as_list, as_object, as_text
from ._openai_calls import CallParts
from ._openai_wire import WireTools
from ._pieces import joined, under_name
from ._think_tags import ThinkTagSplitter, segment_blocks
from ._usage import read_usage

_FINISH_REASONS: Final[Mapping[str, FinishReason]] = {"stop": "stop", "length": "length"}
_OWN_FIELDS: Final = frozenset({"model", "message", "done", "done_reason", "error"})
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "thinking", "tool_calls"})
_COUNTS: Final = frozenset({"prompt_eval_count", "eval_count"})


class OllamaAssembler:
    """Takes an answer line by line and gives out the items of a stream, then the response."""

    __slots__ = (
        "_calls",
        "_calls_by_id",
        "_extra",
        "_notices",
        "_origin",
        "_positions",
        "_raw",
        "_reason",
        "_served_by",
        "_text",
        "_thinking",
        "_usage",
        "ended",
        "started",
    )

    def __init__(self, tools: WireTools, origin: Origin, *, ids: IdGenerator) -> None:
        self._origin = origin
        self._notices = tools.notices
        self._calls = CallParts(tools, ids)
        self._calls_by_id: dict[str, Mapping[str, Any]] = {}
        self._positions = 0
        self._text = ThinkTagSplitter()
        self._thinking: list[str] = []
        self._extra: JsonObject = {}
        self._raw: JsonObject = {}
        self._usage: Usage | None = None
        self._reason: str | None = None
        self._served_by: str | None = None
        self.started: bool = False
        self.ended: bool = False

    @property
    def complete(self) -> bool:
        """Whether the stream may end here without a loss: only behind its last line."""
        return self.ended

    # What comes in

    def add(self, document: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take a line of a stream and return the items that it gives.

        Raises:
            ModelError: The line says that the call failed.
        """
        try:
            return self._taken(document)
        except ValueError as exc:
            raise self._unreadable(exc, document) from exc

    def add_whole(self, document: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an answer that came in one piece.

        Raises:
            ModelError: It says that the call failed, or is no answer.
        """
        items = self.add(document)
        if as_object(document.get("message")) is None:
            raise self._origin.malformed("the answer has no `message`", document)
        if document.get("done") is False:
            raise self._origin.malformed("the answer is not complete", document)
        return items

    def _taken(self, document: Mapping[str, Any]) -> list[ModelStreamItem]:
        if document.get("error"):
            raise self._origin.failure(document)
        items: list[ModelStreamItem] = []
        message = as_object(document.get("message"))
        done = document.get("done") is True
        if not self.started and (message is not None or done):
            self.started = True
            self._served_by = as_text(document.get("model"))
            items.append(StreamStarted(model=self._served_by))
        self._take_facts(document)
        if message is not None:
            self._take_message(message, items)
        if done:
            self.ended = True
            self._reason = as_text(document.get("done_reason"))
        self._take_usage(document, items)
        return items

    def _take_facts(self, document: Mapping[str, Any]) -> None:
        for name, value in document.items():
            if name in _OWN_FIELDS or value in (None, "", []):
                continue
            # Log probabilities are a list that grows; the last word counts for everything else.
            self._raw[name] = joined(self._raw.get(name), value) if name == "logprobs" else value

    def _take_usage(self, document: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        if _COUNTS.isdisjoint(document):
            return
        counts = {name: document.get(name) for name in _COUNTS}
        known = read_usage(counts, cache_in_input=True, hidden_output=False)
        if known is not None:
            self._usage = known
            items.append(UsageDelta(known))

    def _take_message(self, message: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        for name, value in message.items():
            if name not in _MESSAGE_FIELDS and value not in (None, "", []):
                self._extra[name] = joined(self._extra.get(name), value)
        if thinking := as_text(message.get("thinking")):
            self._thinking.append(thinking)
            items.append(MessageDelta(reasoning=thinking))
        content = message.get("content")
        if content is not None and not isinstance(content, str):
            raise self._origin.malformed("the content is no text", message)
        if content:
            items += [piece.delta for piece in self._text.feed(content)]
        for call in as_list(message.get("tool_calls")) or ():
            self._take_call(as_object(call) or {}, items)

    def _take_call(self, call: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        if (given := as_text(call.get("id"))) is not None:
            if self._calls_by_id.get(given) == call:
                return  # said again, word for word
            self._calls_by_id[given] = call
        # Calls are never continued, and not every server counts them: their order tells them apart.
        if "function" in call:
            call = {**call, "index": self._positions}
            self._positions += 1
        delta = self._calls.add(call, whole=True)
        if delta is not None:
            items.append(delta)

    # What goes out

    def finish(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        """End the answer: return the last items, and the response.

        Raises:
            MalformedResponseError: There is something in it that no message can hold.
        """
        items: list[ModelStreamItem] = [piece.delta for piece in self._text.finish()]
        try:
            content = [*self._content()]
            message = AssistantMessage(
                content=content,
                usage=self._usage,
                provider_data=under_name(self._origin.provider, self._extra),
            )
        except ValueError as exc:
            raise self._unreadable(exc, self._raw) from exc
        return items, ModelResponse(
            message=message,
            finish_reason=self._finish_reason(message),
            raw_finish_reason=self._reason,
            model=self._served_by,
            raw=self._raw,
            notices=self._notices,
            request_id=self._origin.request_id,
        )

    def _content(self) -> Iterator[Block]:
        provider = self._origin.provider
        if self._thinking:
            field = under_name(provider, {"field": "thinking"})
            yield ReasoningBlock(text="".join(self._thinking), provider_data=field)
        yield from segment_blocks(self._text.segments, provider)
        yield from self._calls.blocks(provider)
        for extension in self._calls.extensions:
            yield ProviderExtensionBlock(provider=provider, data=extension)

    def _finish_reason(self, message: AssistantMessage) -> FinishReason | None:
        known: FinishReason | None = None
        if self._reason is not None:
            known = _FINISH_REASONS.get(self._reason, "other")
        called = any(isinstance(block, ToolCallBlock) for block in message.content)
        return "tool_calls" if called and known in ("stop", None) else known

    def _unreadable(self, exc: ValueError, raw: Any) -> MalformedResponseError:
        # Of pydantic's many lines the first names the block.
        return self._origin.malformed(
            f"the answer cannot be read: {str(exc).partition(chr(10))[0]}", raw
        )
