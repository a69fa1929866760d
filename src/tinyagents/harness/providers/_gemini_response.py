"""From what a Gemini call answers, whole or in chunks, to one model response.

There is one way through: a whole answer is taken as a stream of a single chunk, so that both forms
of the same answer make the same message.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..errors import ContentFilterError, MalformedResponseError
from ..ids import IdGenerator
from ..message import (
    AssistantMessage,
    AudioBlock,
    Block,
    FileBlock,
    ImageBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
)
from ..model import (
    FinishReason,
    MessageDelta,
    ModelResponse,
    ModelStreamItem,
    StreamStarted,
    ToolCallDelta,
    UsageDelta,
    parse_arguments,
)
from ..text import JsonObject, clean_json, dump_json
from ..usage import Usage
from ._endpoint import Origin
from ._errors import redacted
from ._gemini_citations import citations
from ._gemini_request import GeminiBody
from ._gemini_usage import read_gemini_usage
from ._json import as_list, as_object, as_text
from ._pieces import joined, says_something, under_name
from ._usage import merge_usage

# ai.google.dev/api/generate-content#FinishReason
_FINISH_REASONS: Final[Mapping[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
}
_BROKEN_REASONS: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"})
"""The model wrote what is no answer; asked again, it may well write one."""

_OWN_FIELDS: Final = frozenset(
    {"candidates", "usageMetadata", "modelVersion", "responseId", "promptFeedback", "error"}
)
_CANDIDATE_FIELDS: Final = frozenset(
    {"content", "finishReason", "index", "safetyRatings", "logprobsResult"}
)
_CALL_FIELDS: Final = frozenset({"id", "name", "args"})


class _Said:
    """Text or thought that is put together from parts that say nothing else."""

    __slots__ = ("own", "pieces", "thought")

    def __init__(self, *, thought: bool, own: JsonObject) -> None:
        self.thought = thought
        self.own = own
        self.pieces: list[str] = []

    def goes_on(self, own: JsonObject) -> bool:
        """Whether another part is more of the same; a signed one stands for itself."""
        return self.own == own and own in ({}, {"thought": True})


class GeminiAssembler:
    """Takes an answer piece by piece and gives out the items of a stream, then the response."""

    __slots__ = (
        "_blocks",
        "_calls",
        "_calls_by_id",
        "_candidate",
        "_finish_reason",
        "_ids",
        "_logprobs",
        "_origin",
        "_raw",
        "_response_id",
        "_safety",
        "_sent",
        "_served_by",
        "_started",
        "_usage",
        "_usage_report",
    )

    def __init__(self, sent: GeminiBody, origin: Origin, *, ids: IdGenerator) -> None:
        self._sent = sent
        self._origin = origin
        self._ids = ids
        self._started = False
        self._response_id: str | None = None
        self._served_by: str | None = None
        self._finish_reason: str | None = None
        self._blocks: list[_Said | Block] = []
        self._calls = 0
        self._calls_by_id: dict[str, Mapping[str, Any]] = {}
        self._candidate: JsonObject = {}
        self._logprobs: JsonObject = {}
        self._raw: JsonObject = {}
        self._safety: JsonObject = {}
        self._usage_report: dict[str, Any] = {}
        self._usage: Usage | None = None

    @property
    def started(self) -> bool:
        """Whether anything of an answer has come."""
        return self._started

    @property
    def complete(self) -> bool:
        """Whether the stream may end here without a loss."""
        return self._finish_reason is not None

    @property
    def ended(self) -> bool:
        """Whether nothing follows: never, since the API has no end mark."""
        return False

    # What comes in

    def add_whole(self, document: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an answer that came in one piece.

        Raises:
            ModelError: It is a failure, or no answer.
        """
        items = self.add(document)
        if not self._started:
            raise self._origin.malformed("the answer holds no candidate", document)
        return items

    def add(self, chunk: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take a chunk and return its items.

        Raises:
            ContentFilterError: The prompt was blocked.
            ModelError: The chunk is a failure, or is not understood.
        """
        try:
            return self._added(chunk)
        except ValueError as exc:
            raise self._unreadable(exc, chunk) from exc

    def _added(self, chunk: Mapping[str, Any]) -> list[ModelStreamItem]:
        if chunk.get("error"):
            raise self._origin.failure(chunk)
        items: list[ModelStreamItem] = []
        self._response_id = self._response_id or as_text(chunk.get("responseId"))
        self._served_by = self._served_by or as_text(chunk.get("modelVersion"))
        self._take_feedback(chunk)
        for name, value in chunk.items():
            if name not in _OWN_FIELDS and says_something(value):
                self._raw[name] = value
        candidate = self._candidate_of(chunk)
        if candidate is not None:
            if not self._started:
                self._started = True
                items.append(StreamStarted(response_id=self._response_id, model=self._served_by))
            self._take_candidate(candidate, items)
        usage = as_object(chunk.get("usageMetadata"))
        if usage is not None:
            self._take_usage(usage, items)
        return items

    def _candidate_of(self, chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
        for value in as_list(chunk.get("candidates")) or ():
            candidate = as_object(value)
            if candidate is None:
                raise self._origin.malformed("a candidate is no object", chunk)
            # Only one answer is ever asked for; another one's parts would mix with the first one's.
            if candidate.get("index") in (0, None):
                return candidate
        return None

    def _take_feedback(self, chunk: Mapping[str, Any]) -> None:
        feedback = as_object(chunk.get("promptFeedback"))
        if not feedback:
            return
        self._safety["promptFeedback"] = feedback
        reason = as_text(feedback.get("blockReason"))
        if reason is None or reason == "BLOCK_REASON_UNSPECIFIED":
            return
        told = self._told(feedback.get("blockReasonMessage"))
        raise ContentFilterError(
            f"the prompt was blocked (`{reason}`)" + (f": {told}" if told else ""),
            status=200,
            code=reason,
            raw=redacted(chunk, self._origin.secrets),
            **self._origin.facts,
        )

    def _take_candidate(self, candidate: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        content = as_object(candidate.get("content")) or {}
        for value in as_list(content.get("parts")) or ():
            part = as_object(value)
            if part is None:
                raise self._origin.malformed("a part is no object", candidate)
            self._take_part(part, items)
        for name, value in candidate.items():
            if name not in _CANDIDATE_FIELDS and says_something(value):
                self._candidate[name] = _updated(self._candidate.get(name), value)
        if ratings := candidate.get("safetyRatings"):
            self._safety["safetyRatings"] = ratings
        for name, value in (as_object(candidate.get("logprobsResult")) or {}).items():
            self._logprobs[name] = joined(self._logprobs.get(name), value)
        if reason := as_text(candidate.get("finishReason")):
            self._finish_reason = reason
            self._raise_broken(reason, candidate)

    def _raise_broken(self, reason: str, candidate: Mapping[str, Any]) -> None:
        if reason in _BROKEN_REASONS and not self._calls:
            told = self._told(candidate.get("finishMessage"))
            raise MalformedResponseError(
                told or "the model wrote a call that cannot be read",
                status=200,
                code=reason,
                retryable=True,
                raw=redacted(candidate, self._origin.secrets),
                **self._origin.facts,
            )

    def _told(self, words: Any) -> str | None:
        return as_text(redacted(words, self._origin.secrets))

    def _take_usage(self, usage: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        merge_usage(self._usage_report, usage)
        known = read_gemini_usage(self._usage_report)
        if known is not None and known != self._usage:
            self._usage = known
            items.append(UsageDelta(known))

    # Parts

    def _take_part(self, part: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        text = part.get("text")
        if isinstance(text, str):
            own = {name: value for name, value in part.items() if name != "text"}
            self._take_text(text, own, items)
        elif (call := as_object(part.get("functionCall"))) is not None:
            self._take_call(call, part, items)
        else:
            block = self._media(part)
            data = clean_json(part)
            self._blocks.append(
                block or ProviderExtensionBlock(provider=self._origin.provider, data=data)
            )

    def _take_text(self, text: str, own: JsonObject, items: list[ModelStreamItem]) -> None:
        thought = own.get("thought") is True
        if not text and own in ({}, {"thought": True}):
            return
        last = self._blocks[-1] if self._blocks else None
        if not (isinstance(last, _Said) and last.goes_on(own)):
            last = _Said(thought=thought, own=own)
            self._blocks.append(last)
        last.pieces.append(text)
        if text:
            items.append(MessageDelta(reasoning=text) if thought else MessageDelta(text))

    def _take_call(
        self, call: Mapping[str, Any], part: Mapping[str, Any], items: list[ModelStreamItem]
    ) -> None:
        name = as_text(call.get("name"))
        if name is None or "partialArgs" in call or call.get("willContinue"):
            raise self._origin.malformed("a call comes in pieces, which was not asked for", part)
        call_id = as_text(call.get("id")) or self._ids.new("tacall")
        if self._calls_by_id.get(call_id) == call:
            return  # said again, word for word
        self._calls_by_id[call_id] = call
        given = call.get("args")
        raw = given if isinstance(given, str) else dump_json({} if given is None else given)
        arguments, invalid = parse_arguments(raw)
        own: JsonObject = {key: value for key, value in part.items() if key != "functionCall"}
        inner = {k: v for k, v in call.items() if k not in _CALL_FIELDS and says_something(v)}
        if inner:
            own["functionCall"] = inner
        block = ToolCallBlock(
            id=call_id,
            name=self._sent.tools.user_name(name),
            arguments=arguments,
            invalid=invalid,
            provider_data=under_name(self._origin.provider, own),
        )
        self._blocks.append(block)
        delta = ToolCallDelta(call_id=block.id, name=block.name, arguments=raw, index=self._calls)
        items.append(delta)
        self._calls += 1

    def _media(self, part: Mapping[str, Any]) -> Block | None:
        """Return the block of a picture, of sound or of a document; ``None`` for another part."""
        kind = "inlineData" if "inlineData" in part else "fileData"
        media = as_object(part.get(kind))
        if media is None or media.keys() - {"mimeType", "data", "fileUri"}:
            return None
        media_type = as_text(media.get("mimeType"))
        data, url = as_text(media.get("data")), as_text(media.get("fileUri"))
        if (data is None) == (url is None) or (data is not None and media_type is None):
            return None
        own = {name: value for name, value in part.items() if name != kind}
        kept = under_name(self._origin.provider, own)
        match (media_type or "").partition("/")[0]:
            case "image":
                make: type[ImageBlock | AudioBlock | FileBlock] = ImageBlock
            case "audio":
                make = AudioBlock
            case _:
                make = FileBlock
        return make(data=data, url=url, media_type=media_type, provider_data=kept)

    # What goes out

    def finish(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        """End the answer: return the last items, and the response.

        Raises:
            MalformedResponseError: There is something in it that no message can hold.
        """
        try:
            return [], self._finished()
        except ValueError as exc:
            raise self._unreadable(exc, self._candidate) from exc

    def _finished(self) -> ModelResponse:
        content = [*self._content()]
        text = "".join(block.text for block in content if isinstance(block, TextBlock))
        content.extend(citations(text, self._candidate))
        return ModelResponse(
            message=AssistantMessage(id=self._response_id, content=content, usage=self._usage),
            finish_reason=self._finish(),
            raw_finish_reason=self._finish_reason,
            response_id=self._response_id,
            model=self._served_by,
            raw=self._raw_facts(),
            notices=self._sent.relaxed,
            safety=self._safety or None,
            request_id=self._origin.request_id,
        )

    def _content(self) -> Iterator[Block]:
        for block in self._blocks:
            if not isinstance(block, _Said):
                yield block
                continue
            text, kept = "".join(block.pieces), under_name(self._origin.provider, block.own)
            if block.thought:
                yield ReasoningBlock(text=text, provider_data=kept)
            else:
                yield TextBlock(text=text, provider_data=kept)

    def _finish(self) -> FinishReason | None:
        reason = self._finish_reason
        if reason is None:
            return "tool_calls" if self._calls else None
        known: FinishReason = _FINISH_REASONS.get(reason, "other")
        # A call of a tool that does not exist is answered like any other.
        if self._calls and known in ("stop", "error"):
            return "tool_calls"
        return known

    def _raw_facts(self) -> JsonObject:
        raw = {**self._raw, **self._candidate}
        if self._usage_report:
            raw["usage"] = self._usage_report
        if self._logprobs:
            raw["logprobsResult"] = self._logprobs
        return raw

    def _unreadable(self, exc: ValueError, raw: Any) -> MalformedResponseError:
        # Of pydantic's many lines the first names the block.
        first = str(exc).partition("\n")[0]
        return self._origin.malformed(f"the answer cannot be read: {first}", raw)


def _updated(known: Any, later: Any) -> Any:
    """Return a fact after another chunk told it: what an object no longer tells stays."""
    before, after = as_object(known), as_object(later)
    if before is None or after is None:
        return later
    return {**before, **{name: item for name, item in after.items() if says_something(item)}}
