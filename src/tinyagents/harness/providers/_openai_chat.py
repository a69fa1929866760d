"""Models behind the Chat Completions API: OpenAI's, and everyone else's that follows it."""

import os
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

import orjson

from ..errors import ConfigurationError, MalformedResponseError, ModelError, NetworkError
from ..ids import IdGenerator, RandomIds
from ..model import (
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ModelStreamItem,
    StreamCompleted,
    drain,
)
from ..text import dump_json, parse_json
from ._errors import error_from_response, redacted, request_id
from ._json import as_object
from ._openai_request import ChatRequestEncoder, WireTools
from ._openai_response import ChatAssembler
from ._presets import (
    PROVIDERS,
    ProviderPreset,
    find_preset,
    split_base_url,
    split_credentials,
)
from ._profiles import derive_profile
from ._sse import ServerSentEvent, SseParser
from ._transport import HttpCall, HttpClient, HttpStream, HttpTransport, Timeouts

if TYPE_CHECKING:
    from ..context import RunContext

_DONE = b"[DONE]"
_SHORTEST_SECRET = 8
"""Characters: anything shorter protects nothing, and blotting it out would spoil plain words."""
_DOCUMENT_STARTS = frozenset({b"{", b"[", b'"', b"<"})
_EVENT_STARTS = frozenset({b"", b":", b"d", b"e", b"i", b"r", b"\xef"})
"""First bytes of an event stream: a comment, a field's name, a byte order mark, or a blank line."""
_USER_AGENT = "tinyagents"
_RANDOM_IDS = RandomIds()
_NO_SETTINGS = ModelSettings()


@dataclass(frozen=True, slots=True)
class _Sent:
    """A call on its way, and what is needed to understand its answer."""

    call: HttpCall
    tools: WireTools
    ids: IdGenerator
    audio_format: str


class OpenAIChatModel:
    """A model that is called through ``POST …/chat/completions``.

    Constructing one does no I/O. It may be shared by runs, event loops and threads. Connections are
    opened at the first call and closed by :meth:`aclose`, by ``async with model``, or when their
    event loop ends. The model neither retries nor falls back: the run does.

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
            closed: its timeouts hold, unless ``timeout`` is given too.
        headers: Sent with every request, above the adapter's own: a ``user-agent``, or an
            ``authorization`` in the place of a key.
        query: Query parameters of every request.
        timeout: Seconds for a call, or a limit for each phase of it.
        profile: What the model can do, where its name does not tell.
        settings: Beneath the settings of each request.
        http2: Offer HTTP/2; needs the extra ``http2``.

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
        settings: ModelSettings | None = None,
        http2: bool = False,
    ) -> None:
        if not model.strip():
            raise ConfigurationError("the name of the model is empty")
        preset = _preset_of(provider, base_url)
        self._model = model
        address, own_query = split_base_url(preset, _base_url_of(preset, base_url))
        # HTTP libraries log the addresses that they call.
        self._base_url, self._credentials = split_credentials(address)
        if not isinstance(provider, ProviderPreset) and not self._is_at_home(preset):
            # Only the provider's own servers are known to keep reasoning out of the text.
            preset = replace(preset, think_tags=True)
        self._preset = preset
        self._query = {**_query_of(preset, self._base_url), **own_query, **(query or {})}
        self._url = self._endpoint()
        self._given_key = api_key
        self._given_headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._settings = settings or _NO_SETTINGS
        self._profile = profile or derive_profile(preset, model)
        self._encoder = ChatRequestEncoder(preset, model)
        self._transport = HttpTransport(
            client=http_client,
            timeouts=None if timeout is None else Timeouts.of(timeout),
            http2=http2,
        )
        self._auth: tuple[Mapping[str, str], str] | None = None

    @property
    def profile(self) -> ModelProfile:
        """What the model can do."""
        return self._profile

    @property
    def preset(self) -> ProviderPreset:
        """What is known of its provider."""
        return self._preset

    @property
    def base_url(self) -> str:
        """Where the API is, without credentials."""
        return self._base_url

    @property
    def max_event_bytes(self) -> int:
        """The most that one event of a stream may hold."""
        return self._transport.max_event_bytes

    @property
    def cache_identity(self) -> str:
        """A digest of all that shapes an answer besides the request: endpoint, key and defaults."""
        key = self._key() or ""
        facts = {
            "api": "openai_chat",
            "provider": self._preset.name,
            "model": self._model,
            "url": self._url,
            "query": self._query,
            "key": sha256(key.encode()).hexdigest(),
            "settings": self._settings.model_dump(mode="json"),
            "preset": repr(self._preset),
        }
        return sha256(dump_json(facts, sort_keys=True).encode()).hexdigest()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._model!r}, provider={self._preset.name!r}, "
            f"base_url={self.base_url!r})"
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
        await self._transport.aclose()

    def check(self) -> None:
        """Make sure that a call could be sent. Nothing is sent.

        Raises:
            ConfigurationError: The key is missing; the message names the environment variable.
        """
        self._authorization()

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece.

        Cancelling closes the connection, so that the provider can stop.

        Raises:
            InvalidRequestError: The request cannot work; nothing was sent.
            ModelError: The call failed.
        """
        if self._preset.require_streaming:
            return await drain(self.stream(request, ctx=ctx))
        sent = self._prepare(request, ctx, stream=False)
        answer = await self._transport.post(sent.call)
        if answer.status >= 300:
            raise self._refused(answer.status, answer.headers, answer.body)
        return self.read_whole(answer.headers, answer.body, sent)[1]

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
        response = await self._transport.open(sent.call)
        try:
            if response.status >= 300:
                body = await response.read()
                raise self._refused(response.status, response.headers, body)
            reader = _AnswerReader(self, response, sent)
            while items := await reader.next_items():
                for item in items:
                    yield item
        finally:
            await response.aclose()

    # Sending

    def _prepare(
        self, request: ModelRequest, ctx: "RunContext[Any] | None", *, stream: bool
    ) -> _Sent:
        settings = self._settings.merged(request.settings)
        auth, _ = self._authorization()
        body, tools = self._encoder.encode(request, settings, stream=stream)
        headers = {**auth, **{k.lower(): v for k, v in settings.extra_headers.items()}}
        if stream:
            headers["accept"] = "text/event-stream"
        audio = as_object(settings.provider_options.get("audio")) or {}
        return _Sent(
            call=HttpCall(
                url=self._url,
                headers=headers,
                body=body,
                provider=self._preset.name,
                model=self._model,
                timeout=settings.timeout,
            ),
            tools=tools,
            ids=ctx.ids if ctx is not None else _RANDOM_IDS,
            audio_format=str(audio.get("format", "wav")),
        )

    def _authorization(self) -> tuple[Mapping[str, str], str]:
        """Return the headers of every request, and the key in them; made once."""
        if self._auth is None:
            key = self._key()
            if not key and self._preset.key_required and self._given_key is None:
                self._require_own_authorization()
            self._auth = ({**self._fixed_headers(key or ""), **self._given_headers}, key or "")
        return self._auth

    def _key(self) -> str | None:
        if self._given_key is not None:
            return self._given_key.strip()
        found = (os.environ.get(name, "").strip() for name in self._preset.key_env)
        return next(filter(None, found), None)

    def _require_own_authorization(self) -> None:
        """Let a missing key pass when the URL, the headers or the client authorise themselves."""
        header = _auth_header(self._preset.auth)
        client = self._transport.client
        if self._credentials is not None or header in self._given_headers:
            return
        if client is not None and header in client.headers:
            return
        variables = " or ".join(f"`{name}`" for name in self._preset.key_env) or "its variable"
        raise ConfigurationError(
            f"no key for {self._preset.name}: set {variables}, or pass api_key= "
            '(api_key="" for a server that needs none)'
        )

    def _fixed_headers(self, key: str) -> dict[str, str]:
        fixed = {
            "content-type": "application/json",
            "accept": "application/json",
            "user-agent": _USER_AGENT,
            **{name.lower(): value for name, value in self._preset.headers.items()},
        }
        if key and self._preset.auth != "none":
            if not key.isascii() or not key.isprintable():
                raise ConfigurationError(
                    f"the key for {self._preset.name} holds characters that no header can carry"
                )
            bearer = self._preset.auth == "bearer"
            fixed[_auth_header(self._preset.auth)] = f"Bearer {key}" if bearer else key
        if self._preset.auth == "anthropic":
            fixed["anthropic-version"] = "2023-06-01"
        if self._credentials is not None:
            fixed["authorization"] = f"Basic {b64encode(self._credentials.encode()).decode()}"
        return fixed

    def _is_at_home(self, preset: ProviderPreset) -> bool:
        if preset.base_url is None or preset.local:
            return True
        home = find_preset(self._base_url)
        return home is not None and home.name == preset.name

    def _endpoint(self) -> str:
        path = "chat/completions"
        host_end = self._base_url.find("/", self._base_url.index("//") + 2)
        if self._preset.bare_path is not None and host_end == -1:
            path = self._preset.bare_path.format(model=self._model)
        url = f"{self._base_url}/{path}"
        if not self._query:
            return url
        return f"{url}?{urlencode(self._query)}"

    # Reading

    def read_whole(
        self, headers: Mapping[str, str], body: bytes, sent: _Sent
    ) -> tuple[list[ModelStreamItem], ModelResponse]:
        """Read an answer that came in one piece: its items, without the last, and the response."""
        try:
            document = as_object(parse_json(body))
        except ValueError as exc:
            raise self._no_completion(headers, body, "no JSON") from exc
        if document is None:
            raise self._no_completion(headers, body, "no JSON object")
        assembler = self.assembler(headers, sent)
        items = assembler.add_whole(document)
        last, response = assembler.finish()
        return [*items, *last], response

    def assembler(self, headers: Mapping[str, str], sent: _Sent) -> ChatAssembler:
        return ChatAssembler(
            self._preset,
            self._model,
            sent.tools,
            ids=sent.ids,
            request_id=request_id(headers),
            secrets=self._secrets(),
            audio_format=sent.audio_format,
        )

    def _refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        return error_from_response(
            status,
            headers,
            body,
            provider=self._preset.name,
            model=self._model,
            secrets=self._secrets(),
        )

    def _no_completion(
        self, headers: Mapping[str, str], body: bytes, what: str
    ) -> MalformedResponseError:
        return MalformedResponseError(
            f"the answer is {what}: is `{self.base_url}` the base URL of the API?",
            provider=self._preset.name,
            model=self._model,
            status=200,
            request_id=request_id(headers),
            raw=redacted(body.decode("utf-8", "replace"), self._secrets())[:2_000],
        )

    def _secrets(self) -> Sequence[str]:
        key = self._authorization()[1]
        return (key,) if len(key) >= _SHORTEST_SECRET else ()


class _AnswerReader:
    """Reads a streamed answer, as many items at a time as came at once."""

    __slots__ = ("_assembler", "_ended", "_failure", "_model", "_parser", "_response", "_sent")

    def __init__(self, model: OpenAIChatModel, response: HttpStream, sent: _Sent) -> None:
        self._model = model
        self._response = response
        self._sent = sent
        self._parser: SseParser | None = None
        self._assembler = model.assembler(response.headers, sent)
        self._failure: ModelError | None = None
        self._ended = False

    async def next_items(self) -> list[ModelStreamItem]:
        """Return the next items; none after the last one.

        Raises:
            ModelError: The call failed. All items before the failure were returned.
        """
        while not self._ended:
            if self._failure is not None:
                raise self._failure
            chunk = await self._response.next_chunk()
            if self._parser is None:
                if chunk is not None and _is_document(self._response.headers, chunk):
                    return await self._whole(chunk)
                self._parser = SseParser(max_event_bytes=self._model.max_event_bytes)
            events = self._parser.finish() if chunk is None else self._parser.feed(chunk)
            items, done = self._take(events)
            if done or (chunk is None and not self._has_failed()):
                items += await self._finish(done=done)
            if items:
                return items
        return []

    def _has_failed(self) -> bool:
        # Asked by a call, since type checkers hold that nothing has changed since the first look.
        return self._failure is not None

    def _take(self, events: list[ServerSentEvent]) -> tuple[list[ModelStreamItem], bool]:
        """Return the items of the events, and whether the end mark was among them."""
        items: list[ModelStreamItem] = []
        try:
            for event in events:
                if event.data == _DONE:
                    return items, True
                chunk = self._decode(event)
                if chunk is not None:
                    items += self._assembler.add(chunk)
        except ModelError as exc:
            # What came before the failure is the reader's; it raises when asked for more.
            self._failure = exc
        return items, False

    def _decode(self, event: ServerSentEvent) -> dict[str, Any] | None:
        """Return the event's document; ``None`` for a keep-alive."""
        try:
            document = as_object(orjson.loads(event.data))
        except orjson.JSONDecodeError:
            document = as_object(self._decode_oddity(event))
        if event.event == b"error" and document is not None and not document.get("error"):
            return {"error": document}
        return document

    def _decode_oddity(self, event: ServerSentEvent) -> Any:
        if event.event == b"error":
            return {"error": event.data.decode("utf-8", "replace")}
        if not event.data.lstrip().startswith((b"{", b"[")):
            return None
        try:
            # The escapes of half a character, which orjson refuses and models do send.
            return parse_json(event.data)
        except ValueError as exc:
            # Skipping it would lose a piece of the answer without a sign.
            raise MalformedResponseError(
                f"a chunk of the stream is no JSON: {exc}", retryable=True, **self._facts()
            ) from exc

    async def _whole(self, first: bytes) -> list[ModelStreamItem]:
        """Take a plain document, which a server sent although it was asked for a stream."""
        self._ended = True
        body = await self._response.read(first)
        items, response = self._model.read_whole(self._response.headers, body, self._sent)
        return [*items, StreamCompleted(response)]

    async def _finish(self, *, done: bool) -> list[ModelStreamItem]:
        if not done and self._assembler.finish_reason is None:
            self._failure = NetworkError(
                "the stream ended before the answer was complete", **self._facts()
            )
            return []
        if not self._assembler.started:
            raise MalformedResponseError("the stream holds no answer", **self._facts())
        self._ended = True
        if done:
            await self._response.drain()
        items, response = self._assembler.finish()
        return [*items, StreamCompleted(response)]

    def _facts(self) -> dict[str, Any]:
        return {
            "provider": self._sent.call.provider,
            "model": self._sent.call.model,
            "request_id": request_id(self._response.headers),
        }


def _preset_of(provider: str | ProviderPreset | None, base_url: str | None) -> ProviderPreset:
    if isinstance(provider, ProviderPreset):
        return provider
    if provider is None:
        return (find_preset(base_url) if base_url else None) or PROVIDERS["openai"]
    try:
        return PROVIDERS[provider]
    except KeyError:
        known = ", ".join(sorted(PROVIDERS))
        raise ConfigurationError(f"`{provider}` is no known provider; known are {known}") from None


def _base_url_of(preset: ProviderPreset, given: str | None) -> str:
    if given is not None and (given.strip() or preset.local):
        return given
    named = os.environ.get(preset.base_url_env, "").strip() if preset.base_url_env else ""
    found = named or preset.base_url
    if found is None:
        hint = f", or set `{preset.base_url_env}`" if preset.base_url_env else ""
        raise ConfigurationError(f"{preset.name} needs a base URL: pass base_url={hint}")
    return found


def _query_of(preset: ProviderPreset, base_url: str) -> dict[str, str]:
    if preset.unversioned is not None and base_url.endswith(preset.unversioned):
        return {}
    named = {name: os.environ.get(env, "").strip() for name, env in preset.query_env.items()}
    return {**preset.query, **{name: value for name, value in named.items() if value}}


def _auth_header(auth: str) -> str:
    return {"bearer": "authorization", "anthropic": "x-api-key"}.get(auth, auth)


def _is_document(headers: Mapping[str, str], first: bytes) -> bool:
    """Whether a server answers a streaming request with a plain document after all."""
    head = first.lstrip()[:1]
    if head in _DOCUMENT_STARTS:
        return True
    if "event-stream" in headers.get("content-type", ""):
        return False
    return head not in _EVENT_STARTS
