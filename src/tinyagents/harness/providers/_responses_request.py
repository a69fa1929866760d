"""From a model request to the body of a Responses call.

A message becomes items of the input: what it says, its calls, its reasoning. They depend on the
message and on the provider alone, so each message is encoded once; a request then joins fragments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..memo import FormatCache, MessageCache, ToolsetCache
from ..message import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from ..model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ResponseFormat,
    ToolSchema,
)
from ..text import JsonObject, encode_json
from ._json import as_list, as_object, as_text, body_bytes
from ._openai_wire import (
    ANY_OBJECT,
    NO_TOOLS,
    WireTools,
    cache_key_of,
    schema_format,
    strict_parameters,
    wire_tools,
)
from ._responses_items import ItemEncoder
from ._responses_presets import ResponsesPreset

RESERVED_OPTIONS: Final = frozenset(
    {
        *("model", "input", "instructions", "tool_choice", "temperature", "top_p", "stream"),
        *("max_output_tokens", "previous_response_id"),
    }
)
"""Fields of the request that the adapter sets, and that ``provider_options`` may not."""

_ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
_LOGPROBS: Final = "message.output_text.logprobs"


@dataclass(slots=True)
class _Wire:
    """A message as it is sent."""

    items: tuple[orjson.Fragment, ...]
    ids: Mapping[str, str]
    """The ids that this provider itself gave to calls, where those of the blocks differ."""


class ResponsesRequestEncoder:
    """Encodes requests for one model of one provider. Shared between threads and event loops.

    Args:
        preset: The provider.
        model: Its name for the model.
        reasons: The model is known to reason, so its reasoning is asked for.
        cache_key: A key for the prompt cache is sent where a stable segment begins the request.
    """

    __slots__ = (
        "_cache_key",
        "_formats",
        "_items",
        "_model",
        "_preset",
        "_reasons",
        "_toolsets",
        "_wires",
    )

    def __init__(
        self, preset: ResponsesPreset, model: str, *, reasons: bool, cache_key: bool = False
    ) -> None:
        self._cache_key = cache_key
        self._preset = preset
        self._model = model
        self._reasons = reasons
        self._items = ItemEncoder(preset, self._refusal)
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
        body: dict[str, Any] = {**self._preset.default_options, **self._options(settings)}
        body["model"] = self._model
        body.setdefault("store", False)
        if request.continuation_id is not None:
            self._continue(body, request.continuation_id)
        self._add_input(body, request)
        tools = self._tools(request.tools)
        self._add_tools(body, request, settings, tools)
        if request.response_format is not None:
            text = as_object(body.get("text")) or {}
            made, relaxed = self._response_format(request.response_format)
            body["text"] = {**text, "format": made}
            tools = tools.noting(relaxed)
        self._add_settings(body, settings)
        self._add_include(body, settings)
        if self._cache_key and (key := cache_key_of(request)):
            body.setdefault("prompt_cache_key", key)
        if stream:
            body["stream"] = True
        return body_bytes(body, ready=("input",)), tools

    # Messages

    def _continue(self, body: dict[str, Any], response_id: str) -> None:
        if not self._preset.continues:
            raise self._refusal("`continuation_id`: the provider keeps no conversations")
        if body.get("conversation") is not None:
            raise self._refusal("a `continuation_id` together with a `conversation`")
        body["previous_response_id"] = response_id

    def _add_input(self, body: dict[str, Any], request: ModelRequest) -> None:
        """Put the messages in: the provider has those up to the answer that is continued."""
        messages = request.messages
        stored = body["store"] is not False
        lead = self._lead(messages) if self._preset.instructions else 0
        answer = _answer_before(messages, request.continuation_id)
        ids: dict[str, str] = {}
        if answer is not None:
            ids.update(self._wire(messages[answer], stored, ids).ids)
        sent: list[orjson.Fragment] = []
        for message in messages[lead if answer is None else answer + 1 :]:
            wire = self._wire(message, stored, ids)
            ids.update(wire.ids)
            sent.extend(wire.items)
        if not sent and lead and answer is None:
            # Instructions alone are no input.
            lead, sent = 0, [item for m in messages for item in self._wire(m, stored, ids).items]
        if lead:
            told = filter(None, map(self._items.text, messages[:lead]))
            body["instructions"] = "\n\n".join(told)
        if not sent and "prompt" not in body and "conversation" not in body:
            raise self._refusal("an empty list of messages")
        body["input"] = sent

    def _lead(self, messages: Sequence[Message]) -> int:
        """Return how many messages at the beginning are instructions in plain text."""
        for position, message in enumerate(messages):
            if not isinstance(message, SystemMessage) or self._items.text(message) is None:
                return position
        return len(messages)

    def _wire(self, message: Message, stored: bool, ids: Mapping[str, str]) -> _Wire:
        call_id = ids.get(message.tool_call_id) if isinstance(message, ToolMessage) else None
        return self._wires.of(message, (stored, call_id))

    def _encoded(self, message: Message, known: tuple[bool, str | None]) -> _Wire:
        stored, call_id = known
        own_ids: dict[str, str] = {}
        match message:
            case SystemMessage():
                items = self._items.said("system", message.content, "a system message", media=False)
            case UserMessage():
                items = self._items.said("user", message.content, "a user message", media=True)
            case AssistantMessage():
                items = self._items.answered(message, own_ids, stored=stored)
            case _:
                items = [self._items.result(message.tool_call_id, message.content, call_id)]
        return _Wire(tuple(orjson.Fragment(encode_json(item)) for item in items), own_ids)

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
        made: JsonObject = {
            "type": "function",
            "name": to_wire[tool.name],
            "description": tool.description,
            "parameters": parameters,
        }
        if self._preset.strict_schema:
            # Without the field the API makes a schema strict by itself, and every property required.
            made["strict"] = strict
        return made

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
        hosted = as_list(body.get("tools"))
        if not tools.tools and not hosted:
            return
        if choice not in ("auto", "none") and self._preset.forced_tool_choice is False:
            raise self._refusal("a forced tool choice")
        body["tools"] = _with_hosted(tools.fragment, hosted)
        if not isinstance(choice, NamedTool):
            body["tool_choice"] = choice
        elif self._preset.named_tool_choice:
            body["tool_choice"] = {"type": "function", "name": tools.to_wire[choice.name]}
        else:
            only = next(tool for tool in tools.tools if tool.name == choice.name)
            body["tools"] = [self._tool_schema(only, tools.to_wire, [])]
            body["tool_choice"] = "required"
        if settings.parallel_tool_calls is not None:
            if self._preset.parallel_tool_calls is False:
                raise self._refusal("`parallel_tool_calls`")
            body["parallel_tool_calls"] = settings.parallel_tool_calls

    def _response_format(self, wanted: ResponseFormat) -> tuple[JsonObject, Sequence[str]]:
        if isinstance(wanted, JsonObjectFormat):
            if self._preset.json_object is not False:
                return {"type": "json_object"}, ()
            if self._preset.json_schema is False:
                raise self._refusal("JSON answers")
            return {"type": "json_schema", **ANY_OBJECT}, ()
        if self._preset.json_schema is False:
            raise self._refusal("answers of a JSON schema")
        made, relaxed = self._formats.of(wanted)
        return {"type": "json_schema", **made}, relaxed

    def _schema_format(self, wanted: JsonSchemaFormat) -> tuple[JsonObject, list[str]]:
        return schema_format(wanted, self._refusal, allowed=self._preset.strict_schema)

    def _options(self, settings: ModelSettings) -> Mapping[str, Any]:
        options = settings.provider_options
        reserved = sorted(RESERVED_OPTIONS.intersection(options))
        if "format" in (as_object(options.get("text")) or {}):
            reserved.append("text.format")
        if reserved:
            raise self._refusal(
                f"provider options that have settings of their own: {', '.join(reserved)}"
            )
        if options.get("background") and options.get("store") is not True:
            raise self._refusal("`background` without `store`")
        return options

    def _add_settings(self, body: dict[str, Any], settings: ModelSettings) -> None:
        if settings.temperature is not None and not self._preset.refuses_temperature(self._model):
            body["temperature"] = settings.temperature
        sent: dict[str, Any] = {
            "max_output_tokens": settings.max_tokens if self._preset.output_limit else None,
            "top_p": settings.top_p,
            "stop": list(settings.stop) or None,
            "seed": settings.seed,
            "frequency_penalty": settings.frequency_penalty,
            "presence_penalty": settings.presence_penalty,
            "top_logprobs": settings.logprobs or None,
            "user": settings.user,
        }
        for name, value in sent.items():
            if value is None:
                continue
            if name in self._preset.refused_settings:
                raise self._refusal(f"the setting `{name}`")
            body[name] = value
        if settings.reasoning is not None:
            self._add_reasoning(body, settings.reasoning)

    def _add_reasoning(self, body: dict[str, Any], config: ReasoningConfig) -> None:
        if config.budget_tokens is not None:
            raise self._refusal("`budget_tokens`")
        given = {"effort": config.effort, "summary": config.summary}
        chosen = {name: value for name, value in given.items() if value is not None}
        if chosen:
            body["reasoning"] = {**(as_object(body.get("reasoning")) or {}), **chosen}

    def _add_include(self, body: dict[str, Any], settings: ModelSettings) -> None:
        """Ask for what is not given unasked."""
        wanted: list[str] = []
        # Models that do not reason answer the wish for encrypted reasoning with status 400.
        reasons = self._reasons or body.get("reasoning") is not None
        if self._preset.encrypted_reasoning and body["store"] is False and reasons:
            wanted.append(_ENCRYPTED_REASONING)
        if settings.logprobs is not None:
            wanted.append(_LOGPROBS)
        given = [*filter(None, map(as_text, as_list(body.get("include")) or ()))]
        if asked := [*given, *(name for name in wanted if name not in given)]:
            body["include"] = asked

    def _refusal(self, what: str) -> InvalidRequestError:
        return InvalidRequestError(f"`{self._model}` at {self._preset.name} cannot take {what}")


def _answer_before(messages: Sequence[Message], response_id: str | None) -> int | None:
    """Return the position of the answer that is continued; ``None`` when it is not among them."""
    if response_id is None:
        return None
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, AssistantMessage) and message.id == response_id:
            return position
    return None


def _with_hosted(
    functions: orjson.Fragment | None, hosted: list[JsonValue] | None
) -> orjson.Fragment | None:
    """Return the application's functions and, after them, the tools that the provider runs."""
    if not hosted:
        return functions
    listed = encode_json(hosted)
    if functions is None:
        return orjson.Fragment(listed)
    return orjson.Fragment(orjson.dumps(functions)[:-1] + b"," + listed[1:])
