"""From a model request to the body of a Messages call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import orjson
from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..memo import FormatCache, MessageCache, ToolsetCache
from ..message import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from ..model import (
    JsonSchemaFormat,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ResponseFormat,
    ToolSchema,
    told_format,
)
from ..text import JsonObject, encode_json
from ._anthropic_content import ContentEncoder, WireMessage, marks_in
from ._anthropic_models import ClaudeTraits, MessagesPreset
from ._anthropic_settings import check_options, output_format, settings_fields, without_limits
from ._json import as_list, as_object, body_bytes
from ._openai_wire import NO_TOOLS, WireTools, wire_tools
from ._schema import ANTHROPIC_STRICT, close_schema

_READY: Final = ("messages", "system", "tools")
"""The fields of a body that are encoded already."""

CacheTtl: TypeAlias = Literal["5m", "1h"]
"""How long the provider keeps a cached prompt after its last use."""

FILES_BETA: Final = "files-api-2025-04-14"
"""What a request that names an uploaded file must be sent with."""
_MOST_MARKS: Final = 4
"""Cache markers that the API takes in one request."""


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request as it is sent, and what its answer needs to be understood."""

    body: bytes
    tools: WireTools
    betas: Sequence[str]
    """Betas that the request cannot do without."""


@dataclass(slots=True)
class _Turn:
    """Consecutive messages of one side: the API wants all results of a turn's calls in one."""

    role: str
    results: list[bytes]
    """Results of tools stand before everything else of their turn."""
    others: list[bytes]

    def fragment(self) -> orjson.Fragment:
        content = b",".join((*self.results, *self.others))
        return orjson.Fragment(b'{"role":"%s","content":[%s]}' % (self.role.encode(), content))


class MessagesEncoder:
    """Encodes requests for one model of one provider. Shared between threads and event loops."""

    __slots__ = (
        *("_content", "_formats", "_marker", "_max_tokens", "_model", "_toolsets", "_traits"),
        "_wires",
    )

    def __init__(
        self,
        preset: MessagesPreset,
        model: str,
        traits: ClaudeTraits,
        *,
        max_output_tokens: int | None,
        cache_ttl: CacheTtl,
    ) -> None:
        self._model = model
        self._traits = traits
        self._max_tokens = max_output_tokens
        self._content = ContentEncoder(preset, model)
        self._wires = MessageCache(self._encoded)
        self._toolsets = ToolsetCache(self._wire_tools)
        self._formats = FormatCache(self._schema_format)
        marker = {"type": "ephemeral", **({} if cache_ttl == "5m" else {"ttl": cache_ttl})}
        self._marker = b'"cache_control":' + encode_json(marker)

    def encode(
        self, request: ModelRequest, settings: ModelSettings, *, stream: bool
    ) -> EncodedRequest:
        """Return the body of the call, and the tools and betas that go with it.

        Raises:
            InvalidRequestError: The provider, or this API, has no form for part of the request.
        """
        if request.continuation_id is not None:
            raise self._refusal("`continuation_id`: the provider keeps no conversations")
        options = check_options(settings.provider_options, self._refusal)
        tools = self._toolsets.of(request.tools) if request.tools else NO_TOOLS
        config: JsonObject = {}
        if request.response_format is not None:
            config, relaxed = self._output_format(request.response_format)
            tools = tools.noting(relaxed)
            if not config:
                request = told_format(request)
        wires = [self._wires.of(message, None) for message in request.messages]
        left = _MOST_MARKS - marks_in(options) - sum(wire.marks for wire in wires)
        marks = self._marks(request, wires, left, has_tools=bool(tools.tools))
        body: dict[str, Any] = {"model": self._model}
        fields, left_out = settings_fields(settings, self._traits, self._max_tokens, self._refusal)
        body.update(fields)
        tools = tools.noting(left_out)
        body.update(self._conversation(request.messages, wires, marks))
        self._add_tools(body, request, settings, tools, marked=-1 in marks)
        if config:
            body["output_config"] = {**body.get("output_config", {}), **config}
        container = _container(request.messages, wires)
        if container is not None:
            body["container"] = container
        self._add_options(body, options)
        if stream:
            body["stream"] = True
        self._check_forced_choice(body)
        betas = (FILES_BETA,) if any(wire.files for wire in wires) else ()
        return EncodedRequest(body_bytes(body, ready=_READY), tools, betas)

    # Messages

    def _conversation(
        self, messages: Sequence[Message], wires: Sequence[WireMessage], marks: frozenset[int]
    ) -> dict[str, Any]:
        system: list[bytes] = []
        turns: list[_Turn] = []
        for position, (message, wire) in enumerate(zip(messages, wires, strict=True)):
            parts = wire.marked(self._marker) if position in marks else wire.parts
            if not parts:
                continue
            if isinstance(message, SystemMessage):
                system += parts
                continue
            role = "assistant" if isinstance(message, AssistantMessage) else "user"
            if not turns or turns[-1].role != role:
                turns.append(_Turn(role, [], []))
            turn = turns[-1]
            (turn.results if isinstance(message, ToolMessage) else turn.others).extend(parts)
        if not turns:
            raise self._refusal("a request without a message that says anything")
        fields: dict[str, Any] = {}
        if system:
            fields["system"] = orjson.Fragment(b"[%s]" % b",".join(system))
        fields["messages"] = [turn.fragment() for turn in turns]
        return fields

    def _encoded(self, message: Message, _: None) -> WireMessage:
        return self._content.encode(message)

    def _marks(
        self, request: ModelRequest, wires: Sequence[WireMessage], left: int, *, has_tools: bool
    ) -> frozenset[int]:
        """Return the positions of messages that end a cacheable segment; -1 stands for the tools.

        What follows a segment that changes is never found in the cache, so marks end there. Where
        too few are left, the last ones of the prompt count: each of them covers all before it.
        """
        ends: list[int] = []
        reached = 0
        for segment in request.segments:
            if not segment.cacheable:
                break
            reached += segment.messages
            if segment.role == "tools" and not segment.messages:
                if has_tools:
                    ends.append(-1)
                continue
            end = min(reached, len(wires)) - 1
            while end >= 0 and wires[end].markable < 0:
                end -= 1
            if end >= 0 and end not in ends and not wires[end].has_marker:
                ends.append(end)
        if len(ends) > left:
            # The provider puts the tools first and system messages next, wherever they stand here.
            ends.sort(key=lambda end: (end >= 0 and request.messages[end].role != "system", end))
        return frozenset(ends[max(0, len(ends) - left) :])

    # Tools

    def _wire_tools(self, tools: Sequence[ToolSchema]) -> WireTools:
        return wire_tools(tools, self._tool_schema)

    def _tool_schema(
        self, tool: ToolSchema, to_wire: Mapping[str, str], notices: list[str]
    ) -> JsonObject:
        wire: JsonObject = {"name": to_wire[tool.name]}
        if tool.description:
            wire["description"] = tool.description
        parameters: JsonObject = tool.parameters
        if tool.strict:
            closed = close_schema(parameters, ANTHROPIC_STRICT)
            if closed.obstacles:
                why = "; ".join(closed.obstacles)
                raise self._refusal(f"strict arguments for `{tool.name}`: {why}")
            parameters, described = without_limits(closed.schema)
            notices.extend(f"tool `{tool.name}`: {each}" for each in described)
            wire["strict"] = True
        wire["input_schema"] = parameters
        return wire

    def _output_format(self, wanted: ResponseFormat) -> tuple[JsonObject, Sequence[str]]:
        if isinstance(wanted, JsonSchemaFormat):
            return self._formats.of(wanted)
        raise self._refusal("JSON answers without a schema")

    def _schema_format(self, wanted: JsonSchemaFormat) -> tuple[JsonObject, list[str]]:
        return output_format(wanted, self._traits, self._refusal)

    def _add_tools(
        self,
        body: dict[str, Any],
        request: ModelRequest,
        settings: ModelSettings,
        tools: WireTools,
        *,
        marked: bool,
    ) -> None:
        choice = request.tool_choice
        if isinstance(choice, NamedTool) and choice.name not in tools.to_wire:
            raise self._refusal(f"a choice of the tool `{choice.name}`, which is not offered")
        if tools.fragment is not None:
            body["tools"] = self._marked_tools(tools.fragment) if marked else tools.fragment
        elif not settings.provider_options.get("tools"):
            return
        wire = _tool_choice(choice, tools)
        if settings.parallel_tool_calls is False and wire["type"] != "none":
            wire["disable_parallel_tool_use"] = True
        if len(wire) > 1 or wire["type"] != "auto":
            body["tool_choice"] = wire

    def _marked_tools(self, tools: orjson.Fragment) -> orjson.Fragment:
        """Return the tools with a marker within the last one, which covers all of them."""
        return orjson.Fragment(orjson.dumps(tools)[:-2] + b"," + self._marker + b"}]")

    def _check_forced_choice(self, body: Mapping[str, Any]) -> None:
        thinks = (as_object(body.get("thinking")) or {}).get("type") in ("enabled", "adaptive")
        choice = as_object(body.get("tool_choice")) or {}
        if thinks and choice.get("type") in ("any", "tool"):
            raise self._refusal("a forced tool choice while it thinks (`reasoning`)")

    # The provider's own options

    def _add_options(self, body: dict[str, Any], options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            known = as_object(body.get(name))
            if name == "tools":
                body["tools"] = self._with_server_tools(body.get("tools"), value)
            elif known is not None and (more := as_object(value)) is not None:
                body[name] = {**known, **more} if name != "thinking" else more
            else:
                body[name] = value

    def _with_server_tools(self, own: orjson.Fragment | None, value: Any) -> orjson.Fragment:
        server_tools = as_list(value)
        if server_tools is None:
            raise self._refusal("`provider_options` whose `tools` is no list")
        # Before the application's tools, whose end may carry a cache marker for all of them.
        listed = [encode_json(tool) for tool in server_tools]
        if own is not None:
            listed.append(orjson.dumps(own)[1:-1])
        return orjson.Fragment(b"[%s]" % b",".join(listed))

    def _refusal(self, what: str) -> InvalidRequestError:
        return self._content.refusal(what)


def _tool_choice(choice: Any, tools: WireTools) -> dict[str, JsonValue]:
    match choice:
        case NamedTool(name=name):
            return {"type": "tool", "name": tools.to_wire[name]}
        case "required":
            return {"type": "any"}
        case "none":
            return {"type": "none"}
        case _:
            return {"type": "auto"}


def _container(messages: Sequence[Message], wires: Sequence[WireMessage]) -> str | None:
    """Return the container of an answer that this request goes on with.

    A call that came from code in it can only be answered there. After the user's next turn it may
    be gone, and the provider makes another.
    """
    for message, wire in zip(reversed(messages), reversed(wires), strict=True):
        if isinstance(message, UserMessage):
            return None
        if isinstance(message, AssistantMessage):
            return wire.container
    return None
