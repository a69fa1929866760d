"""What every model behind an HTTP API has, whichever the API."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ..errors import BadRequestError
from ..ids import IdGenerator, RandomIds
from ..model import (
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ModelStreamItem,
    StreamCompleted,
    closing_stream,
    drain,
    fit_request,
)
from ..tool_calling import (
    PromptGuidedModel,
    XmlDialect,
    guided_request,
    guided_response,
    guided_stream,
)
from ._adaptation import NOTHING, STREAMED_SERVERS, Adaptations, Attempt
from ._endpoint import Endpoint, Origin
from ._http import HttpCall
from ._reader import AnswerAssembler, AnswerReader, read_whole
from ._shapes import Adaptation, Shape
from ._sse import JsonLineParser, SseParser
from ._transport import HttpStream

if TYPE_CHECKING:
    from ..context import RunContext

_RANDOM_IDS = RandomIds()
_NO_SETTINGS = ModelSettings()
_DIALECT: Final = XmlDialect()
"""How tools are told to a server that takes none."""
_PLAIN: Final[frozenset[Shape]] = frozenset({"plain_call"})


class _Opened(NamedTuple):
    """A stream that has begun."""

    response: HttpStream
    reader: AnswerReader
    items: list[ModelStreamItem]


class HttpModel(ABC):
    """A model at an endpoint: an adapter inherits this and adds the calls of its API.

    A request that is refused for a shape which can be done without is sent again without it, once
    for each such shape, and later requests are sent without it from the start: see
    :attr:`adaptations`. That is part of one attempt: a run counts one call, and announces no retry. A
    timeout of the transport holds for each request by itself.

    Args:
        endpoint: Where the model is. Closed with the model.
        profile: What the model can do.
        settings: Beneath the settings of each request.
        adapt: Send refused requests again in another shape.
        dispensable: The shapes that the adapter can do without.
        native_tools: Otherwise tools are told in the prompt from the start.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        profile: ModelProfile,
        settings: ModelSettings | None,
        adapt: bool,
        dispensable: frozenset[Shape] = frozenset({"native_tools"}),
        native_tools: bool = True,
    ) -> None:
        self._endpoint = endpoint
        self._profile = profile
        if not native_tools:
            self._profile = PromptGuidedModel(self, _DIALECT).profile
        self._native_tools = native_tools
        self._settings = settings or _NO_SETTINGS
        self._dispensable: frozenset[Shape] = dispensable if adapt else NOTHING
        self._adaptations = Adaptations()
        self._identified: tuple[tuple[tuple[Adaptation, ...], str], str] | None = None

    @property
    def profile(self) -> ModelProfile:
        """What the model can do."""
        return self._profile

    @property
    def adaptations(self) -> tuple[Adaptation, ...]:
        """What the server has refused so far and is sent no more, in the order it was found out.

        What another model of the process has found out of the server stands there too: that it
        answers no plain calls. The rest is kept for as long as the model lives. All of it is part of
        :attr:`cache_identity`.
        """
        return self._known(stream=False)

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
        # Nothing else of it changes; a cache asks for it at each call.
        known = self.adaptations, self._endpoint.credential
        if self._identified is None or self._identified[0] != known:
            facts = {
                **self._identity(),
                "native_tools": self._native_tools,
                "settings": self._settings.model_dump(mode="json"),
            }
            if known[0]:
                facts["adaptations"] = sorted(one.shape for one in known[0])
            self._identified = known, self._endpoint.identity(facts)
        return self._identified[1]

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
        attempt = self._attempt(request, stream=False)
        return await self._answer(attempt.request, ctx, attempt)

    def stream(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer piece by piece; the last item is :class:`~tinyagents.harness.model.StreamCompleted`.

        However the reader stops, the connection is given back or closed.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            NetworkError: The connection failed, or the answer ended before it was complete.
            ModelError: The call failed.
        """
        attempt = self._attempt(request, stream=True)
        return self._items(attempt.request, ctx, attempt)

    # How a call is made

    def _attempt(self, request: ModelRequest, *, stream: bool) -> Attempt:
        """Return a call that does without what was refused before.

        Raises:
            CapabilityError: The model is known not to take part of it.
        """
        if self._settings is not _NO_SETTINGS:
            request = replace(request, settings=self._settings.merged(request.settings))
        fitted = fit_request(request, self._profile)
        return Attempt(self._known(stream=stream), fitted, stream=stream)

    def _known(self, *, stream: bool) -> tuple[Adaptation, ...]:
        """Return what a call need not find out any more."""
        known = self._adaptations.known
        if stream or "plain_call" not in self._dispensable:
            return known
        found = STREAMED_SERVERS.get(self.base_url)
        if found is None or any(one.shape == "plain_call" for one in known):
            return known
        return (*known, found)

    def _guided(self, request: ModelRequest, attempt: Attempt) -> ModelRequest | None:
        """Return the request with its tools told in the prompt; ``None`` where that is not needed."""
        if self._native_tools and "native_tools" not in attempt.shapes:
            return None
        guided = guided_request(request, _DIALECT)
        return None if guided is request else guided

    async def _answer(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", attempt: Attempt
    ) -> ModelResponse:
        """Make a call whose answer is wanted in one piece, in whichever shape gets through."""
        while (guided := self._guided(request, attempt)) is None:
            if self._streams(request) or "plain_call" in attempt.shapes:
                return await drain(self._items(request, ctx, attempt))
            response = await self._post(request, ctx, attempt)
            if response is not None:
                response.notices = (*self._settled(attempt), *response.notices)
                return response
        response = await self._answer(guided, ctx, attempt)
        return guided_response(response, request, _DIALECT, ids_of(ctx))

    async def _post(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", attempt: Attempt
    ) -> ModelResponse | None:
        """Make a plain call; ``None`` when it was refused and can be made in another shape."""
        call, assembler = self._prepare(request, ctx, stream=False, given_up=attempt.shapes)
        try:
            answer = await self._endpoint.post(call)
            origin = self._endpoint.origin(answer.headers)
            return read_whole(answer.body, assembler(origin), origin)[1]
        except BadRequestError as refusal:
            attempt.after(refusal, call.body, self._dispensable)
            return None

    async def _items(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", attempt: Attempt
    ) -> AsyncIterator[ModelStreamItem]:
        """Make a streamed call, in whichever shape gets through."""
        while (guided := self._guided(request, attempt)) is None:
            opened = await self._open(request, ctx, attempt)
            if opened is None:
                continue
            response, reader, items = opened
            try:
                notices = self._settled(attempt)
                while items:
                    last = items[-1]
                    if notices and isinstance(last, StreamCompleted):
                        last.response.notices = (*notices, *last.response.notices)
                    for item in items:
                        yield item
                    items = await reader.next_items()
            finally:
                await response.aclose()
            return
        told = guided_stream(self._items(guided, ctx, attempt), request, _DIALECT, ids_of(ctx))
        async with closing_stream(told):
            async for item in told:
                yield item

    async def _open(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", attempt: Attempt
    ) -> _Opened | None:
        """Begin a stream; ``None`` when it was refused and can be made in another shape."""
        call, assembler = self._prepare(request, ctx, stream=True, given_up=attempt.shapes)
        response = None
        try:
            response = await self._endpoint.open(call)
            origin = self._endpoint.origin(response.headers)
            reader = AnswerReader(response, self._parser(), assembler(origin), origin)
            # Some servers refuse a request in the first event of a stream.
            opened = _Opened(response, reader, await reader.next_items())
            response = None
        except BadRequestError as refusal:
            attempt.after(refusal, call.body, self._dispensable - _PLAIN)
            return None
        finally:
            if response is not None:
                await response.aclose()
        return opened

    def _settled(self, attempt: Attempt) -> tuple[str, ...]:
        """Remember what a call that got through has found out; return what to say of it."""
        if attempt.found:
            self._adaptations.add(attempt.found, server=f"{self!r}")
            for one in attempt.found:
                if one.shape == "plain_call":
                    STREAMED_SERVERS.add(self.base_url, one)
        return attempt.notices()

    def _streams(self, request: ModelRequest) -> bool:
        """Whether a plain call of this request is made by reading a stream, come what may."""
        return False

    def _parser(self) -> SseParser | JsonLineParser:
        return SseParser(max_event_bytes=self.max_event_bytes)

    @abstractmethod
    def _prepare(
        self,
        request: ModelRequest,
        ctx: "RunContext[Any] | None",
        *,
        stream: bool,
        given_up: frozenset[Shape],
    ) -> tuple[HttpCall, Callable[[Origin], AnswerAssembler]]:
        """Return the call of a request without some shapes, and what puts its answer together."""

    @abstractmethod
    def _identity(self) -> Mapping[str, Any]:
        """Return what else shapes an answer: the API, its address, and what is known of it."""


def ids_of(ctx: "RunContext[Any] | None") -> IdGenerator:
    """Return where the ids that an answer lacks come from."""
    return ctx.ids if ctx is not None else _RANDOM_IDS
