"""What both of OpenAI's APIs share of the way from a request to its bytes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from typing import Final

import orjson

from ..errors import InvalidRequestError
from ..message import Block
from ..model import JsonSchemaFormat, ModelRequest, ToolSchema
from ..text import JsonObject, encode_json
from ..tool import wire_names
from ._schema import OPENAI_STRICT, close_schema

_ODD_ID: Final = re.compile(r"[^A-Za-z0-9_-]+")
_ID_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
DIGEST_LENGTH: Final = 9
_LONGEST_ID: Final = 40
"""Characters: what OpenAI takes as the id of a call."""

ANY_OBJECT: Final[JsonObject] = {
    "name": "object",
    "schema": {"type": "object", "additionalProperties": True},
}
"""Any JSON object, as a schema."""

Refuse = Callable[[str], InvalidRequestError]
"""Makes the error for what a provider cannot take."""


@dataclass(frozen=True, slots=True)
class WireTools:
    """The tools of a request as they are sent."""

    tools: tuple[ToolSchema, ...]
    fragment: orjson.Fragment | None
    to_wire: Mapping[str, str]
    from_wire: Mapping[str, str]
    notices: tuple[str, ...] = ()
    """What was changed of them, or of the request that they belong to, to suit the provider."""

    def noting(self, notices: Sequence[str]) -> "WireTools":
        """Return them with what else was changed of their request."""
        return replace(self, notices=(*self.notices, *notices)) if notices else self

    def user_name(self, name: str) -> str:
        """Return the application's name for a tool that the model called."""
        return self.from_wire.get(name, name)


_LONGEST_CACHE_KEY: Final = 64
"""Characters: OpenAI refuses a longer one with status 400."""


def cache_key_of(request: ModelRequest) -> str | None:
    """Return the key of a prompt's stable part, by which OpenAI routes calls to a warm cache.

    ``None`` where the request has no fingerprint, or begins with nothing that is stable.
    """
    fingerprint = request.prompt_fingerprint
    prefix = takewhile(lambda segment: segment.cacheable, request.segments)
    if not fingerprint or not any(
        segment.messages or (segment.role == "tools" and request.tools) for segment in prefix
    ):
        return None
    return f"tap-{fingerprint}"[:_LONGEST_CACHE_KEY]


NO_TOOLS: Final = WireTools((), None, {}, {})


def wire_tools(
    tools: Sequence[ToolSchema],
    encode: Callable[[ToolSchema, Mapping[str, str], list[str]], JsonObject],
) -> WireTools:
    """Return the tools as they are sent.

    Args:
        tools: The tools.
        encode: Returns what is sent of one, given the names that all of them are sent under, and
            adds to the list what had to be changed of it.
    """
    to_wire = wire_names([tool.name for tool in tools])
    notices: list[str] = []
    fragment = orjson.Fragment(encode_json([encode(tool, to_wire, notices) for tool in tools]))
    from_wire = {wire: name for name, wire in to_wire.items()}
    return WireTools(tuple(tools), fragment, to_wire, from_wire, tuple(notices))


def own_of(block: Block, name: str) -> JsonObject:
    """Return what the provider of this name needs back with the block."""
    data = block.provider_data
    own = data.get(name) if data else None
    return own if isinstance(own, dict) else {}


def strict_parameters(
    tool: ToolSchema, refuse: Refuse, notices: list[str], *, allowed: bool, unasked: bool
) -> tuple[JsonObject, bool]:
    """Return a tool's parameters, closed where the tool is strict, and whether it is.

    Args:
        tool: The tool.
        refuse: Makes the error.
        notices: Takes what keeps a tool that is made strict unasked from being so. That arguments
            may be left out is common, and nothing to be told of.
        allowed: The provider takes ``strict``.
        unasked: Make a tool strict that does not say whether it is to be, where its schema can be.

    Raises:
        InvalidRequestError: It asks for strict arguments, and its schema cannot be strict.
    """
    wanted = unasked if tool.strict is None else tool.strict
    if not (wanted and allowed):
        return tool.parameters, False
    asked = tool.strict is True
    closed = close_schema(tool.parameters, OPENAI_STRICT, require_all=asked)
    if asked and closed.obstacles:
        raise refuse(f"strict arguments for `{tool.name}`: {'; '.join(closed.obstacles)}")
    if not closed.all_obstacles:
        return closed.schema, True
    notices.extend(f"tool `{tool.name}` is not strict: {each}" for each in closed.obstacles)
    return tool.parameters, False


def not_strict(tools: Iterable[ToolSchema]) -> list[str]:
    """Return what is said of tools that ask to be strict at a server without such tools."""
    return [
        f"tool `{tool.name}` is not strict: the server takes no `strict`"
        for tool in tools
        if tool.strict
    ]


def schema_format(
    wanted: JsonSchemaFormat, refuse: Refuse, *, allowed: bool
) -> tuple[JsonObject, list[str]]:
    """Return a JSON Schema format, and what keeps it from being strict.

    The format is its name, schema and description, and whether it is strict.

    Args:
        wanted: The format.
        refuse: Makes the error.
        allowed: The provider takes ``strict``.

    Raises:
        InvalidRequestError: It must be strict, and cannot be.
    """
    made: JsonObject = {"name": wire_name(wanted.name), "schema": wanted.schema}
    if wanted.description is not None:
        made["description"] = wanted.description
    if not allowed:
        return made, []
    asked = wanted.strict is True
    closed = close_schema(wanted.schema, OPENAI_STRICT, require_all=asked)
    obstacles = closed.obstacles if asked else closed.all_obstacles
    if asked and obstacles:
        raise refuse(f"a strict schema `{wanted.name}`: {'; '.join(obstacles)}")
    made["strict"] = strict = wanted.strict is not False and not obstacles
    if strict:
        made["schema"] = closed.schema
        return made, []
    if wanted.strict is False:
        return made, []
    return made, [f"format `{wanted.name}` is not strict: {each}" for each in obstacles]


def safe_id(given: str) -> str:
    """Return an id of letters, digits, ``_`` and ``-``: the given one, or one derived from it."""
    return derived_id(given) if _ODD_ID.search(given) else given


def derived_id(given: str) -> str:
    """Return an id of at most 40 characters, whose last nine are letters and digits alone."""
    digest = sha256(given.encode("utf-8", "surrogatepass")).digest()[:DIGEST_LENGTH]
    letters = "".join(_ID_ALPHABET[byte % len(_ID_ALPHABET)] for byte in digest)
    readable = _ODD_ID.sub("_", given)[: _LONGEST_ID - DIGEST_LENGTH - 1]
    return f"{readable}-{letters}"


def wire_name(name: str) -> str:
    """Return the name under which a tool or a schema is sent."""
    return wire_names((name,))[name]
