"""Models behind the Chat Completions API: OpenAI's, and everyone else's that follows it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..model import ModelProfile, ModelRequest, ModelSettings
from ._adaptation import Variants
from ._endpoint import Endpoint, Origin
from ._http import HttpCall, HttpClient, Timeouts
from ._http_model import HttpModel, ids_of
from ._json import as_object
from ._openai_request import ChatRequestEncoder
from ._openai_response import ChatAssembler
from ._openai_wire import not_strict
from ._presets import PROVIDERS, ProviderPreset
from ._profile_table import ProfileTable
from ._profiles import derive_profile
from ._provider_names import choose_preset, is_at_home
from ._reader import AnswerAssembler
from ._shapes import Shape, dispensable

if TYPE_CHECKING:
    from ..context import RunContext


class OpenAIChatModel(HttpModel):
    """A model that is called through ``POST …/chat/completions``.

    Constructing one does no I/O. It may be shared by runs, event loops and threads. Connections are
    opened at the first call and closed by :meth:`aclose`, by ``async with model``, or when their
    event loop ends. The model neither retries what failed nor falls back: the run does.

    A call raises :class:`~tinyagents.harness.errors.InvalidRequestError` before anything is sent
    when the provider has no form for part of the request, and a
    :class:`~tinyagents.harness.errors.ModelError` for what goes wrong afterwards. Errors, ``repr``
    and :attr:`cache_identity` never hold the key.

    Args:
        model: The provider's name for the model.
        provider: A name in :data:`~tinyagents.harness.providers.PROVIDERS`, or a preset of your own.
            Not given, the host of ``base_url`` tells, and any other host is taken to be like OpenAI.
        api_key: The key; ``""`` for a server that needs none. Not given, it is taken from the
            provider's environment variable at the first call, or by :meth:`check`.
        base_url: Where the API is, with its version: ``https://host/v1``. A user and a password in
            it are sent as basic authentication, in the place of the key.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient``, used as it is and never
            closed: its timeouts hold, unless ``timeout`` is given too. Redirects are not followed.
        headers: Sent with every request, above the adapter's own: a ``user-agent``, or an
            ``authorization`` in the place of a key.
        query: Query parameters of every request.
        timeout: Seconds for a call, or a limit for each phase of it.
        profile: What the model can do, where its name does not tell.
        profiles: The table in which the name is looked up; the built-in one when not given.
        settings: Beneath the settings of each request.
        http2: Offer HTTP/2; needs the extra ``http2``.
        adapt: Send a request that is refused for its shape, such as a named tool choice, again in
            one that the server takes, and keep to it: see :attr:`adaptations`.
        prompt_cache_key: Send a ``prompt_cache_key`` made of the request's ``prompt_fingerprint``,
            where a stable segment begins it and ``provider_options`` has none.

    Raises:
        ConfigurationError: The provider is not known, or no base URL is.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str | ProviderPreset | None = None,
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
        prompt_cache_key: bool = False,
    ) -> None:
        preset = choose_preset(provider, base_url, PROVIDERS, default="openai")
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
        if not isinstance(provider, ProviderPreset) and not is_at_home(preset, endpoint.base_url):
            # Only the provider's own servers are known to keep reasoning out of the text.
            preset = replace(preset, think_tags=True)
        super().__init__(
            endpoint,
            profile=profile or derive_profile(preset, model, profiles),
            settings=settings,
            adapt=adapt,
            dispensable=dispensable(preset),
            native_tools=preset.native_tools,
        )
        self._preset = preset
        self._url = endpoint.url(_path(preset, endpoint))
        self._variants = Variants(
            preset, lambda known: ChatRequestEncoder(known, model, cache_key=prompt_cache_key)
        )

    @property
    def preset(self) -> ProviderPreset:
        """What is known of its provider."""
        return self._preset

    def _streams(self, request: ModelRequest) -> bool:
        return self._preset.require_streaming is True

    def _identity(self) -> Mapping[str, Any]:
        return {"api": "openai_chat", "url": self._url, "preset": repr(self._preset)}

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
        preset, encoder = self._variants.of(given_up)
        body, tools = encoder.encode(request, settings, stream=stream)
        if not self._preset.strict_schema:  # what the server has refused is told already
            tools = tools.noting(not_strict(request.tools))
        accept = {"accept": "text/event-stream"} if stream else None
        audio = as_object(settings.provider_options.get("audio")) or {}
        assembler = partial(
            ChatAssembler,
            preset,
            tools,
            ids=ids_of(ctx),
            audio_format=str(audio.get("format", "wav")),
        )
        return self._endpoint.call(self._url, body, settings, headers=accept), assembler


def _path(preset: ProviderPreset, endpoint: Endpoint) -> str:
    if preset.bare_path is not None and endpoint.has_bare_host:
        return preset.bare_path.format(model=endpoint.model)
    return "chat/completions"
