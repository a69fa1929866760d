"""Models behind Ollama's own API, which gives more of a local model than its OpenAI surface."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..model import ModelProfile, ModelRequest, ModelSettings
from ._endpoint import Endpoint, Origin
from ._http import HttpCall, HttpClient, Timeouts
from ._http_model import HttpModel, ids_of
from ._json import as_object
from ._local import PROBE_SECONDS, load_model, show_model
from ._ollama_profile import OLLAMA_SERVERS, basic_profile
from ._ollama_request import RUNTIME_OPTIONS, OllamaRequestEncoder
from ._ollama_response import OllamaAssembler
from ._profile_table import ProfileTable
from ._provider_names import choose_preset
from ._reader import AnswerAssembler
from ._shapes import Shape
from ._sse import JsonLineParser

if TYPE_CHECKING:
    from ..context import RunContext


class OllamaModel(HttpModel):
    """A model that is called through ``POST …/api/chat`` of an Ollama server.

    Constructing one does no I/O, and it never asks the server what the model can do unless
    :meth:`probe` is called. It may be shared by runs, event loops and threads. Connections are
    opened at the first call and closed by :meth:`aclose`, by ``async with model``, or when their
    event loop ends. The model neither retries what failed nor falls back: the run does.

    A call raises :class:`~tinyagents.harness.errors.InvalidRequestError` before anything is sent
    when the API has no form for part of the request, such as a forced tool choice, and a
    :class:`~tinyagents.harness.errors.ModelError` for what goes wrong afterwards.

    Options of the runtime stand in a request's ``settings.provider_options``, by themselves
    (``{"top_k": 40}``) or as Ollama's ``options``; so do its other fields, such as ``think``.

    Args:
        model: The server's name for the model: ``qwen3``, ``gpt-oss:20b``.
        provider: ``ollama``, a server of your own, or ``ollama_cloud``, the hosted one. Not given,
            the host of ``base_url`` tells.
        api_key: The key; the hosted server's is taken from ``OLLAMA_API_KEY`` when not given.
        base_url: Where the server is: a URL, or a host with or without a port. The address of one
            of its endpoints means the server. Not given, ``OLLAMA_HOST`` tells, as it does for
            Ollama itself.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient``, used as it is and never
            closed: its timeouts hold, unless ``timeout`` is given too.
        headers: Sent with every request, above the adapter's own.
        query: Query parameters of every request.
        timeout: Seconds for a call, or a limit for each phase of it.
        profile: What the model can do, such as :meth:`probe` returns.
        profiles: The table in which the name is looked up; the built-in one when not given.
        settings: Beneath the settings of each request.
        http2: Offer HTTP/2; needs the extra ``http2``.
        adapt: Send a request that is refused for its shape, such as a wish for thinking, again in
            one that the model takes, and keep to it: see :attr:`adaptations`.
        num_ctx: Tokens of context to load the model with. Without it the server's default counts,
            which is often far less than the model could take: what is longer is cut silently.
        keep_alive: How long the model stays loaded after a call: seconds, a text such as ``"10m"``,
            or a negative number for ever.

    Raises:
        ConfigurationError: The provider is not known, or the base URL is none.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str | None = None,
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
        num_ctx: int | None = None,
        keep_alive: float | str | None = None,
    ) -> None:
        named = os.environ.get("OLLAMA_HOST", "").strip() if base_url is None else base_url
        preset = choose_preset(provider, named, OLLAMA_SERVERS, default="ollama")
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
            endpoint,
            profile=profile or basic_profile(preset, model, profiles, num_ctx=num_ctx),
            settings=_settings(num_ctx, keep_alive).merged(settings),
            adapt=adapt,
            dispensable=frozenset({"thinking", "native_tools"}),
        )
        self._url = endpoint.url("api/chat")
        self._encoder = OllamaRequestEncoder(preset.name, model)

    @classmethod
    async def probe(
        cls,
        model: str,
        *,
        provider: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        http_client: HttpClient | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        timeout: float | Timeouts | None = PROBE_SECONDS,  # noqa: ASYNC109 - the transport's own
        http2: bool = False,
        num_ctx: int | None = None,
    ) -> ModelProfile:
        """Ask the server what a model can do: its context, tools, images, and thinking.

        The arguments are those of the class; pass the result as its ``profile=``. The context is
        ``num_ctx``, or else what the model's own parameters say, or else what it was trained for,
        and never more than that.

        Raises:
            ModelError: The server does not have the model, or cannot be asked.
        """
        asked = cls(
            model,
            provider=provider,
            api_key=api_key,
            base_url=base_url,
            http_client=http_client,
            headers=headers,
            query=query,
            timeout=timeout,
            http2=http2,
            num_ctx=num_ctx,
        )
        async with asked:
            return await show_model(asked._endpoint, asked._profile)

    async def warm_up(self) -> bool:
        """Have the server load the model, as the calls will want it, before the first of them.

        Returns:
            Whether it is loaded: not where the server answers with an error.

        Raises:
            NetworkError: There is no connection.
            ProviderTimeoutError: Loading took longer than ten minutes.
        """
        known = self._settings.provider_options
        own = {name: value for name, value in known.items() if name in RUNTIME_OPTIONS}
        options = {**(as_object(known.get("options")) or {}), **own}
        return await load_model(self._endpoint, options, keep_alive=known.get("keep_alive"))

    def _identity(self) -> Mapping[str, Any]:
        return {"api": "ollama", "url": self._url}

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
        thinks = "thinking" not in given_up
        body, tools = self._encoder.encode(request, settings, stream=stream, thinks=thinks)
        accept = {"accept": "application/x-ndjson"} if stream else None
        call = self._endpoint.call(self._url, body, settings, headers=accept)
        return call, partial(OllamaAssembler, tools, ids=ids_of(ctx))

    def _parser(self) -> JsonLineParser:
        return JsonLineParser(max_event_bytes=self.max_event_bytes)


def _settings(num_ctx: int | None, keep_alive: float | str | None) -> ModelSettings:
    given = {"num_ctx": num_ctx, "keep_alive": keep_alive}
    own = {name: value for name, value in given.items() if value is not None}
    return ModelSettings(provider_options=own) if own else ModelSettings()
