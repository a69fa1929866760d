"""Reading a reply as it comes: what is text and what is a call."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Final

from ..model import ToolSchema
from ._bodies import (
    Offered,
    broken_call,
    json_calls,
    longest_name,
    loose_json,
    marked_call,
    names_in,
)
from ._braces import JsonEnd
from ._dialect import ReplyPiece, TextCall
from ._markers import LONGEST_CLOSE, Opening, Unknown, closing_at, closing_in, opening_at
from ._whole import WholeReply

MAX_CALLS: Final = 128
"""The most calls that are taken out of one reply; what follows stays text."""
MAX_CALL_CHARACTERS: Final = 1_048_576
"""The longest text between two marks that is read as a call."""
_MAX_NOTICES: Final = 8
_MAX_FAILURES: Final = 8
"""How often the reader goes back behind a mark that had no end, so that its work stays linear."""
_GAP: Final = 1024
_HEAD: Final = 256

_MARK = re.compile("<(?=[|\uff5cTtIiFf]|\\Z)|`+")
"""What can be the beginning of a mark: cheap, since text has many of these characters."""

_SPACE = re.compile(r"\s*+")
_BRACKET = re.compile(r"[\\\]]")
_FENCE_END = re.compile("```")
_WHOLE_ENDS = ("}", "```", "</parameter>", "</arg_value>")
_FENCE = re.compile(r"```[\w-]{0,16}+\s++")
_FENCE_BEGIN = re.compile(r"`{1,2}\Z|```[\w-]{0,16}+\s*+\Z")
_ELEMENT = re.compile(r"<(?:parameter[\s=]|arg_key>|function=|invoke\s)")
_ELEMENTS: Final = ("<parameter", "<arg_key>", "<function=", "<invoke")
_SEPARATOR_BEGIN = re.compile("function<[|\uff5c]")

BracketReader = Callable[[str, Offered], TextCall | None]
"""Reads ``name[…]``, from the name to the closing bracket."""


class _State(Enum):
    START = auto()
    """All of the reply so far could be one call without a mark."""
    TEXT = auto()
    CALL = auto()
    """Behind the mark that opens a call."""
    AFTER = auto()
    """Behind a call, where marks and space belong to it."""
    OFF = auto()
    """Everything is text from here on."""


class _Form(Enum):
    JSON = auto()
    BRACKETS = auto()
    MARKED = auto()
    """It ends where a closing mark stands."""


class _Call:
    """A call that is being read; places count from the beginning of what is held."""

    __slots__ = ("at", "ended_at", "form", "json_end", "mark", "opening", "optional", "start")

    def __init__(self, opening: Opening, mark: int, *, optional: bool = False) -> None:
        self.opening = opening
        self.mark = mark
        """Where the mark itself stands: space before it may belong to the call."""
        self.optional = optional
        """Whether the mark may as well be the end of the call before."""
        self.form: _Form | None = None
        self.start = 0
        self.at = 0
        """How far its end was looked for."""
        self.ended_at: int | None = None
        self.json_end = JsonEnd(0)

    def begin(self, form: _Form, start: int) -> None:
        """Take note of what the call looks like and where it begins."""
        self.form, self.start, self.at = form, start, start
        self.json_end = JsonEnd(start)

    def shift(self, by: int) -> None:
        """Count from a place that is so much further on."""
        self.opening = replace(self.opening, end=self.opening.end - by)
        self.mark -= by
        self.start -= by
        self.at -= by
        self.json_end.shift(by)
        if self.ended_at is not None:
            self.ended_at -= by


class TagReader:
    """A :class:`ReplyReader` for calls between tags, in the forms in which models write them.

    A call counts only with the exact name of an offered tool. Between the tags it may be JSON with
    the keys ``name`` and ``arguments``, elements for the parameters, or a name with an object
    behind it; the opening tag may name the tool. JSON needs no closing tag. Beside tags, DeepSeek's
    marks and code fences labelled as calls are read, and replies that are nothing but a call.

    Args:
        tools: The tools that were offered.
        read_brackets: Reads the form ``name[…]`` too.
    """

    def __init__(
        self, tools: Sequence[ToolSchema], *, read_brackets: BracketReader | None = None
    ) -> None:
        self._offered: Offered = {tool.name: tool for tool in tools if tool.name.strip()}
        self._read_brackets = read_brackets
        self.notices: list[str] = []
        self._state = _State.START
        self._whole = WholeReply(self._offered)
        self._held = ""
        self._at = 0
        """Up to where what is held was given out."""
        self._from: int = 0
        """Where to look next for a mark."""
        self._before = ""
        """The last character that was given out."""
        self._blank = True
        """Whether nothing was given out yet."""
        self._call = _Call(Opening(0), 0)
        self._inside = False
        """Behind a call: whether no closing mark has come yet."""
        self._calls = 0
        self._failures = 0
        self._pieces: list[ReplyPiece] = []

    def feed(self, text: str, /) -> list[ReplyPiece]:
        """Take the next piece of the reply and return what is known to be text or a call."""
        if not text:
            return []
        # Nearly every piece goes this way.
        if self._state is _State.TEXT and not self._held and "<" not in text and "`" not in text:
            self._before, self._blank = text[-1], False
            return [text]
        if self._state is _State.START:
            if self._whole.feed(text):
                return []
            text = self._whole.text
            self._state = _State.TEXT
        # Through a local name: only so does `+=` not copy what there is.
        held, self._held = self._held, ""
        held += text
        self._held = held
        del held
        return self._taken(final=False)

    def finish(self) -> list[ReplyPiece]:
        """Return what was held back; the reply has ended."""
        if self._state is _State.START:
            calls = self._whole.finish()
            if calls is not None and len(calls) <= MAX_CALLS:
                return list(calls)
            self._held = self._whole.text
            self._state = _State.TEXT
        return self._taken(final=True)

    def _taken(self, *, final: bool) -> list[ReplyPiece]:
        steps: dict[_State, Callable[[bool], bool]] = {
            _State.TEXT: self._in_text,
            _State.CALL: self._in_call,
            _State.AFTER: self._after_call,
            _State.OFF: self._off,
        }
        while self._at < len(self._held) and steps[self._state](final):
            pass
        if self._at:
            self._held = self._held[self._at :]
            self._from -= self._at
            self._call.shift(self._at)
            self._at = 0
        pieces, self._pieces = self._pieces, []
        return _merged(pieces)

    # One step each, which returns whether to go on at once

    def _in_text(self, final: bool) -> bool:
        held, at = self._held, max(self._from, self._at)
        while (mark := _MARK.search(held, at)) is not None:
            at = mark.start()
            opening = opening_at(held, at, held[at - 1] if at > self._at else self._before)
            if isinstance(opening, Opening):
                self._show(self._text_before(at))
                self._call = _Call(opening, at)
                self._state = _State.CALL
                return True
            if opening is not None and not final:
                self._show(self._text_before(at))
                self._from = at
                return False
            at = mark.end()
        self._show(len(held))
        return False

    def _off(self, final: bool) -> bool:
        self._show(len(self._held))
        return False

    def _text_before(self, mark: int) -> int:
        """Return where the text before a mark ends; space at the beginning of a reply is none."""
        return self._at if self._blank and self._held[self._at : mark].isspace() else mark

    def _in_call(self, final: bool) -> bool:
        call = self._call
        if call.form is None:
            found = self._form_at(call.opening.end, fenced=call.opening.fence)
            if found == "unknown" and not final:
                return False
            if found is None or found == "unknown":
                return self._reject(call)
            call.begin(*found)
        if call.form is _Form.JSON:
            return self._in_json(call, final)
        return (
            self._in_brackets(call, final)
            if call.form is _Form.BRACKETS
            else self._in_marks(call, final)
        )

    def _after_call(self, final: bool) -> bool:
        held = self._held
        self._at = at = _after_space(held, self._at)
        if at == len(held):
            return False
        if self._inside and held[at] in "{[":
            self._call = _Call(Opening(at, self._call.opening.name), at)
            self._state = _State.CALL
            return True
        if held[at] == "`" and self._inside:
            return self._after_fence(at, final)
        closing = closing_at(held, at) if held[at] == "<" else None
        if closing == "unknown" and not final:
            return False
        self._inside = False
        if not isinstance(closing, re.Match):
            self._state, self._from = _State.TEXT, at
        elif closing["either"] is None:
            self._at = closing.end()
        else:
            self._call = _Call(Opening(closing.end()), at, optional=True)
            self._state = _State.CALL
        return True

    def _after_fence(self, at: int, final: bool) -> bool:
        """Leave out the end of a code fence around the call that was read."""
        if self._held.startswith("```", at):
            self._at = at + 3
            return True
        if "```".startswith(self._held[at:]) and not final:
            return False
        self._state, self._from = _State.TEXT, at
        return True

    # In what form a call is

    def _form_at(self, at: int, *, fenced: bool) -> "tuple[_Form, int] | Unknown | None":
        """Tell it from the beginning of what stands there; ``None`` if that is no call."""
        start = _after_space(self._held, at, _GAP)
        head = self._held[start : start + _HEAD]
        if not head:
            return "unknown" if start - at < _GAP else None
        if head[0] in "{[":
            return _Form.JSON, start
        if head[0] == "<":
            if _ELEMENT.match(head):
                return _Form.MARKED, start
            return "unknown" if any(each.startswith(head) for each in _ELEMENTS) else None
        if head[0] == "`" and not fenced:
            if _FENCE_BEGIN.match(head):
                return "unknown" if len(head) < _HEAD else None
            fence = _FENCE.match(head)
            return None if fence is None else self._form_at(start + fence.end(), fenced=True)
        return self._named_form(head, start)

    def _named_form(self, head: str, start: int) -> "tuple[_Form, int] | Unknown | None":
        if _SEPARATOR_BEGIN.match(head):
            return _Form.MARKED, start
        bare = head.removeprefix("call:")
        begins = any(each.startswith(bare) for each in self._offered)
        if begins or any(each.startswith(head) for each in ("call:", "function<")):
            return "unknown" if len(head) < _HEAD else None
        name = longest_name(bare, self._offered)
        if name is None:
            return None
        if self._read_brackets is not None and bare.startswith("[", len(name)):
            return _Form.BRACKETS, start + len(head) - len(bare)
        return (_Form.MARKED, start) if bare[len(name)] in "{<\n\r\t " else None

    # A call in one of the forms

    def _in_json(self, call: _Call, final: bool) -> bool:
        limit = call.start + MAX_CALL_CHARACTERS
        end = call.json_end.find(self._held, limit)
        if end is None:
            if call.json_end.too_deep:
                return self._unclosed(call)
            if not final and len(self._held) < limit:
                return False
            return self._open_json(call, min(limit, len(self._held)))
        try:
            value = loose_json(self._held[call.start : end])
        except ValueError:
            mark = closing_in(self._held, call.start, end)
            cut = (end, end) if mark is None else mark.span()
            return self._broken(call, *cut)
        calls = json_calls(value, self._offered, call.opening.name)
        return self._as_text(end, names_in(value)) if calls is None else self._found(calls, end)

    def _open_json(self, call: _Call, limit: int) -> bool:
        """Make what can be made of JSON that has no end, up to the mark that closes it."""
        mark = closing_in(self._held, call.start, limit)
        if mark is None or self._failures >= _MAX_FAILURES:
            return self._unclosed(call)
        self._failures += 1
        return self._broken(call, *mark.span())

    def _broken(self, call: _Call, end: int, after: int) -> bool:
        found = broken_call(self._held[call.start : end], self._offered, call.opening.name)
        return self._as_text(after) if found is None else self._found([found], end)

    def _in_brackets(self, call: _Call, final: bool) -> bool:
        limit = call.start + MAX_CALL_CHARACTERS
        end = call.ended_at = call.ended_at or _bracket_end(call, self._held, limit)
        if end is None:
            return self._unclosed(call) if final or len(self._held) >= limit else False
        ends = self._ends_at(_after_space(self._held, end, _GAP), final=final)
        if ends == "unknown" and not final:
            return False
        read = self._read_brackets
        found = None if read is None else read(self._held[call.start : end], self._offered)
        return (
            self._as_text(end) if found is None or ends is not True else self._found([found], end)
        )

    def _ends_at(self, at: int, *, final: bool) -> bool | Unknown:
        """Tell whether nothing of a call is left here: its closing mark stands, or another opens."""
        held = self._held
        if at == len(held):
            return True if final else "unknown"
        if held[at] == "`":
            return held.startswith("```", at) or (
                "unknown" if "```".startswith(held[at:]) else False
            )
        if held[at] != "<":
            return False
        closing, opening = closing_at(held, at), opening_at(held, at, "")
        if isinstance(closing, re.Match) or isinstance(opening, Opening):
            return True
        return "unknown" if closing or opening else False

    def _in_marks(self, call: _Call, final: bool) -> bool:
        limit = min(len(self._held), call.start + MAX_CALL_CHARACTERS)
        mark = _FENCE_END if call.opening.fence else None
        closing = (
            closing_in(self._held, call.at, limit)
            if mark is None
            else mark.search(self._held, call.at, limit)
        )
        if closing is None:
            call.at = max(call.start, limit - LONGEST_CLOSE)
            if not final and limit - call.start < MAX_CALL_CHARACTERS:
                return False
            body = self._held[call.start : limit]
            whole = body.rstrip().endswith(_WHOLE_ENDS)
            found = marked_call(body, self._offered, call.opening.name) if whole else None
            return self._unclosed(call) if found is None else self._found([found], limit)
        body = self._held[call.start : closing.start()]
        found = marked_call(body, self._offered, call.opening.name)
        if found is None:
            return self._as_text(closing.end())
        return self._found([found], closing.start())

    # What becomes of a call

    def _found(self, calls: Sequence[TextCall], end: int) -> bool:
        if self._calls + len(calls) > MAX_CALLS:
            self._notice(f"the reply makes more than {MAX_CALLS} calls; the others stay text")
            self._state = _State.OFF
            return True
        self._calls += len(calls)
        self._pieces.extend(calls)
        self._at = end
        self._before, self._blank = "\n", False
        self._state, self._inside = _State.AFTER, True
        return True

    def _reject(self, call: _Call) -> bool:
        """Take the mark for text: nothing that could be a call stands behind it."""
        if not call.optional:
            return self._as_text(call.mark + 1)
        self._at = call.opening.end
        self._state = _State.AFTER
        return True

    def _unclosed(self, call: _Call) -> bool:
        """Take the mark for text, since what it opens has no end, and look again behind it."""
        self._failures += 1
        if self._failures > _MAX_FAILURES:
            self._state = _State.OFF
            return True
        return self._as_text(call.mark + 1)

    def _as_text(self, end: int, names: Sequence[str] = ()) -> bool:
        for name in names:
            if name not in self._offered:
                self._notice(f"the reply calls `{name[:64]}`, which was not offered; it stays text")
        self._show(end)
        self._state, self._from = _State.TEXT, end
        return True

    def _show(self, end: int) -> None:
        if end > self._at:
            text = self._held[self._at : end]
            self._pieces.append(text)
            self._before, self._blank = text[-1], False
            self._at = end

    def _notice(self, text: str) -> None:
        if text not in self.notices and len(self.notices) < _MAX_NOTICES:
            self.notices.append(text)


def _bracket_end(call: _Call, text: str, limit: int) -> int | None:
    """Return where the bracket of ``name[…]`` closes; ``call.at`` is how far it was looked for."""
    limit = min(limit, len(text))
    while call.at < limit:
        found = _BRACKET.search(text, call.at, limit)
        if found is None:
            call.at = limit
            return None
        if found[0] == "]":
            return found.end()
        if found.end() >= limit:
            call.at = found.start()
            return None
        call.at = found.end() + 1
    return None


def _after_space(text: str, at: int, most: int | None = None) -> int:
    found = _SPACE.match(text, at, len(text) if most is None else at + most)
    return at if found is None else found.end()


def _merged(pieces: list[ReplyPiece]) -> list[ReplyPiece]:
    """Join texts that follow each other."""
    merged: list[ReplyPiece] = []
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if texts:
            merged.append("".join(texts))
            texts.clear()
        merged.append(piece)
    if texts:
        merged.append("".join(texts))
    return merged
