"""Replies that are nothing but a call, without a mark around it."""

import re
from typing import Final, TypeAlias

from pydantic import JsonValue

from ..text import JsonObject, parse_json
from ._bodies import Offered, longest_name, whole_calls
from ._braces import JsonEnd
from ._dialect import TextCall
from ._values import parameter_names, types_of, value_of

_HEAD: Final = 4096
"""How many characters decide whether a reply can be such a call."""
_KEYS: Final = frozenset(("name", "arguments", "function", "tool_calls", "id", "type"))
_SPACE = re.compile(r"\s*+")
_FENCE = re.compile(r"```[\w-]{0,16}+")
_STRING = re.compile(r'"(?:[^"\\]|\\.){0,256}+"', re.DOTALL)
_STRING_BEGIN = re.compile(r'"(?:[^"\\]|\\.){0,256}+\\?\Z', re.DOTALL)
_AFTER = re.compile(r"\s{0,256}+`{0,3}\s{0,256}+\Z")

_Verdict: TypeAlias = bool | None
"""Whether it can be a call; ``None`` while that is not known."""


class WholeReply:
    """Holds a reply for as long as all of it can still be one call, or a list of calls.

    It is JSON, bare or in a code fence, or lines such as ``get_weather/city>Paris``.

    Args:
        offered: The tools that can be called.
    """

    __slots__ = ("_end", "_ended_at", "_lines", "_offered", "_text", "_verdict")

    def __init__(self, offered: Offered) -> None:
        self._offered = offered
        self._text = ""
        self._verdict: _Verdict = None
        self._lines = False
        self._end: JsonEnd | None = None
        self._ended_at: int | None = None

    def feed(self, text: str) -> bool:
        """Take the next piece and return whether the reply can still be such a call."""
        # Through a local name: only so does `+=` not copy what there is.
        held, self._text = self._text, ""
        held += text
        self._text = held
        if self._verdict is None:
            self._verdict = self._judge(held[:_HEAD])
            if self._verdict is None and len(held) >= _HEAD:
                self._verdict = False
        if self._verdict and not self._lines:
            self._verdict = self._is_one_value(held)
        return self._verdict is not False

    def finish(self) -> list[TextCall] | None:
        """Return the calls of the whole reply; ``None`` where it is text."""
        if self._verdict is False:
            return None
        if self._lines:
            return line_calls(self._text, self._offered)
        return whole_calls(self._text, self._offered) if self._verdict else None

    @property
    def text(self) -> str:
        """The reply so far."""
        return self._text

    def _judge(self, head: str) -> _Verdict:
        at = _after_space(head, 0)
        start = _after_fence(head, at)
        if start is None:
            return None
        if head[start] not in "{[":
            return self._judge_line(head[at:])
        self._end = JsonEnd(start)
        brace = _after_space(head, start + 1) if head[start] == "[" else start
        if brace < len(head) and head[brace] != "{":
            return False
        return self._judge_key(head, _after_space(head, brace + 1))

    def _judge_key(self, head: str, at: int) -> _Verdict:
        """Judge an object by its first key: most answers in JSON have another one."""
        key = _STRING.match(head, at)
        if key is None:
            return _may_be_string(head, at)
        if key[0] != '"name"':
            return key[0][1:-1] in _KEYS
        at = _after_space(head, key.end())
        if head[at : at + 1] not in ("", ":"):
            return False
        at = _after_space(head, at + 1)
        value = _STRING.match(head, at)
        return _may_be_string(head, at) if value is None else _decoded(value[0]) in self._offered

    def _judge_line(self, head: str) -> _Verdict:
        first, line_end, _ = head.partition("\n")
        name = longest_name(first, (f"{each}/" for each in self._offered))
        if name is not None:
            self._lines = True
            if not line_end:
                return None
            return line_calls(first, self._offered) is not None
        if line_end:
            return False
        return None if any(f"{each}/".startswith(first) for each in self._offered) else False

    def _is_one_value(self, text: str) -> bool:
        if self._ended_at is None and self._end is not None:
            self._ended_at = self._end.find(text, len(text))
            if self._end.too_deep:
                return False
        return self._ended_at is None or _AFTER.match(text, self._ended_at) is not None


def line_calls(text: str, offered: Offered) -> list[TextCall] | None:
    """Return the calls of lines ``tool/parameter>value``; ``None`` if any line is something else.

    Lines of one tool in a row make one call, until a parameter comes again.
    """
    found: list[tuple[str, JsonObject]] = []
    for line in text.strip().split("\n"):
        if not line.strip():
            continue
        named = _line_of(line.strip(), offered)
        if named is None:
            return None
        name, parameter, value = named
        if not found or found[-1][0] != name or parameter in found[-1][1]:
            found.append((name, {}))
        found[-1][1][parameter] = value
    return [TextCall(name=name, arguments=arguments) for name, arguments in found] or None


def _line_of(line: str, offered: Offered) -> tuple[str, str, JsonValue] | None:
    head, mark, value = line.partition(">")
    name, slash, parameter = head.rpartition("/")
    tool = offered.get(name)
    if not mark or not slash or tool is None or parameter not in parameter_names(tool):
        return None
    return name, parameter, value_of(value, types_of(tool, parameter))


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _after_fence(head: str, at: int) -> int | None:
    """Return where the text begins behind the opening of a code fence; ``None`` if it is to come."""
    if at < len(head) and head[at] == "`":
        fence = _FENCE.match(head, at)
        if fence is None:
            return None if "```".startswith(head[at:]) else at
        at = _after_space(head, fence.end())
    return at if at < len(head) else None


def _may_be_string(head: str, at: int) -> _Verdict:
    return None if at >= len(head) or _STRING_BEGIN.match(head, at) else False


def _decoded(quoted: str) -> JsonValue:
    try:
        return parse_json(quoted)
    except ValueError:
        return None
