"""JSON as some models write it: keys without quotes, doubled braces, the template's own quotes."""

import re

from pydantic import JsonValue

from ..model import first_object
from ..text import dump_json, parse_json

_TOKENS = re.compile(
    # The first is `<|"|>` for both quotes of a string, with real ones around or without.
    r'"?<\|"\|>(?P<leaked>.*?)<\|"\|>"?'
    # A string that is never closed goes to the end, so that each character is looked at once.
    r'|"(?:[^"\\]|\\.?)*+"?'
    r"|(?P<before>[{,]\s*+)(?P<key>[A-Za-z_$][\w$-]*+)(?=\s*+:)",
    re.DOTALL,
)
_REDUNDANT = re.compile(r"\A(?:\{\s*+){1,16}(?=\{)")


def relaxed_object(text: str) -> dict[str, JsonValue] | None:
    """Return the object that a text begins with in relaxed JSON; ``None`` if there is none.

    Keys may lack their quotes, ``<|"|>`` may stand for the quotes of a string, and up to 16 braces
    more than one around the object. What such a string holds is taken as the inside of a JSON
    string where it is one, and as it is where it is none.
    """
    found = relaxed_parts(text)
    return None if found is None else found[0]


def relaxed_parts(text: str) -> tuple[dict[str, JsonValue], str] | None:
    """Return what :func:`relaxed_object` does, and what follows the object and its braces."""
    if not text.startswith("{"):
        return None
    strict = _TOKENS.sub(_in_strict_json, text)
    peeled = _REDUNDANT.sub("", strict)
    found = first_object(peeled)
    if found is None or peeled == strict:
        return found
    value, rest = found
    # Braces around more than the object meant something else.
    return None if rest.strip("} \t\r\n") else (value, "")


def _in_strict_json(token: re.Match[str]) -> str:
    if (leaked := token["leaked"]) is not None:
        quoted = f'"{leaked}"'
        try:
            parse_json(quoted)
        except ValueError:
            return dump_json(leaked)
        return quoted
    return f'{token["before"]}"{token["key"]}"' if token["key"] else token[0]
