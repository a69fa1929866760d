"""From an answer that fits to the output of the run: the function it goes to, and the validators."""

import inspect
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_jsonable_python

from ..context import RunContext
from ..errors import ConfigurationError, InvalidRequestError, StructuredOutputError
from ..text import encode_json
from ..tool import BoundCall, InterruptSignal, ToolContext, ToolError
from ._member import MisfitError, OutputMember
from ._output import FoundAnswer, OutputSpec
from ._validators import OutputValidator, validated


async def complete_output(
    spec: OutputSpec[Any],
    found: FoundAnswer,
    ctx: RunContext[Any],
    *,
    call_id: str,
    validators: tuple[OutputValidator, ...] = (),
) -> Any:
    """Return the output that an answer becomes.

    Args:
        spec: What the answer is to be.
        found: The answer.
        ctx: The run's context.
        call_id: The model call or tool call that it came with, for a function's own context.
        validators: Those of the harness, which come after the output's own.

    Raises:
        StructuredOutputError: The function or a validator refuses it, in words for the model.
            What else they raise passes through.
        ConfigurationError: A validator returns nothing for an answer that cannot be ``None``.
    """
    try:
        value = found.value
        if found.member.function is not None:
            value = await _called(found, ctx, call_id)
        for validator in (*spec.validators, *validators):
            given, value = value, await validated(validator, value, ctx)
            if value is None and given is not None:
                _check_none(found.member, validator)
    except ToolError as refusal:
        said = str(refusal)
        raise StructuredOutputError(
            f"the answer was not accepted: {said}",
            schema_name=found.member.name,
            text=encode_json(found.json).decode(),
            errors=[said],
        ) from refusal
    return value


def stored_output(value: Any) -> JsonValue:
    """Return an output as a snapshot keeps it; ``None`` where it has no JSON form."""
    try:
        stored: JsonValue = to_jsonable_python(value)
    except (ValueError, TypeError, RecursionError):  # a function may return anything
        return None
    return stored


def restored_output(spec: OutputSpec[Any], stored: JsonValue, name: str) -> Any:
    """Return the output that a snapshot keeps; no function is called and no validator.

    Args:
        spec: What the answer was to be.
        stored: What :func:`stored_output` has returned.
        name: Which of its types it was of.
    """
    member = spec.member(name)
    if stored is None:
        return None
    if member.function is None:
        try:
            return member.check(stored)[0]
        except MisfitError:  # a validator has made something else of it
            return stored
    returns = member.function.returns
    if returns is inspect.Signature.empty:
        return stored
    try:
        return TypeAdapter[Any](returns).validate_json(encode_json(stored))
    except ValueError:
        return stored


def _check_none(member: OutputMember, validator: OutputValidator) -> None:
    """Refuse a validator that has forgotten to return the answer."""
    if member.adapter is None:
        return
    try:
        member.check(None)
    except MisfitError as exc:
        raise ConfigurationError(
            f"the output validator {validator!r} returned nothing: it must return the answer, changed "
            "or not"
        ) from exc


async def _called(found: FoundAnswer, ctx: RunContext[Any], call_id: str) -> Any:
    function = found.member.function
    assert function is not None
    called = ToolContext(ctx, call_id=call_id, tool_name=function.name)
    try:
        return await function.call(cast("BoundCall", found.value), called)
    except InterruptSignal as signal:
        raise InvalidRequestError(
            f"the output function `{function.name}` asked a question: only a tool can wait for an "
            "answer from outside"
        ) from signal
