"""From what a Chat Completions call answers, whole or in chunks, to one model response.

There is one way through: a whole answer is taken as a stream of a single chunk, so that both forms
of the same answer make the same message.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from ..errors import MalformedResponseError, ModelError, ServerError
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
    ToolCallAssembler,
    ToolCallDelta,
    UsageDelta,
    parse_arguments,
)
from ..text import JsonObject, clean_json, dump_json
from ..tool_calling import repair_arguments
from ..usage import Usage
from ._errors import error_from_payload, redacted
from ._json import as_integer, as_list, as_object, as_text
from ._openai_request import WireTools, safe_id
from ._presets import ProviderPreset
from ._think_tags import Piece, ThinkTagSplitter
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
_DETAIL_TEXTS: Final = frozenset({"text", "summary", "data"})
_REASONING_WORDS: Final = ("text", "content", "summary", "thinking")
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
_MESSAGE_FIELDS: Final = frozenset(
    {
        *("role", "content", "refusal", "tool_calls", "function_call", "annotations"),
        *("audio", "images", "reasoning_details", *_REASONING_FIELDS),
    }
)
_SAFETY_FIELDS: Final = frozenset({"prompt_filter_results", "moderation"})
_CALL_FIELDS: Final = frozenset({"index", "id", "type", "function"})


class _Part:
    """One part of an answer whose content is a list: thinking, or what is not understood."""

    __slots__ = ("data", "pieces", "thinking")

    def __init__(self, *, thinking: bool, data: JsonObject) -> None:
        self.thinking = thinking
        self.data = data
        self.pieces: list[str] = []


class _Unnamed:
    """A call that came without an id, while it is put together."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: list[str] = []

    def continues(self, delta: ToolCallDelta) -> bool:
        """Whether a piece that names its call belongs to this one, and is not another call."""
        if delta.name != self.name:
            return False
        return not delta.arguments or parse_arguments("".join(self.arguments))[1] is not None


class _Detail:
    """One item of structured reasoning, which a stream sends in pieces."""

    __slots__ = ("_facts", "_pieces")

    def __init__(self) -> None:
        self._facts: JsonObject = {}
        self._pieces: dict[str, list[str]] = {}

    def is_continued_by(self, item: Mapping[str, Any]) -> bool:
        """Whether a piece belongs to this item: nothing that tells items apart differs."""
        facts = self._facts
        return all(
            facts.get(name) == item.get(name) or name not in item or name not in facts
            for name in ("type", "index", "id")
        )

    def add(self, item: Mapping[str, Any]) -> None:
        """Take a piece: its texts continue those that are known, other values replace them."""
        for name, value in item.items():
            if name in _DETAIL_TEXTS and isinstance(value, str):
                self._pieces.setdefault(name, []).append(value)
                self._facts.setdefault(name, "")  # keeps its place among the fields
            elif value or name not in self._facts:
                self._facts[name] = value

    def value(self) -> JsonObject:
        """Return the item as it would have come in one piece."""
        return {**self._facts, **{name: "".join(p) for name, p in self._pieces.items()}}


_Run = list[str] | ThinkTagSplitter | _Part


class ChatAssembler:
    """Takes an answer piece by piece and gives out the items of a stream, then the response."""

    __slots__ = (
        "_annotations",
        "_audio",
        "_call_extra",
        "_calls",
        "_choice",
        "_details",
        "_extensions",
        "_extra",
        "_field",
        "_ids",
        "_images",
        "_logprobs",
        "_model",
        "_preset",
        "_raw",
        "_reasoning",
        "_reasoning_raw",
        "_refusal",
        "_request_id",
        "_runs",
        "_safety",
        "_secrets",
        "_tools",
        "_unnamed",
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
        model: str,
        tools: WireTools,
        *,
        ids: IdGenerator,
        request_id: str | None,
        secrets: Sequence[str] = (),
        audio_format: str = "wav",
    ) -> None:
        self._preset = preset
        self._model = model
        self._tools = tools
        self._ids = ids
        self._request_id = request_id
        self._secrets = secrets
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
        self._reasoning: list[str] = []
        self._field: str | None = None
        self._reasoning_raw: JsonObject = {}
        self._details: list[_Detail] = []
        self._refusal: list[str] = []
        self._calls = ToolCallAssembler()
        self._call_extra: dict[int, JsonObject] = {}
        self._unnamed: dict[str, _Unnamed] = {}
        self._whole = False
        self._annotations: list[Any] = []
        self._images: list[Any] = []
        self._audio: JsonObject = {"format": audio_format}
        self._extensions: list[JsonObject] = []
        self._extra: JsonObject = {}

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
            raise self._malformed("the answer has no `choices`", body)
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
            raise self._malformed("a choice is no object", chunk)
        # Only one answer is ever asked for; another one's pieces would mix with the first one's.
        return choice if choice.get("index") in (0, None) else None

    def _raise_failure(self, chunk: Mapping[str, Any], choice: Mapping[str, Any] | None) -> None:
        failure = chunk.get("error")
        reason = choice.get("finish_reason") if choice else None
        if not failure and choice is not None and "error" in choice and choice["error"]:
            raise self._failure(choice)
        if failure:
            raise self._failure(chunk)
        if isinstance(reason, str) and reason in _FAILED_REASONS:
            raise ServerError(
                f"the provider broke off the answer (`{reason}`)",
                provider=self._preset.name,
                model=self._model,
                code=str(reason),
                request_id=self._request_id,
                raw=redacted(chunk, self._secrets),
            )

    def _failure(self, payload: Mapping[str, Any]) -> ModelError:
        return error_from_payload(
            payload,
            provider=self._preset.name,
            model=self._model,
            request_id=self._request_id,
            secrets=self._secrets,
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
        if not _says_something(value):
            return
        target = self._safety if name in _SAFETY_FIELDS else self._raw
        target[name] = value

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = str(reason)
        for name, value in choice.items():
            if name not in _CHOICE_FIELDS and _says_something(value):
                self._choice[name] = value
        if filters := choice.get("content_filter_results"):
            self._safety["content_filter_results"] = filters
        if (logprobs := choice.get("logprobs")) is not None:
            for name, value in (as_object(logprobs) or {}).items():
                if _says_something(value):
                    self._logprobs[name] = _joined(self._logprobs.get(name), value)

    def _take_usage(self, usage: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        merge_usage(self._usage_report, usage)
        known = read_usage(self._usage_report, self._preset)
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
            if name not in _MESSAGE_FIELDS and _says_something(message[name]):
                self._extra[name] = _joined(self._extra.get(name), message[name])
        reasoning = self._take_reasoning(message)
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
        if "function_call" in message and _says_something(message["function_call"]):
            self._take_call({"index": 0, "function": message["function_call"]}, items)
        if "annotations" in message:
            self._annotations += as_list(message["annotations"]) or ()
        if "images" in message:
            self._images += as_list(message["images"]) or ()
        if "audio" in message and _says_something(message["audio"]):
            for name, value in (as_object(message["audio"]) or {}).items():
                self._audio[name] = _joined(self._audio.get(name), value, same=name == "id")

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
                raise self._malformed("the content is neither text nor a list of parts", content)
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
            items.extend(map(_delta, run.feed(text)))

    def _new_run(self) -> list[str] | ThinkTagSplitter:
        if not self._preset.think_tags:
            return []
        return ThinkTagSplitter(inside=self._preset.starts_thinking and not self._runs)

    def _end_text(self, items: list[ModelStreamItem]) -> None:
        run = self._runs[-1] if self._runs else None
        if isinstance(run, ThinkTagSplitter):
            items.extend(map(_delta, run.finish()))

    def _take_thinking(self, part: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        run = self._runs[-1] if self._runs else None
        if not (isinstance(run, _Part) and run.thinking and not run.data.get("closed")):
            self._end_text(items)
            run = _Part(thinking=True, data={})
            self._runs.append(run)
        text = _reasoning_text(part.get("thinking"))
        for name, value in part.items():
            if name not in ("type", "thinking"):
                run.data[name] = value
        if text:
            run.pieces.append(text)
            items.append(MessageDelta(reasoning=text))

    def _take_reasoning(self, message: Mapping[str, Any]) -> str:
        found = ""
        for name in _REASONING_FIELDS:
            value = message.get(name)
            if not value:
                continue
            if found:
                # Some gateways send the same reasoning under both names.
                if value != found:
                    self._extra[name] = _joined(self._extra.get(name), value)
                continue
            found = _reasoning_text(value)
            if isinstance(value, str):
                self._field = self._field or name
            else:
                self._reasoning_raw[name] = _joined(self._reasoning_raw.get(name), value)
        if details := message.get("reasoning_details"):
            listed = map(as_object, as_list(details) or ())
            told = "".join([self._take_detail(item) for item in listed if item is not None])
            found = found or told
        if found:
            self._reasoning.append(found)
        return found

    def _take_detail(self, item: Mapping[str, Any]) -> str:
        """Put a piece of structured reasoning to the piece that it continues; return its text."""
        last = self._details[-1] if self._details else None
        if last is None or self._whole or not last.is_continued_by(item):
            last = _Detail()
            self._details.append(last)
        last.add(item)
        return as_text(item.get("text")) or as_text(item.get("summary")) or ""

    # Tool calls

    def _take_call(self, call: Mapping[str, Any], items: list[ModelStreamItem]) -> None:
        function = as_object(call.get("function"))
        extra = {n: v for n, v in call.items() if n not in _CALL_FIELDS and _says_something(v)}
        if function is None:
            if extra:
                self._extensions.append({"tool_call": clean_json(call)})
            return
        name = as_text(function.get("name")) or ""
        given = as_text(call.get("id")) or ""
        index = call.get("index")
        delta = ToolCallDelta(
            call_id=safe_id(given) if given else "",
            name=self._tools.user_name(name) if name else "",
            arguments=_arguments(function.get("arguments")),
            index=index if isinstance(index, int | str) else None,
        )
        self._name_call(delta)
        position = self._calls.add(delta)
        for field, value in function.items():
            if field not in ("name", "arguments") and _says_something(value):
                extra["function"] = {**(as_object(extra.get("function")) or {}), field: value}
        if delta.call_id and given and delta.call_id != given:
            extra["id"] = given
        if extra:
            known = self._call_extra.setdefault(position, {})
            for field, value in extra.items():
                known[field] = _joined(known.get(field), value, same=field == "id")
        items.append(delta)

    def _name_call(self, delta: ToolCallDelta) -> None:
        """Give a call without an id one, the same in every piece and in the response."""
        slot = "" if delta.index is None else str(delta.index)
        if delta.call_id:
            self._unnamed.pop(slot, None)
            return
        known = self._unnamed.get(slot)
        if delta.name and (self._whole or known is None or not known.continues(delta)):
            known = self._unnamed[slot] = _Unnamed(delta.name)
            delta.call_id = self._ids.new("tacall")
        if known is not None:
            known.arguments.append(delta.arguments)

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
            request_id=self._request_id,
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
        if (reasoning := self._reasoning_block()) is not None:
            yield reasoning
        for run in self._runs:
            yield from self._run_blocks(run)
        if self._refusal:
            yield RefusalBlock(text="".join(self._refusal))
        yield from self._media_blocks()
        yield from self._citation_blocks()
        yield from self._call_blocks()
        for extension in self._extensions:
            yield ProviderExtensionBlock(provider=self._preset.name, data=extension)

    def _reasoning_block(self) -> ReasoningBlock | None:
        own: JsonObject = {}
        if self._field is not None:
            own["field"] = self._field
        own.update(self._reasoning_raw)
        if self._details:
            own["reasoning_details"] = [detail.value() for detail in self._details]
        text = "".join(self._reasoning)
        if not text and not own:
            return None
        return ReasoningBlock(
            text=text,
            signature=self._only_detail("signature"),
            data=self._only_detail("data"),
            provider_data=self._under_name(own),
        )

    def _only_detail(self, name: str) -> str | None:
        values = [as_text(detail.value().get(name)) for detail in self._details]
        given = [value for value in values if value is not None]
        return given[0] if len(given) == 1 else None

    def _run_blocks(self, run: _Run) -> Iterator[Block]:
        if isinstance(run, list):
            yield TextBlock(text="".join(run))
        elif isinstance(run, ThinkTagSplitter):
            for segment in run.segments:
                text = segment.text
                if not text:
                    continue
                if segment.kind == "text":
                    yield TextBlock(text=text)
                else:
                    tags: JsonObject = {"inline": [segment.opening, segment.closing]}
                    yield ReasoningBlock(text=text, provider_data=self._under_name(tags))
        elif run.thinking:
            part = self._under_name({"part": run.data})
            yield ReasoningBlock(text="".join(run.pieces), provider_data=part)
        else:
            yield ProviderExtensionBlock(provider=self._preset.name, data=run.data)

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

    def _call_blocks(self) -> Iterator[Block]:
        for position, block in self._calls.blocks().items():
            changes: dict[str, Any] = {}
            if block.invalid is not None:
                arguments, invalid = repair_arguments(block.invalid.raw)
                if invalid is None:
                    changes |= {"arguments": arguments, "invalid": None}
            if not self._calls.id_of(position):
                changes["id"] = self._ids.new("tacall")
            own = self._call_extra.get(position)
            if own:
                changes["provider_data"] = self._under_name(own)
            yield block.model_copy(update=changes) if changes else block

    def _under_name(self, own: JsonObject) -> dict[str, JsonValue] | None:
        return {self._preset.name: clean_json(own)} if own else None

    def _unreadable(self, exc: ValueError, raw: Any) -> MalformedResponseError:
        # Of pydantic's many lines the first names the block.
        return self._malformed(f"the answer cannot be read: {str(exc).partition(chr(10))[0]}", raw)

    def _malformed(self, message: str, raw: Any) -> MalformedResponseError:
        return MalformedResponseError(
            message,
            provider=self._preset.name,
            model=self._model,
            status=200,
            request_id=self._request_id,
            raw=redacted(raw, self._secrets),
        )


def _delta(piece: Piece) -> MessageDelta:
    if piece.kind == "text":
        return MessageDelta(text=piece.text)
    return MessageDelta(reasoning=piece.text)


def _reasoning_text(value: Any) -> str:
    """Return the words of reasoning, whichever of its shapes they come in."""
    if isinstance(value, str):
        return value
    if (listed := as_list(value)) is not None:
        return "".join(map(_reasoning_text, listed))
    document = as_object(value)
    if document is None:
        return ""
    words = (_reasoning_text(document.get(name)) for name in _REASONING_WORDS)
    return next(filter(None, words), "")


def _arguments(value: Any) -> str:
    """Return arguments as the text that most providers send; some send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return dump_json(value)


def _joined(known: Any, value: Any, *, same: bool = False) -> Any:
    """Return a field's value after another piece of it: texts and lists grow, objects are merged.

    ``same``: the field does not come in pieces, so another text takes the place of the first.
    """
    if isinstance(known, str) and isinstance(value, str):
        return value if same or known == value else known + value
    grown, more = as_list(known), as_list(value)
    if grown is not None and more is not None:
        grown += more  # in place: some lists gain an item with every token
        return grown
    before, after = as_object(known), as_object(value)
    if before is not None and after is not None:
        return {**before, **{k: _joined(before.get(k), v, same=same) for k, v in after.items()}}
    return value


def _says_something(value: Any) -> bool:
    """Whether a field holds anything: some servers fill what they do not use with empty values."""
    document = as_object(value)
    if document is not None:
        return any(_says_something(item) and item != 0 for item in document.values())
    return value is not None and value != "" and value != []
