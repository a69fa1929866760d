"""From what a Responses call answers, whole or in events, to one model response.

The event that ends a stream holds the whole answer, and an answer in one piece is taken like it, so
that both forms of the same answer make the same message.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from ..errors import MalformedResponseError, ModelError, NetworkError, ServerError
from ..ids import IdGenerator
from ..message import AssistantMessage, Block, ToolCallBlock
from ..model import (
    FinishReason,
    MessageDelta,
    ModelResponse,
    ModelStreamItem,
    StreamStarted,
    ToolCallDelta,
    UsageDelta,
)
from ..text import JsonObject
from ..usage import Usage
from ._endpoint import Origin
from ._errors import redacted
from ._json import as_integer, as_list, as_object, as_text
from ._openai_wire import WireTools, safe_id
from ._pieces import says_something
from ._responses_blocks import BlockReader, arguments_of, parts_of
from ._responses_presets import ResponsesPreset
from ._usage import read_usage

_BEGINNINGS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDS: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)
_DELTAS: Final[Mapping[str, str]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "summary",
    "response.reasoning_text.delta": "content",
    "response.function_call_arguments.delta": "arguments",
}
"""What each kind of piece belongs to. All other events say again what these and the items say, or
tell how far a tool of the provider has come."""
_UNFINISHED: Final = frozenset({"queued", "in_progress"})
_INCOMPLETE_REASONS: Final[Mapping[str, FinishReason]] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_SAFETY_FIELDS: Final = ("content_filters", "moderation")
_NO_FACTS: Final = frozenset(
    {
        *("id", "model", "output", "usage", "status", "error", "object", "output_text"),
        *("incomplete_details", *_SAFETY_FIELDS),
        # What was asked for comes back with every answer.
        *("instructions", "tools", "tool_choice", "text", "reasoning", "parallel_tool_calls"),
        *("temperature", "top_p", "top_logprobs", "max_output_tokens", "max_tool_calls"),
        *("truncation", "user", "frequency_penalty", "presence_penalty", "prompt", "background"),
    }
)

_PART_TYPES: Final = {
    "text": "output_text",
    "refusal": "refusal",
    "summary": "summary_text",
    "content": "reasoning_text",
}

_Place = tuple[int, str, int]
"""The position of an item, what of it, and the position of the part."""


class ResponsesAssembler:
    """Takes an answer event by event and gives out the items of a stream, then the response."""

    __slots__ = (
        "_announced",
        "_done",
        "_final",
        "_ids",
        "_items",
        "_new_ids",
        "_origin",
        "_preset",
        "_sent",
        "_status",
        "_thought",
        "_tools",
        "_usage",
        "response_id",
        "served_by",
        "started",
    )

    def __init__(
        self, preset: ResponsesPreset, tools: WireTools, origin: Origin, *, ids: IdGenerator
    ) -> None:
        self._preset = preset
        self._tools = tools
        self._origin = origin
        self._ids = ids
        self._new_ids: dict[int, str] = {}
        self.started: bool = False
        self.response_id: str | None = None
        self.served_by: str | None = None
        self._items: dict[int, JsonObject] = {}
        self._done: set[int] = set()
        """Items that came whole."""
        self._announced: set[int] = set()
        """Calls whose id and name were given out."""
        self._sent: dict[_Place, list[str]] = {}
        """The pieces that were given out."""
        self._thought: set[int] = set()
        """Items of which reasoning was given out."""
        self._final: Mapping[str, Any] | None = None
        self._status = ""
        self._usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether the event that ends an answer has come."""
        return self._final is not None

    @property
    def ended(self) -> bool:
        """Whether what follows is not read: nothing does."""
        return self._final is not None

    # What comes in

    def add(self, event: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an event of a stream and return the items that it gives.

        Raises:
            ModelError: The event says that the call failed.
        """
        items: list[ModelStreamItem] = []
        try:
            self._take(event, items)
        except ValueError as exc:
            raise self._unreadable(exc, event) from exc
        return items

    def add_whole(self, body: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an answer that came in one piece.

        Raises:
            ModelError: It says that the call failed, or is no answer.
        """
        items: list[ModelStreamItem] = []
        try:
            if not (body.keys() & {"output", "output_text", "status"} or body.get("error")):
                raise self._origin.malformed("the answer has no `output`", body)
            self._end(body, "completed", items)
        except ValueError as exc:
            raise self._unreadable(exc, body) from exc
        return items

    def _take(self, event: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        kind = as_text(event.get("type")) or ""
        if (part := _DELTAS.get(kind)) is not None:
            # Nearly every event of a stream is one of these.
            self._take_delta(event, part, items)
        elif kind == "response.output_item.added":
            self._take_item(event, items, done=False)
        elif kind == "response.output_item.done":
            self._take_item(event, items, done=True)
        elif kind in _BEGINNINGS:
            self._start(as_object(event.get("response")) or {}, items)
        elif kind in _ENDS:
            response = as_object(event.get("response"))
            if response is None and event.get("error"):
                raise self._origin.failure(event)
            if response is None:
                raise self._origin.malformed(f"`{kind}` holds no response", event)
            self._end(response, kind.removeprefix("response."), items)
        elif kind == "error" or event.get("error"):
            raise self._origin.failure(event if event.get("error") else {"error": event})

    def _start(self, response: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        self.response_id = self.response_id or as_text(response.get("id"))
        self.served_by = as_text(response.get("model")) or self.served_by
        if not self.started:
            self.started = True
            items.append(StreamStarted(response_id=self.response_id, model=self.served_by))

    def _take_delta(
        self, event: Mapping[str, Any], kind: str, items: list[ModelStreamItem]
    ) -> None:
        if not self.started:
            self._start({}, items)
        part = event.get("summary_index" if kind == "summary" else "content_index")
        place = (self._position(event), kind, as_integer(part) or 0)
        self._give(place, as_text(event.get("delta")) or "", items)

    def _take_item(
        self, event: Mapping[str, Any], items: list[ModelStreamItem], *, done: bool
    ) -> None:
        if not self.started:
            self._start({}, items)
        item = as_object(event.get("item"))
        if item is None:
            raise self._origin.malformed("an item of the stream is no object", event)
        position = as_integer(event.get("output_index"))
        if position is None:
            position = self._position(event) if done else len(self._items)
        self._items[position] = item
        if done:
            self._done.add(position)
            self._catch_up(position, item, items)
        elif item.get("type") == "function_call" and item.get("call_id") and item.get("name"):
            self._announce(position, item, items)

    def _position(self, event: Mapping[str, Any]) -> int:
        given = as_integer(event.get("output_index"))
        return max(0, len(self._items) - 1) if given is None else given

    def _end(self, response: Mapping[str, Any], status: str, items: list[ModelStreamItem]) -> None:
        self._start(response, items)
        self._status = as_text(response.get("status")) or status
        self._raise_failure(response)
        self._final = response
        output = as_list(response.get("output")) or ()
        # Some servers end with an answer that is empty, after all of its items have come.
        if len(output) >= len(self._items):
            same = len(output) == len(self._items)
            positions = sorted(self._items) if same else range(len(output))
            self._items = dict(zip(positions, map(self._object, output), strict=True))
        self._take_bare_text(response)
        for position, item in self._items.items():
            if position not in self._done:
                self._fill(position, item)
                self._catch_up(position, item, items)
        usage = read_usage(
            as_object(response.get("usage")) or {},
            cache_in_input=self._preset.cache_in_input,
            hidden_output=self._preset.hidden_output,
        )
        if usage is not None:
            self._usage = usage
            items.append(UsageDelta(usage))

    def _take_bare_text(self, response: Mapping[str, Any]) -> None:
        """Take the text that some servers give beside the items instead of in one."""
        text = as_text(response.get("output_text"))
        if not text or any(item.get("type") == "message" for item in self._items.values()):
            return
        begun = (at for at, kind, _ in self._sent if kind == "text" and at not in self._items)
        position = next(begun, max(self._items, default=-1) + 1)
        part: JsonObject = {"type": "output_text", "text": text}
        self._items[position] = {"type": "message", "role": "assistant", "content": [part]}

    def _object(self, item: Any) -> JsonObject:
        found = as_object(item)
        if found is None:
            raise self._origin.malformed("an item of the answer is no object", item)
        return found

    def _raise_failure(self, response: Mapping[str, Any]) -> None:
        if failure := response.get("error"):
            raise self._origin.failure({"error": failure})
        match self._status:
            case "failed":
                raise self._no_answer("the provider failed without giving a reason", response)
            case "cancelled":
                raise self._no_answer("the answer was cancelled", response, retryable=False)
            case status if status in _UNFINISHED:
                told = f"the provider has not finished its answer (`{status}`)"
                raise self._no_answer(told, response, retryable=False)
            case _:
                return

    def _no_answer(
        self, message: str, response: Mapping[str, Any], *, retryable: bool | None = None
    ) -> ModelError:
        return ServerError(
            message,
            code=self._status,
            retryable=retryable,
            raw=redacted(response, self._origin.secrets),
            **self._origin.facts,
        )

    # What is given out

    def _give(self, place: _Place, text: str, items: list[ModelStreamItem]) -> None:
        """Give out a piece of an item."""
        if not text:
            return
        position, kind, _ = place
        pieces = self._sent.get(place)
        if pieces is not None:
            pieces.append(text)
        else:
            self._sent[place] = [text]
            if kind in ("summary", "content"):
                if position in self._thought:
                    items.append(MessageDelta(reasoning="\n\n"))
                self._thought.add(position)
        match kind:
            case "text":
                items.append(MessageDelta(text))
            case "refusal":
                items.append(MessageDelta(refusal=text))
            case "arguments":
                items.append(ToolCallDelta(arguments=text, index=position))
            case _:
                items.append(MessageDelta(reasoning=text))

    def _announce(self, position: int, item: JsonObject, items: list[ModelStreamItem]) -> None:
        if position in self._announced:
            return
        self._announced.add(position)
        name = self._tools.user_name(as_text(item.get("name")) or "")
        call_id = self._call_id(position, item)
        items.append(ToolCallDelta(call_id=call_id, name=name, index=position))

    def _call_id(self, position: int, item: JsonObject) -> str:
        given = as_text(item.get("call_id")) or as_text(item.get("id"))
        if given is not None:
            return safe_id(given)
        known = self._new_ids.get(position)
        if known is None:
            known = self._new_ids[position] = self._ids.new("tacall")
        return known

    def _catch_up(self, position: int, item: JsonObject, items: list[ModelStreamItem]) -> None:
        """Give out what of a whole item did not come in pieces."""
        match item.get("type"):
            case "message":
                for index, part in enumerate(as_list(item.get("content")) or ()):
                    self._give_rest((position, "text", index), part, "text", items)
                    self._give_rest((position, "refusal", index), part, "refusal", items)
            case "reasoning":
                for field in ("summary", "content"):
                    for index, part in enumerate(as_list(item.get(field)) or ()):
                        self._give_rest((position, field, index), part, "text", items)
            case "function_call":
                self._announce(position, item, items)
                call = {"arguments": arguments_of(item)}
                self._give_rest((position, "arguments", 0), call, "arguments", items)
            case _:
                return

    def _give_rest(
        self, place: _Place, part: Any, field: str, items: list[ModelStreamItem]
    ) -> None:
        whole = as_text((as_object(part) or {}).get(field)) or ""
        given = "".join(self._sent.get(place, ()))
        if whole.startswith(given):
            self._give(place, whole[len(given) :], items)

    def _fill(self, position: int, item: JsonObject) -> None:
        """Put the pieces into an item that never came whole."""
        for (place, kind, index), pieces in self._sent.items():
            if place != position:
                continue
            text = "".join(pieces)
            if kind == "arguments":
                item["arguments"] = as_text(item.get("arguments")) or text
                continue
            field = "content" if kind in ("text", "refusal") else kind
            if index >= len(parts_of(item, field)):
                name = "refusal" if kind == "refusal" else "text"
                made: JsonObject = {"type": _PART_TYPES[kind], name: text}
                item[field] = [*parts_of(item, field), made]

    # What goes out

    def finish(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        """End the answer: return the last items, of which there are none, and the response.

        Raises:
            NetworkError: The end of the answer is missing.
            MalformedResponseError: There is something in it that no message can hold.
        """
        if self._final is None:
            raise NetworkError(
                "the stream ended before the answer was complete", **self._origin.facts
            )
        try:
            return [], self._response(self._final)
        except ValueError as exc:
            raise self._unreadable(exc, self._final) from exc

    def _response(self, final: Mapping[str, Any]) -> ModelResponse:
        reader = BlockReader(self._preset.data_name, self._tools)
        content: list[Block] = []
        for position, item in sorted(self._items.items()):
            is_call = item.get("type") == "function_call"
            call_id = self._call_id(position, item) if is_call else ""
            content.extend(reader.read(item, call_id))
        message = AssistantMessage(id=self.response_id, content=content, usage=self._usage)
        details = as_object(final.get("incomplete_details")) or {}
        reason = as_text(details.get("reason"))
        return ModelResponse(
            message=message,
            finish_reason=self._finish_reason(reason, message),
            raw_finish_reason=reason or self._status,
            response_id=self.response_id,
            model=self.served_by,
            raw=_raw_facts(final, reader.logprobs),
            safety=_safety(final),
            notices=self._tools.notices,
            request_id=self._origin.request_id,
        )

    def _finish_reason(self, reason: str | None, message: AssistantMessage) -> FinishReason:
        if self._status == "incomplete":
            return _INCOMPLETE_REASONS.get(reason or "", "other")
        if any(isinstance(block, ToolCallBlock) for block in message.content):
            return "tool_calls"
        if message.refusal is not None:
            return "refusal"
        return "stop" if self._status == "completed" else "other"

    def _unreadable(self, exc: ValueError, raw: Any) -> MalformedResponseError:
        # Of pydantic's many lines the first names the block.
        return self._origin.malformed(
            f"the answer cannot be read: {str(exc).partition(chr(10))[0]}", raw
        )


def _raw_facts(final: Mapping[str, Any], logprobs: list[Any]) -> JsonObject:
    raw: dict[str, JsonValue] = {
        name: value
        for name, value in final.items()
        if name not in _NO_FACTS and says_something(value)
    }
    if usage := as_object(final.get("usage")):
        raw["usage"] = usage
    if logprobs:
        raw["logprobs"] = {"content": logprobs}
    return raw


def _safety(final: Mapping[str, Any]) -> JsonObject | None:
    found = {name: final[name] for name in _SAFETY_FIELDS if says_something(final.get(name))}
    return found or None
