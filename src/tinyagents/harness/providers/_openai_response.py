"""From what a Chat Completions call answers, whole or in chunks, to one model response.

There is one way through: a whole answer is taken as a stream of a single chunk, so that both forms
of the same answer make the same message.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import JsonValue

from ..errors import MalformedResponseError, ServerError
from ..ids import IdGenerator
from ..message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    ImageBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
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
from ._errors import redacted
from ._json import as_integer, as_list, as_object, as_text
from ._openai_calls import CallParts
from ._openai_reasoning import REASONING_FIELDS, ReasoningParts, reasoning_text
from ._openai_wire import WireTools
from ._pieces import joined, says_something, under_name
from ._presets import ProviderPreset
from ._think_tags import ThinkTagSplitter, segment_blocks
from ._usage import merge_usage, read_usage

_FINISH_REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "content-filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "refusal": "refusal",
}
_FAILED_REASONS: Final = frozenset({"error", "insufficient_system_resource"})

_OWN_FIELDS: Final = frozenset(
    {"id", "model", "choices", "usage", "error", "object", "obfuscation"}
)
_CHOICE_FIELDS: Final = frozenset(
    {"index", "delta", "message", "finish_reason", "logprobs", "content_filter_results", "usage"}
)

_MESSAGE_FIELDS: Final = frozenset(
    {
        *("role", "content", "refusal", "tool_calls", "function_call", "annotations"),
        *("audio", "images", "reasoning_details", *REASONING_FIELDS),
    }
)
_SAFETY_FIELDS: Final = frozenset({"prompt_filter_results", "moderation"})


class _Part:
    """One part of an answer whose content is a list: thinking, or what is not understood."""

    __slots__ = ("data", "pieces", "thinking")

    def __init__(self, *, thinking: bool, data: JsonObject) -> None:
        self.thinking = thinking
        self.data = data
        self.pieces: list[str] = []


_Run = list[str] | ThinkTagSplitter | _Part


class ChatAssembler:
    """Takes an answer piece by piece and gives out the items of a stream, then the response."""

    __slots__ = (
        "_annotations",
        "_audio",
        "_calls",
        "_choice",
        "_extra",
        "_images",
        "_logprobs",
        "_notices",
        "_origin",
        "_preset",
        "_raw",
        "_reasoning",
        "_refusal",
        "_runs",
        "_safety",
        "_usage",
        "_usage_report",
        "_whole",
        "finish_reason",
        "response_id",
        "served_by",
        "started",
    )

    def __init__(
        self,
        preset: ProviderPreset,
        tools: WireTools,
        origin: Origin,
        *,
        ids: IdGenerator,
        audio_format: str = "wav",
    ) -> None:
        self._preset = preset
        self._origin = origin
        self._notices = tools.notices
        self.started: bool = False
        self.response_id: str | None = None
        self.served_by: str | None = None
        self.finish_reason: str | None = None
        self._raw: JsonObject = {}
        self._choice: JsonObject = {}
        self._safety: JsonObject = {}
        self._logprobs: JsonObject = {}
        self._usage_report: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._runs: list[_Run] = []
        self._reasoning = ReasoningParts()
        self._refusal: list[str] = []
        self._calls = CallParts(tools, ids)
        self._whole = False
        self._annotations: list[Any] = []
        self._images: list[Any] = []
        self._audio: JsonObject = {"format": audio_format}
        self._extra: JsonObject = {}

    @property
    def complete(self) -> bool:
        """Whether the stream may end here without a loss."""
        return self.finish_reason is not None

    @property
    def ended(self) -> bool:
        """Whether nothing follows: never, since usage follows the reason for finishing."""
        return False

    # What comes in

    def add(self, chunk: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take a chunk of a stream and return the items that it gives.

        Raises:
            ModelError: The chunk says that the call failed.
        """
        return self._take(chunk, "delta", "message")

    def add_whole(self, body: Mapping[str, Any]) -> list[ModelStreamItem]:
        """Take an answer that came in one piece.

        Raises:
            ModelError: It says that the call failed, or is no answer.
        """
        self._whole = True
        items = self._take(body, "message", "delta")
        if not body.get("choices"):
            raise self._origin.malformed("the answer has no `choices`", body)
        return items

    def _take(self, chunk: Mapping[str, Any], first: str, second: str) -> list[ModelStreamItem]:
        try:
            return self._taken(chunk, first, second)
        except ValueError as exc:
            raise self._unreadable(exc, chunk) from exc

    def _taken(self, chunk: Mapping[str, Any], first: str, second: str) -> list[ModelStreamItem]:
        items: list[ModelStreamItem] = []
        choice = self._choice_of(chunk)
        self._raise_failure(chunk, choice)
        if not self.started or not self.response_id:
            self._take_identity(chunk, choice, items)
        raw = self._raw
        for name, value in chunk.items():
            # Most chunks of a stream repeat the facts of the first one.
            if name not in _OWN_FIELDS and value is not None and raw.get(name) != value:
                self._take_fact(name, value)
        if choice is not None:
            message = as_object(choice.get(first) or choice.get(second))
            if message is not None:
                self._take_message(message, items)
            self._take_choice(choice)
        usage = chunk.get("usage") or (choice.get("usage") if choice else None)
        if usage is None and "x_groq" in chunk:
            usage = (as_object(chunk["x_groq"]) or {}).get("usage")
        if usage:
            self._take_usage(as_object(usage) or {}, items)
        return items

    def _choice_of(self, chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
        choices = as_list(chunk.get("choices"))
        if not choices:
            return None
        choice = as_object(choices[0])
        if choice is None:
            raise self._origin.malformed("a choice is no object", chunk)
        # Only one answer is ever asked for; another one's pieces would mix with the first one's.
        return choice if choice.get("index") in (0, None) else None

    def _raise_failure(self, chunk: Mapping[str, Any], choice: Mapping[str, Any] | None) -> None:
        failure = chunk.get("error")
        reason = choice.get("finish_reason") if choice else None
        if not failure and choice is not None and "error" in choice and choice["error"]:
            raise self._origin.failure(choice)
        if failure:
            raise self._origin.failure(chunk)
        if isinstance(reason, str) and reason in _FAILED_REASONS:
            raise ServerError(
                f"the provider broke off the answer (`{reason}`)",
                code=reason,
                raw=redacted(chunk, self._origin.secrets),
                **self._origin.facts,
            )

    def _take_identity(
        self,
        chunk: Mapping[str, Any],
        choice: Mapping[str, Any] | None,
        items: list[ModelStreamItem],
    ) -> None:
        # Azure's first chunk carries filter results alone, with an empty id.
        self.response_id = self.response_id or as_text(chunk.get("id"))
        self.served_by = self.served_by or as_text(chunk.get("model"))
        if not self.started and (self.response_id or choice is not None):
            self.started = True
            items.append(StreamStarted(response_id=self.response_id, model=self.served_by))

    def _take_fact(self, name: str, value: Any) -> None:
        if not says_something(value):
            return
        target = self._safety if name in _SAFETY_FIELDS else self._raw
        target[name] = value

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = str(reason)
        for name, value in choice.items():
            if name not in _CHOICE_FIELDS and says_something(value):
                self._choice[name] = value
        if filters := choice.get("content_filter_results"):
            self._safety["content_filter_results"] = filters
        if (logprobs := choice.get("logprobs")) is not None:
            for name, value in (as_object(logprobs) or {}).items():
                if says_something(value):
                    self._logprobs[name] = joined(self._logprobs.get(name), value)

    def _take_usage(self, usage: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        merge_usage(self._usage_report, usage)
        known = read_usage(
            self._usage_report,
            cache_in_input=self._preset.cache_in_input,
            hidden_output=self._preset.hidden_output,
        )
        if known is not None and known != self._usage:
            self._usage = known
            items.append(UsageDelta(known))

    def _take_message(self, message: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        content = message.get("content")
        if len(message) == 1 and type(content) is str:
            # Nearly every piece of a stream is this one.
            if content:
                self._take_text(content, items)
            return
        for name in message:
            if name not in _MESSAGE_FIELDS and says_something(message[name]):
                self._extra[name] = joined(self._extra.get(name), message[name])
        reasoning = self._reasoning.add(message, self._extra, whole=self._whole)
        if reasoning:
            items.append(MessageDelta(reasoning=reasoning))
        if content:
            self._take_content(content, items)
        if "refusal" in message and (refusal := as_text(message["refusal"])):
            self._refusal.append(refusal)
            items.append(MessageDelta(refusal=refusal))
        if "tool_calls" in message:
            for call in as_list(message["tool_calls"]) or ():
                self._take_call(as_object(call) or {}, items)
        if "function_call" in message and says_something(message["function_call"]):
            self._take_call({"index": 0, "function": message["function_call"]}, items)
        if "annotations" in message:
            self._annotations += as_list(message["annotations"]) or ()
        if "images" in message:
            self._images += as_list(message["images"]) or ()
        if "audio" in message and says_something(message["audio"]):
            for name, value in (as_object(message["audio"]) or {}).items():
                self._audio[name] = joined(self._audio.get(name), value, same=name == "id")

    # Text and reasoning

    def _take_content(self, content: Any, items: list[ModelStreamItem]) -> None:
        if isinstance(content, str):
            self._take_text(content, items)
            return
        for item in as_list(content) or [content]:
            if isinstance(item, str):
                self._take_text(item, items)
                continue
            part = as_object(item)
            if part is None:
                raise self._origin.malformed(
                    "the content is neither text nor a list of parts", content
                )
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                self._take_text(part["text"], items)
            elif part.get("type") == "thinking":
                self._take_thinking(part, items)
            else:
                self._end_text(items)
                self._runs.append(_Part(thinking=False, data={**part}))

    def _take_text(self, text: str, items: list[ModelStreamItem]) -> None:
        run = self._runs[-1] if self._runs else None
        if run is None or isinstance(run, _Part):
            run = self._new_run()
            self._runs.append(run)
        if isinstance(run, list):
            run.append(text)
            items.append(MessageDelta(text))
        else:
            items += [piece.delta for piece in run.feed(text)]

    def _new_run(self) -> list[str] | ThinkTagSplitter:
        if not self._preset.think_tags:
            return []
        inside = self._preset.starts_thinking and not self._runs
        return ThinkTagSplitter(self._preset.think_tag, inside=inside)

    def _end_text(self, items: list[ModelStreamItem]) -> None:
        run = self._runs[-1] if self._runs else None
        if isinstance(run, ThinkTagSplitter):
            items += [piece.delta for piece in run.finish()]

    def _take_thinking(self, part: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        run = self._runs[-1] if self._runs else None
        if not (isinstance(run, _Part) and run.thinking and not run.data.get("closed")):
            self._end_text(items)
            run = _Part(thinking=True, data={})
            self._runs.append(run)
        text = reasoning_text(part.get("thinking"))
        for name, value in part.items():
            if name not in ("type", "thinking"):
                run.data[name] = value
        if text:
            run.pieces.append(text)
            items.append(MessageDelta(reasoning=text))

    def _take_call(self, call: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        delta = self._calls.add(call, whole=self._whole)
        if delta is not None:
            items.append(delta)

    # What goes out

    def finish(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        """End the answer: return the last items, and the response.

        Raises:
            MalformedResponseError: There is something in it that no message can hold.
        """
        try:
            return self._finished()
        except ValueError as exc:
            raise self._unreadable(exc, self._raw) from exc

    def _finished(self) -> tuple[list[ModelStreamItem], ModelResponse]:
        items: list[ModelStreamItem] = []
        self._end_text(items)
        content = [*self._content()]
        calls = any(isinstance(block, ToolCallBlock) for block in content)
        message = AssistantMessage(
            id=self.response_id,
            content=content,
            usage=self._usage,
            provider_data=self._under_name(
                {k: v for k, v in self._extra.items() if k not in self._preset.reply_only}
            ),
        )
        return items, ModelResponse(
            message=message,
            finish_reason=self._finish_reason(calls=calls),
            raw_finish_reason=self.finish_reason,
            response_id=self.response_id,
            model=self.served_by,
            raw=self._raw_facts(),
            safety=self._safety or None,
            notices=self._notices,
            request_id=self._origin.request_id,
        )

    def _finish_reason(self, *, calls: bool) -> FinishReason | None:
        reason = self.finish_reason
        known: FinishReason | None = None
        if reason:
            known = _FINISH_REASONS.get(reason.lower(), "other")
        if known in ("stop", None) and calls:
            return "tool_calls"
        if known in ("stop", None) and self._refusal:
            return "refusal"
        return known

    def _raw_facts(self) -> JsonObject:
        raw = dict(self._raw)
        if self._usage_report:
            raw["usage"] = self._usage_report
        if self._logprobs:
            raw["logprobs"] = self._logprobs
        if self._choice:
            raw["choice"] = self._choice
        kept = {k: v for k, v in self._extra.items() if k in self._preset.reply_only}
        if kept:
            raw["message"] = kept
        return raw

    def _content(self) -> Iterator[Block]:
        if (reasoning := self._reasoning.block(self._preset.data_name)) is not None:
            yield reasoning
        for run in self._runs:
            yield from self._run_blocks(run)
        if self._refusal:
            yield RefusalBlock(text="".join(self._refusal))
        yield from self._media_blocks()
        yield from self._citation_blocks()
        yield from self._calls.blocks(self._preset.data_name)
        for extension in self._calls.extensions:
            yield ProviderExtensionBlock(provider=self._preset.data_name, data=extension)

    def _run_blocks(self, run: _Run) -> Iterator[Block]:
        if isinstance(run, list):
            yield TextBlock(text="".join(run))
        elif isinstance(run, ThinkTagSplitter):
            yield from segment_blocks(run.segments, self._preset.data_name)
        elif run.thinking:
            part = self._under_name({"part": run.data})
            yield ReasoningBlock(text="".join(run.pieces), provider_data=part)
        else:
            yield ProviderExtensionBlock(provider=self._preset.data_name, data=run.data)

    def _media_blocks(self) -> Iterator[Block]:
        unknown: list[Any] = []
        for image in self._images:
            address = as_object((as_object(image) or {}).get("image_url")) or {}
            if url := as_text(address.get("url")):
                yield ImageBlock(url=url, provider_data=self._under_name({"images": True}))
            else:
                unknown.append(image)
        if unknown:
            self._extra["images"] = unknown
        data = as_text(self._audio.get("data"))
        if data is not None:
            known = ("data", "transcript", "format")
            kept = {name: value for name, value in self._audio.items() if name not in known}
            yield AudioBlock(
                data=data,
                media_type=f"audio/{self._audio['format']}",
                transcript=as_text(self._audio.get("transcript")),
                provider_data=self._under_name(kept),
            )

    def _citation_blocks(self) -> Iterator[Block]:
        unknown: list[Any] = []
        for note in self._annotations:
            cited = as_object((as_object(note) or {}).get("url_citation"))
            if cited is None:
                unknown.append(note)
                continue
            yield CitationBlock(
                url=as_text(cited.get("url")),
                title=as_text(cited.get("title")),
                text=as_text(cited.get("content")),
                start=as_integer(cited.get("start_index")),
                end=as_integer(cited.get("end_index")),
            )
        if unknown:
            self._extra["annotations"] = unknown
        yield from self._search_results()

    def _search_results(self) -> Iterator[Block]:
        """Perplexity lists its sources beside the choices: as results, or as addresses alone."""
        results = as_list(self._raw.get("search_results"))
        for result in map(as_object, results or ()):
            if result is not None and (url := as_text(result.get("url"))):
                title, snippet = as_text(result.get("title")), as_text(result.get("snippet"))
                yield CitationBlock(url=url, title=title, text=snippet)
        if not results:
            for url in map(as_text, as_list(self._raw.get("citations")) or ()):
                if url is not None:
                    yield CitationBlock(url=url)

    def _under_name(self, own: JsonObject) -> dict[str, JsonValue] | None:
        return under_name(self._preset.data_name, own)

    def _unreadable(self, exc: ValueError, raw: Any) -> MalformedResponseError:
        # Of pydantic's many lines the first names the block.
        return self._origin.malformed(
            f"the answer cannot be read: {str(exc).partition(chr(10))[0]}", raw
        )
