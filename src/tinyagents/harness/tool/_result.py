"""What a tool returns, and the one conversion from Python values to what a model reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from copy import copy
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, cast

from pydantic import JsonValue
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    core_schema,
    to_jsonable_python,
)

from ..message import AudioBlock, Block, FileBlock, ImageBlock, JsonBlock, TextBlock
from ..text import clean_json, clean_text, dump_json
from ._context import ToolError

ResultContent: TypeAlias = str | Block | Sequence[Block]

_BLOCKS = (TextBlock, ImageBlock, AudioBlock, FileBlock, JsonBlock)
"""What a tool can hand to a model as it is; other blocks are for models to write."""


class ToolResult:
    """What one call of a tool gives: what the model reads, and what the application keeps.

    A tool returns one where a plain value does not say enough; hooks may change it.

    Args:
        content: What the model reads; an empty text stays one. Left out, the JSON text of
            ``value``.
        value: The structured value behind the content. It is kept as JSON in the transcript, as
            the message's ``artifact``, and no model sees it.
        artifacts: References to what the call has put elsewhere: paths, addresses, ids.
        summary: One line for people who watch the run.
        is_error: The tool could not do it.
        trusted_verbatim: Compaction and trimming leave the message alone.

    Raises:
        ToolError: ``value`` holds something that has no JSON form.
        TypeError: ``content`` holds something else than blocks.
    """

    __slots__ = ("artifacts", "content", "is_error", "summary", "trusted_verbatim", "value")

    def __init__(
        self,
        content: ResultContent | None = None,
        *,
        value: Any = None,
        artifacts: Sequence[str] = (),
        summary: str | None = None,
        is_error: bool = False,
        trusted_verbatim: bool = False,
    ) -> None:
        self.value: JsonValue = None if value is None else _as_artifact(value)
        self.content: list[Block] = _as_content(content, self.value)
        self.artifacts: tuple[str, ...] = tuple(artifacts)
        self.summary: str | None = summary
        self.is_error: bool = is_error
        self.trusted_verbatim: bool = trusted_verbatim

    @classmethod
    def text(cls, text: str, *, value: Any = None, summary: str | None = None) -> "ToolResult":
        """Return a result that is this text."""
        return cls(text, value=value, summary=summary)

    @classmethod
    def error(cls, message: str, *, value: Any = None, summary: str | None = None) -> "ToolResult":
        """Return a result that tells the model what went wrong; it is never empty."""
        message = message if message.strip() else "the tool failed without saying why"
        return cls(message, value=value, summary=summary, is_error=True)

    def joined_text(self) -> str:
        """Return what of the content is text, JSON included, each part on a line of its own."""
        content = self.content
        if len(content) == 1 and content[0].type == "text":
            return content[0].text
        return "\n".join(text for block in content if (text := _text_of(block)) is not None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolResult):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in ToolResult.__slots__)

    def __repr__(self) -> str:
        kind = ".error" if self.is_error else ""
        return f"ToolResult{kind}({', '.join(block.type for block in self.content)})"


def as_result(value: Any) -> ToolResult:
    """Return what a model is given for the value that a tool returned.

    ========================================  ===================================================
    value                                     what the model reads
    ========================================  ===================================================
    ``str``                                   the text as it is, an empty one too
    ``None``                                  ``null``
    numbers and booleans                      their JSON; NaN and the infinities are ``null``
    text, image, audio, file and JSON blocks  the block, or the blocks of a list that holds one
    ``bytes``                                 a file block of ``application/octet-stream``
    what JSON writes as a string              that string without quotes: ``Decimal``, dates,
                                              ``UUID``, ``Path``, an ``Enum`` of strings
    everything else that has a JSON form      compact strict JSON: models, dataclasses, mappings,
                                              sequences, sets; bytes inside as URL-safe base64
    ========================================  ===================================================

    Raises:
        ToolError: The value has no JSON form; the message names the type.
    """
    if isinstance(value, ToolResult):
        return value
    return ToolResult(_content_of(value))


def own_result(value: Any) -> ToolResult:
    """Return what :func:`as_result` does, and of a tool's own result a copy for hooks to change."""
    result = as_result(value)
    if result is value:
        result = copy(result)
        result.content = list(result.content)
    return result


def cut_result(
    result: ToolResult, limit: int, *, unit: Literal["characters", "bytes"] = "characters"
) -> ToolResult:
    """Return the result with no more text than ``limit`` and a marker; itself if it has no more.

    The marker stands where the text is cut, and states how long all of it was. Images, audio and
    files stay.

    Args:
        result: It is not changed.
        limit: The most characters, or bytes of UTF-8; a character is never cut in two.
        unit: Which of them.
    """
    size, head = (len, _first_characters) if unit == "characters" else (_bytes_of, _first_bytes)
    texts = [_text_of(block) for block in result.content]
    total = sum(size(text) for text in texts if text is not None)
    if total <= limit:
        return result
    left: int | None = limit
    content: list[Block] = []
    for block, text in zip(result.content, texts, strict=True):
        if text is None:
            content.append(block)
        elif left is not None and (taken := size(text)) <= left:
            content.append(block)
            left -= taken
        elif left is not None:
            marker = f"[cut: the first {limit} of {total} {unit}]"
            kept = head(text, left)
            content.append(TextBlock(text=f"{kept}\n{marker}" if kept else marker))
            left = None
    shorter = copy(result)
    shorter.content = content
    return shorter


def _first_characters(text: str, count: int) -> str:
    return text[:count]


def _first_bytes(text: str, count: int) -> str:
    return text[:count].encode()[:count].decode(errors="ignore")


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _text_of(block: Block) -> str | None:
    match block:
        case TextBlock():
            return block.text
        case JsonBlock():
            return dump_json(block.value)
        case _:
            return None


def _as_content(content: ResultContent | None, value: JsonValue) -> list[Block]:
    if type(content) is str:
        return [TextBlock(text=content)]
    if isinstance(content, str):
        return [TextBlock(text=str.__str__(content))]
    if content is None:
        return [TextBlock(text=_json_text(value))]
    blocks: list[Block]
    blocks = [content] if isinstance(content, _BLOCKS) else list(cast("Sequence[Block]", content))
    for block in blocks:
        if not isinstance(cast("object", block), _BLOCKS):
            raise TypeError(
                f"the content of a `ToolResult` is a text or a list of blocks, and holds a "
                f"`{type(block).__name__}`: give other values as `value=`"
            )
    return blocks


def _content_of(value: Any) -> ResultContent:
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    if isinstance(value, dict | list):
        try:
            return dump_json(value)
        except (TypeError, ValueError):
            pass  # there is something in it that JSON itself has no form for
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        if any(isinstance(item, _BLOCKS) for item in items):
            return [block for item in items for block in as_result(item).content]
    if isinstance(value, bytes | bytearray | memoryview):
        return FileBlock.from_bytes(bytes(cast("bytes", value)), "application/octet-stream")
    return _json_text(_as_json(value))


def _json_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else dump_json(value)


def _as_json(value: Any) -> JsonValue:
    """Return the JSON form of the value as Python values; NaN is replaced when it is written."""
    try:
        return cast("JsonValue", _jsonable(value))
    except UnicodeEncodeError:
        pass
    except PydanticSerializationError as exc:
        if "UnicodeEncodeError" not in str(exc):
            raise _no_json_form(value, exc) from exc
    except (ValueError, RecursionError) as exc:
        raise _no_json_form(value, exc) from exc
    # Lone surrogates: models and dataclasses become plain containers whose texts can be cleaned.
    return cast("JsonValue", _jsonable(_cleaned(_TO_PYTHON(value))))


def _jsonable(value: Any) -> Any:
    return to_jsonable_python(
        value, bytes_mode="base64", inf_nan_mode="null", fallback=_from_other, by_alias=True
    )


def _from_other(value: Any) -> Any:
    """Return what pydantic knows instead of what it does not."""
    match value:
        case PurePath():
            return str(value)
        case Mapping():
            return dict(cast("Any", value))
        case Sequence() | Set():
            return list(cast("Any", value))
        case _:
            name = f"{type(value).__module__}.{type(value).__qualname__}"
            raise ToolError(
                f"the tool returned a value of type `{name.removeprefix('builtins.')}`, which has "
                "no JSON form: return text, numbers, lists, mappings, dataclasses or models"
            )


def _as_artifact(value: Any) -> JsonValue:
    try:
        return clean_json(_as_json(value))
    except ValueError as exc:
        raise _no_json_form(value, exc) from exc


def _no_json_form(value: Any, exc: Exception) -> ToolError:
    return ToolError(f"the tool returned a `{type(value).__qualname__}` without a JSON form: {exc}")


_TO_PYTHON: Callable[[Any], Any] = SchemaSerializer(core_schema.any_schema()).to_python


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, dict):
        items = cast("Iterable[Any]", value.items())
        return {_cleaned(key): _cleaned(item) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_cleaned(item) for item in cast("Iterable[Any]", value)]
    return value
