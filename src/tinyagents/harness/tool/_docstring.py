"""What a docstring tells a model, in Google, NumPy or Sphinx style."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_PARAMETER_SECTIONS = {
    "args", "arguments", "params", "parameters", "other parameters", "keyword args",
    "keyword arguments",
}  # fmt: skip
_HIDDEN_SECTIONS = {"raises", "raise", "warns", "see also", "references", "todo"}
_SHOWN_SECTIONS = {
    "attributes", "example", "examples", "important", "note", "notes", "return", "returns", "tip",
    "warning", "warnings", "yield", "yields",
}  # fmt: skip
_SECTIONS = _PARAMETER_SECTIONS | _HIDDEN_SECTIONS | _SHOWN_SECTIONS
_GOOGLE_HEAD = re.compile(r"([A-Za-z ]+):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?")
_NUMPY_RULE = re.compile(r"-{3,}\s*")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX_FIELD = re.compile(r"[:@](\w+)(?:\s+([^:]+?))?\s*:(?:\s+(.*))?")
_SPHINX_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_SPHINX_HIDDEN = {"type", "rtype", "raises", "raise", "except", "exception", "meta"}
_SPHINX_RETURNS = {"return", "returns"}


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says, in the words of its author."""

    description: str = ""
    """All of it but what it says about single parameters and about errors."""
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    """The description of each parameter that has one."""


@dataclass(slots=True)
class _Section:
    title: str = ""
    head: list[str] = field(default_factory=list[str])
    body: list[str] = field(default_factory=list[str])

    @property
    def indented(self) -> bool:
        """Whether the first line without indent ends it, as in Google style."""
        return len(self.head) == 1


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring, in whatever style it is; one of no known style is all description."""
    kept: list[str] = []
    parameters: dict[str, str] = {}
    for section in _sections(inspect.cleandoc(text or "").splitlines()):
        if section.title in _PARAMETER_SECTIONS:
            parameters.update(_entries(section))
        elif section.title not in _HIDDEN_SECTIONS:
            kept += section.head + section.body
    kept = list(_without_fields(kept, parameters))
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Docstring(description, {name: said for name, said in parameters.items() if said})


def _sections(lines: list[str]) -> Iterator[_Section]:
    """Yield the text before the first section, and the sections."""
    section = _Section()
    position = 0
    while position < len(lines):
        head = _head_at(lines, position)
        if head:
            yield section
            section = _Section(head[0].strip().rstrip(":").lower(), head)
            position += len(head)
            continue
        line = lines[position]
        if section.indented and line.strip() and not line[0].isspace():
            yield section
            section = _Section()
        section.body.append(line)
        position += 1
    yield section


def _head_at(lines: list[str], position: int) -> list[str]:
    """Return the lines of the section head that stands here: none, one, or two in NumPy style."""
    line, *following = lines[position:]
    if following and _NUMPY_RULE.fullmatch(following[0]):
        known = line.strip().lower() in _SECTIONS
        if known or len(line.rstrip()) == len(following[0].rstrip()):
            return [line, following[0]]
    google = _GOOGLE_HEAD.fullmatch(line)
    if google and google[1].lower() in _SECTIONS:
        text = next((each for each in following if each.strip()), "")
        if text[:1].isspace():
            return [line]
    return []


def _entries(section: _Section) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each parameter."""
    indents = [len(line) - len(line.lstrip()) for line in section.body if line.strip()]
    indent = min(indents, default=0)
    pattern = _GOOGLE_ENTRY if section.indented else _NUMPY_ENTRY
    names: list[str] = []
    said: list[str] = []
    for line in section.body:
        entry = pattern.fullmatch(line[indent:].rstrip())
        if entry is None:
            said.append(line)
            continue
        yield from ((name, _joined(said)) for name in names)
        names = [name.strip().lstrip("*") for name in entry[1].split(",")]
        said = [entry[2] or ""] if section.indented else []
    yield from ((name, _joined(said)) for name in names)


def _without_fields(lines: list[str], parameters: dict[str, str]) -> Iterator[str]:
    """Yield the lines without Sphinx fields; what those say goes into ``parameters``."""
    inside = False
    name = ""
    for line in lines:
        found = _SPHINX_FIELD.fullmatch(line)
        kind, of, said = found.groups() if found else ("", "", "")
        if kind in _SPHINX_RETURNS:
            inside = False
            if said:
                yield f"Returns: {said}"
        elif kind in _SPHINX_PARAMETERS | _SPHINX_HIDDEN:
            inside = True
            name = of.split()[-1].lstrip("*") if kind in _SPHINX_PARAMETERS and of else ""
            if name:
                parameters[name] = said or ""
        elif inside and (not line.strip() or line[0].isspace()):
            if name:
                parameters[name] = _joined([parameters[name], line])
        else:
            inside = False
            yield line


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
