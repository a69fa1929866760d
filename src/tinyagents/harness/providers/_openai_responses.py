"""Models behind OpenAI's Responses API, and the servers that follow it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..ids import IdGenerator
from ..model import (
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ModelStreamItem,
    drain,
)
from ._endpoint import Endpoint, Origin
from ._http_model import HttpModel, ids_of
from ._openai_wire import WireTools
from ._presets import choose_preset
from ._profiles import derive_profile
from ._reader import AnswerReader, read_whole
from ._responses_presets import RESPONSES_PROVIDERS, ResponsesPreset
from ._responses_request import ResponsesRequestEncoder
from ._responses_response import ResponsesAssembler
from ._sse import SseParser
from ._transport import HttpCall, HttpClient, Timeouts

if TYPE_CHECKING:
    from ..context import RunContext


@dataclass(frozen=True, slots=True)
class _Sent:
    """A call on its way, and what is needed to understand its answer."""

    call: HttpCall
    tools: WireTools
    ids: IdGenerator


class OpenAIResponsesModel(HttpModel):
    """A model that is called through ``POST …/responses``.

    Nothing is stored at the provider, unless ``provider_options`` has ``"store": True``: the whole
    history is sent each time, with the reasoning of a model that is known to reason, which the
    provider hands out encrypted. A request with a ``continuation_id`` continues a stored answer
    instead, and sends only what follows that answer in its messages.

    Tools that the provider runs itself are offered by ``provider_options={"tools": [{"type":
    "web_search"}]}``, beside those of the application. Their items are kept as
    :class:`~tinyagents.harness.message.ProviderExtensionBlock` and sent back with the history.

    The arguments and errors are those of :class:`~tinyagents.harness.providers.OpenAIChatModel`,
    except that the presets are those of
    :data:`~tinyagents.harness.providers.RESPONSES_PROVIDERS`.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str | ResponsesPreset | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        http_client: HttpClient | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        timeout: float | Timeouts | None = None,
        profile: ModelProfile | None = None,
        settings: ModelSettings | None = None,
        http2: bool = False,
    ) -> None:
        preset = choose_preset(provider, base_url, RESPONSES_PROVIDERS, default="openai")
        endpoint = Endpoint(
            preset,
            model,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            query=query,
            http_client=http_client,
            timeout=timeout,
            http2=http2,
        )
        super().__init__(
            endpoint, profile=profile or derive_profile(preset, model), settings=settings
        )
        self._preset = preset
        bare = preset.bare_path if endpoint.has_bare_host else None
        self._url = endpoint.url(bare or "responses")
        reasons = self.profile.reasoning is True
        self._encoder = ResponsesRequestEncoder(preset, model, reasons=reasons)

    @property
    def preset(self) -> ResponsesPreset:
        """What is known of its provider."""
        return self._preset

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece.

        Cancelling closes the connection, so that the provider can stop. With the provider option
        ``background`` the answer is read as a stream, since the call itself does not wait for it.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            ModelError: The call failed.
        """
        settings = self._settings.merged(request.settings)
        if settings.provider_options.get("background"):
            return await drain(self.stream(request, ctx=ctx))
        sent = self._prepare(request, ctx, stream=False)
        answer = await self._endpoint.post(sent.call)
        origin = self._endpoint.origin(answer.headers)
        return read_whole(answer.body, self._assembler(sent, origin), origin)[1]

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
        sent = self._prepare(request, ctx, stream=True)
        response = await self._endpoint.open(sent.call)
        try:
            origin = self._endpoint.origin(response.headers)
            parser = SseParser(max_event_bytes=self.max_event_bytes)
            reader = AnswerReader(response, parser, self._assembler(sent, origin), origin)
            while items := await reader.next_items():
                for item in items:
                    yield item
        finally:
            await response.aclose()

    def _identity(self) -> Mapping[str, Any]:
        return {"api": "openai_responses", "url": self._url, "preset": repr(self._preset)}

    def _prepare(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", *, stream: bool
    ) -> _Sent:
        self.check()
        settings = self._settings.merged(request.settings)
        body, tools = self._encoder.encode(request, settings, stream=stream)
        accept = {"accept": "text/event-stream"} if stream else None
        call = self._endpoint.call(self._url, body, settings, headers=accept)
        return _Sent(call=call, tools=tools, ids=ids_of(ctx))

    def _assembler(self, sent: _Sent, origin: Origin) -> ResponsesAssembler:
        return ResponsesAssembler(self._preset, sent.tools, origin, ids=sent.ids)
