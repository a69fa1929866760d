"""Text and JSON made safe at the border.

Models, tools and users hand over text that no encoder and no database accepts: lone surrogates
(half of a character that a stream cut in two) and NUL. Every text that enters a message goes
through here once: a surrogate pair is joined, a lone surrogate and a NUL become U+FFFD. What is
inside is then valid UTF-8 that JSON, PostgreSQL and SQLite all store.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import orjson
from pydantic import JsonValue

__all__ = (
    "MAX_JSON_DEPTH",
    "JsonObject",
    "clean_json",
    "clean_text",
    "copied_json",
    "defused",
    "dump_json",
    "encode_json",
    "error_text",
    "json_spans",
    "map_texts",
    "parse_json",
    "unfenced",
    "window",
)

JsonObject: TypeAlias = dict[str, JsonValue]
"""A decoded JSON object."""

MAX_JSON_DEPTH = 128
"""How deep a value may be nested. pydantic reads no JSON deeper than 200, its wrapping included."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_BYTES: tuple[type[object], ...] = (bytes, bytearray, memoryview)
_MAYBE_OVER_64_BITS = b"0" * 19
_FENCE = "```"
_FENCE_LABEL = re.compile(r"[\w-]*\s*")
_DECODER = json.JSONDecoder()


def clean_text(text: str) -> str:
    """Return ``text`` with surrogate pairs joined, and lone surrogates and NUL as U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():  # most are: do not encode them to find out
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def defused(text: str, marker: str) -> str:
    """Return a text of others in which nothing looks like one of our own ``[markers]``."""
    return text.replace(marker, f"[ {marker.removeprefix('[')}")


def window(text: str, start: int, size: int) -> str:
    """Return so many characters of a text from ``start`` on, and a line that says if there are more."""
    if start == 0 and len(text) <= size:
        return text
    if start >= len(text):
        return f"[there is nothing at {start}: the text has {len(text)} characters]"
    end = min(start + size, len(text))
    more = f"; go on with start={end}" if end < len(text) else ""
    return f"{text[start:end]}\n[characters {start} to {end} of {len(text)}{more}]"


def error_text(error: BaseException) -> str:
    """Return what an exception says, made safe; nothing where it says nothing or cannot."""
    try:
        return clean_text(str(error))
    except Exception:  # noqa: BLE001 - an application's `__str__` may do anything
        return ""


def clean_json(value: Any) -> JsonValue:
    """Return a copy of a JSON value with every text in it, keys too, made safe.

    Tuples and other sequences become lists, mappings become dicts, and keys that are no strings
    become what ``json`` writes for them. NaN and the infinities, which JSON has no form for,
    become ``None``.

    Raises:
        TypeError: There is something in it that JSON has no form for.
        ValueError: It is nested deeper than :data:`MAX_JSON_DEPTH`, or within itself.
    """
    return _clean(value, 0)


def copied_json(value: Any) -> Any:
    """Return a copy of a JSON value that shares no list and no object with it."""
    if value.__class__ is dict:
        return {key: copied_json(item) for key, item in value.items()}
    if value.__class__ is list:
        return [copied_json(item) for item in value]
    return value


def map_texts(value: Any, change: Callable[[str], str], *, numbers: bool = False) -> Any:
    """Return a value with each string in its lists, tuples and objects changed, keys not.

    The value itself where nothing has changed, and so for what is in it.

    Args:
        value: Any value; what has another type stays.
        change: Returns the new text.
        numbers: Whether numbers count as the text of their digits; one that changes becomes a text.
    """
    if isinstance(value, str):
        new = change(value)
        return value if new == value else new
    if isinstance(value, list | tuple):
        given = cast("Sequence[Any]", value)
        items = [map_texts(item, change, numbers=numbers) for item in given]
        if all(new is old for new, old in zip(items, given, strict=True)):
            return given
        return items if isinstance(value, list) else tuple(items)
    if numbers and value.__class__ in (int, float):
        digits = repr(value)
        new = change(digits)
        return value if new == digits else new
    if isinstance(value, Mapping):
        given_pairs = cast("Mapping[Any, Any]", cast("object", value))
        pairs = {key: map_texts(item, change, numbers=numbers) for key, item in given_pairs.items()}
        return pairs if any(pairs[key] is not given_pairs[key] for key in pairs) else given_pairs
    return value


def parse_json(text: str | bytes) -> JsonValue:
    """Decode strict JSON (no NaN) in UTF-8, with its texts made safe.

    Integers of any size are exact. Of a key that repeats, the last value stands.

    Raises:
        ValueError: The text is not JSON; the message says where.
    """
    data = text if isinstance(text, bytes) else _encode(text)
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError:
        # orjson refuses the escapes of lone surrogates, which models do send.
        if b"\\u" not in data:
            raise
        return clean_json(_parse_slowly(data))
    if _MAYBE_OVER_64_BITS in data.translate(_DIGITS_AS_ZERO):
        # orjson makes such an integer a float.
        return clean_json(_parse_slowly(data))
    return clean_json(value) if b"\\u0000" in data else value


def json_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each of the JSON values that a text begins with starts and ends.

    They may stand one right after another. The first thing that is no JSON ends it.
    """
    start = _after_space(text, 0)
    while start < len(text):
        try:
            end = _DECODER.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            return
        yield start, end
        start = _after_space(text, end)


def unfenced(text: str) -> str:
    """Return the text without space around it, nor a Markdown code fence around all of it."""
    text = text.strip()
    label, line_end, inside = text.removeprefix(_FENCE).partition("\n")
    if not (text.startswith(_FENCE) and line_end and inside.endswith(_FENCE)):
        return text
    return inside.removesuffix(_FENCE).strip() if _FENCE_LABEL.fullmatch(label) else text


def dump_json(value: Any, *, sort_keys: bool = False) -> str:
    """Return what :func:`encode_json` does, as text.

    Raises:
        TypeError: The value holds something that JSON has no form for.
        ValueError: It is nested too deep, or within itself.
    """
    return encode_json(value, sort_keys=sort_keys).decode()


def encode_json(value: Any, *, sort_keys: bool = False) -> bytes:
    """Encode as compact strict JSON; integers of any size are kept exact, NaN becomes ``null``.

    Raises:
        TypeError: The value holds something that JSON has no form for.
        ValueError: It is nested too deep, or within itself.
    """
    options = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    if sort_keys:
        options |= orjson.OPT_SORT_KEYS
    try:
        return orjson.dumps(value, option=options)
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        # Integers over 64 bits, lone surrogates and keys that are no strings are beyond orjson.
        return json.dumps(
            clean_json(value), ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys
        ).encode()


def _clean(value: Any, depth: int) -> JsonValue:
    # Exact types first: `isinstance` with an abstract class costs more than all of the rest.
    kind = value.__class__
    cleaned: JsonValue
    if kind is str:
        cleaned = clean_text(value)
    elif kind is int or kind is bool or value is None:
        cleaned = value
    elif kind is float:
        cleaned = value if math.isfinite(value) else None
    elif depth >= MAX_JSON_DEPTH and isinstance(value, Mapping | Sequence):
        raise ValueError(f"the JSON value is nested deeper than {MAX_JSON_DEPTH} levels")
    elif kind is dict:
        depth += 1
        cleaned = {
            clean_text(key) if key.__class__ is str else _clean_key(key): _clean(item, depth)
            for key, item in value.items()
        }
    elif kind is list:
        depth += 1
        cleaned = [_clean(item, depth) for item in value]
    else:
        cleaned = _clean_other(value, depth)
    return cleaned


def _clean_other(value: object, depth: int) -> JsonValue:
    kind = type(value).__name__
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _clean(float(value), depth)
    if isinstance(value, Mapping):
        return _clean(dict(cast("Mapping[object, object]", value)), depth)
    # Bytes are a sequence of integers to `Sequence`, but to nobody else.
    if isinstance(value, Sequence) and not isinstance(value, _BYTES):
        return _clean(list(cast("Sequence[object]", value)), depth)
    raise TypeError(f"`{kind}` is not a JSON value")


def _clean_key(key: object) -> str:
    if isinstance(key, str):
        return clean_text(str.__str__(key))
    if key is None or isinstance(key, int | float):
        return json.dumps(key)
    raise TypeError(f"`{type(key).__name__}` is not a key of a JSON object")


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean_text(text).encode()


def _parse_slowly(data: bytes) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant, parse_float=_parse_float)
    except RecursionError:
        raise ValueError("the JSON text is nested too deep") from None


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a number")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
