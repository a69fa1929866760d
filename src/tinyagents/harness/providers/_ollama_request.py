"""From a model request to the body of a call of Ollama's ``/api/chat``.

The format is that of https://docs.ollama.com/api/chat and of the server's own ``api/types.go``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..memo import MessageCache, ToolsetCache
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
)
from ..model import (
    JsonObjectFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolChoice,
    ToolSchema,
    told_media,
)
from ..text import JsonObject, dump_json, encode_json
from ..tool import wire_names
from ._json import as_object, body_bytes
from ._openai_wire import NO_TOOLS, WireTools, not_strict
from ._schema import without_references

_SETTINGS: Final = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
"""Settings that are options of the runtime, and its names for them."""

_SET_OPTIONS: Final = frozenset({*_SETTINGS.values(), "stop"})
_SET_FIELDS: Final = frozenset(
    {"model", "messages", "tools", "format", "stream", "logprobs", "top_logprobs"}
)

RUNTIME_OPTIONS: Final = frozenset(
    {
        *("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "numa"),
        *("use_mmap", "use_mlock", "low_vram", "vocab_only", "f16_kv", "logits_all"),
        *("top_k", "min_p", "tfs_z", "typical_p", "repeat_last_n", "repeat_penalty"),
        *("mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline"),
    }
)
"""Options of the runtime without a setting of their own."""

_EFFORTS: Final[Mapping[str, bool | str]] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
}
_SHORTEST_IMAGE: Final = 64
"""Characters: what is shorter and begins with a slash is a path and no picture."""


class _Answered(NamedTuple):
    """The call that a tool result answers."""

    name: str | None
    id: str


@dataclass(slots=True)
class _Wire:
    """A message as it is sent."""

    message: orjson.Fragment | None
    """``None``: the message says nothing, and is left out."""
    calls: Mapping[str, _Answered]
    """Its calls by the ids of their blocks."""


class OllamaRequestEncoder:
    """Encodes requests for one model of one server. Shared between threads and event loops."""

    __slots__ = ("_model", "_provider", "_toolsets", "_wires")

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._wires = MessageCache(self._encoded)
        self._toolsets = ToolsetCache(_wire_tools)

    def encode(
        self,
        request: ModelRequest,
        settings: ModelSettings,
        *,
        stream: bool,
        thinks: bool = True,
    ) -> tuple[bytes, WireTools]:
        """Return the body of the call, and the tools that it offers.

        Args:
            request: The request.
            settings: Its settings, above those of the model.
            stream: The answer is to come line by line.
            thinks: Ask for thinking where the settings do; otherwise it is left out.

        Raises:
            InvalidRequestError: The API has no form for part of the request.
        """
        if request.continuation_id is not None:
            raise self._refusal("`continuation_id`: the server keeps no conversations")
        tools = self._toolsets.of(request.tools) if request.tools else NO_TOOLS
        self._check_tools(request.tool_choice, settings, tools)
        body: dict[str, Any] = {
            **self._fields(settings),
            "model": self._model,
            "messages": self._messages(request.messages),
            "stream": stream,
        }
        if tools.tools and request.tool_choice != "none":
            body["tools"] = tools.fragment
        if not thinks:
            body.pop("think", None)
        match request.response_format:
            case None:
                pass
            case JsonObjectFormat():
                body["format"] = "json"
            case wanted:
                body["format"] = wanted.schema
        return body_bytes(body), tools

    # Messages

    def _messages(self, messages: Sequence[Message]) -> list[Any]:
        sent: list[Any] = []
        calls: dict[str, _Answered] = {}
        for message in messages:
            answered = calls.get(message.tool_call_id) if message.role == "tool" else None
            wire = self._wires.of(message, answered)
            calls.update(wire.calls)
            if wire.message is not None:
                sent.append(wire.message)
        if not sent:
            raise self._refusal("an empty list of messages, which only loads the model")
        return sent

    def _encoded(self, message: Message, answered: _Answered | None) -> _Wire:
        calls: dict[str, _Answered] = {}
        value: JsonObject | None
        match message:
            case SystemMessage():
                value = self._spoken("system", message.content, "a system message", media=False)
                value = value if value["content"] else None
            case AssistantMessage():
                value = self._assistant(message, calls)
            case ToolMessage():
                value = self._spoken("tool", message.content, "a tool result", media=True)
                self._add_answered(value, message, answered)
            case _:
                value = self._spoken("user", message.content, "a user message", media=True)
        fragment = None if value is None else orjson.Fragment(encode_json(value))
        return _Wire(fragment, calls)

    def _spoken(self, role: str, blocks: Iterable[Block], where: str, *, media: bool) -> JsonObject:
        """Return a message of text and images, which the API keeps apart from each other."""
        texts: list[str] = []
        images: list[JsonValue] = []
        apart = False
        for block in blocks:
            match block:
                case TextBlock(text=text) | RefusalBlock(text=text):
                    if text:
                        texts.append(f"\n{text}" if apart and texts else text)
                        apart = False
                case JsonBlock(value=value):
                    texts.append(f"\n{dump_json(value)}" if texts else dump_json(value))
                    apart = True
                case ImageBlock() if media:
                    images.append(self._image(block, where))
                    apart = True
                case ReasoningBlock() | CitationBlock():
                    continue  # said by a model, and no one else can say it
                case ProviderExtensionBlock() if block.provider != self._provider:
                    continue
                case _:
                    raise self._unsupported(block, where)
        wire: JsonObject = {"role": role, "content": "".join(texts)}
        if images:
            wire["images"] = images
        return wire

    def _image(self, block: ImageBlock, where: str) -> str:
        try:
            given = block.decode()
        except ValueError as exc:
            raise self._unsupported(block, where, str(exc)) from exc
        if given is None:
            raise self._unsupported(block, where, "only as data: the server fetches no address")
        data = block.data if block.data is not None else (block.url or "").partition(",")[2]
        if len(data) < _SHORTEST_IMAGE and data.startswith("/"):
            raise self._unsupported(block, where, "its data is a path")
        return data

    @staticmethod
    def _add_answered(wire: JsonObject, message: ToolMessage, answered: _Answered | None) -> None:
        name = message.name or (answered.name if answered else None)
        if name is not None:
            wire["tool_name"] = _wire_name(name)
        # Servers without ids go by the name and the order, and pass over the id.
        wire["tool_call_id"] = answered.id if answered else message.tool_call_id

    def _assistant(
        self, message: AssistantMessage, answered: dict[str, _Answered]
    ) -> JsonObject | None:
        texts: list[str] = []
        thinking: list[str] = []
        images: list[JsonValue] = []
        calls: list[JsonValue] = []
        for block in message.content:
            match block:
                case TextBlock(text=text) | RefusalBlock(text=text):
                    texts.append(text)
                case JsonBlock(value=value):
                    texts.append(dump_json(value))
                case ReasoningBlock(text=text):
                    match self._own(block):
                        case {"inline": [str(opening), str(closing)]}:
                            texts.append(f"{opening}{text}{closing}")
                        case {"field": _}:
                            thinking.append(text)
                        case _:
                            continue  # another provider's
                case ToolCallBlock():
                    calls.append(self._call(block, answered))
                case ProviderExtensionBlock():
                    self._add_extension(block, calls)
                case ImageBlock():
                    images.append(self._image(block, "an assistant message"))
                case AudioBlock() | FileBlock():
                    texts.append(told_media(block).text)
                case CitationBlock():
                    continue  # the API has no place for it
                case _:
                    raise self._unsupported(block, "an assistant message")
        said: JsonObject = {
            "content": "".join(texts),
            "thinking": "".join(thinking),
            "images": images,
            "tool_calls": calls,
            **(as_object((message.provider_data or {}).get(self._provider)) or {}),
        }
        said = {name: value for name, value in said.items() if value not in ("", [])}
        return {"role": "assistant", "content": "", **said} if said else None

    def _call(self, block: ToolCallBlock, answered: dict[str, _Answered]) -> JsonObject:
        own = self._own(block)
        given = own.get("id")
        call_id = given if isinstance(given, str) else block.id
        answered[block.id] = _Answered(block.name, call_id)
        arguments: JsonObject = block.arguments
        if block.invalid is not None:
            arguments = {"invalid_arguments": block.invalid.raw}
        function: JsonObject = {
            **(as_object(own.get("function")) or {}),
            "name": _wire_name(block.name),
            "arguments": arguments,
        }
        extra = {name: value for name, value in own.items() if name not in ("id", "function")}
        return {"id": call_id, "function": function, **extra}

    def _add_extension(self, block: ProviderExtensionBlock, calls: list[JsonValue]) -> None:
        if block.provider != self._provider:
            return
        call = (as_object(block.data) or {}).get("tool_call")
        if call is None:
            raise self._unsupported(block, "an assistant message")
        calls.append(call)

    def _own(self, block: Block) -> JsonObject:
        return as_object((block.provider_data or {}).get(self._provider)) or {}

    # Tools and settings

    def _check_tools(self, choice: ToolChoice, settings: ModelSettings, tools: WireTools) -> None:
        if isinstance(choice, NamedTool) and choice.name not in tools.to_wire:
            raise self._refusal(f"a choice of the tool `{choice.name}`, which is not offered")
        if not tools.tools:
            return
        if choice not in ("auto", "none"):
            raise self._refusal("a forced tool choice")
        if settings.parallel_tool_calls is False:
            raise self._refusal("`parallel_tool_calls=False`")

    def _fields(self, settings: ModelSettings) -> dict[str, Any]:
        """Return what the settings and the caller's own fields put into the body."""
        if settings.user is not None:
            raise self._refusal("the setting `user`")
        given = dict(settings.provider_options)
        options = self._options(given, settings)
        fields = {name: value for name, value in given.items() if name not in RUNTIME_OPTIONS}
        if options:
            fields["options"] = options
        if settings.logprobs is not None:
            fields["logprobs"] = True
            if settings.logprobs:
                fields["top_logprobs"] = settings.logprobs
        if settings.reasoning is not None:
            self._add_think(fields, settings.reasoning)
        return fields

    def _options(self, given: dict[str, Any], settings: ModelSettings) -> dict[str, Any]:
        """Take the options of the runtime out of the caller's fields, and add the settings."""
        own = given.pop("options", None)
        nested = {} if own is None else as_object(own)
        if nested is None:
            raise self._refusal("`options` that are no object")
        known = _SET_FIELDS | _SET_OPTIONS
        reserved = sorted({*known.intersection(given), *_SET_OPTIONS.intersection(nested)})
        if reserved:
            raise self._refusal(
                f"provider options that have settings of their own: {', '.join(reserved)}"
            )
        hoisted = {name: value for name, value in given.items() if name in RUNTIME_OPTIONS}
        chosen = {wire: getattr(settings, name) for name, wire in _SETTINGS.items()}
        chosen["stop"] = list(settings.stop) or None
        set_ones = {name: value for name, value in chosen.items() if value is not None}
        return {**nested, **hoisted, **set_ones}

    def _add_think(self, fields: dict[str, Any], config: ReasoningConfig) -> None:
        if config.summary is not None:
            raise self._refusal("summaries of reasoning")
        if config.budget_tokens is not None:
            raise self._refusal("`budget_tokens`")
        if config.effort is not None:
            fields.setdefault("think", _EFFORTS[config.effort])

    # Refusals

    def _refusal(self, what: str) -> InvalidRequestError:
        return InvalidRequestError(f"`{self._model}` at {self._provider} cannot take {what}")

    def _unsupported(self, block: Block, where: str, how: str = "") -> InvalidRequestError:
        told = f" ({how})" if how else ""
        return self._refusal(f"a `{block.type}` block in {where}{told}")


def _wire_tools(tools: Sequence[ToolSchema]) -> WireTools:
    to_wire = wire_names([tool.name for tool in tools])
    listed = [
        {
            "type": "function",
            "function": {
                "name": to_wire[tool.name],
                "description": tool.description,
                # The server reads schemas into its own types, which have no references.
                "parameters": without_references(tool.parameters),
            },
        }
        for tool in tools
    ]
    fragment = orjson.Fragment(encode_json(listed))
    notices = tuple(not_strict(tools))
    return WireTools(tuple(tools), fragment, to_wire, {w: n for n, w in to_wire.items()}, notices)


def _wire_name(name: str) -> str:
    return wire_names((name,))[name]
