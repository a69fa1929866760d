"""Calls in which the arguments stand at their places: ``get_weather[Paris|metric]``."""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from ..json_schema import variants
from ..message import ToolCallBlock, ToolMessage
from ..model import ToolChoice, ToolSchema
from ..text import JsonObject
from ._bodies import Offered, longest_name
from ._dialect import ReplyReader, TextCall
from ._reader import TagReader
from ._values import parameter_names, text_of, types_of, value_of
from ._writing import choice_sentences, result_elements

_HOW = r"""# Tools

You can call tools. To call one, write its name and in brackets its arguments, in the order in which the \
parameters are listed, between these tags:

<tool_call>name_of_the_tool[first argument|second argument]</tool_call>

Write a text as it is, without quotes; a list or an object as JSON. Leave the place of an argument that is \
not given empty, and leave out empty places at the end; no arguments at all are []. Inside an argument write \
\| for |, \] for ] and \\ for \. After your calls end the reply: the results come in the next message, in the \
order of the calls.""".replace("\\\n", "")

_SPECIAL = re.compile(r"[\\|\]]")
_PLACE = re.compile(r"\\([\\|\]\s])|(\|)|([^\\|]+|\\)", re.DOTALL)


class PFormatDialect:
    r"""Tools as signatures, calls as ``name[a|b]`` between ``<tool_call>`` tags: few tokens.

    Arguments stand in the order in which the parameters are declared. ``\|``, ``\]`` and ``\\``
    stand for the characters themselves, and a backslash keeps a space at the end of an argument,
    where spaces do not count. An empty place is the empty string where a required parameter takes
    strings, and an argument that is not given anywhere else. JSON between the tags is read too.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """``pformat``."""
        return "pformat"

    def __repr__(self) -> str:
        return "PFormatDialect()"

    def instructions(
        self, tools: Sequence[ToolSchema], choice: ToolChoice, /, *, parallel: bool = True
    ) -> str:
        """Return the text that shows a model its tools and how to call them."""
        listed = "\n\n".join(map(_listed, tools))
        sentences = " ".join(choice_sentences(choice, parallel=parallel))
        return f"{_HOW}\n{sentences}\n\nThe tools:\n\n{listed}"

    def write_calls(self, calls: Sequence[ToolCallBlock], tools: Sequence[ToolSchema], /) -> str:
        """Return earlier calls as the model should have written them."""
        known = {tool.name: tool for tool in tools}
        return "\n".join(
            f"<tool_call>{_written(call, known.get(call.name))}</tool_call>" for call in calls
        )

    def write_results(self, results: Sequence[ToolMessage], /) -> str:
        """Return the results of one turn as one text."""
        return result_elements(results)

    def reader(self, tools: Sequence[ToolSchema], /) -> ReplyReader:
        """Return what reads one reply."""
        return TagReader(tools, read_brackets=_read)


def _listed(tool: ToolSchema) -> str:
    lines = [f"{tool.name}[{'|'.join(parameter_names(tool))}]"]
    if tool.description:
        lines[0] += f": {tool.description}"
    lines.extend(_described(tool, name) for name in parameter_names(tool))
    return "\n".join(lines)


def _described(tool: ToolSchema, parameter: str) -> str:
    kinds = [*sorted(types_of(tool, parameter))] or ["any"]
    details = [" or ".join(kinds)] + ([] if parameter in _required(tool) else ["optional"])
    line = f"- {parameter} ({', '.join(details)})"
    properties = tool.parameters.get("properties")
    schema = properties.get(parameter) if isinstance(properties, dict) else None
    for variant in variants(tool.parameters, schema):
        if isinstance(allowed := variant.get("enum"), list):
            line += f", one of {', '.join(map(text_of, allowed))}"
    if isinstance(schema, dict) and isinstance(said := schema.get("description"), str):
        line += f": {said}"
    return line


def _required(tool: ToolSchema) -> Sequence[JsonValue]:
    required = tool.parameters.get("required")
    return required if isinstance(required, list) else ()


def _written(call: ToolCallBlock, tool: ToolSchema | None) -> str:
    # Of a tool that is gone nobody knows the order: it stays as it was given.
    names = list(call.arguments) if tool is None else parameter_names(tool)
    places = ["" if call.arguments.get(n) is None else _escaped(call.arguments[n]) for n in names]
    while places and not places[-1] and not _is_empty_text(call, names[len(places) - 1]):
        places.pop()
    return f"{call.name}[{'|'.join(places)}]"


def _is_empty_text(call: ToolCallBlock, name: str) -> bool:
    return call.arguments.get(name) == ""


def _escaped(value: JsonValue) -> str:
    text = text_of(value)
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    if text[:1].isspace():
        escaped = f"\\{escaped}"
    if len(text) > 1 and text[-1].isspace():
        escaped = f"{escaped[:-1]}\\{escaped[-1]}"
    return escaped


def _read(text: str, offered: Offered) -> TextCall | None:
    """Read ``name[…]``, from the name to the bracket that closes it."""
    names = (each for each in offered if text.startswith("[", len(each)))
    name = longest_name(text, names)
    if name is None:
        return None
    tool = offered[name]
    inside = text[len(name) + 1 : -1]
    places = _places(inside) if inside.strip() else []
    return TextCall(name=name, arguments=_arguments(tool, places))


def _arguments(tool: ToolSchema, places: Sequence[str]) -> JsonObject:
    arguments: JsonObject = {}
    for parameter, place in zip(parameter_names(tool), places, strict=False):
        types = types_of(tool, parameter)
        if place or ("string" in types and parameter in _required(tool)):
            arguments[parameter] = value_of(place, types)
    return arguments


def _places(inside: str) -> list[str]:
    """Split at the bars that nothing escapes, without the spaces around that nothing escapes."""
    places: list[str] = []
    parts: list[tuple[str, bool]] = []
    for token in _PLACE.finditer(inside):
        if token[2]:
            places.append(_joined(parts))
            parts = []
        else:
            parts.append((token[1], True) if token[1] else (token[3], False))
    return [*places, _joined(parts)]


def _joined(parts: list[tuple[str, bool]]) -> str:
    if parts and not parts[0][1]:
        parts[0] = (parts[0][0].lstrip(), False)
    if parts and not parts[-1][1]:
        parts[-1] = (parts[-1][0].rstrip(), False)
    return "".join(text for text, _ in parts)
