"""Functions that look at a typed answer before it is used."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..context import RunContext
from ..errors import ConfigurationError
from ..options import check_list

OutputValidator: TypeAlias = Callable[..., Any]
"""Takes the answer, and the run's context if it has room for it; returns the answer to use.

A ``ToolError`` that it raises asks the model again, with its text. A plain function is called in the
event loop, so it must not block.
"""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_validators(validators: Iterable[OutputValidator]) -> tuple[OutputValidator, ...]:
    """Return the validators.

    Raises:
        ConfigurationError: They are no list, one is no function, or it takes neither the answer alone nor the answer and
            the run's context.
    """
    check_list("validators", validators)
    checked = tuple(validators)
    for each in checked:
        validator: object = each
        if not callable(validator) or isinstance(validator, type):
            raise ConfigurationError(f"{validator!r} is no output validator: pass a function")
        if _places(each) not in (1, 2):
            raise ConfigurationError(
                f"the output validator {validator!r} must take the answer, and may take the run's "
                "context after it"
            )
    return checked


async def validated(validator: OutputValidator, value: Any, ctx: RunContext[Any]) -> Any:
    """Return the answer as a validator leaves it; what it raises passes through."""
    result = validator(value) if _places(validator) == 1 else validator(value, ctx)
    return await result if inspect.isawaitable(result) else result


def _places(function: OutputValidator) -> int:
    """Return how many arguments a function must be given by their place."""
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
