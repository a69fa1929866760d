"""The blocks that messages are made of."""

import base64
import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from pydantic import (
    BaseModel,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from ..text import JsonObject, clean_json, clean_text


def _clean_str(value: Any) -> str:
    if value.__class__ is str:
        return value if value.isascii() and "\0" not in value else clean_text(value)
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    raise ValueError(f"a string is needed, got `{type(value).__name__}`")


def _clean_value(value: object) -> JsonValue:
    try:
        return clean_json(value)
    except TypeError as exc:
        raise ValueError(str(exc)) from exc


def _clean_object(value: Any) -> JsonObject:
    if value.__class__ is dict and _is_flat_and_clean(value):
        return dict(cast("JsonObject", value))
    if not isinstance(value, Mapping):
        raise ValueError(f"a JSON object is needed, got `{type(value).__name__}`")
    return cast("JsonObject", _clean_value(cast("Mapping[object, object]", value)))


def _is_flat_and_clean(value: dict[Any, Any]) -> bool:
    """Whether nothing in an object needs more than a look: most arguments are a few scalars."""
    for key, item in value.items():
        if key.__class__ is not str or not key.isascii() or "\0" in key:
            return False
        kind = item.__class__
        if kind is str:
            if not item.isascii() or "\0" in item:
                return False
        elif kind is not int and kind is not bool and item is not None:
            return False
    return True


def _clean_optional_object(value: object) -> JsonObject | None:
    return None if value is None else _clean_object(value)


class _CleanedBy:
    """Validates a field with one function alone, where pydantic would walk the value again."""

    def __init__(self, clean: Callable[[Any], JsonValue], json_schema: JsonObject) -> None:
        self._clean = clean
        self._json_schema = json_schema

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._clean)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self._json_schema)


def unset(value: object) -> bool:
    """Leave out of the JSON form what is ``None``."""
    return value is None


Text: TypeAlias = Annotated[str, _CleanedBy(_clean_str, {"type": "string"})]
"""A string that is valid UTF-8 and free of NUL."""

OptionalText: TypeAlias = Annotated[Text | None, Field(exclude_if=unset)]
Json: TypeAlias = Annotated[JsonValue, _CleanedBy(_clean_value, {})]
Arguments: TypeAlias = Annotated[JsonObject, _CleanedBy(_clean_object, {"type": "object"})]
ProviderData: TypeAlias = Annotated[
    JsonObject | None,
    _CleanedBy(_clean_optional_object, {"anyOf": [{"type": "object"}, {"type": "null"}]}),
    Field(exclude_if=unset),
]


class BlockBase(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What all blocks share."""

    type: str
    """The kind of block; first in its JSON form."""
    provider_data: ProviderData = None
    """What a provider needs back verbatim with this block, under that provider's name.

    An adapter reads and writes the entry of its own name only, so that a history which moves
    from one provider to another never shows one what belongs to the other.
    """


class TextBlock(BlockBase, frozen=True):
    """Plain text."""

    type: Literal["text"] = "text"
    text: Text


class JsonBlock(BlockBase, frozen=True):
    """A JSON value. Adapters without a form for it send its compact text."""

    type: Literal["json"] = "json"
    value: Json


class MediaBlock(BlockBase, frozen=True):
    """Bytes, or where to find them: exactly one of ``url``, ``data`` and ``file_id``."""

    url: OptionalText = None
    """An address that the provider itself fetches, or a ``data:`` URI."""
    data: OptionalText = None
    """The bytes as standard base64."""
    file_id: OptionalText = None
    """A file that was uploaded to the provider before."""
    media_type: OptionalText = None
    """Such as ``image/png``; needed with ``data``."""

    @model_validator(mode="after")
    def _one_source(self) -> "MediaBlock":
        given = [name for name in ("url", "data", "file_id") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ValueError(f"exactly one of url, data and file_id is needed, got {found}")
        if self.data is not None and self.media_type is None:
            raise ValueError("media_type is needed with data, such as 'image/png'")
        return self

    def decode(self) -> bytes | None:
        """Return the bytes of ``data`` or of a base64 ``data:`` URI; ``None`` for anything else.

        Raises:
            ValueError: The text is not base64.
        """
        encoded = self.data
        if encoded is None and self.url is not None and self.url.startswith("data:"):
            head, _, body = self.url.partition(",")
            encoded = body if head.endswith(";base64") else None
        if encoded is None:
            return None
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError as exc:  # text beyond ASCII is a plain one
            raise ValueError(
                f"the data of this {type(self).__name__} is not base64: {exc}"
            ) from exc


class ImageBlock(MediaBlock, frozen=True):
    """A picture."""

    type: Literal["image"] = "image"
    detail: Annotated[Literal["auto", "low", "high"] | None, Field(exclude_if=unset)] = None
    """How closely a model should look, where its provider has such a setting."""

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> "ImageBlock":
        """Wrap the bytes of an image file."""
        return cls(data=base64.b64encode(data).decode(), media_type=media_type)


class AudioBlock(MediaBlock, frozen=True):
    """Sound."""

    type: Literal["audio"] = "audio"
    transcript: OptionalText = None
    """The words of an answer that a model spoke."""

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> "AudioBlock":
        """Wrap the bytes of an audio file."""
        return cls(data=base64.b64encode(data).decode(), media_type=media_type)


class FileBlock(MediaBlock, frozen=True):
    """A document."""

    type: Literal["file"] = "file"
    name: OptionalText = None

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str, name: str | None = None) -> "FileBlock":
        """Wrap the bytes of a file."""
        return cls(data=base64.b64encode(data).decode(), media_type=media_type, name=name)


class InvalidArguments(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """The arguments of a call as the model wrote them, and why they cannot be used."""

    raw: Text
    reason: Text


class ToolCallBlock(BlockBase, frozen=True):
    """The model asks for a tool to be called."""

    type: Literal["tool_call"] = "tool_call"
    id: Text
    """Pairs the call with its result; unique within a run."""
    name: Text
    arguments: Arguments = Field(default_factory=dict[str, JsonValue])
    invalid: Annotated[InvalidArguments | None, Field(exclude_if=unset)] = None
    """Set when the arguments could not be parsed; ``arguments`` is then empty."""
    provider_id: OptionalText = None
    """The id that the provider gave, when it was not unique in the run and ``id`` replaces it."""


class ToolResultBlock(BlockBase, frozen=True):
    """The result of a tool that the provider ran itself.

    Results of the application's tools are :class:`ToolMessage`.
    """

    type: Literal["tool_result"] = "tool_result"
    tool_call_id: Text
    name: OptionalText = None
    content: "list[Block]" = Field(default_factory=list["Block"])
    is_error: Annotated[bool, Field(exclude_if=operator.not_)] = False


class ReasoningBlock(BlockBase, frozen=True):
    """What the model thought. Text may be empty where the provider shows none.

    Never judge one by its text: a signature or encrypted data alone must be sent back as it came.
    """

    type: Literal["reasoning"] = "reasoning"
    text: Text = ""
    signature: OptionalText = None
    """The provider's seal over the text."""
    data: OptionalText = None
    """Reasoning in a form that only the provider can read."""
    redacted: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """``data`` stands in for text that the provider withheld."""


class CitationBlock(BlockBase, frozen=True):
    """A source for the text around it."""

    type: Literal["citation"] = "citation"
    url: OptionalText = None
    title: OptionalText = None
    text: OptionalText = None
    """The passage that is cited."""
    start: Annotated[int | None, Field(exclude_if=unset)] = None
    """Where the cited text begins in the answer's text, in characters."""
    end: Annotated[int | None, Field(exclude_if=unset)] = None
    """Where it ends, exclusive."""


class RefusalBlock(BlockBase, frozen=True):
    """The model declined to answer, in its own words."""

    type: Literal["refusal"] = "refusal"
    text: Text


class ProviderExtensionBlock(BlockBase, frozen=True):
    """Something that an adapter does not understand, kept whole.

    It goes back to the provider that sent it, at the same place, and to no other.
    """

    type: Literal["provider_extension"] = "provider_extension"
    provider: Text
    data: Json


Block: TypeAlias = Annotated[
    TextBlock
    | JsonBlock
    | ImageBlock
    | AudioBlock
    | FileBlock
    | ToolCallBlock
    | ToolResultBlock
    | ReasoningBlock
    | CitationBlock
    | RefusalBlock
    | ProviderExtensionBlock,
    Field(discriminator="type"),
]
"""Any block, told apart by ``type``."""


_BLOCK_CLASSES: frozenset[type] = frozenset(get_args(get_args(Block)[0]))


def is_content(value: Any) -> bool:
    """Whether ``value`` is a list of nothing but blocks, which were checked when they were made."""
    return value.__class__ is list and _BLOCK_CLASSES.issuperset(map(type, value))


def as_content(value: Any, check: Callable[[Any], list[Block]]) -> list[Block]:
    """Return the list of blocks that ``value`` is or stands for: see :func:`_as_list`."""
    blocks = _as_list(value)
    return blocks.copy() if is_content(blocks) else check(blocks)


def _as_list(value: Any) -> Any:
    """Let a string stand for one text block, a single block for a list of it, a tuple for a list."""
    if value.__class__ is list:
        return value
    if isinstance(value, str):
        return [TextBlock(text=value)] if value else []
    if isinstance(value, BlockBase):
        return [value]
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
