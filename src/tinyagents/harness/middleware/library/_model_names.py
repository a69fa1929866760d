"""Names of models that a middleware was given."""

from collections.abc import Iterable
from typing import Any

from ...context import RunContext
from ...errors import ConfigurationError


def check_model_names(ctx: RunContext[Any], names: Iterable[str], by: str) -> None:
    """Refuse names that the run has no model of.

    Raises:
        ConfigurationError: One is not registered; the message lists those that are.
    """
    for name in names:
        if name not in ctx.models:
            raise ConfigurationError(
                f"`{by}` names the model `{name}`, which is not registered; there are "
                + ", ".join(f"`{each}`" for each in ctx.models)
            )
