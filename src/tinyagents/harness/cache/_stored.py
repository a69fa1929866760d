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
