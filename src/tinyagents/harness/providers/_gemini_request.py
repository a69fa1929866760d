"""From a model request to the body of a Gemini ``generateContent`` call.

What a message looks like on the wire depends on the message alone, so its parts are encoded once and
kept as bytes for as long as the message lives; a request then joins fragments.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from ..errors import InvalidRequestError
from ..memo import FormatCache, MessageCache, ToolsetCache
from ..message import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
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
)
from ..text import JsonObject, encode_json
from ._gemini_parts import PartEncoder, wire_tool_names
from ._gemini_schema import prepare_schema
from ._json import as_list, as_object, body_bytes
from ._openai_wire import WireTools

_OWN_FIELDS: Final = frozenset({"contents", "model", "systeminstruction"})
"""Fields of the request that ``provider_options`` may not set; compared as :func:`_plain` has them."""
_OWN_GENERATION_FIELDS: Final = frozenset(
    {
        *("temperature", "topp", "maxoutputtokens", "stopsequences", "seed", "logprobs"),
        *("responselogprobs", "frequencypenalty", "presencepenalty"),
        *("responsemimetype", "responseschema", "responsejsonschema"),
    }
)
_MOST_STOPS: Final = 5
_MOST_LOGPROBS: Final = 20
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}

# ai.google.dev/gemini-api/docs/openai names the budget of each effort for the 2.5 series.
_BUDGETS: Final = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576}

_THIRD: Final = re.compile(r"gemini-(?:[3-9]|\d\d)")
_BEFORE_THIRD: Final = re.compile(r"gemini-(?:[12]\.|pro-vision)")
_BEFORE_THINKING: Final = re.compile(r"gemini-(?:1\.|2\.0|pro-vision)")
_BUDGETED: Final = re.compile(r"gemini-2\.5|gemini-robotics-er-1\.5")


def is_third_generation(model: str) -> bool:
    """Whether a model is of Gemini 3 or later, which holds an answer to a schema beside tools."""
    return _THIRD.search(model.lower()) is not None


@dataclass(frozen=True, slots=True)
class GeminiTools:
    """The tools of a request as they are sent."""

    wire: WireTools
    strict: bool = False
    """One of them asks to be enforced."""
    relaxed: tuple[str, ...] = ()
    """Rules of their schemas that are only described."""


@dataclass(frozen=True, slots=True)
class GeminiBody:
    """A request as it is sent, and what is needed to understand its answer."""

    body: bytes
    tools: WireTools
    relaxed: tuple[str, ...]
    """Rules of schemas that the API has no keyword for, and that are only described to the model."""


@dataclass(frozen=True, slots=True)
class _Wire:
    """The parts of a message as they are sent."""

    parts: list[orjson.Fragment]
    follow_up: list[orjson.Fragment]
    """Parts of a tool result that have no place within it."""


_READY: Final = ("contents", "systemInstruction", "tools")
"""The fields of a body that are encoded already."""

_NO_TOOLS: Final = GeminiTools(WireTools((), None, {}, {}))


class GeminiRequestEncoder:
    """Encodes requests for one model. Shared between threads and event loops."""

    __slots__ = ("_formats", "_model", "_parts", "_provider", "_third", "_toolsets", "_wires")

    def __init__(self, provider: str, model: str, base_url: str) -> None:
        self._provider = provider
        self._model = model
        self._third = is_third_generation(model)
        self._parts = PartEncoder(
            provider, base_url, self._refusal, nested_media=self._third, foreign_calls=self._third
        )
        self._wires = MessageCache(self._encoded)
        self._toolsets = ToolsetCache(self._wire_tools)
        self._formats = FormatCache(self._schema_format)

    def encode(self, request: ModelRequest, settings: ModelSettings) -> GeminiBody:
        """Return the body of the call.

        Raises:
            InvalidRequestError: The API has no form for part of the request.
        """
        if request.continuation_id is not None:
            raise self._refusal("`continuation_id`: the provider keeps no conversations")
        tools = self._toolsets.of(request.tools) if request.tools else _NO_TOOLS
        options, generation = self._options(settings)
        body: dict[str, Any] = {**options, "contents": self._contents(request.messages)}
        system = self._system(request.messages)
        if system:
            body["systemInstruction"] = {"parts": system}
        self._add_tools(body, request, settings, tools)
        relaxed = list(tools.relaxed)
        if request.response_format is not None:
            self._refuse_format_beside_tools(request)
            generation |= self._response_format(request.response_format, relaxed)
        generation |= self._generation(settings)
        if settings.reasoning is not None:
            self._add_thinking(generation, settings.reasoning)
        if generation:
            body["generationConfig"] = generation
        self._check_cached_content(body)
        return GeminiBody(body_bytes(body, ready=_READY), tools.wire, tuple(relaxed))

    # Messages

    def _system(self, messages: Sequence[Message]) -> list[Any]:
        """Return the parts of all system messages: the API has one place for them."""
        return [
            part
            for message in messages
            if isinstance(message, SystemMessage)
            for part in self._wire(message, None).parts
        ]

    def _contents(self, messages: Sequence[Message]) -> list[Any]:
        contents: list[Any] = []
        names: dict[str, str] = {}
        results: list[Any] = []
        follow_up: list[Any] = []

        def close_results() -> None:
            # The results of one turn's calls belong into one content, and what follows behind them.
            if results:
                contents.append({"role": "user", "parts": [*results, *follow_up]})
                results.clear()
                follow_up.clear()

        for message in messages:
            if isinstance(message, SystemMessage):
                continue
            if isinstance(message, ToolMessage):
                wire = self._wire(message, message.name or names.get(message.tool_call_id))
                results += wire.parts
                follow_up += wire.follow_up
                continue
            close_results()
            wire = self._wire(message, None)
            role = "user"
            if isinstance(message, AssistantMessage):
                role = "model"
                names.update((call.id, call.name) for call in message.tool_calls)
            if wire.parts:
                contents.append({"role": role, "parts": wire.parts})
        close_results()
        if not contents:
            raise self._refusal("a request without a message of the user")
        return contents

    def _wire(self, message: Message, name: str | None) -> _Wire:
        return self._wires.of(message, name)

    def _encoded(self, message: Message, name: str | None) -> _Wire:
        parts, follow_up = self._parts.encode(message, name)
        return _Wire(_fragments(parts), _fragments(follow_up))

    # Tools

    def _wire_tools(self, tools: Sequence[ToolSchema]) -> GeminiTools:
        to_wire = wire_tool_names([tool.name for tool in tools])
        relaxed: list[str] = []
        declarations = [self._declaration(tool, to_wire, relaxed) for tool in tools]
        wire = WireTools(
            tuple(tools),
            orjson.Fragment(encode_json(declarations)),
            to_wire,
            {sent: name for name, sent in to_wire.items()},
        )
        return GeminiTools(wire, any(tool.strict for tool in tools), tuple(relaxed))

    def _declaration(
        self, tool: ToolSchema, to_wire: Mapping[str, str], relaxed: list[str]
    ) -> JsonObject:
        declaration: JsonObject = {"name": to_wire[tool.name], "description": tool.description}
        parameters, obstacles = prepare_schema(tool.parameters)
        if tool.strict and obstacles:
            raise self._refusal(f"strict arguments for `{tool.name}`: {'; '.join(obstacles)}")
        relaxed.extend(f"tool `{tool.name}`: {obstacle}" for obstacle in obstacles)
        if parameters.get("properties") or parameters.keys() - {"type", "properties", "title"}:
            declaration["parametersJsonSchema"] = parameters
        return declaration

    def _add_tools(
        self,
        body: dict[str, Any],
        request: ModelRequest,
        settings: ModelSettings,
        tools: GeminiTools,
    ) -> None:
        choice, wire = request.tool_choice, tools.wire
        if isinstance(choice, NamedTool) and choice.name not in wire.to_wire:
            raise self._refusal(f"a choice of the tool `{choice.name}`, which is not offered")
        if not wire.tools:
            return
        if settings.parallel_tool_calls is False:
            raise self._refusal("`parallel_tool_calls`: it has no way to ask for one call alone")
        body["tools"] = [
            {"functionDeclarations": wire.fragment},
            *(as_list(body.get("tools")) or ()),
        ]
        calling: JsonObject = {}
        if isinstance(choice, NamedTool):
            calling = {"mode": "ANY", "allowedFunctionNames": [wire.to_wire[choice.name]]}
        elif choice == "auto" and tools.strict:
            calling = {"mode": "VALIDATED"}
        elif choice != "auto":
            calling = {"mode": _MODES[choice]}
        if calling:
            config = as_object(body.get("toolConfig")) or {}
            body["toolConfig"] = {**config, "functionCallingConfig": calling}

    # Settings

    def _options(self, settings: ModelSettings) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the caller's own fields of the request, and of its ``generationConfig``."""
        options = {_camel(name): value for name, value in settings.provider_options.items()}
        generation = _under_camel(options.pop("generationConfig", None))
        config = options.get("toolConfig")
        if config is not None:
            options["toolConfig"] = _under_camel(config)
        reserved = sorted(
            [
                *(name for name in options if _plain(name) in _OWN_FIELDS),
                *(name for name in generation if _plain(name) in _OWN_GENERATION_FIELDS),
                *(name for name in _under_camel(config) if name == "functionCallingConfig"),
            ]
        )
        if reserved:
            raise self._refusal(
                f"provider options that have settings of their own: {', '.join(reserved)}"
            )
        if generation.get("candidateCount", 1) not in (1, None):
            raise self._refusal("more than one answer (`candidateCount`)")
        return options, generation

    def _generation(self, settings: ModelSettings) -> dict[str, Any]:
        if len(settings.stop) > _MOST_STOPS:
            raise self._refusal(f"more than {_MOST_STOPS} texts in `stop`")
        if settings.logprobs is not None and settings.logprobs > _MOST_LOGPROBS:
            raise self._refusal(f"more than {_MOST_LOGPROBS} `logprobs`")
        if settings.user is not None:
            raise self._refusal("the setting `user`")
        sent: dict[str, Any] = {
            "maxOutputTokens": settings.max_tokens,
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "stopSequences": list(settings.stop) or None,
            "seed": settings.seed,
            "frequencyPenalty": settings.frequency_penalty,
            "presencePenalty": settings.presence_penalty,
            "responseLogprobs": None if settings.logprobs is None else True,
            "logprobs": settings.logprobs or None,
        }
        return {name: value for name, value in sent.items() if value is not None}

    def _add_thinking(self, generation: dict[str, Any], config: ReasoningConfig) -> None:
        thinking: dict[str, Any] = {}
        name = self._model.lower()
        if config.effort is not None and config.budget_tokens is not None:
            raise self._refusal("`effort` beside `budget_tokens`")
        if _BEFORE_THINKING.search(name):
            raise self._refusal("`reasoning`: it does not think")
        if config.budget_tokens is not None:
            thinking["thinkingBudget"] = config.budget_tokens
        elif config.effort is not None:
            thinking |= self._effort(config.effort)
        if config.summary is not None:
            thinking["includeThoughts"] = True
        if thinking:
            known = as_object(generation.get("thinkingConfig")) or {}
            generation["thinkingConfig"] = {**known, **thinking}

    def _effort(self, effort: str) -> dict[str, Any]:
        name = self._model.lower()
        if _BUDGETED.search(name):
            if effort == "none" and "2.5-pro" in name:
                raise self._refusal("the effort `none`: its thinking cannot be turned off")
            return {"thinkingBudget": _BUDGETS[effort]}
        if effort == "none":
            raise self._refusal("the effort `none`: its thinking cannot be turned off")
        return {"thinkingLevel": effort.upper()}

    def _response_format(self, wanted: ResponseFormat, relaxed: list[str]) -> dict[str, Any]:
        made: dict[str, Any] = {"responseMimeType": "application/json"}
        if isinstance(wanted, JsonObjectFormat):
            return made
        schema, told = self._formats.of(wanted)
        relaxed += told
        return {**made, "responseJsonSchema": schema}

    def _schema_format(self, wanted: JsonSchemaFormat) -> tuple[JsonObject, list[str]]:
        schema, obstacles = prepare_schema(wanted.schema)
        if wanted.strict and obstacles:
            raise self._refusal(f"a strict schema `{wanted.name}`: {'; '.join(obstacles)}")
        if wanted.description is not None and "$ref" not in schema:
            schema.setdefault("description", wanted.description)
        return schema, [f"format `{wanted.name}`: {obstacle}" for obstacle in obstacles]

    def _refuse_format_beside_tools(self, request: ModelRequest) -> None:
        if request.tools and _BEFORE_THIRD.search(self._model.lower()):
            raise self._refusal("a response format beside tools, which needs Gemini 3")

    def _check_cached_content(self, body: Mapping[str, Any]) -> None:
        if body.get("cachedContent") is None:
            return
        clashing = [n for n in ("systemInstruction", "tools", "toolConfig") if n in body]
        if clashing:
            raise self._refusal(f"`cachedContent` beside {', '.join(clashing)}: cache them with it")

    def _refusal(self, what: str) -> InvalidRequestError:
        return InvalidRequestError(f"`{self._model}` at {self._provider} cannot take {what}")


def _fragments(parts: Sequence[JsonObject]) -> list[orjson.Fragment]:
    return [orjson.Fragment(encode_json(part)) for part in parts]


def _camel(name: str) -> str:
    """Return a field's name as the API documents it: it also takes ``snake_case``."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest) if first else name


def _under_camel(value: Any) -> dict[str, Any]:
    return {_camel(name): item for name, item in (as_object(value) or {}).items()}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
