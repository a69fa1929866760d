"""What stands between the marks of a call, in each of the forms that models write."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from pydantic import JsonValue

from ..model import ToolSchema
from ..text import JsonObject, clean_json, dump_json, parse_json, unfenced
from ._dialect import TextCall
from ._relaxed import relaxed_object
from ._repair import repair_arguments
from ._values import types_of, value_of

Offered: TypeAlias = Mapping[str, ToolSchema]
"""The tools that were offered, by name."""

ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "params", "input")
_WHOLE_KEYS: Final = frozenset(("name", "arguments", "id", "type"))
_WHOLE_OUTER_KEYS: Final = frozenset(("function", "id", "type", "index"))

_SEPARATOR = re.compile("<[|\uff5c]tool[\u2581_]sep[|\uff5c]>")
_PARAMETER = re.compile(
    r"<parameter(?:=(?P<bare>[^<>\s]{1,128})|\s(?P<attributes>[^<>]{1,256}))>"
    r"|<arg_key>(?P<key>[^<]{1,128})</arg_key>\s{0,64}<arg_value>"
)
_ATTRIBUTE = re.compile(r"""\b(name|string)\s*=\s*["']([^"'<>]*)["']""")
_FUNCTION = re.compile(
    r"""<(?:function=|invoke\s+name\s*=\s*)["']?(?P<name>[^"'<>]{1,256})["']?\s*>"""
)
_NAME_KEY = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.){1,256})"')
_ARGUMENTS_KEY = re.compile(rf'"(?:{"|".join(ARGUMENT_KEYS)})"\s*:\s*')
_HEAD = 2048


def json_calls(value: JsonValue, offered: Offered, named: str) -> list[TextCall] | None:
    """Return the calls that the JSON between two marks makes; ``None`` if it makes none.

    Args:
        value: An object ``{"name": …, "arguments": …}``, the same within ``function``, or a list.
        offered: The tools that can be called.
        named: The tool that the mark itself names, so that the object may be its arguments.
    """
    if isinstance(value, list):
        calls = [_json_call(each, offered, "") for each in value]
        found = [call for call in calls if call is not None]
        return found if found and len(found) == len(calls) else None
    call = _json_call(value, offered, named)
    return None if call is None else [call]


def whole_calls(text: str, offered: Offered) -> list[TextCall] | None:
    """Return the calls of a reply that is nothing but JSON; ``None`` where it is an answer.

    Here nothing but the JSON tells a call from an answer, so only the exact form counts: one object
    or a list of them, or ``{"tool_calls": […]}``, each with the name of an offered tool and
    ``arguments``, and with nothing else that would say something.
    """
    try:
        value = parse_json(unfenced(text))
        clean_json(value)  # refuses what is nested too deep
    except ValueError:
        return None
    if isinstance(value, dict) and "tool_calls" in value:
        if any(said for key, said in value.items() if key not in ("tool_calls", "role")):
            return None
        value = value["tool_calls"]
    values = value if isinstance(value, list) else [value]
    calls = [_whole_call(each, offered) for each in values]
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else None


def loose_json(text: str) -> JsonValue:
    """Decode JSON, or what :func:`relaxed_object` reads.

    Raises:
        ValueError: It is neither.
    """
    try:
        value = parse_json(text)
        clean_json(value)  # refuses what is nested too deep
    except ValueError:
        relaxed = relaxed_object(text.strip())
        if relaxed is None:
            raise
        return relaxed
    return value


def broken_call(body: str, offered: Offered, named: str) -> TextCall | None:
    """Return the call of a body that is no JSON, if at least its name can be read."""
    name = named
    if not name and (found := _NAME_KEY.search(body, 0, _HEAD)) is not None:
        name = found[1]
    if name not in offered:
        return None
    key = _ARGUMENTS_KEY.search(body, 0, _HEAD)
    return call_from_text(name, body[key.end() :].strip() if key is not None else body.strip())


def marked_call(body: str, offered: Offered, named: str) -> TextCall | None:
    """Return the call of a body in one of the forms that are not JSON alone."""
    body = body.strip()
    if (parts := _SEPARATOR.split(body, maxsplit=1))[1:]:
        return _separated_call(parts[0].strip(), parts[1].strip(), offered)
    if "<parameter" in body or "<arg_key>" in body or "<function=" in body or "<invoke" in body:
        return _element_call(body, offered, named)
    bare = body.removeprefix("call:").lstrip()
    name = longest_name(bare, offered)
    if name is None:
        return None
    rest = bare[len(name) :].strip()
    if not rest:
        return None if offered[name].parameters.get("required") else TextCall(name=name)
    return call_from_text(name, rest) if rest.startswith("{") else None


def longest_name(text: str, names: Iterable[str]) -> str | None:
    """Return the longest of the names that the text begins with."""
    return max(filter(text.startswith, names), key=len, default=None)


def names_in(value: JsonValue) -> list[str]:
    """Return the names that would-be calls in a JSON value have, for a notice."""
    values: Sequence[JsonValue] = value if isinstance(value, list) else [value]
    return [name for name in map(_name_of, values) if name]


def _name_of(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return ""
    inner = value.get("function")
    name = inner.get("name") if isinstance(inner, dict) else value.get("name")
    return name if isinstance(name, str) else ""


def _json_call(value: JsonValue, offered: Offered, named: str) -> TextCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = _name_of(value)
    key = next((key for key in ARGUMENT_KEYS if key in value), None)
    if name in offered and (not named or named == name) and (key is not None or not named):
        return _call(name, None if key is None else value[key])
    return _call(named, value) if named in offered else None


def _whole_call(value: JsonValue, offered: Offered) -> TextCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        if not value.keys() <= _WHOLE_OUTER_KEYS:
            return None
        value = inner
    name = _name_of(value)
    if name not in offered or "arguments" not in value or not value.keys() <= _WHOLE_KEYS:
        return None
    return _call(name, value["arguments"])


def _call(name: str, arguments: JsonValue) -> TextCall:
    if isinstance(arguments, dict):
        return TextCall(name=name, arguments=arguments)
    return call_from_text(name, arguments if isinstance(arguments, str) else dump_json(arguments))


def _separated_call(left: str, right: str, offered: Offered) -> TextCall | None:
    """Read DeepSeek's form: ``function<sep>name`` and a fenced object, or ``name<sep>`` and one."""
    if left in offered and right.startswith("{"):
        return call_from_text(left, right)
    if left not in ("", "function"):
        return None
    name, _, rest = right.partition("\n")
    name = name.strip()
    return call_from_text(name, unfenced(rest)) if name in offered else None


def _element_call(body: str, offered: Offered, named: str) -> TextCall | None:
    """Read elements: ``<parameter name="x">``, ``<parameter=x>``, or ``<arg_key>`` and ``<arg_value>``."""
    found = _FUNCTION.search(body, 0, _HEAD)
    name = found["name"].strip() if found is not None else named or body.partition("<")[0].strip()
    tool = offered.get(name)
    if tool is None:
        return None
    arguments = _element_arguments(body, tool)
    return None if arguments is None else TextCall(name=name, arguments=arguments)


def _element_arguments(body: str, tool: ToolSchema) -> JsonObject | None:
    arguments: JsonObject = {}
    at = 0
    while (element := _PARAMETER.search(body, at)) is not None:
        attributes = dict(_ATTRIBUTE.findall(element["attributes"] or ""))
        name = (element["bare"] or element["key"] or attributes.get("name") or "").strip()
        closing = "</arg_value>" if element["key"] else "</parameter>"
        end = body.find(closing, element.end())
        if not name or end < 0:
            return None
        is_text = attributes.get("string") == "true"
        types = frozenset(("string",)) if is_text else types_of(tool, name)
        arguments[name] = value_of(_without_line_ends(body[element.end() : end]), types)
        at = end + len(closing)
    return arguments


def _without_line_ends(text: str) -> str:
    return text.removeprefix("\r").removeprefix("\n").removesuffix("\n").removesuffix("\r")


def call_from_text(name: str, raw: str) -> TextCall:
    """Return a call with the arguments that a text holds."""
    arguments, invalid = repair_arguments(raw)
    return TextCall(name=name, arguments=arguments, invalid=invalid)
