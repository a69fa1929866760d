"""Arguments of tool calls that are almost JSON.

Only what is not an object as it stands is touched, so valid arguments that happen to hold one of
the markers below arrive unchanged. Nothing is guessed: a repair removes what the model's chat
template leaked or what stands behind the first complete object, writes the quotes that are missing,
decodes once what was encoded twice, and never invents a value.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from ..message import InvalidArguments
from ..model import first_object, parse_arguments
from ..text import parse_json, unfenced
from ._relaxed import relaxed_object

_TEMPLATE_MARKERS = re.compile(
    r"<\|[A-Za-z0-9_ \u2581]{1,40}\|>"  # <|im_end|>, <|tool_call_end|>, …
    r"|<\uff5c[^\uff5c<>]{1,40}\uff5c>"  # DeepSeek writes its markers with full-width bars
    r"|</?(?:tool_call|tool_calls|function|function_call|arg_value|s)>"
    r"|\[/?(?:TOOL_CALLS|TOOL_CALL|INST)\]"
)


def repair_arguments(raw: str) -> tuple[dict[str, JsonValue], InvalidArguments | None]:
    """Decode a call's arguments, repairing them when they are no object as they stand.

    Tried in this order, the first success wins: the text itself; without the markers of chat
    templates and a code fence around it; the object that it says as a JSON string; the first complete
    object in what is left; the same as relaxed JSON, as :func:`relaxed_object` reads it.

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
    if (inner := _encoded_twice(stripped)) is not None:
        return inner, None
    if (first := first_object(stripped)) is not None:
        return first[0], None
    relaxed = relaxed_object(stripped)
    return (relaxed, None) if relaxed is not None else ({}, invalid)


def _encoded_twice(text: str) -> dict[str, JsonValue] | None:
    """Return the object that a JSON string says; ``None`` for all that is no such string."""
    if not text.startswith('"'):
        return None
    try:
        inner = parse_json(text)
    except ValueError:
        return None
    if not isinstance(inner, str) or not inner.lstrip().startswith("{"):
        return None  # a blank one is a text, not no arguments
    arguments, invalid = parse_arguments(inner)
    return arguments if invalid is None else None


def strip_template_markers(text: str) -> str:
    """Return the text without chat-template markers outside of JSON strings, and without a fence."""
    text = unfenced(text)
    kept: list[str] = []
    position = 0
    for marker in _markers_outside_strings(text):
        kept.append(text[position : marker.start()])
        position = marker.end()
    kept.append(text[position:])
    return "".join(kept).strip()


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
