"""What a page of HTML says, as text that a model reads.

One pass from front to back that never looks at a character twice: whatever is left open (a tag, a
comment, a script) takes the rest of the page, as it does in a browser, so that no page is slow to read.
"""

import re
from dataclasses import dataclass
from html import unescape

__all__ = ("HtmlText", "html_to_text", "looks_like_html")

_NO_TEXT = frozenset(
    {"iframe", "noscript", "object", "script", "style", "svg", "template", "title"}
)
"""Elements that are skipped to their end tag, whatever is in them."""
_PARAGRAPHS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "center",
        "dl",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "ul",
    ]
)
_LINES = frozenset(
    [
        "br",
        "caption",
        "dd",
        "details",
        "div",
        "dt",
        "figcaption",
        "hr",
        "li",
        "option",
        "summary",
        "tr",
    ]
)
_FIRST = (
    frozenset(["a", "b", "body", "font", "head", "html", "i", "link", "meta", "span", "strong"])
    | _PARAGRAPHS
    | _LINES
)
"""What a page, or a part of one, may begin with."""
_HEADING = re.compile("h([1-6])")
_SPACE = re.compile(r"\s+")
_MARKUP = re.compile("<(?:[!?]|/?[a-zA-Z])")
"""Where markup begins; any other ``<`` is one."""
_NAME = re.compile(r"[^\s/>]{1,40}")
_STOP = re.compile("[>\"']")
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]{1,40})\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_DATA_URI = re.compile(r"data:([\w.+/-]{0,100})(?:;[\w=-]{1,40})?;base64,[A-Za-z0-9+/=]{32,}")
_OPENING = re.compile(
    r"(?:\s{0,1000}<!--[^-]{0,1000}-->)?\s{0,1000}<(!doctype\s+html|[a-z][a-z0-9]*)", re.I
)
_LONGEST_TAG = 4_096
_LONGEST_LINK = 500
_NOT_FOLLOWED = ("#", "data:", "javascript:", "mailto:", "vbscript:")


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlText:
    """A page without its markup."""

    title: str
    text: str
    """Paragraphs with an empty line between, ``#`` before headings, ``-`` before list items,
    ``[text](address)`` for links, ``|`` between cells."""


def looks_like_html(text: str) -> bool:
    """Whether a text begins as a page of HTML, or a part of one, does.

    Code and comparisons, which have angle brackets too, do not.
    """
    found = _OPENING.match(text.removeprefix("\ufeff"))
    if found is None:
        return False
    name = found[1].lower()
    return name.startswith("!") or name in _FIRST or name in _NO_TEXT - {"svg", "title"}


def html_to_text(html: str) -> HtmlText:
    """Return what a page says, without scripts, styles, comments and tags.

    Drawings become ``[svg]``, and base64 data ``[data: its type]``.
    """
    page = _Page()
    position, end = 0, len(html)
    while position < end:
        markup = _MARKUP.search(html, position)
        start = end if markup is None else markup.start()
        if start > position:
            page.write(_unescaped(html[position:start]))
        position = _after_markup(html, start, page) if start < end else end
    return HtmlText(title=page.title, text=_DATA_URI.sub(_data_marker, page.text()))


def _after_markup(html: str, start: int, page: "_Page") -> int:
    """Take in the markup at ``start`` and return where it ends."""
    if html.startswith("<!--", start):
        return _after(html, "-->", start + 2)
    if html.startswith(("<!", "<?"), start):
        return _after(html, ">", start)
    closing = html.startswith("</", start)
    name = _NAME.match(html, start + 1 + closing)
    assert name is not None
    tag = name[0].lower()
    end = _tag_end(html, name.end())
    if closing:
        page.close(tag)
        return end
    if tag not in _NO_TEXT:
        page.open(tag, html[name.end() : min(end, name.end() + _LONGEST_TAG)])
        return end
    if html.startswith("/>", end - 2) and tag == "svg":
        page.skip(tag, "")
        return end
    # `re.ASCII`: otherwise a long s is an s.
    closed = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE | re.ASCII).search(html, end)
    if closed is None:
        return len(html)
    page.skip(tag, html[end : closed.start()] if tag == "title" else "")
    return _tag_end(html, closed.end())


def _after(html: str, what: str, start: int) -> int:
    found = html.find(what, start)
    return len(html) if found < 0 else found + len(what)


def _tag_end(html: str, position: int) -> int:
    """Return where a tag ends; a ``>`` inside a quoted value does not end it."""
    while (stop := _STOP.search(html, position)) is not None:
        if stop[0] == ">":
            return stop.end()
        position, before = stop.end(), stop.start()
        while before > 0 and html[before - 1].isspace():
            before -= 1
        if html[before - 1] == "=":  # elsewhere a quote is a character like any other
            position = _after(html, stop[0], position)
    return len(html)


class _Page:
    """The text so far."""

    def __init__(self) -> None:
        self.title = ""
        self._parts: list[str] = []
        self._breaks = 0
        """Line ends that come before the next text."""
        self._at_start = True
        self._space = False
        self._pre = 0
        self._cells = 0
        self._link: tuple[int, str] | None = None
        """Of an open link, where its text begins and where it leads."""

    def write(self, text: str) -> None:
        if self._pre:
            self._put(text)
            return
        words = _SPACE.sub(" ", text)
        if words.startswith(" ") and not self._at_start:
            self._space = True
        if core := words.strip(" "):
            self._put(core)
            self._space = words.endswith(" ")

    def open(self, tag: str, attributes: str) -> None:
        self._break_for(tag)
        match tag:
            case "a":
                self._close_link()  # links do not nest
                link = _attribute(attributes, "href")
                follows = link and not link.lower().startswith(_NOT_FOLLOWED)
                if follows and len(link) <= _LONGEST_LINK:
                    self._link = len(self._parts), link
            case "img":
                if alt := _attribute(attributes, "alt"):
                    self.write(f" [image: {alt}] ")
            case "pre":
                self._pre += 1
            case "li":
                self._put("- ", glue=True)
            case "tr":
                self._cells = 0
            case "td" | "th":
                if self._cells:
                    self._put(" | ", glue=True)
                self._cells += 1
            case "hr":
                self._put("---")
                self._break(1)
            case _:
                if heading := _HEADING.fullmatch(tag):
                    self._put("#" * int(heading[1]) + " ", glue=True)

    def close(self, tag: str) -> None:
        if tag == "a":
            self._close_link()
        if tag == "pre":
            self._pre = max(0, self._pre - 1)
        if tag != "br":
            self._break_for(tag)

    def skip(self, tag: str, content: str) -> None:
        if tag == "svg":
            self.write(" [svg] ")
        elif tag == "title" and not self.title:
            self.title = _SPACE.sub(" ", _unescaped(content)).strip()

    def text(self) -> str:
        lines = (line.rstrip() for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def _break_for(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._break(2)
        elif tag in _LINES:
            self._break(1)

    def _break(self, lines: int) -> None:
        if self._parts:
            self._breaks = max(self._breaks, lines)
        self._space, self._at_start = False, True

    def _put(self, text: str, *, glue: bool = False) -> None:
        """Append a text; with ``glue`` the next one follows without a space."""
        if self._breaks:
            self._parts.append("\n" * self._breaks)
        elif self._space:
            self._parts.append(" ")
        self._parts.append(text)
        self._breaks, self._space, self._at_start = 0, False, glue

    def _close_link(self) -> None:
        if self._link is None:
            return
        (start, link), self._link = self._link, None
        said = "".join(self._parts[start:])
        words = said.strip()
        if words and "\n" not in words:
            self._parts[start:] = [said.replace(words, f"[{words}]({link})", 1)]


def _attribute(attributes: str, name: str) -> str:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == name:
            return _SPACE.sub(" ", _unescaped(found[2] or found[3] or found[4] or "")).strip()
    return ""


def _unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a character reference with more digits than `int` takes
        return text


def _data_marker(found: re.Match[str]) -> str:
    return f"[data: {found[1] or 'no type'}]"
