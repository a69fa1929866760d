"""From what a Messages call answers, whole or in events, to one model response.

There is one way through: a whole answer is taken as the events that would have brought it, so that
both forms of the same answer make the same message.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..ids import IdGenerator
from ..message import AssistantMessage, Block, TextBlock
from ..model import (
    FinishReason,
    MessageDelta,
    ModelResponse,
    ModelStreamItem,
    StreamStarted,
    ToolCallAssembler,
    ToolCallDelta,
    UsageDelta,
)
from ..text import JsonObject, dump_json
from ..usage import Usage
from ._anthropic_parts import BlockParts
from ._endpoint import Origin
from ._json import as_integer, as_list, as_object, as_text
from ._openai_wire import WireTools
from ._pieces import says_something, under_name
from ._usage import merge_usage, read_usage

_FINISH_REASONS: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}
_OWN_FIELDS: Final = frozenset(
    {"id", "type", "role", "model", "content", "usage", "stop_reason", "error"}
)


class MessagesAssembler:
    """Takes an answer piece by piece and gives out the items of a stream, then the response."""

    __slots__ = (
        "_by_index",
        "_calls",
        "_ids",
        "_origin",
        "_parts",
        "_provider",
        "_raw",
        "_report",
        "_stop_reason",
        "_tools",
        "_usage",
        "ended",
        "response_id",
        "served_by",
        "started",
    )

    def __init__(
        self, provider: str, tools: WireTools, origin: Origin, *, ids: IdGenerator
    ) -> None:
        self._provider = provider
        self._tools = tools
        self._origin = origin
        self._ids = ids
        self.started: bool = False
        self.ended: bool = False
        self.response_id: str | None = None
        self.served_by: str | None = None
        self._stop_reason: str | None = None
        self._raw: JsonObject = {}
        self._report: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._parts: list[BlockParts] = []
        self._by_index: dict[int, BlockParts] = {}
        self._calls = ToolCallAssembler()

    @property
    def complete(self) -> bool:
        """Whether the stream may end here without a loss: only the end mark itself is missing."""
        return self._stop_reason is not None

    # What comes in

    def add(self, event: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an event of a stream and return the items that it gives.

        Raises:
            ModelError: The event says that the call failed.
        """
        if event.get("error"):
            raise self._origin.failure(event)
        match event.get("type"):
            case "content_block_delta":
                return self._take_delta(event)
            case "content_block_start":
                return self._open(event.get("index"), event.get("content_block"))
            case "message_start":
                # Some gateways fill in a reason at once: only the one at the end says it is over.
                message = as_object(event.get("message")) or {}
                return self._begin({**message, "stop_reason": None})
            case "message_delta":
                self._take_facts(as_object(event.get("delta")) or {})
                self._take_facts({n: v for n, v in event.items() if n != "delta"})
                return self._take_usage(event.get("usage"))
            case "message_stop":
                self.ended = True
                return []
            case _:
                return []  # pings, ends of blocks, and events that are not known yet

    def add_whole(self, body: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an answer that came in one piece.

        Raises:
            ModelError: It says that the call failed, or is no answer.
        """
        if body.get("error"):
            raise self._origin.failure(body)
        if as_list(body.get("content")) is None:
            raise self._origin.malformed("the answer has no `content`", body)
        return self._begin(body)

    def _begin(self, message: Mapping[str, Any]) -> list[ModelStreamItem]:
        self.started = True
        self.response_id = as_text(message.get("id"))
        self.served_by = as_text(message.get("model"))
        items: list[ModelStreamItem] = [
            StreamStarted(response_id=self.response_id, model=self.served_by)
        ]
        self._take_facts(message)
        for index, block in enumerate(as_list(message.get("content")) or ()):
            items += self._open(index, block)
        return items + self._take_usage(message.get("usage"))

    def _open(self, index: Any, value: Any) -> list[ModelStreamItem]:
        block, position = as_object(value), as_integer(index)
        if block is None or position is None:
            raise self._origin.malformed("a content block is no object, or has no index", value)
        items: list[ModelStreamItem] = []
        call: int | None = None
        if block.get("type") == "tool_use":
            delta = self._call_begun(block, position)
            call = self._calls.add(delta)
            items.append(delta)
        parts = BlockParts(block, call)
        self._parts.append(parts)
        self._by_index[position] = parts
        for field in ("text", "thinking"):
            if parts.kind == field and (text := as_text(block.get(field))):
                items.append(_piece(field, text))
        return items

    def _call_begun(self, block: Mapping[str, Any], index: int) -> ToolCallDelta:
        name = as_text(block.get("name"))
        given = block.get("input")
        return ToolCallDelta(
            call_id=as_text(block.get("id")) or self._ids.new("tacall"),
            name=self._tools.user_name(name) if name else "",
            # A stream begins with an empty input, and the pieces follow.
            arguments=dump_json(given) if given else "",
            index=index,
        )

    def _take_delta(self, event: Mapping[str, Any]) -> list[ModelStreamItem]:
        index, delta = as_integer(event.get("index")), as_object(event.get("delta"))
        parts = None if index is None else self._by_index.get(index)
        if parts is None or delta is None:
            raise self._origin.malformed("a delta belongs to no content block", event)
        if parts.kind == "tool_use" and delta.get("type") == "input_json_delta":
            item = ToolCallDelta(arguments=as_text(delta.get("partial_json")) or "", index=index)
            self._calls.add(item)
            return [item] if item.arguments else []
        field, piece = parts.add(delta)
        return [_piece(field, piece)] if piece and field == parts.kind else []

    def _take_facts(self, facts: Mapping[str, Any]) -> None:
        reason = facts.get("stop_reason")
        if reason is not None:
            self._stop_reason = str(reason)
        for name, value in facts.items():
            if name not in _OWN_FIELDS and says_something(value):
                self._raw[name] = value

    def _take_usage(self, reported: Any) -> list[ModelStreamItem]:
        report = as_object(reported)
        if report is None:
            return []
        merge_usage(self._report, report)
        usage = _billed(self._report)
        if usage is None or usage == self._usage:
            return []
        self._usage = usage
        return [UsageDelta(usage)]

    # What goes out

    def finish(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        """End the answer: return the last items, and the response.

        Raises:
            MalformedResponseError: There is something in it that no message can hold.
        """
        try:
            return [], self._response()
        except ValueError as exc:
            # Of pydantic's many lines the first names the block.
            told = str(exc).partition("\n")[0]
            raise self._origin.malformed(f"the answer cannot be read: {told}", self._raw) from exc

    def _response(self) -> ModelResponse:
        own: JsonObject = {}
        if "container" in self._raw:
            own["container"] = self._raw["container"]
        message = AssistantMessage(
            id=self.response_id,
            content=self._content(),
            usage=self._usage,
            provider_data=under_name(self._provider, own),
        )
        raw = dict(self._raw)
        if self._report:
            raw["usage"] = self._report
        details = as_object(self._raw.get("stop_details"))
        return ModelResponse(
            message=message,
            finish_reason=self._finish_reason(calls=bool(message.tool_calls)),
            raw_finish_reason=self._stop_reason,
            response_id=self.response_id,
            model=self.served_by,
            raw=raw,
            safety={"stop_details": details} if details else None,
            notices=self._tools.notices,
            request_id=self._origin.request_id,
        )

    def _content(self) -> list[Block]:
        content: list[Block] = []
        calls = self._calls.blocks()
        offset = 0
        for parts in self._parts:
            for block in parts.blocks(self._provider, calls, offset):
                content.append(block)
                if isinstance(block, TextBlock):
                    offset += len(block.text)
        return content

    def _finish_reason(self, *, calls: bool) -> FinishReason | None:
        if self._stop_reason is None:
            return None
        known: FinishReason = _FINISH_REASONS.get(self._stop_reason, "other")
        return "tool_calls" if calls and known == "stop" else known


def _piece(field: str, text: str) -> MessageDelta:
    return MessageDelta(text) if field == "text" else MessageDelta(reasoning=text)


def _billed(report: Mapping[str, Any]) -> Usage | None:
    """Return a report in this library's meaning; what compacting took stands beside its sums.

    In recorded traffic a compacting answer has sums of 0, and its tokens in ``iterations`` alone.
    """
    usage = read_usage(report, cache_in_input=False, hidden_output=False)
    for iteration in map(as_object, as_list(report.get("iterations")) or ()):
        if iteration is None or iteration.get("type") != "compaction":
            continue
        extra = read_usage(iteration, cache_in_input=False, hidden_output=False)
        if extra is not None:
            usage = extra if usage is None else usage + extra
    return usage
