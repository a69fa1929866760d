"""From a model request to the body of a Chat Completions call.

What a message looks like on the wire depends on the message and on the provider alone, so each one
is encoded once and kept as bytes for as long as the message lives; a request then joins fragments.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..memo import FormatCache, MessageCache, ToolsetCache
from ..message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    JsonBlock,
    Message,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from ..model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ResponseFormat,
    ToolSchema,
    told_media,
)
from ..text import JsonObject, dump_json, encode_json
from ._json import as_object, body_bytes
from ._openai_wire import (
    ANY_OBJECT,
    DIGEST_LENGTH,
    NO_TOOLS,
    WireTools,
    cache_key_of,
    derived_id,
    own_of,
    schema_format,
    strict_parameters,
    wire_name,
    wire_tools,
)
from ._presets import ProviderPreset
from ._profiles import is_reasoning_model

RESERVED_OPTIONS: Final = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "response_format", "temperature", "top_p"),
        *("max_tokens", "max_completion_tokens", "stop", "seed", "stream", "stream_options"),
    }
)
"""Fields of the request that the adapter sets, and that ``provider_options`` may not."""

_AUDIO_FORMATS: Final = {
    "mpeg": "mp3",
    "mpga": "mp3",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
}


@dataclass(slots=True)
class _Wire:
    """A message as it is sent."""

    message: orjson.Fragment | None
    """``None``: the message says nothing, and is left out."""
    follow_up: list[JsonObject]
    """Parts of a tool result that have to follow in a user message."""
    ids: dict[str, str]
    """The ids that this provider itself gave to calls, where those of the blocks differ."""


class ChatRequestEncoder:
    """Encodes requests for one model of one provider. Shared between threads and event loops.

    Args:
        preset: The provider.
        model: Its name for the model.
        cache_key: A key for the prompt cache is sent where a stable segment begins the request.
    """

    __slots__ = (
        "_cache_key",
        "_formats",
        "_id_pattern",
        "_model",
        "_preset",
        "_reasons",
        "_toolsets",
        "_wires",
    )

    def __init__(self, preset: ProviderPreset, model: str, *, cache_key: bool = False) -> None:
        self._cache_key = cache_key
        self._preset = preset
        self._model = model
        self._reasons = is_reasoning_model(model)
        self._id_pattern = re.compile(preset.tool_call_id)
        self._wires = MessageCache(self._encoded)
        self._toolsets = ToolsetCache(self._wire_tools)
        self._formats = FormatCache(self._schema_format)

    def encode(
        self, request: ModelRequest, settings: ModelSettings, *, stream: bool
    ) -> tuple[bytes, WireTools]:
        """Return the body of the call, and the tools that it offers.

        Raises:
            InvalidRequestError: The provider, or this API, has no form for part of the request.
        """
        if request.continuation_id is not None:
            raise self._refusal("`continuation_id`: the provider keeps no conversations")
        tools = self._tools(request.tools)
        body: dict[str, Any] = {**self._preset.default_options, **self._options(settings)}
        body["model"] = self._model
        body["messages"] = self._messages(request.messages)
        self._add_tools(body, request, settings, tools)
        if request.response_format is not None:
            body["response_format"], relaxed = self._response_format(request.response_format)
            tools = tools.noting(relaxed)
        tools = tools.noting(self._add_settings(body, settings))
        if self._cache_key and (key := cache_key_of(request)):
            body.setdefault("prompt_cache_key", key)
        if stream:
            body["stream"] = True
            if self._preset.stream_options:
                body["stream_options"] = {"include_usage": True}
        return body_bytes(body), tools

    # Messages

    def _messages(self, messages: Sequence[Message]) -> list[Any]:
        if self._preset.fold_system:
            messages = fold_system(messages)
        sent: list[Any] = []
        follow_up: list[JsonObject] = []
        ids: dict[str, str] = {}
        for message in messages:
            if isinstance(message, ToolMessage):
                wire = self._wires.of(message, ids.get(message.tool_call_id))
            else:
                wire = self._wires.of(message, None)
                if follow_up:
                    sent.append({"role": "user", "content": follow_up})
                    follow_up = []
            if wire.ids:
                ids.update(wire.ids)
            if wire.message is not None:
                sent.append(wire.message)
            if wire.follow_up:
                follow_up = [*follow_up, *wire.follow_up]
        if follow_up:
            sent.append({"role": "user", "content": follow_up})
        if not sent:
            raise self._refusal("an empty list of messages")
        return sent

    def _encoded(self, message: Message, call_id: str | None) -> _Wire:
        """Encode a message; ``call_id``: the provider's own id of the call that a result answers."""
        follow_up: list[JsonObject] = []
        own_ids: dict[str, str] = {}
        value: JsonObject | None
        match message:
            case SystemMessage():
                value = self._system(message)
            case UserMessage():
                value = self._user(message)
            case AssistantMessage():
                value = self._assistant(message, own_ids)
            case _:
                value = self._tool(message, follow_up, call_id)
        fragment = None if value is None else orjson.Fragment(encode_json(value))
        return _Wire(fragment, follow_up, own_ids)

    def _system(self, message: SystemMessage) -> JsonObject | None:
        content = self._content(message.content, "a system message", media=False)
        if not content:
            return None
        return _named({"role": "system", "content": content}, message.name)

    def _user(self, message: UserMessage) -> JsonObject:
        content = self._content(message.content, "a user message", media=True)
        return _named({"role": "user", "content": content}, message.name)

    def _tool(
        self, message: ToolMessage, follow_up: list[JsonObject], call_id: str | None
    ) -> JsonObject:
        media = [b for b in message.content if isinstance(b, ImageBlock | AudioBlock | FileBlock)]
        shown: list[Block] = list(message.content)
        if media and not self._preset.tool_images:
            shown = [block for block in message.content if block not in media]
            label = message.name or message.tool_call_id
            follow_up.append({"type": "text", "text": f"What `{label}` returned:"})
            follow_up.extend(self._part(block, "a tool result") for block in media)
        content = self._content(shown, "a tool result", media=True)
        if not content and follow_up:
            content = "See the next user message."
        sent_id = call_id or self._call_id(message.tool_call_id)
        return {"role": "tool", "tool_call_id": sent_id, "content": content}

    def _content(self, blocks: Iterable[Block], where: str, *, media: bool) -> JsonValue:
        """Return plain text, or a list of parts where plain text cannot hold the blocks."""
        parts: list[JsonObject] = []
        texts: list[str] = []
        plain = True
        for block in blocks:
            match block:
                case TextBlock(text=text) | RefusalBlock(text=text):
                    own = self._own(block)
                    plain = plain and not own
                    if text:
                        texts.append(text)
                        parts.append({"type": "text", "text": text, **own})
                case JsonBlock(value=value):
                    text = dump_json(value)
                    texts.append(f"\n{text}" if texts else text)
                    parts.append({"type": "text", "text": text})
                case ReasoningBlock() | CitationBlock():
                    continue  # said by a model, and no one else can say it
                case ProviderExtensionBlock():
                    if block.provider == self._preset.data_name:
                        plain = False
                        parts.append(_as_part(block.data))
                case ImageBlock() | AudioBlock() | FileBlock() if media:
                    plain = False
                    parts.append(self._part(block, where))
                case _:
                    raise self._unsupported(block, where)
        return "".join(texts) if plain else [*parts]

    def _part(self, block: Block, where: str) -> JsonObject:
        match block:
            case ImageBlock(url=url, data=data) if url is not None or data is not None:
                if self._preset.image_input is False and not self._preset.local:
                    raise self._unsupported(block, where)
                image: JsonObject = {"url": url or f"data:{block.media_type};base64,{data}"}
                if block.detail is not None:
                    image["detail"] = block.detail
                return {"type": "image_url", "image_url": image, **self._own(block)}
            case AudioBlock() if (sound := _inline(block)) is not None:
                media_type, data = sound
                kind = media_type.partition("/")[2].lower()
                audio: JsonObject = {"data": data, "format": _AUDIO_FORMATS.get(kind, kind)}
                return {"type": "input_audio", "input_audio": audio, **self._own(block)}
            case FileBlock():
                return {"type": "file", "file": self._file(block, where), **self._own(block)}
            case _:
                raise self._unsupported(block, where)

    def _file(self, block: FileBlock, where: str) -> JsonObject:
        if block.file_id is not None:
            return {"file_id": block.file_id}
        name = block.name or "file.pdf"
        if block.data is not None:
            return {"filename": name, "file_data": f"data:{block.media_type};base64,{block.data}"}
        if block.url is not None and (block.url.startswith("data:") or self._preset.file_urls):
            return {"filename": name, "file_data": block.url}
        raise self._unsupported(block, where, "only as data or by its file_id")

    # What the model said before

    def _assistant(self, message: AssistantMessage, ids: dict[str, str]) -> JsonObject | None:
        wire: JsonObject = {"role": "assistant"}
        parts: list[JsonObject] = []
        calls: list[JsonValue] = []
        as_parts = False
        for block in message.content:
            own = self._own(block)
            match block:
                case TextBlock(text=text):
                    if text:
                        as_parts = as_parts or bool(own)
                        parts.append({"type": "text", "text": text, **own})
                case JsonBlock(value=value):
                    parts.append({"type": "text", "text": dump_json(value)})
                case RefusalBlock(text=text):
                    if self._preset.refusal_field:
                        wire["refusal"] = text
                    elif text:
                        parts.append({"type": "text", "text": text})
                case ReasoningBlock():
                    as_parts = self._add_reasoning(wire, parts, block, own) or as_parts
                case ToolCallBlock():
                    calls.append(self._call(block, own, ids))
                case ProviderExtensionBlock():
                    if block.provider == self._preset.data_name:
                        as_parts = self._add_extension(parts, calls, block) or as_parts
                case AudioBlock() if "id" in own:
                    wire["audio"] = {"id": own["id"]}
                case ImageBlock(url=str(url)) if "images" in own:
                    _append(wire, "images", {"type": "image_url", "image_url": {"url": url}})
                case ImageBlock() | AudioBlock() | FileBlock():
                    # Another provider's: the API takes none in what an assistant said.
                    parts.append({"type": "text", "text": told_media(block).text})
                case CitationBlock():
                    continue  # the API has no place for what it reported
                case _:
                    raise self._unsupported(block, "an assistant message")
        if parts:
            texts = (part["text"] for part in parts)
            wire["content"] = [*parts] if as_parts else "".join(str(text) for text in texts)
        elif calls:
            wire["content"] = None
        if calls:
            wire["tool_calls"] = calls
        own_fields = (message.provider_data or {}).get(self._preset.data_name)
        if isinstance(own_fields, dict):
            wire.update({k: v for k, v in own_fields.items() if k not in self._preset.reply_only})
        if len(wire) == 1:
            return None
        wire.setdefault("content", None if "refusal" in wire or "audio" in wire else "")
        return _named(wire, message.name)

    def _add_reasoning(
        self, wire: JsonObject, parts: list[JsonObject], block: ReasoningBlock, own: JsonObject
    ) -> bool:
        """Put reasoning where this provider had it; whether that makes the content a list."""
        if not own or not self._preset.replay_reasoning:
            return False
        if isinstance(tags := own.get("inline"), list) and len(tags) == 2:
            parts.append({"type": "text", "text": f"{tags[0]}{block.text}{tags[1]}"})
            return False
        if isinstance(part := own.get("part"), dict):
            thinking: list[JsonValue] = [{"type": "text", "text": block.text}]
            parts.append({**part, "type": "thinking", "thinking": thinking})
            return True
        name = own.get("field")
        if isinstance(name, str):
            wire[name] = f"{wire.get(name, '')}{block.text}"
        for key, value in own.items():
            if key == "field":
                continue
            if isinstance(value, list):
                for item in value:
                    _append(wire, key, item)
            else:
                wire[key] = value
        return False

    @staticmethod
    def _add_extension(
        parts: list[JsonObject], calls: list[JsonValue], block: ProviderExtensionBlock
    ) -> bool:
        data = _as_part(block.data)
        if "tool_call" in data:
            calls.append(data["tool_call"])
            return False
        parts.append(data)
        return True

    def _call(self, block: ToolCallBlock, own: JsonObject, ids: dict[str, str]) -> JsonValue:
        if block.invalid is None:
            arguments = dump_json(block.arguments)
        else:
            # Some servers decode the arguments: what is no object would make every later call fail.
            arguments = dump_json({"invalid_arguments": block.invalid.raw})
        extra = {name: value for name, value in own.items() if name not in ("id", "function")}
        given = own.get("id")
        if isinstance(given, str):
            ids[block.id] = given
        function: JsonObject = {"name": wire_name(block.name), "arguments": arguments}
        function.update(as_object(own.get("function")) or {})
        call: JsonObject = {
            "id": ids.get(block.id) or self._call_id(block.id),
            "type": "function",
            "function": function,
        }
        return {**call, **extra}

    def _call_id(self, given: str) -> str:
        """Return the id itself if the provider takes it, or else one derived from it."""
        if self._id_pattern.fullmatch(given):
            return given
        derived = derived_id(given)
        return derived if self._id_pattern.fullmatch(derived) else derived[-DIGEST_LENGTH:]

    def _own(self, block: Block) -> JsonObject:
        return own_of(block, self._preset.data_name)

    # Tools and settings

    def _tools(self, tools: Sequence[ToolSchema]) -> WireTools:
        if tools and self._preset.tools is False:
            raise self._refusal("tools")
        return self._toolsets.of(tools) if tools else NO_TOOLS

    def _wire_tools(self, tools: Sequence[ToolSchema]) -> WireTools:
        return wire_tools(tools, self._tool_schema)

    def _tool_schema(
        self, tool: ToolSchema, to_wire: Mapping[str, str], notices: list[str]
    ) -> JsonObject:
        parameters, strict = strict_parameters(
            tool,
            self._refusal,
            notices,
            allowed=self._preset.strict_schema,
            unasked=self._preset.strict_tools,
        )
        function: JsonObject = {
            "name": to_wire[tool.name],
            "description": tool.description,
            "parameters": parameters,
        }
        if strict:
            function["strict"] = True
        return {"type": "function", "function": function}

    def _add_tools(
        self,
        body: dict[str, Any],
        request: ModelRequest,
        settings: ModelSettings,
        tools: WireTools,
    ) -> None:
        choice = request.tool_choice
        if isinstance(choice, NamedTool) and choice.name not in tools.to_wire:
            raise self._refusal(f"a choice of the tool `{choice.name}`, which is not offered")
        if not tools.tools:
            return
        fragment = tools.fragment
        if not isinstance(choice, NamedTool):
            body["tool_choice"] = choice
        elif self._preset.named_tool_choice:
            name = tools.to_wire[choice.name]
            body["tool_choice"] = {"type": "function", "function": {"name": name}}
        else:
            only = next(tool for tool in tools.tools if tool.name == choice.name)
            fragment = orjson.Fragment(encode_json([self._tool_schema(only, tools.to_wire, [])]))
            body["tool_choice"] = "required"
        if choice not in ("auto", "none") and self._preset.forced_tool_choice is False:
            raise self._refusal("a forced tool choice")
        body["tools"] = fragment
        if settings.parallel_tool_calls is not None:
            if self._preset.parallel_tool_calls is False:
                raise self._refusal("`parallel_tool_calls`")
            body["parallel_tool_calls"] = settings.parallel_tool_calls

    def _response_format(self, wanted: ResponseFormat) -> tuple[JsonObject, Sequence[str]]:
        if isinstance(wanted, JsonObjectFormat):
            if self._preset.json_object is False:
                if self._preset.json_schema is False:
                    raise self._refusal("JSON answers")
                return {"type": "json_schema", "json_schema": ANY_OBJECT}, ()
            return {"type": "json_object"}, ()
        if self._preset.json_schema is False:
            raise self._refusal("answers of a JSON schema")
        made, relaxed = self._formats.of(wanted)
        return {"type": "json_schema", "json_schema": made}, relaxed

    def _schema_format(self, wanted: JsonSchemaFormat) -> tuple[JsonObject, list[str]]:
        return schema_format(wanted, self._refusal, allowed=self._preset.strict_schema)

    def _options(self, settings: ModelSettings) -> Mapping[str, Any]:
        options = settings.provider_options
        reserved = sorted(RESERVED_OPTIONS.intersection(options))
        if reserved:
            raise self._refusal(
                f"provider options that have settings of their own: {', '.join(reserved)}"
            )
        if options.get("n", 1) not in (1, None):
            raise self._refusal("more than one answer (`n`)")
        return options

    def _add_settings(self, body: dict[str, Any], settings: ModelSettings) -> Sequence[str]:
        """Add the fields of the settings; return what they could not say, a sentence each."""
        if settings.max_tokens is not None:
            field = "max_completion_tokens" if self._reasons else self._preset.max_tokens_field
            body[field] = settings.max_tokens
        if settings.temperature is not None and not self._preset.refuses_temperature(self._model):
            body["temperature"] = settings.temperature
        sent: dict[str, Any] = {
            "top_p": settings.top_p,
            "stop": list(settings.stop) or None,
            "seed": settings.seed,
            "frequency_penalty": settings.frequency_penalty,
            "presence_penalty": settings.presence_penalty,
            "logprobs": None if settings.logprobs is None else True,
            "top_logprobs": settings.logprobs or None,
            "user": settings.user,
        }
        for name, value in sent.items():
            if value is None:
                continue
            if name in self._preset.refused_settings:
                raise self._refusal(f"the setting `{name}`")
            body[self._preset.seed_field if name == "seed" else name] = value
        if settings.reasoning is None:
            return ()
        return self._add_reasoning_config(body, settings.reasoning)

    def _add_reasoning_config(self, body: dict[str, Any], config: ReasoningConfig) -> Sequence[str]:
        if config.summary is not None:
            raise self._refusal("summaries of reasoning, which only the Responses API has")
        effort, budget = config.effort, config.budget_tokens
        if effort is None and budget is None:
            return ()
        match self._preset.reasoning:
            case "effort" if budget is None:
                body.setdefault("reasoning_effort", effort)
            case "object":
                given = {"effort": effort, "max_tokens": budget}
                chosen = {name: value for name, value in given.items() if value is not None}
                body.setdefault("reasoning", chosen)
            case "switch" if budget is None and "thinking" not in body:
                body["thinking"] = {"type": "disabled" if effort == "none" else "enabled"}
                if effort != "none":
                    return (
                        f"the effort `{effort}` was sent as thinking that is on: the provider knows none",
                    )
            case "switch" if budget is None:
                pass  # the caller's own option
            case "budget" if budget is not None:
                body.setdefault("thinking", {"type": "enabled", "budget_tokens": budget})
            case "budget" if effort == "none":
                body.setdefault("thinking", {"type": "disabled"})
            case _:
                raise self._refusal(
                    "`budget_tokens`" if budget is not None else "a reasoning effort"
                )
        return ()

    # Refusals

    def _refusal(self, what: str) -> InvalidRequestError:
        return InvalidRequestError(f"`{self._model}` at {self._preset.name} cannot take {what}")

    def _unsupported(self, block: Block, where: str, how: str = "") -> InvalidRequestError:
        told = f" ({how})" if how else ""
        return self._refusal(f"a `{block.type}` block in {where}{told}")


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with all system text, joined by blank lines, before the first user text.

    Without a user message the text becomes one.
    """
    texts = [m.text for m in messages if isinstance(m, SystemMessage) and m.text]
    rest: list[Message] = [m for m in messages if not isinstance(m, SystemMessage)]
    if not texts:
        return rest
    instructions = "\n\n".join(texts)
    for position, message in enumerate(rest):
        if isinstance(message, UserMessage):
            lead = TextBlock(text=f"{instructions}\n\n")
            folded = message.model_copy(update={"content": [lead, *message.content]})
            return [*rest[:position], folded, *rest[position + 1 :]]
    return [UserMessage(content=instructions), *rest]


def _inline(block: AudioBlock) -> tuple[str, str] | None:
    """Return the media type and the base64 text of sound that is at hand."""
    if block.data is not None:
        return block.media_type or "audio/wav", block.data
    head, comma, body = (block.url or "").partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return head[5:].partition(";")[0], body
    return None


def _named(wire: JsonObject, name: str | None) -> JsonObject:
    if name is not None:
        wire["name"] = name
    return wire


def _append(wire: JsonObject, key: str, item: JsonValue) -> None:
    found = wire.setdefault(key, [])
    if isinstance(found, list):
        found.append(item)


def _as_part(data: JsonValue) -> JsonObject:
    return data if isinstance(data, dict) else {"type": "text", "text": dump_json(data)}
