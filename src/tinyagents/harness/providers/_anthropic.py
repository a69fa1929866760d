"""Models behind Anthropic's Messages API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import InvalidRequestError
from ..model import (
    ModelProfile,
    ModelRequest,
    ModelSettings,
)
from ._anthropic_models import (
    MESSAGES_PROVIDERS,
    MessagesPreset,
    claude_traits,
    derive_messages_profile,
)
from ._anthropic_request import CacheTtl, MessagesEncoder
from ._anthropic_response import MessagesAssembler
from ._endpoint import Endpoint, Origin
from ._http import HttpCall, HttpClient, Timeouts
from ._http_model import HttpModel, ids_of
from ._json import as_list
from ._profile_table import ProfileTable
from ._provider_names import choose_preset
from ._reader import AnswerAssembler
from ._shapes import Shape

if TYPE_CHECKING:
    from ..context import RunContext

_BETA_HEADER = "anthropic-beta"


class AnthropicModel(HttpModel):
    """A model that is called through ``POST …/v1/messages``.

    Constructing one does no I/O. It may be shared by runs, event loops and threads. Connections are
    opened at the first call and closed by :meth:`aclose`, by ``async with model``, or when their
    event loop ends. The model neither retries what failed nor falls back: the run does.

    The API wants ``max_tokens`` in every request: where the settings have none, 16,384 and the
    thinking budget on top are asked for, or less where the model is known to answer with less.

    A call raises :class:`~tinyagents.harness.errors.InvalidRequestError` before anything is sent
    when the API has no form for part of the request, and a
    :class:`~tinyagents.harness.errors.ModelError` for what goes wrong afterwards. Errors, ``repr``
    and :attr:`cache_identity` never hold the key.

    Args:
        model: The provider's name for the model.
        provider: ``"anthropic"``, ``"compatible"`` for another server with this API, or a preset of
            your own, made from one of
            :data:`~tinyagents.harness.providers.MESSAGES_PROVIDERS`.
        api_key: The key; ``""`` for a server that needs none. Not given, it is taken from
            ``ANTHROPIC_API_KEY`` at the first call, or by :meth:`check`.
        base_url: Where the API is, with or without ``/v1``.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient``, used as it is and never
            closed: its timeouts hold, unless ``timeout`` is given too.
        headers: Sent with every request, above the adapter's own.
        query: Query parameters of every request.
        timeout: Seconds for a call, or a limit for each phase of it.
        profile: What the model can do, where its name does not tell.
        profiles: The table in which the name is looked up; the built-in one when not given.
        settings: Beneath the settings of each request. Their ``provider_options`` are fields of the
            API: ``tools`` adds tools that the provider runs, ``betas`` names betas of one request.
        http2: Offer HTTP/2; needs the extra ``http2``.
        adapt: Send a request that is refused for its shape again in one that the server takes, and
            keep to it: see :attr:`adaptations`.
        betas: Betas of every request, sent in the header ``anthropic-beta``.
        cache_ttl: How long the provider keeps what the cacheable segments of a request mark.

    Raises:
        ConfigurationError: The provider is not known, or no base URL is.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str | MessagesPreset | None = None,
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
        betas: Sequence[str] = (),
        cache_ttl: CacheTtl = "5m",
    ) -> None:
        preset = choose_preset(provider, base_url, MESSAGES_PROVIDERS, default="anthropic")
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
        profile = profile or derive_messages_profile(preset, model, profiles)
        super().__init__(endpoint, profile=profile, settings=settings, adapt=adapt)
        versioned = endpoint.base_url.endswith("/v1")
        self._url = endpoint.url("messages" if versioned else "v1/messages")
        # A header of one call takes the place of the one of all calls, so both are joined there.
        named = {name.lower(): value for name, value in (headers or {}).items()}
        self._betas = (*betas, *_split(named.get(_BETA_HEADER)))
        self._preset = preset
        self._cache_ttl: CacheTtl = cache_ttl
        traits = claude_traits(model)
        self._encoder = MessagesEncoder(
            preset,
            model,
            replace(
                traits,
                json_schema=profile.json_schema,
                sampling=traits.sampling and profile.temperature is not False,
            ),
            max_output_tokens=profile.max_output_tokens,
            cache_ttl=cache_ttl,
        )

    @property
    def preset(self) -> MessagesPreset:
        """What is known of its server."""
        return self._preset

    def _identity(self) -> Mapping[str, Any]:
        return {
            "api": "anthropic_messages",
            "url": self._url,
            "preset": repr(self._preset),
            "betas": [*self._betas],
            "cache_ttl": self._cache_ttl,
        }

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
        encoded = self._encoder.encode(request, settings, stream=stream)
        headers = {"accept": "text/event-stream"} if stream else {}
        if betas := self._named_betas(settings, encoded.betas):
            headers[_BETA_HEADER] = ",".join(betas)
        call = self._endpoint.call(self._url, encoded.body, settings, headers=headers)
        name = self._preset.data_name
        return call, partial(MessagesAssembler, name, encoded.tools, ids=ids_of(ctx))

    def _named_betas(self, settings: ModelSettings, needed: Sequence[str]) -> list[str]:
        """Return the betas of a request, each of them once."""
        extra = {name.lower(): value for name, value in settings.extra_headers.items()}
        listed = as_list(settings.provider_options.get("betas", []))
        if listed is None or not all(isinstance(name, str) for name in listed):
            raise InvalidRequestError("`betas` in `provider_options` must be a list of names")
        named = (*self._betas, *_split(extra.get(_BETA_HEADER)), *listed, *needed)
        return list(dict.fromkeys(named))


def _split(header: str | None) -> list[str]:
    return [name.strip() for name in (header or "").split(",") if name.strip()]
