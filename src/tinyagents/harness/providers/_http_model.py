"""What every model behind an HTTP API has, whichever the API."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..ids import IdGenerator, RandomIds
from ..model import (
    FittedRequest,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ModelStreamItem,
    StreamCompleted,
    fit_request,
)
from ._endpoint import Endpoint, Origin
from ._reader import AnswerAssembler, AnswerReader, read_whole
from ._sse import JsonLineParser, SseParser
from ._transport import HttpCall

if TYPE_CHECKING:
    from ..context import RunContext

_RANDOM_IDS = RandomIds()
_NO_SETTINGS = ModelSettings()


class HttpModel(ABC):
    """A model at an endpoint: an adapter inherits this and adds the calls of its API.

    Args:
        endpoint: Where the model is. Closed with the model.
        profile: What the model can do.
        settings: Beneath the settings of each request.
    """

    def __init__(
        self, endpoint: Endpoint, *, profile: ModelProfile, settings: ModelSettings | None
    ) -> None:
        self._endpoint = endpoint
        self._profile = profile
        self._settings = settings or _NO_SETTINGS

    @property
    def profile(self) -> ModelProfile:
        """What the model can do."""
        return self._profile

    @property
    def base_url(self) -> str:
        """Where the API is, without credentials."""
        return self._endpoint.base_url

    @property
    def max_event_bytes(self) -> int:
        """The most that one event of a stream may hold."""
        return self._endpoint.max_event_bytes

    @property
    def cache_identity(self) -> str:
        """A digest of all that shapes an answer besides the request: endpoint, key and defaults."""
        settings = self._settings.model_dump(mode="json")
        return self._endpoint.identity({**self._identity(), "settings": settings})

    def __repr__(self) -> str:
        endpoint = self._endpoint
        return (
            f"{type(self).__name__}({endpoint.model!r}, provider={endpoint.provider!r}, "
            f"base_url={endpoint.base_url!r})"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop; a client that was passed in stays open."""
        await self._endpoint.aclose()

    def check(self) -> None:
        """Make sure that a call could be sent. Nothing is sent.

        Raises:
            ConfigurationError: The key is missing; the message names the environment variable.
        """
        self._endpoint.check()

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece.

        Cancelling closes the connection, so that the provider can stop.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            ModelError: The call failed.
        """
        fitted = self._fitted(request)
        call, assembler = self._prepare(fitted.request, ctx, stream=False)
        answer = await self._endpoint.post(call)
        origin = self._endpoint.origin(answer.headers)
        response = read_whole(answer.body, assembler(origin), origin)[1]
        response.notices = (*fitted.notices, *response.notices)
        return response

    async def stream(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer piece by piece; the last item is :class:`~tinyagents.harness.model.StreamCompleted`.

        However the reader stops, the connection is given back or closed.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            NetworkError: The connection failed, or the answer ended before it was complete.
            ModelError: The call failed.
        """
        fitted = self._fitted(request)
        call, assembler = self._prepare(fitted.request, ctx, stream=True)
        response = await self._endpoint.open(call)
        try:
            origin = self._endpoint.origin(response.headers)
            reader = AnswerReader(response, self._parser(), assembler(origin), origin)
            while items := await reader.next_items():
                last = items[-1]
                if fitted.notices and isinstance(last, StreamCompleted):
                    last.response.notices = (*fitted.notices, *last.response.notices)
                for item in items:
                    yield item
        finally:
            await response.aclose()

    def _fitted(self, request: ModelRequest) -> FittedRequest:
        """Return the request with the settings beneath it, checked against what the model takes.

        Raises:
            CapabilityError: The model is known not to take part of it.
        """
        if self._settings is not _NO_SETTINGS:
            request = replace(request, settings=self._settings.merged(request.settings))
        return fit_request(request, self._profile)

    def _parser(self) -> SseParser | JsonLineParser:
        return SseParser(max_event_bytes=self.max_event_bytes)

    @abstractmethod
    def _prepare(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", *, stream: bool
    ) -> tuple[HttpCall, Callable[[Origin], AnswerAssembler]]:
        """Return the call of a request, and what puts its answer together."""

    @abstractmethod
    def _identity(self) -> Mapping[str, Any]:
        """Return what else shapes an answer: the API, its address, and what is known of it."""


def ids_of(ctx: "RunContext[Any] | None") -> IdGenerator:
    """Return where the ids that an answer lacks come from."""
    return ctx.ids if ctx is not None else _RANDOM_IDS
