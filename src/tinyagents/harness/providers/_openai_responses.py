"""Models behind OpenAI's Responses API, and the servers that follow it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..model import ModelProfile, ModelRequest, ModelSettings
from ._adaptation import Variants
from ._endpoint import Endpoint, Origin
from ._http import HttpCall, HttpClient, Timeouts
from ._http_model import HttpModel, ids_of
from ._openai_wire import not_strict
from ._profile_table import ProfileTable
from ._profiles import derive_profile
from ._provider_names import choose_preset
from ._reader import AnswerAssembler
from ._responses_presets import RESPONSES_PROVIDERS, ResponsesPreset
from ._responses_request import ResponsesRequestEncoder
from ._responses_response import ResponsesAssembler
from ._shapes import Shape, dispensable

if TYPE_CHECKING:
    from ..context import RunContext


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
        profiles: ProfileTable | None = None,
        settings: ModelSettings | None = None,
        http2: bool = False,
        adapt: bool = True,
        prompt_cache_key: bool = False,
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
            endpoint,
            profile=profile or derive_profile(preset, model, profiles),
            settings=settings,
            adapt=adapt,
            dispensable=dispensable(preset),
            native_tools=preset.native_tools,
        )
        self._preset = preset
        bare = preset.bare_path if endpoint.has_bare_host else None
        self._url = endpoint.url(bare or "responses")
        reasons = self.profile.reasoning is True
        self._variants = Variants(
            preset,
            lambda known: ResponsesRequestEncoder(
                known, model, reasons=reasons, cache_key=prompt_cache_key
            ),
        )

    @property
    def preset(self) -> ResponsesPreset:
        """What is known of its provider."""
        return self._preset

    def _streams(self, request: ModelRequest) -> bool:
        # A call with `background` does not wait for its answer, but a stream does.
        options = self._settings.merged(request.settings).provider_options
        return self._preset.require_streaming is True or bool(options.get("background"))

    def _identity(self) -> Mapping[str, Any]:
        return {"api": "openai_responses", "url": self._url, "preset": repr(self._preset)}

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
        call = self._endpoint.call(self._url, body, settings, headers=accept)
        return call, partial(ResponsesAssembler, preset, tools, ids=ids_of(ctx))
