"""What a call that waits asks for, as data."""

from functools import cache
from hashlib import sha256
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from ..errors import ApprovalError
from ..text import JsonObject, encode_json
from ._decisions import ALL_DECISIONS, Approve, Decision, DecisionKind

_HASH_IN_ID = 16
"""Digits of the hash in an id: enough that no other arguments are given the same one."""


def arguments_hash(arguments: JsonValue) -> str:
    """Return the SHA-256 of arguments, in hexadecimal: of their JSON with the keys in order."""
    return sha256(encode_json(arguments, sort_keys=True)).hexdigest()


class _Request(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What all requests carry."""

    call_id: str
    tool_name: str
    """The tool that will really run."""
    arguments: dict[str, JsonValue]
    """The arguments that it will really run with, as hooks left them."""
    arguments_hash: str
    """What an answer is bound to, with the call's id: see :func:`arguments_hash`."""
    label: str | None = None
    """What people call the tool: from the policy's ``display``, as ``detail`` is."""
    detail: str | None = None
    problem: str | None = None
    """Why it is asked anew: what was wrong with the answer before."""
    round: Annotated[int, Field(ge=1)] = 1
    """How many times it was asked; an answer is for its own round only."""
    allowed: tuple[DecisionKind, ...]
    """The decisions that it takes."""
    may_remember: bool = False
    """Whether an approval may stand for later calls."""


class ApprovalRequest(_Request, frozen=True):
    """A call that runs only when somebody agrees."""

    kind: Literal["approval"] = "approval"
    reason: str | None = None
    """Why it needs approval."""
    allowed: tuple[DecisionKind, ...] = ALL_DECISIONS
    may_remember: bool = True
    expires_at_ms: int | None = None
    """When it lapses, in milliseconds since the epoch; after that only a rejection counts."""

    @property
    def id(self) -> str:
        """What the answer is given under."""
        return _request_id(self, "approve")


class ExternalCallRequest(_Request, frozen=True):
    """A call that the application makes outside the run, to answer with its result."""

    kind: Literal["external"] = "external"
    allowed: tuple[DecisionKind, ...] = ("reject", "respond")
    output_schema: JsonObject | None = None
    """The JSON Schema of the result's value, where there is one."""

    @property
    def id(self) -> str:
        """What the answer is given under."""
        return _request_id(self, "external")


Request: TypeAlias = ApprovalRequest | ExternalCallRequest
"""Any request, told apart by ``kind``."""


def check_decision(request: Request, decision: Decision) -> None:
    """Check that a decision is one that the request takes.

    Raises:
        ApprovalError: It is none.
    """
    remembers = isinstance(decision, Approve) and decision.remember != "call"
    if decision.kind in request.allowed and (request.may_remember or not remembers):
        return
    allowed = ", ".join(f"`{kind}`" for kind in request.allowed)
    what = "an approval to be remembered" if remembers else f"`{decision.kind}`"
    raise ApprovalError(
        f"{what} is no decision that the call of `{request.tool_name}` takes: it takes {allowed}",
        interrupt_id=request.id,
    )


def _request_id(request: _Request, purpose: str) -> str:
    stem = f"{request.call_id}:{purpose}:{request.arguments_hash[:_HASH_IN_ID]}"
    return stem if request.round == 1 else f"{stem}:{request.round}"


@cache
def _adapter() -> "TypeAdapter[Request]":
    return TypeAdapter(Annotated[Request, Field(discriminator="kind")])


def parse_request(payload: object) -> Request:
    """Read a request from the payload of an interrupt of that kind.

    Raises:
        ApprovalError: It is none.
    """
    try:
        return _adapter().validate_python(payload)
    except ValidationError as error:
        raise ApprovalError(f"the payload is no request for a decision: {error}") from error
