"""What may be decided about a call that waits."""

from functools import cache
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from ..errors import ApprovalError
from ..message import Block
from ..text import clean_json, clean_text

DecisionKind: TypeAlias = Literal["approve", "edit", "reject", "respond"]
"""The kinds of decision."""

ALL_DECISIONS: tuple[DecisionKind, ...] = ("approve", "edit", "reject", "respond")
"""What a request takes unless it says otherwise."""


class _Decision(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """What all decisions carry."""

    by: Annotated[str, AfterValidator(clean_text)] | None = None
    """Who decided, for the record: it is in the events, and no model sees it."""


class Approve(_Decision, frozen=True):
    """The call runs as it was shown."""

    kind: Literal["approve"] = "approve"
    remember: Literal["call", "same_arguments", "tool"] = "call"
    """What of the run's later calls needs no further approval: nothing, calls of this tool with the
    same arguments, or all its calls. It ends with the run, and runs inside it do not share it."""


class Edit(_Decision, frozen=True):
    """The call runs with these arguments in place of its own; the model is told of it."""

    kind: Literal["edit"] = "edit"
    arguments: Annotated[dict[str, JsonValue], AfterValidator(clean_json)]
    """All arguments of the call. They are checked as those of the model are."""


class Reject(_Decision, frozen=True):
    """The call does not run."""

    kind: Literal["reject"] = "reject"
    reason: Annotated[str, AfterValidator(clean_text)] = ""
    """Why, in words for the model."""


class Respond(_Decision, frozen=True):
    """The call does not run: this is its result."""

    kind: Literal["respond"] = "respond"
    content: str | tuple[Block, ...] | None = None
    """What the model reads. Left out, the JSON text of ``value``."""
    value: Annotated[JsonValue, AfterValidator(clean_json)] = None
    """The structured value behind the content, the message's ``artifact``."""
    is_error: bool = False
    """The call was tried, and failed."""


Decision: TypeAlias = Approve | Edit | Reject | Respond
"""Any decision, told apart by ``kind``."""


@cache
def _adapter() -> "TypeAdapter[Decision]":
    return TypeAdapter(Annotated[Decision, Field(discriminator="kind")])


def parse_decision(answer: object) -> Decision:
    """Return a decision as it is, or read one from its decoded JSON form.

    Raises:
        ApprovalError: It is no decision; nothing else, such as ``True``, stands for one.
    """
    if isinstance(answer, Approve | Edit | Reject | Respond):
        return answer
    kinds = ", ".join(f"`{kind}`" for kind in ALL_DECISIONS)
    if not isinstance(answer, dict):
        raise ApprovalError(
            f"a `{type(answer).__name__}` is no decision: pass `Approve()`, `Edit(...)`, "
            f"`Reject(...)` or `Respond(...)`, or the JSON form with a `kind` of {kinds}"
        )
    try:
        return _adapter().validate_python(cast("object", answer))
    except ValidationError as error:
        errors = [
            f"{'.'.join(map(str, each['loc'])) or 'decision'}: {each['msg']}"
            for each in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise ApprovalError(
            f"the answer is no decision: {'; '.join(errors)}", errors=errors
        ) from error
