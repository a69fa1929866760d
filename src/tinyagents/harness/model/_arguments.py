"""What the text of a call's arguments says."""

from pydantic import JsonValue

from ..message import InvalidArguments
from ..text import MAX_JSON_DEPTH, clean_json, json_spans, parse_json

_KINDS = {
    "list": "an array",
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "a boolean",
}


def parse_arguments(raw: str) -> tuple[dict[str, JsonValue], InvalidArguments | None]:
    """Decode a call's arguments. Blank and ``null`` mean none; all but an object is invalid."""
    text = raw.strip()
    if not text or text in ("{}", "null"):
        return {}, None
    try:
        value = parse_json(text)
        if len(text) > 2 * MAX_JSON_DEPTH and text.count("{") + text.count("[") > MAX_JSON_DEPTH:
            clean_json(value)  # refuses what is nested too deep
    except ValueError as exc:
        return {}, InvalidArguments(raw=raw, reason=f"the arguments are not JSON: {exc}")
    if not isinstance(value, dict):
        kind = type(value).__name__
        return {}, InvalidArguments(
            raw=raw,
            reason=f"the arguments must be a JSON object, not {_KINDS.get(kind, kind)}",
        )
    return value, None


def parse_repeated(raw: str) -> tuple[dict[str, JsonValue], InvalidArguments | None]:
    """Decode a call's arguments, which may come several times over, and then count once.

    Some gateways send the whole arguments once more after the pieces.
    """
    arguments, invalid = parse_arguments(raw)
    if invalid is None:
        return arguments, None
    found: dict[str, JsonValue] | None = None
    end = 0
    for start, end in json_spans(raw):
        value, wrong = parse_arguments(raw[start:end])
        if wrong is not None or (found is not None and value != found):
            return {}, invalid
        found = value
    return (found, None) if found is not None and not raw[end:].strip() else ({}, invalid)


def first_object(text: str) -> tuple[dict[str, JsonValue], str] | None:
    """Return the object that the text begins with and what follows it; ``None`` without one.

    Two objects that a stream has glued together, or a stray bracket behind one, are such texts. An
    empty object with another behind it is a placeholder, and the other one counts.
    """
    found: tuple[dict[str, JsonValue], str] | None = None
    for start, end in json_spans(text):
        if text[start] != "{":
            break
        arguments, invalid = parse_arguments(text[start:end])
        if invalid is not None:
            break
        found = arguments, text[end:]
        if arguments:
            break
    return found
