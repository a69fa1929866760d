"""Models behind Google's Gemini API."""

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ..model import ModelProfile, ModelRequest, ModelResponse, ModelSettings, ModelStreamItem
from ._endpoint import Endpoint
from ._gemini_request import GeminiBody, GeminiRequestEncoder, is_third_generation
from ._gemini_response import GeminiAssembler
from ._http_model import HttpModel, ids_of
from ._presets import ServerPreset, choose_preset
from ._profiles import context_window, thinks
from ._reader import AnswerReader, read_whole
from ._sse import SseParser
from ._transport import HttpClient, Timeouts

if TYPE_CHECKING:
    from ..context import RunContext

GEMINI_PROVIDERS: Final[Mapping[str, ServerPreset]] = MappingProxyType(
    {
        "gemini": ServerPreset(
            name="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            base_url_env="GOOGLE_GEMINI_BASE_URL",
            key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            default_model="gemini-2.5-flash",
            auth="x-goog-api-key",
            endpoint_paths=("/models",),
        )
    }
)
"""The servers of this API by name."""


class GeminiModel(HttpModel):
    """A model that is called through ``POST …/models/MODEL:generateContent``.

    Constructing one does no I/O. It may be shared by runs, event loops and threads. Connections are
    opened at the first call and closed by :meth:`aclose`, by ``async with model``, or when their
    event loop ends. The model neither retries nor falls back: the run does.

    A call raises :class:`~tinyagents.harness.errors.InvalidRequestError` before anything is sent
    when the API has no form for part of the request,
    :class:`~tinyagents.harness.errors.ContentFilterError` when the prompt was blocked, and another
    :class:`~tinyagents.harness.errors.ModelError` for what else goes wrong. An answer that was blocked
    ends with the reason ``content_filter``. Errors, ``repr`` and :attr:`cache_identity` never hold
    the key.

    ``provider_options`` are fields of the request: ``safetySettings``, ``cachedContent``, ``tools`` for
    the provider's own tools, ``generationConfig`` for what has no setting here. Rules of a schema that
    the API has no keyword for are told in its descriptions and listed in
    ``response.raw["relaxed_schema"]``; a schema that must be strict is refused instead.

    Args:
        model: The provider's name for the model; with a slash in it (``tunedModels/…``), its path.
        provider: A preset of your own.
        api_key: The key; ``""`` for a server that needs none. Not given, it is taken from
            ``GEMINI_API_KEY`` or ``GOOGLE_API_KEY`` at the first call, or by :meth:`check`.
        base_url: Where the API is, with its version; a bare host gets ``/v1beta``. A user and a
            password in it are sent as basic authentication.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient``, used as it is and never
            closed: its timeouts hold, unless ``timeout`` is given too.
        headers: Sent with every request, above the adapter's own: an ``authorization`` for Vertex.
        query: Query parameters of every request.
        timeout: Seconds for a call, or a limit for each phase of it.
        profile: What the model can do, where its name does not tell.
        settings: Beneath the settings of each request.
        http2: Offer HTTP/2; needs the extra ``http2``.

    Raises:
        ConfigurationError: The provider is not known.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str | ServerPreset | None = None,
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
        preset = choose_preset(provider, base_url, GEMINI_PROVIDERS, default="gemini")
        name = model.strip().removeprefix("models/")
        endpoint = Endpoint(
            preset,
            name,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            query=query,
            http_client=http_client,
            timeout=timeout,
            http2=http2,
        )
        super().__init__(
            endpoint, profile=profile or _profile(preset.name, name), settings=settings
        )
        version = "v1beta/" if endpoint.has_bare_host else ""
        path = quote(name if "/" in name else f"models/{name}", safe="/:@")
        self._url = endpoint.url(f"{version}{path}:generateContent")
        self._stream_url = endpoint.url(
            f"{version}{path}:streamGenerateContent", query={"alt": "sse"}
        )
        files = f"{endpoint.base_url}/{version}".rstrip("/")
        self._encoder = GeminiRequestEncoder(preset.name, name, files)

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece.

        Cancelling closes the connection, so that the provider can stop.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            ContentFilterError: The prompt was blocked.
            ModelError: The call failed.
        """
        sent, settings = self._prepare(request)
        answer = await self._endpoint.post(self._endpoint.call(self._url, sent.body, settings))
        origin = self._endpoint.origin(answer.headers)
        return read_whole(answer.body, GeminiAssembler(sent, origin, ids=ids_of(ctx)), origin)[1]

    async def stream(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer piece by piece; the last item is :class:`~tinyagents.harness.model.StreamCompleted`.

        However the reader stops, the connection is given back or closed.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            ContentFilterError: The prompt was blocked.
            NetworkError: The connection failed, or the answer ended before it was complete.
            ModelError: The call failed.
        """
        sent, settings = self._prepare(request)
        accept = {"accept": "text/event-stream"}
        call = self._endpoint.call(self._stream_url, sent.body, settings, headers=accept)
        response = await self._endpoint.open(call)
        try:
            origin = self._endpoint.origin(response.headers)
            parser = SseParser(max_event_bytes=self.max_event_bytes)
            assembler = GeminiAssembler(sent, origin, ids=ids_of(ctx))
            reader = AnswerReader(response, parser, assembler, origin)
            while items := await reader.next_items():
                for item in items:
                    yield item
        finally:
            await response.aclose()

    def _identity(self) -> Mapping[str, Any]:
        return {"api": "gemini", "url": self._url}

    def _prepare(self, request: ModelRequest) -> tuple[GeminiBody, ModelSettings]:
        self.check()
        settings = self._settings.merged(request.settings)
        return self._encoder.encode(request, settings), settings


def _profile(provider: str, model: str) -> ModelProfile:
    """Return what the name of a model tells of it."""
    known = True if "gemini" in model.lower() else None
    thinking = True if thinks(model) else None
    return ModelProfile(
        provider=provider,
        model=model,
        input_modalities=frozenset({"text", "image", "audio", "file"} if known else {"text"}),
        tool_calling=known,
        parallel_tool_calls=known,
        forced_tool_choice=known,
        streaming=True,
        streaming_tool_chunks=False,
        native_structured_output=True if is_third_generation(model) else None,
        json_schema=known,
        json_mode=known,
        reasoning=thinking,
        reasoning_effort=thinking,
        temperature=True,
        max_input_tokens=context_window(model),
    )
