"""The syntax of templates: text with ``{{name}}`` in it, and nothing that could be executed."""

import re
from dataclasses import dataclass

from ..errors import PromptError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Variable:
    """A place that a value fills."""

    name: str


def is_name(text: object) -> bool:
    """Whether a variable may be called so."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def parse(text: str, template: str) -> list[str | Variable]:
    r"""Return the literal texts and the variables of a template, in order.

    ``{{name}}`` is a variable, with spaces around the name or without; of more than two braces in
    front of a name the last two open it. ``\{{`` is two braces, and backslashes in front of them
    are written twice. Everything else stands for itself, ``}}`` and single braces too.

    Args:
        text: The template.
        template: What errors call it.

    Raises:
        PromptError: A variable is not closed, or what stands in the braces is no name.
    """
    pieces: list[str | Variable] = []
    literal: list[str] = []
    at = 0
    while (opening := text.find("{{", at)) >= 0:
        before = text[at:opening]
        unslashed = before.rstrip("\\")
        slashes = len(before) - len(unslashed)
        literal.append(unslashed + "\\" * (slashes // 2))
        if slashes % 2:
            literal.append("{{")
            at = opening + 2
            continue
        while text.startswith("{", opening + 2):
            literal.append("{")
            opening += 1
        name, at = _name_at(text, opening, template)
        pieces += ("".join(literal), Variable(name))
        literal = []
    pieces.append("".join(literal) + text[at:])
    return [piece for piece in pieces if piece]


def escape(text: str) -> str:
    """Return a template that renders to ``text``."""
    escaped: list[str] = []
    at = 0
    while (opening := text.find("{{", at)) >= 0:
        before = text[at:opening]
        slashes = len(before) - len(before.rstrip("\\"))
        escaped += (before, "\\" * (slashes + 1), "{{")
        at = opening + 2
    return "".join(escaped) + text[at:]


def _name_at(text: str, opening: int, template: str) -> tuple[str, int]:
    """Return the name in the braces that open here, and where the text goes on behind them."""
    closing = text.find("}}", opening + 2)
    if closing < 0:
        raise PromptError(
            f"the template `{template}`: `{{{{` at character {opening} is not closed with `}}}}`; "
            "literal braces are written `\\{{`",
            template=template,
            reason="syntax",
        )
    name = text[opening + 2 : closing].strip()
    if not is_name(name):
        raise PromptError(
            f"the template `{template}`: {name[:_SHOWN]!r} at character {opening} is no name of a "
            "variable, which is a letter from A to Z, then such letters, digits and `_`; literal braces "
            "are written `\\{{`",
            template=template,
            variable=name[:_SHOWN],
            reason="syntax",
        )
    return name, closing + 2
