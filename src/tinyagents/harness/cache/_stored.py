"""Responses in the form in which they are kept."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from ..message import AssistantMessage
from ..model import FinishReason, ModelResponse

_COMPLETE: Final[frozenset[FinishReason | None]] = frozenset({"stop", "tool_calls"})


class _StoredResponse(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What lasts of a response; the rest belongs to the call that it was made in."""

    version: Literal[1] = 1
    message: AssistantMessage
    finish_reason: FinishReason | None = None
    raw_finish_reason: str | None = None
    response_id: str | None = None
    model: str | None = None
    raw: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    notices: tuple[str, ...] = ()
    safety: Mapping[str, Any] | None = None
    request_id: str | None = None
    continue_turn: str | None = None


_KEPT = tuple(name for name in _StoredResponse.model_fields if name != "version")


def encode_response(response: ModelResponse) -> bytes:
    """Return a response as JSON, with the version of its form.

    Who answered in the application's terms, how long that took and what was read from it are no
    part of it.

    Raises:
        ValueError: Something in it has no form in JSON.
    """
    kept = {name: getattr(response, name) for name in _KEPT}
    return _StoredResponse(**kept).model_dump_json(warnings=False).encode()


def decode_response(data: bytes) -> ModelResponse:
    """Return a response from what :func:`encode_response` wrote; each time a new object.

    Raises:
        ValueError: It is damaged, or of another version.
    """
    stored = _StoredResponse.model_validate_json(data)
    return ModelResponse(**{name: getattr(stored, name) for name in _KEPT})


class KeptResponse:
    """A response in its stored form, which gives equal responses of the caller's own."""

    __slots__ = ("_plain", "data")

    def __init__(self, response: ModelResponse) -> None:
        self.data: bytes = encode_response(response)
        """Its stored form."""
        decoded = decode_response(self.data)
        self._plain: ModelResponse | None = decoded if _is_plain(decoded) else None

    def response(self) -> ModelResponse:
        """Return the response; each time a new object, in which nothing is shared that can change."""
        plain = self._plain
        if plain is None:
            return decode_response(self.data)
        message = plain.message
        return ModelResponse(
            message.model_copy(update={"content": message.content.copy()}),
            plain.finish_reason,
            plain.raw_finish_reason,
            plain.response_id,
            plain.model,
            notices=plain.notices,
            request_id=plain.request_id,
            continue_turn=plain.continue_turn,
        )


def _is_plain(response: ModelResponse) -> bool:
    """Whether nothing in a response can be changed but the list of its blocks."""
    message = response.message
    return (
        not (response.raw or response.safety or message.provider_data)
        and all(block.provider_data is None for block in message.content)
        and all(block.type in ("text", "reasoning", "citation") for block in message.content)
    )


def is_storable(response: ModelResponse) -> bool:
    """Whether a response may answer later calls: it is whole, and what the model wanted to say.

    Those that were cut, refused, filtered, paused or broken off are not, nor those that say nothing,
    that call a tool with broken arguments, or whose provider did not say how they ended.
    """
    message = response.message
    if response.finish_reason not in _COMPLETE or message.state is not None:
        return False
    says_something = False
    for block in message.content:
        match block.type:
            case "refusal":
                return False
            case "tool_call":
                if block.invalid is not None:
                    return False
                says_something = True
            case "text":
                says_something = says_something or bool(block.text.strip())
            case "reasoning":
                pass
            case _:
                says_something = True
    return says_something
