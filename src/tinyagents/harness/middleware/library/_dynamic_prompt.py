"""Instructions that are made for each model call."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Literal, TypeAlias

from ...context import RunContext
from ...errors import ConfigurationError
from ...model import ModelRequest
from .._base import Middleware
from ._placing import put_instructions, put_volatile

PromptFunction: TypeAlias = Callable[
    [RunContext[Any], ModelRequest], "str | None | Awaitable[str | None]"
]
"""Returns what the model is told in this call; ``None`` or an empty text for nothing."""


class DynamicPromptMiddleware(Middleware[Any]):
    """Adds what a function says to each request; the transcript does not keep it.

    At the start it is a system message before all others. Providers find in their caches only what comes
    before the first difference: text that changes from call to call, such as the time or the state of a
    task, belongs at the end. There it is a message of the user, in a volatile segment, since several
    providers would put a system message before the history.

    Hooks: ``before_model``. It changes the messages and the segments of a request. It emits nothing. What
    the function raises ends the run.

    Args:
        function: Gives the text, from the context and the request; async or not.
        placement: Where the text goes.

    Raises:
        ConfigurationError: ``function`` is none, or there is no such placement; in a run, the
            function returns something else than a text.
    """

    def __init__(
        self, function: PromptFunction, *, placement: Literal["start", "end"] = "start"
    ) -> None:
        if not callable(function):
            raise ConfigurationError(
                f"`function` is {function!r}: pass a function of the context and the request, or give "
                "a text that is always the same to the agent as `system`"
            )
        if placement not in ("start", "end"):
            raise ConfigurationError(f'`placement` is "start" or "end", not {placement!r}')
        self._function = function
        self._placement = placement

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Add the text."""
        given = self._function(ctx, request)
        text = _checked(await given if isawaitable(given) else given, self.name)
        if not text:
            return
        if self._placement == "start":
            put_instructions(request, text, first=True)
        else:
            put_volatile(request, text, self.name)


def _checked(text: object, by: str) -> str | None:
    if text is None or isinstance(text, str):
        return text
    raise ConfigurationError(
        f"the function of `{by}` returned a `{type(text).__name__}`: it returns a text, or `None`"
    )
