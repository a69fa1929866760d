"""What is given as middleware, looked at when an agent is built and not when a run comes to it."""

import difflib
import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ..errors import ConfigurationError
from ._base import Middleware

_log = logging.getLogger("tinyagents.middleware")

HOOKS = (
    "before_agent",
    "after_agent",
    "compact",
    "before_model",
    "filter_deltas",
    "redaction",
    "on_model_delta",
    "after_model",
    "before_tool",
    "on_tool_delta",
    "after_tool",
    "before_steering",
    "after_steering",
    "on_error",
    "wrap_model",
    "wrap_tool",
)

PLAIN_HOOKS = ("filter_deltas", "on_tool_delta", "redaction")
"""Hooks that are no coroutines."""


def overrides(item: Middleware[Any], hook: str) -> bool:
    """Whether a middleware has a hook of its own."""
    return getattr(type(item), hook) is not getattr(Middleware, hook)


def checked_items(items: Sequence[Middleware[Any]]) -> tuple[Middleware[Any], ...]:
    """Return the middlewares of an agent.

    Raises:
        ConfigurationError: It is no list of middlewares, or one of them could not work.
    """
    _check_list(items)
    found = tuple(items)
    for item in found:
        _check_kind(item)
        _check_hooks(item)
        _remark_on_misspelt(type(item))
    return found


def check_function(hook: str, function: object) -> None:
    """Refuse what a decorator cannot make a middleware of.

    Raises:
        ConfigurationError: It is no function, takes other arguments, or is async where the hook is
            not.
    """
    if not callable(function):
        raise ConfigurationError(f"`@{hook}` makes a middleware of a function, not of {function!r}")
    who = f"`@{hook}`: `{getattr(function, '__name__', function)}`"
    if hook in PLAIN_HOOKS and inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"{who} must not be async")
    _check_arguments(who, hook, function)


def _check_list(items: object) -> None:
    if not isinstance(items, Iterable) or isinstance(items, str):
        kind = type(items).__name__
        raise ConfigurationError(f"`middleware` takes a list of middlewares, not a `{kind}`")


def _check_kind(item: object) -> None:
    if isinstance(item, type) and issubclass(item, Middleware):
        raise ConfigurationError(f"`{item.__name__}` is a class: pass `{item.__name__}()`")
    if not isinstance(item, Middleware):
        raise ConfigurationError(
            f"{item!r} is no middleware: derive its class from `Middleware`, or decorate the "
            "function, as with `@before_model`"
        )


def _check_hooks(item: Middleware[Any]) -> None:
    """Refuse what would fail, or do nothing, only when a run comes to it."""
    cls, own = type(item), getattr(item, "__dict__", {})
    for hook in HOOKS:
        who = f"`{cls.__name__}.{hook}`"
        if hook in own:
            raise ConfigurationError(f"{who} is set on an object: define it in a class")
        if not overrides(item, hook):
            continue
        plain = hook in PLAIN_HOOKS
        if inspect.iscoroutinefunction(getattr(cls, hook)) is plain:
            how = "must not be async" if plain else "must be `async def`"
            raise ConfigurationError(f"{who} {how}")
        _check_arguments(who, hook, getattr(item, hook))


def _check_arguments(who: str, hook: str, function: Callable[..., object]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # one that is written in C
    given = _arguments(hook)
    try:
        signature.bind(*given)
    except TypeError as error:
        raise ConfigurationError(
            f"{who} takes ({', '.join(signature.parameters)}), and a run calls it with "
            f"({', '.join(given)})"
        ) from error


@cache
def _arguments(hook: str) -> tuple[str, ...]:
    """Return the names of what a hook is called with."""
    return tuple(inspect.signature(getattr(Middleware, hook)).parameters)[1:]


def _remark_on_misspelt(cls: type[Middleware[Any]]) -> None:
    for name in dir(cls):
        if name.startswith("_") or hasattr(Middleware, name) or not callable(getattr(cls, name)):
            continue
        if near := _nearest_hook(name):
            # A guess, and so no error.
            _log.warning(
                "`%s.%s` is no hook and no run calls it: did you mean `%s`?",
                cls.__name__,
                name,
                near,
            )


def _nearest_hook(name: str) -> str | None:
    longer = [hook for hook in HOOKS if "_" in hook and name.startswith(f"{hook}_")]
    near = longer or difflib.get_close_matches(name, HOOKS, n=1, cutoff=0.85)
    return near[0] if near else None
