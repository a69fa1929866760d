"""Runtimes on the user's machine: which models they have, what one can do, and loading it."""

from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from ..errors import ConfigurationError, ModelError
from ..model import Modality, ModelProfile, ModelSettings
from ..text import encode_json
from ._endpoint import Endpoint
from ._http import HttpAnswer, HttpClient, Timeouts
from ._json import as_integer, as_list, as_object, as_text
from ._ollama_profile import OLLAMA_PREFIXES, OLLAMA_SERVERS, basic_profile, told_profile
from ._presets import ServerPreset
from ._profiles import derive_profile
from ._provider_names import infer_provider

PROBE_SECONDS: Final = 10.0
"""Seconds for a question to a runtime."""
_LOADING_SECONDS: Final = 600.0
"""Seconds for a model to be loaded: large ones come from slow disks."""
_MOST_NAMES: Final = 50
"""Names of models that an error lists."""
_LATEST: Final = ":latest"


class LocalRuntime:
    """A model of Ollama, LM Studio, llama.cpp or vLLM, asked about outside of any call.

    Constructing one does no I/O. Connections are closed by :meth:`aclose`, by ``async with``, or when
    their event loop ends.

    Args:
        name: The runtime and its name for the model, as for
            :func:`~tinyagents.harness.providers.resolve_model`: ``lmstudio:qwen3-8b``.
        api_key: The key, where the runtime wants one.
        base_url: Where the runtime is: a URL, or a host with or without a port.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient``, used as it is and never
            closed.
        headers: Sent with every request.
        timeout: Seconds for a question.

    Raises:
        ConfigurationError: The name is of no local runtime, or the base URL is none.
    """

    def __init__(
        self,
        name: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        http_client: HttpClient | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | Timeouts = PROBE_SECONDS,
    ) -> None:
        preset, model, self._basic = _meant(name)
        self._endpoint = Endpoint(
            preset,
            model,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            http_client=http_client,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        endpoint = self._endpoint
        return (
            f"LocalRuntime('{endpoint.provider}:{endpoint.model}', base_url={endpoint.base_url!r})"
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

    async def list_models(self) -> list[str]:
        """Return the names of the models that the runtime has, sorted.

        Raises:
            ModelError: The runtime cannot be asked.
        """
        endpoint = self._endpoint
        if endpoint.provider == "ollama":
            listed = await _document(endpoint, "api/tags")
            return _names(listed.get("models"), "name")
        listed = await _document(endpoint, "v1/models")
        return _names(listed.get("data"), "id")

    async def validate_model(self) -> None:
        """Make sure that the runtime has the model. A runtime that lists none at all passes.

        Raises:
            ConfigurationError: It has others; the message lists them, and says what fetches this one.
            ModelError: The runtime cannot be asked.
        """
        names, model = await self.list_models(), self._endpoint.model
        if not names or model in names or f"{model}{_LATEST}" in names:
            return
        listed = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        advice = (self._endpoint.missing_model or "").format(model=model)
        raise ConfigurationError(
            f"{self._endpoint.provider} at {self._endpoint.base_url} has no model `{model}`, but "
            f"{listed}{more}" + (f": {advice}" if advice else "")
        )

    async def probe_model(self) -> ModelProfile:
        """Return what the runtime tells of the model: its context, tools, images and thinking.

        The context is the one that the model is loaded with, where the runtime says so, and otherwise
        the one that it was trained for. What a runtime does not tell, or answers with an error, stays
        as it is without asking: mostly not known.

        Raises:
            NetworkError: There is no connection.
            ProviderTimeoutError: The answer took too long.
        """
        match self._endpoint.provider:
            case "ollama":
                shown = await _maybe(_show(self._endpoint))
                return self._basic if shown is None else told_profile(self._basic, shown)
            case "lmstudio":
                return await self._probe_lmstudio()
            case _:
                return await self._probe_server()

    async def warm_up(
        self, *, num_ctx: int | None = None, keep_alive: float | str | None = None
    ) -> bool:
        """Load the model, so that the first call need not wait for it. Only Ollama is asked to.

        Args:
            num_ctx: Tokens of context to load it with: those of the calls, or they load it again.
            keep_alive: How long it stays loaded: seconds, a text such as ``"10m"``, or a negative
                number for ever.

        Returns:
            Whether it is loaded: not where the server answers with an error.

        Raises:
            NetworkError: There is no connection.
            ProviderTimeoutError: Loading took longer than ten minutes.
        """
        if self._endpoint.provider != "ollama":
            return False
        options = {} if num_ctx is None else {"num_ctx": num_ctx}
        return await load_model(self._endpoint, options, keep_alive=keep_alive)

    async def _probe_lmstudio(self) -> ModelProfile:
        listed = await _maybe(_document(self._endpoint, "api/v0/models"))
        found = _entry(listed, "data", "id", self._endpoint.model)
        if found is not None:
            return _lmstudio_profile(self._basic, found)
        # https://lmstudio.ai/docs/developer/rest: the listing of 0.4 and later.
        listed = await _maybe(_document(self._endpoint, "api/v1/models"))
        found = _entry(listed, "models", "key", self._endpoint.model)
        return self._basic if found is None else _lmstudio_profile(self._basic, _as_v0(found))

    async def _probe_server(self) -> ModelProfile:
        """Ask llama.cpp or vLLM, which serve few models and tell little of them."""
        listed = await _maybe(_document(self._endpoint, "v1/models"))
        found = _entry(listed, "data", "id", self._endpoint.model)
        props = None
        if self._endpoint.provider == "llama_cpp":
            # It serves the one model that it has, whatever name is asked for.
            found = found or _only(listed)
            props = await _maybe(_document(self._endpoint, "props"))
        return _server_profile(self._basic, found or {}, props or {})


async def show_model(endpoint: Endpoint, basic: ModelProfile) -> ModelProfile:
    """Return what an Ollama server tells of a model.

    Raises:
        ModelError: The server does not have the model, or cannot be asked.
    """
    return told_profile(basic, await _show(endpoint))


async def load_model(
    endpoint: Endpoint, options: Mapping[str, Any], *, keep_alive: float | str | None
) -> bool:
    """Have an Ollama server load a model with options of the runtime; whether it did.

    Raises:
        NetworkError: There is no connection.
        ProviderTimeoutError: It took too long.
    """
    body: dict[str, Any] = {"model": endpoint.model, "stream": False}
    if options:
        body["options"] = dict(options)
    if keep_alive is not None:
        body["keep_alive"] = keep_alive
    settings = ModelSettings(timeout=_LOADING_SECONDS)
    call = endpoint.call(_address(endpoint, "api/generate"), encode_json(body), settings)
    try:
        await endpoint.post(call)
    except ModelError as error:
        if error.status is None:
            raise
        return False
    return True


# Asking


async def _show(endpoint: Endpoint) -> dict[str, Any]:
    body = encode_json({"model": endpoint.model})
    call = endpoint.call(_address(endpoint, "api/show"), body, ModelSettings())
    return _read(endpoint, await endpoint.post(call))


async def _document(endpoint: Endpoint, path: str) -> dict[str, Any]:
    call = endpoint.question(_address(endpoint, path))
    return _read(endpoint, await endpoint.post(call))


def _read(endpoint: Endpoint, answer: HttpAnswer) -> dict[str, Any]:
    return endpoint.origin(answer.headers).document(answer.body)


async def _maybe(asked: Awaitable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what was asked for; ``None`` where the server answers something else."""
    try:
        return await asked
    except ModelError as error:
        if error.status is None:
            raise
        return None


def _address(endpoint: Endpoint, path: str) -> str:
    """Return an address at the runtime itself, beside its OpenAI surface."""
    return f"{endpoint.base_url.removesuffix('/v1')}/{path}"


# What was told


def _meant(name: str) -> tuple[ServerPreset, str, ModelProfile]:
    """Return the runtime and the model that a name means, and what is known of it unasked."""
    prefix, _, rest = name.strip().partition(":")
    native = OLLAMA_SERVERS[OLLAMA_PREFIXES.get(prefix.strip().lower(), "ollama")]
    if prefix.strip().lower() in OLLAMA_PREFIXES and native.local:
        model = rest.strip() or native.default_model or ""
        return native, model, basic_profile(native, model, None, num_ctx=None)
    preset, model = infer_provider(name)
    if not preset.local:
        raise ConfigurationError(
            f"`{name}` is of no local runtime: those are `ollama:`, `ollama_native:`, `lmstudio:`, "
            "`llama_cpp:` and `vllm:`"
        )
    profile = derive_profile(preset, model)
    return (native if preset.name == "ollama" else preset), model, profile


def _names(listed: Any, field: str) -> list[str]:
    entries = map(as_object, as_list(listed) or ())
    return sorted({name for one in entries if one and (name := as_text(one.get(field)))})


def _entry(
    listed: Mapping[str, Any] | None, field: str, name: str, model: str
) -> Mapping[str, Any] | None:
    """Return the entry of a model in a listing."""
    entries = map(as_object, as_list((listed or {}).get(field)) or ())
    return next((one for one in entries if one and one.get(name) == model), None)


def _only(listed: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    entries = as_list((listed or {}).get("data")) or []
    return as_object(entries[0]) if len(entries) == 1 else None


def _as_v0(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of LM Studio's newer listing as the older one has it."""
    able = as_object(entry.get("capabilities")) or {}
    instances = filter(None, map(as_object, as_list(entry.get("loaded_instances")) or ()))
    configs = (as_object(one.get("config")) or {} for one in instances)
    sizes = [size for config in configs if (size := _count(config.get("context_length")))]
    return {
        "type": "vlm" if able.get("vision") is True else entry.get("type"),
        "max_context_length": entry.get("max_context_length"),
        "loaded_context_length": min(sizes, default=None),
    }


def _lmstudio_profile(basic: ModelProfile, entry: Mapping[str, Any]) -> ModelProfile:
    loaded, trained = entry.get("loaded_context_length"), entry.get("max_context_length")
    return _profile(
        basic, _count(loaded) or _count(trained), vision=entry.get("type") == "vlm", audio=False
    )


def _server_profile(
    basic: ModelProfile, entry: Mapping[str, Any], props: Mapping[str, Any]
) -> ModelProfile:
    """Return what an entry of ``/v1/models`` and llama.cpp's ``/props`` tell."""
    meta = as_object(entry.get("meta")) or {}
    loaded = (as_object(props.get("default_generation_settings")) or {}).get("n_ctx")
    modalities = as_object(props.get("modalities")) or {}
    size = _count(loaded) or _count(entry.get("max_model_len")) or _count(meta.get("n_ctx_train"))
    vision, audio = (modalities.get(kind) is True for kind in ("vision", "audio"))
    return _profile(basic, size, vision=vision, audio=audio)


def _profile(
    basic: ModelProfile, context: int | None, *, vision: bool, audio: bool
) -> ModelProfile:
    inputs: set[Modality] = {"text"}
    if vision:
        inputs.add("image")
    if audio:
        inputs.add("audio")
    changes = {"max_input_tokens": context, "input_modalities": frozenset(inputs)}
    return basic.model_copy(update=changes)


def _count(value: Any) -> int | None:
    """Return a number of tokens, if it is one."""
    number = as_integer(value)
    return number if number and number > 0 else None
