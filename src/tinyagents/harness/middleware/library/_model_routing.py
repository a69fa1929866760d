"""Which model answers a request, chosen by what the request is like."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import isawaitable
from typing import Any, TypeAlias

from ...context import RunContext
from ...errors import ConfigurationError
from ...message import Message
from ...model import MEDIA, ModelRequest
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._model_names import check_model_names


class RoutingContext:
    """What a route is chosen by; each figure is worked out when it is asked for."""

    def __init__(
        self, run: RunContext[Any], request: ModelRequest, estimator: TokenEstimator
    ) -> None:
        self.run = run
        self.request = request
        self._estimator = estimator

    @cached_property
    def tokens(self) -> int:
        """About how many tokens the prompt is, its tools included."""
        return self._estimator.request(self.request).total

    @cached_property
    def turn(self) -> int:
        """Which answer to the user's last message this will be, from 1."""
        return 1 + sum(message.role == "assistant" for message in self._since_user)

    @cached_property
    def failures(self) -> int:
        """How many tool calls have failed since the user's last message."""
        return sum(message.role == "tool" and message.is_error for message in self._since_user)

    @cached_property
    def has_media(self) -> bool:
        """Whether a message holds an image, a sound or a file."""
        return any(
            block.type in MEDIA for message in self.request.messages for block in message.content
        )

    @property
    def has_tools(self) -> bool:
        """Whether tools are offered."""
        return bool(self.request.tools)

    @cached_property
    def _since_user(self) -> Sequence[Message]:
        messages = self.request.messages
        places = (
            place for place in reversed(range(len(messages))) if messages[place].role == "user"
        )
        return messages[next(places, 0) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRoute:
    """A model, and which requests it gets: those that meet all that is set here."""

    model: str
    """The name of a registered model."""
    name: str = ""
    """What events call the route; the model's name where there is none."""
    min_tokens: int | None = None
    max_tokens: int | None = None
    """Bounds of the size of the prompt, as it is estimated; both are inside."""
    has_tools: bool | None = None
    has_media: bool | None = None
    """Whether tools are offered, and whether a message holds an image, a sound or a file."""
    min_turn: int | None = None
    max_turn: int | None = None
    """Bounds of the number of answers to the user's last message, this one included."""
    min_failures: int | None = None
    """How many tool calls have failed since the user's last message, at least."""
    when: Callable[[RoutingContext], bool] | None = None
    """Asked last, where all else is met."""

    @property
    def takes_all(self) -> bool:
        """Whether there is nothing to meet."""
        return self == ModelRoute(model=self.model, name=self.name)

    def takes(self, context: RoutingContext) -> bool:
        """Whether a request meets all that is set."""
        # The size comes late: it takes the longest to find out.
        return (
            self.has_tools in (None, context.has_tools)
            and (self.has_media is None or self.has_media == context.has_media)
            and _within(self.min_turn, self.max_turn, lambda: context.turn)
            and _within(self.min_failures, None, lambda: context.failures)
            and _within(self.min_tokens, self.max_tokens, lambda: context.tokens)
            and (self.when is None or self.when(context))
        )


RouteFunction: TypeAlias = Callable[[RoutingContext], "str | None | Awaitable[str | None]"]
"""Returns the name of a registered model, or ``None`` to leave the choice."""


class ModelRoutingMiddleware(Middleware[Any]):
    """Chooses the model for each request, by rules or by a function.

    The first route that takes the request is taken; where none does, the model is the one that it
    would be anyway. A request that names a model already, as with ``invoke(model=...)``, is left alone.

    Hooks: ``before_model``. It changes the request's ``model``. Events: ``route.selected``. Nothing is
    sent where a name is not registered, or a function raises.

    Args:
        routes: The routes in the order in which they are tried; or a function, async or not, of the
            :class:`RoutingContext`.
        counter: Counts tokens: see :class:`~tinyagents.harness.token_estimation.TokenEstimator`.

    Raises:
        ConfigurationError: There is no route, or none that comes after one that takes everything could
            be taken; at the first call, a model is not registered.
    """

    def __init__(
        self,
        routes: Sequence[ModelRoute] | RouteFunction,
        *,
        counter: TokenCounterLike | None = None,
    ) -> None:
        self._choose: RouteFunction | None = None
        self._routes: tuple[ModelRoute, ...] = ()
        if callable(routes):
            self._choose = routes
        else:
            self._routes = tuple(routes)
            _check_routes(self._routes)
        self._estimator = TokenEstimator(counter)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Set the model of the route that takes the request."""
        check_model_names(ctx, (route.model for route in self._routes), self.name)
        if request.model is not None:
            return
        context = RoutingContext(ctx, request, self._estimator)
        if self._choose is None:
            route = next((each for each in self._routes if each.takes(context)), None)
        else:
            route = await self._chosen(self._choose, context)
        if route is None:
            return
        request.model = route.model
        ctx.emit("route.selected", route=route.name or route.model, model=route.model, by=self.name)

    async def _chosen(self, choose: RouteFunction, context: RoutingContext) -> ModelRoute | None:
        name = choose(context)
        if isawaitable(name):
            name = await name
        if name is None:
            return None
        check_model_names(context.run, (name,), self.name)
        return ModelRoute(model=name)


def _check_routes(routes: Sequence[object]) -> None:
    if not routes:
        raise ConfigurationError("`routes` is empty: there is no model to choose")
    for route in routes:
        if not isinstance(route, ModelRoute):
            raise ConfigurationError(f"{route!r} is no `ModelRoute`")
    for place, route in enumerate(routes[:-1]):
        if isinstance(route, ModelRoute) and route.takes_all:
            raise ConfigurationError(
                f"route {place + 1} (`{route.name or route.model}`) takes every request, so that "
                "those after it are never tried: put it last, or say what it takes"
            )


def _within(least: int | None, most: int | None, value: Callable[[], int]) -> bool:
    if least is None and most is None:
        return True
    found = value()
    return (least is None or found >= least) and (most is None or found <= most)
