"""Arguments of tool calls that are almost JSON.

Only what is not an object as it stands is touched, so valid arguments that happen to hold one of
the markers below arrive unchanged. Nothing is guessed: a repair removes what the model's chat
template leaked or what stands behind the first complete object, and never invents a value.
"""

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

from ..message import InvalidArguments
from ..model import parse_arguments

_TEMPLATE_MARKERS = re.compile(
    r"<\|[A-Za-z0-9_ \u2581]{1,40}\|>"  # <|im_end|>, <|tool_call_end|>, …
    r"|<\uff5c[^\uff5c<>]{1,40}\uff5c>"  # DeepSeek writes its markers with full-width bars
    r"|</?(?:tool_call|tool_calls|function|function_call|arg_value|s)>"
    r"|\[/?(?:TOOL_CALLS|TOOL_CALL|INST)\]"
)
_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_decoder = json.JSONDecoder()


def repair_arguments(raw: str) -> tuple[dict[str, JsonValue], InvalidArguments | None]:
    """Decode a call's arguments, repairing them when they are no object as they stand.

    Tried in this order, the first success wins: the text itself; without the markers of chat
    templates and code fences around it; the first complete object in what is left.

    Returns:
        The arguments, and ``None`` or what is wrong with the text as it came in.
    """
    arguments, invalid = parse_arguments(raw)
    if invalid is None:
        return arguments, None
    stripped = strip_template_markers(raw)
    if stripped != raw:
        # Markers alone are no arguments, and not the same as none.
        arguments, still_invalid = parse_arguments(stripped)
        if still_invalid is None and stripped:
            return arguments, None
    first = first_object(stripped)
    return (first, None) if first is not None else ({}, invalid)


def strip_template_markers(text: str) -> str:
    """Return the text without chat-template markers outside of JSON strings, and without a fence."""
    fenced = _FENCE.match(text)
    text = fenced[1] if fenced else text
    kept: list[str] = []
    position = 0
    for marker in _markers_outside_strings(text):
        kept.append(text[position : marker.start()])
        position = marker.end()
    kept.append(text[position:])
    return "".join(kept).strip()


def first_object(text: str) -> dict[str, JsonValue] | None:
    """Return the object that the text begins with, whatever follows it; ``None`` if there is none.

    Two objects that a stream has glued together, or a stray bracket behind one, are such texts. An
    empty object with another behind it is a placeholder, and the other one counts.
    """
    found: dict[str, JsonValue] | None = None
    text = text.lstrip()
    while not found and text.startswith("{"):
        try:
            _, end = _decoder.raw_decode(text)
        except (ValueError, RecursionError):
            break
        arguments, invalid = parse_arguments(text[:end])
        if invalid is not None:
            break
        found = arguments
        text = text[end:].lstrip()
    return found


def _markers_outside_strings(text: str) -> Iterator[re.Match[str]]:
    """Yield the markers that no JSON string holds, in one pass: a model may repeat one for ever."""
    inside = escaped = False
    looked_to = 0
    for marker in _TEMPLATE_MARKERS.finditer(text):
        for character in text[looked_to : marker.start()]:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = inside
            elif character == '"':
                inside = not inside
        looked_to = marker.start()
        if not inside:
            yield marker
