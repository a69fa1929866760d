"""Models behind Google's Gemini API."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ..model import Modality, ModelProfile, ModelRequest, ModelSettings
from ._endpoint import Endpoint, Origin
from ._gemini_request import GeminiRequestEncoder, is_third_generation
from ._gemini_response import GeminiAssembler
from ._http import HttpCall, HttpClient, Timeouts
from ._http_model import HttpModel, ids_of
from ._presets import ServerPreset
from ._profile_table import ProfileTable
from ._profiles import with_facts
from ._provider_names import choose_preset
from ._reader import AnswerAssembler
from ._shapes import Shape

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
    event loop ends. The model neither retries what failed nor falls back: the run does.

    A call raises :class:`~tinyagents.harness.errors.InvalidRequestError` before anything is sent
    when the API has no form for part of the request,
    :class:`~tinyagents.harness.errors.ContentFilterError` when the prompt was blocked, and another
    :class:`~tinyagents.harness.errors.ModelError` for what else goes wrong. An answer that was blocked
    ends with the reason ``content_filter``. Errors, ``repr`` and :attr:`cache_identity` never hold
    the key.

    ``provider_options`` are fields of the request: ``safetySettings``, ``cachedContent``, ``tools`` for
    the provider's own tools, ``generationConfig`` for what has no setting here. Rules of a schema that
    the API has no keyword for are told in its descriptions and listed in
    ``response.notices``; a schema that must be strict is refused instead.

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
        profiles: The table in which the name is looked up; the built-in one when not given.
        settings: Beneath the settings of each request.
        http2: Offer HTTP/2; needs the extra ``http2``.
        adapt: Send a request that is refused for its shape again in one that the server takes, and
            keep to it: see :attr:`adaptations`.

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
        profiles: ProfileTable | None = None,
        settings: ModelSettings | None = None,
        http2: bool = False,
        adapt: bool = True,
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
            endpoint,
            profile=profile or _profile(preset.name, name, profiles),
            settings=settings,
            adapt=adapt,
        )
        version = "v1beta/" if endpoint.has_bare_host else ""
        path = quote(name if "/" in name else f"models/{name}", safe="/:@")
        self._url = endpoint.url(f"{version}{path}:generateContent")
        self._stream_url = endpoint.url(
            f"{version}{path}:streamGenerateContent", query={"alt": "sse"}
        )
        files = f"{endpoint.base_url}/{version}".rstrip("/")
        self._encoder = GeminiRequestEncoder(preset.name, name, files)

    def _identity(self) -> Mapping[str, Any]:
        return {"api": "gemini", "url": self._url}

    def _prepare(
        self,
        request: ModelRequest,
        ctx: "RunContext[Any] | None",
        *,
        stream: bool,
        given_up: frozenset[Shape],
    ) -> tuple[HttpCall, Callable[[Origin], AnswerAssembler]]:
        self.check()
        settings = self._settings.merged(request.settings)
        sent = self._encoder.encode(request, settings)
        url = self._stream_url if stream else self._url
        accept = {"accept": "text/event-stream"} if stream else None
        call = self._endpoint.call(url, sent.body, settings, headers=accept)
        return call, partial(GeminiAssembler, sent, ids=ids_of(ctx))


def _profile(provider: str, model: str, profiles: ProfileTable | None) -> ModelProfile:
    """Return what the name of a model tells of it."""
    known = True if "gemini" in model.lower() else None
    media: frozenset[Modality] = frozenset({"image", "audio", "file"})
    derived = ModelProfile(
        provider=provider,
        model=model,
        input_modalities=frozenset({"text", *media}) if known else frozenset({"text"}),
        uncertain_inputs=frozenset() if known else media,
        tool_calling=known,
        parallel_tool_calls=known,
        forced_tool_choice=known,
        streaming=True,
        streaming_tool_chunks=False,
        native_structured_output=True if is_third_generation(model) else None,
        json_schema=known,
        json_mode=known,
        temperature=True,
    )
    return with_facts(derived, profiles)
