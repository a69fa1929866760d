"""The forms of a request that some servers refuse, and what is sent instead.

Pure functions on data: a rule tells by the body of a request whether it had a shape, and by the words
of a refusal whether they are about that shape.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from ..errors import BadRequestError, ModelError
from ..message import SystemMessage
from ..model import JsonObjectFormat, JsonSchemaFormat, ModelRequest, ModelSettings, NamedTool
from ..text import JsonObject, parse_json
from ._errors import refusal_of
from ._json import as_list, as_object
from ._presets import ServerPreset

Shape: TypeAlias = Literal[
    "plain_call",
    "named_tool_choice",
    "json_object",
    "strict_schema",
    "system_messages",
    "output_limit",
    "max_tokens",
    "stream_options",
    "thinking",
    "native_tools",
]
"""A form that part of a request has, and that some servers refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """A shape that a server has refused, so that it is sent no more."""

    shape: Shape
    notice: str
    """What is done instead: what stands in ``response.notices`` of each call that it changes."""
    refusal: str
    """The server's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    shape: Shape
    sent: Callable[[JsonObject], bool]
    """Whether the body of the refused request has the shape."""
    asked: Callable[[ModelRequest, ModelSettings], bool]
    """Whether a request would have it, had it not been given up."""
    says: re.Pattern[str]
    """What a refusal of it says, in lower case."""
    unless: re.Pattern[str] | None = None
    """What says that it is about something else after all."""
    names: tuple[str, ...] = ()
    """Parameters that a refusal of it may name; one that names another is none of it."""
    statuses: frozenset[int | None] = frozenset({None, 400, 422})
    notice: str


# Between a field and what is wrong with it, or the other way round, stand a few words at most.
_WRONG: Final = (
    r"(?:support|invalid|unknown|unrecogni[sz]ed|unexpected|unavailable|forbidden|must be|should be"
    r"|not (?:allowed|permitted|enabled|implemented|available|valid)|expected|extra|only)"
)


def _about(field: str) -> re.Pattern[str]:
    """Return a pattern for a text that names a field and says that it is refused."""
    return re.compile(rf"(?:{field})(?s:.{{0,200}}?){_WRONG}|{_WRONG}(?s:.{{0,200}}?)(?:{field})")


# "Not merely the tool choice": its own words, and those of other fields, are no tools.
_TOOLS: Final = r"\b(?:tools?|functions?)(?![_ -]?(?:choice|call[_ -]?id)|\[|\.)\b"
_NO_TOOLS: Final = (
    r"not support|n't support|not supported|unsupported|unknown parameter|unrecogni[sz]ed"
    r"|invalid parameter|extra inputs|not enabled"
)

_NOT_STRICT: Final = (
    "schemas were sent without `strict`, since the server refuses it: the answer is held to them by "
    "the check behind it alone"
)

_RULES: Final = (
    _Rule(
        shape="plain_call",
        sent=lambda body: body.get("stream") is not True,
        asked=lambda request, settings: True,
        # DashScope, the ChatGPT backend, gateways before models that only stream.
        says=re.compile(
            r"stream(?:ing)?(?: mode)? (?:is|are) (?:strongly )?required|only supports? stream"
            r"|requires? `?stream|stream`?'?\"? must be (?:set to )?`?true|must (?:be )?stream"
            r"|enable the stream parameter|non-streaming calls|non-streaming .{0,40}not (?:supp|allow)"
        ),
        names=("stream", "enable_thinking"),
        notice="the answer was read as a stream, since the server answers no plain call",
    ),
    _Rule(
        shape="named_tool_choice",
        sent=lambda body: as_object(body.get("tool_choice")) is not None,
        asked=lambda request, settings: isinstance(request.tool_choice, NamedTool),
        says=_about(r"tool[_ ]choice|named tool|specific (?:tool|function)"),
        unless=re.compile(r"not found|--enable-auto-tool-choice"),
        names=("tool_choice",),
        notice="the named tool was asked for as `required` with that tool alone, since the server "
        "refuses a named tool choice",
    ),
    _Rule(
        shape="json_object",
        sent=lambda body: _format(body).get("type") == "json_object",
        asked=lambda request, settings: isinstance(request.response_format, JsonObjectFormat),
        says=_about(r"json[_ ]object|response[_ ]format|text\.format|json mode"),
        # OpenAI wants the word in the prompt: that is the caller's to mend.
        unless=re.compile(r"must contain the word"),
        names=("response_format", "text"),
        notice="the JSON object was asked for by a schema that allows any, since the server refuses "
        "`json_object`",
    ),
    _Rule(
        shape="strict_schema",
        sent=lambda body: _format(body).get("strict") is True or any(map(_is_strict, _tools(body))),
        asked=lambda request, settings: _asks_strict(request),
        says=_about(r"\bstrict\b|schema for (?:function|response_format)|invalid_json_schema"),
        names=("response_format", "text", "tools", "strict"),
        notice=_NOT_STRICT,
    ),
    _Rule(
        # A server that has no such field refuses it with `false` too.
        shape="strict_schema",
        sent=lambda body: any("strict" in tool for tool in _tools(body)),
        asked=lambda request, settings: _asks_strict(request),
        says=_about(r"\bstrict\b"),
        names=("tools", "strict"),
        notice=_NOT_STRICT,
    ),
    _Rule(
        shape="output_limit",
        sent=lambda body: "max_output_tokens" in body,
        asked=lambda request, settings: settings.max_tokens is not None,
        says=re.compile(r"max_output_tokens"),
        # A wrong value is the caller's to mend.
        unless=re.compile(r"below|above|minimum|maximum|at least|at most|greater|less than|exceed"),
        names=("max_output_tokens",),
        notice="`max_tokens` was left out, since the server refuses `max_output_tokens`",
    ),
    _Rule(
        shape="max_tokens",
        sent=lambda body: "max_tokens" in body,
        asked=lambda request, settings: settings.max_tokens is not None,
        says=re.compile(r"max_completion_tokens"),
        names=("max_tokens",),
        notice="the limit of the answer was sent as `max_completion_tokens`, which the server asks for",
    ),
    _Rule(
        shape="stream_options",
        sent=lambda body: "stream_options" in body,
        asked=lambda request, settings: True,
        says=_about(r"stream_options"),
        names=("stream_options",),
        notice="the usage of the stream was not asked for, since the server refuses `stream_options`",
    ),
    _Rule(
        shape="thinking",
        sent=lambda body: body.get("think") not in (None, False),
        asked=lambda request, settings: (
            settings.reasoning is not None or bool(settings.provider_options.get("think"))
        ),
        says=re.compile(r"not support thinking|think value .{0,60}not supported"),
        notice="thinking was not asked for, since the model does not support it",
    ),
    _Rule(
        shape="system_messages",
        sent=lambda body: any(
            _role(one) == "system" for one in as_list(body.get("messages")) or ()
        ),
        asked=lambda request, settings: any(isinstance(m, SystemMessage) for m in request.messages),
        # Templates of models without the role, and Google's surface for its open ones.
        says=re.compile(
            r"system (?:role|messages?|prompts?)(?: is| are)? (?:not|un)\s?supported"
            r"|only user and assistant roles are supported|developer instruction is not enabled"
        ),
        statuses=frozenset({None, 400, 422, 500}),
        notice="the system messages were put before the first user message, since the model has no "
        "such role",
    ),
    _Rule(
        shape="native_tools",
        sent=lambda body: bool(body.get("tools")),
        asked=lambda request, settings: bool(request.tools) and request.tool_choice != "none",
        says=re.compile(
            rf"{_TOOLS}(?s:.{{0,200}}?)(?:{_NO_TOOLS})|(?:{_NO_TOOLS})(?s:.{{0,200}}?){_TOOLS}"
            r"|no (?:tool|function) support|function calling is not|no endpoints found that support tool use"
            r"|requires? --(?:enable-auto-tool-choice|jinja)"
        ),
        unless=re.compile(r"schema|\bstrict\b|parallel_tool_calls"),
        names=("tools", "functions"),
        # OpenRouter's is a 404, llama.cpp's a 500.
        statuses=frozenset({None, 400, 404, 422, 500}),
        notice="the tools were told in the prompt and their calls read from the text, since the "
        "server refuses tools",
    ),
)

_ASKED: Final = {rule.shape: rule.asked for rule in _RULES}

_CHANGES: Final[Mapping[Shape, tuple[str, Any]]] = {
    "named_tool_choice": ("named_tool_choice", False),
    "json_object": ("json_object", False),
    "strict_schema": ("strict_schema", False),
    "system_messages": ("fold_system", True),
    "output_limit": ("output_limit", False),
    "max_tokens": ("max_tokens_field", "max_completion_tokens"),
    "stream_options": ("stream_options", False),
    "native_tools": ("native_tools", False),
}
"""The field of a preset, and its value, that does without a shape."""


def recognised(error: ModelError, body: bytes, able: AbstractSet[Shape]) -> Adaptation | None:
    """Return what a refusal is about, when the same request can be sent without it.

    Args:
        error: The refusal. A prompt that is too long is never a matter of its shape.
        body: The request as it was sent, which must have had the shape.
        able: Shapes that can be done without.
    """
    if type(error) is not BadRequestError:
        return None
    try:
        sent = as_object(parse_json(body)) or {}
    except ValueError:
        return None
    words, parameter = refusal_of(error)
    for rule in _RULES:
        if rule.shape in able and error.status in rule.statuses and rule.sent(sent):
            if parameter and rule.names and not any(name in parameter for name in rule.names):
                continue
            if rule.says.search(words) and not (rule.unless and rule.unless.search(words)):
                return Adaptation(shape=rule.shape, notice=rule.notice, refusal=error.message)
    return None


def dispensable(preset: ServerPreset) -> frozenset[Shape]:
    """Return the shapes that a preset can do without, and does not yet."""
    known = {field.name for field in fields(preset)}
    able: set[Shape] = {
        shape
        for shape, (name, value) in _CHANGES.items()
        if name in known and getattr(preset, name) != value
    }
    if "require_streaming" in known and getattr(preset, "require_streaming", None) is None:
        able.add("plain_call")
    if "json_schema" in known and getattr(preset, "json_schema", None) is False:
        able.discard("json_object")  # what would take its place is refused too
    return frozenset(able)


def without(given_up: AbstractSet[Shape]) -> dict[str, Any]:
    """Return the fields of a preset, and their values, that do without some shapes."""
    return dict(_CHANGES[shape] for shape in given_up if shape in _CHANGES)


def would_have(shape: Shape, request: ModelRequest, settings: ModelSettings) -> bool:
    """Whether a request would have a shape, had it not been given up."""
    return _ASKED[shape](request, settings)


# What a body holds, in the places where the APIs have it


def _format(body: JsonObject) -> JsonObject:
    chat = as_object(body.get("response_format"))
    if chat is not None:
        return {**(as_object(chat.get("json_schema")) or {}), "type": chat.get("type")}
    return as_object((as_object(body.get("text")) or {}).get("format")) or {}


def _tools(body: JsonObject) -> Sequence[JsonObject]:
    return [*filter(None, map(as_object, as_list(body.get("tools")) or ()))]


def _is_strict(tool: JsonObject) -> bool:
    function = as_object(tool.get("function")) or tool
    return function.get("strict") is True


def _role(message: Any) -> Any:
    return (as_object(message) or {}).get("role")


def _asks_strict(request: ModelRequest) -> bool:
    wanted = request.response_format
    by_format = isinstance(wanted, JsonSchemaFormat) and wanted.strict is not False
    return by_format or any(tool.strict for tool in request.tools)
