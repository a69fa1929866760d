"""Where the calls of an adapter go, what lets them in, and what comes of their failures.

An adapter holds one :class:`Endpoint` and adds what is its API's own: paths, bodies, answers.
"""

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..cache import credential_fingerprint
from ..errors import ConfigurationError, MalformedResponseError, ModelError
from ..model import ModelSettings
from ..text import dump_json, parse_json
from ._base_url import split_base_url, split_credentials
from ._errors import error_from_payload, error_from_response, redacted, request_id
from ._http import HttpAnswer, HttpCall, HttpClient, Timeouts
from ._json import as_object
from ._presets import ServerPreset
from ._transport import HttpStream, HttpTransport

_SHORTEST_SECRET = 8
"""Characters: anything shorter protects nothing, and blotting it out would spoil plain words."""
_LONGEST_EXCERPT = 2_000
"""Characters of a body that is no answer, kept in the error."""
_USER_AGENT = "tinyagents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose answer it is that is being read: what the errors about it say."""

    provider: str
    model: str
    base_url: str
    request_id: str | None
    secrets: Sequence[str] = field(default=(), repr=False)
    """Texts that no error may repeat."""

    @property
    def facts(self) -> dict[str, Any]:
        """The arguments that every :class:`~tinyagents.harness.errors.ModelError` takes."""
        return {"provider": self.provider, "model": self.model, "request_id": self.request_id}

    def document(self, body: bytes) -> dict[str, Any]:
        """Return the JSON object that a whole answer is.

        Raises:
            MalformedResponseError: It is none.
        """
        try:
            document = as_object(parse_json(body))
        except ValueError as exc:
            raise self._no_answer(body, "no JSON") from exc
        if document is None:
            raise self._no_answer(body, "no JSON object")
        return document

    def failure(self, payload: Any) -> ModelError:
        """Return the error that a payload inside an answer of status 200 stands for."""
        return error_from_payload(
            payload,
            provider=self.provider,
            model=self.model,
            request_id=self.request_id,
            secrets=self.secrets,
        )

    def malformed(self, message: str, raw: Any) -> MalformedResponseError:
        """Return the error for an answer that is not understood."""
        return MalformedResponseError(
            message, status=200, raw=redacted(raw, self.secrets), **self.facts
        )

    def _no_answer(self, body: bytes, what: str) -> MalformedResponseError:
        return MalformedResponseError(
            f"the answer is {what}: is `{self.base_url}` the base URL of the API?",
            status=200,
            raw=redacted(body.decode("utf-8", "replace"), self.secrets)[:_LONGEST_EXCERPT],
            **self.facts,
        )


_ADAPTER_VERSION = 1
"""To be raised when what is sent or read of the same request becomes something else."""


class Endpoint:
    """One model at one server. Constructing it does no I/O; it owns the connections.

    Args:
        preset: What is known of the server.
        model: The server's name for the model.
        api_key: The key; ``""`` for none. Not given, the environment is asked at the first call.
        base_url: In the place of the preset's.
        headers: Sent with every request, above all others that are fixed.
        query: Query parameters of every request.
        http_client: The caller's own client, never closed.
        timeout: Seconds for a call, or a limit for each phase of it.
        http2: Offer HTTP/2.

    Raises:
        ConfigurationError: The model has no name, no base URL is known, it is no address, or the
            caller's client is closed.
    """

    def __init__(
        self,
        preset: ServerPreset,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        http_client: HttpClient | None = None,
        timeout: float | Timeouts | None = None,
        http2: bool = False,
    ) -> None:
        if not model.strip():
            raise ConfigurationError("the name of the model is empty")
        self._preset = preset
        self._model = model
        address, own_query = _split(preset, _base_url_of(preset, base_url))
        # HTTP libraries log the addresses that they call.
        self._base_url, self._credentials = split_credentials(address)
        self._query = {**_query_of(preset, self._base_url), **own_query, **(query or {})}
        self._given_key = api_key
        self._given_headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._transport = HttpTransport(
            client=http_client,
            timeouts=None if timeout is None else Timeouts.of(timeout),
            http2=http2,
        )
        self._auth: tuple[Mapping[str, str], str] | None = None

    @property
    def provider(self) -> str:
        """What errors, profiles and ``provider_data`` call the server."""
        return self._preset.name

    @property
    def model(self) -> str:
        """The server's name for the model."""
        return self._model

    @property
    def base_url(self) -> str:
        """Where the API is, without credentials, query and a slash at its end."""
        return self._base_url

    @property
    def missing_model(self) -> str | None:
        """What helps when the server does not have the model; may hold ``{model}``."""
        return self._preset.missing_model

    @property
    def has_bare_host(self) -> bool:
        """Whether the base URL ends with its host."""
        return "/" not in self._base_url.partition("//")[2]

    @property
    def max_event_bytes(self) -> int:
        """The most that one event of a stream may hold."""
        return self._transport.max_event_bytes

    def url(self, path: str, *, query: Mapping[str, str] | None = None) -> str:
        """Return the address of a path below the base URL, with the parameters of every request."""
        url = f"{self._base_url}/{path}"
        parameters = {**self._query, **(query or {})}
        return f"{url}?{urlencode(parameters)}" if parameters else url

    @property
    def credential(self) -> str:
        """What tells the credentials of calls from others, and nothing of what they are."""
        return credential_fingerprint(self._secret())

    def identity(self, facts: Mapping[str, Any]) -> str:
        """Return a digest of the server, the model, the credentials and an adapter's own facts."""
        known = {
            "adapter": _ADAPTER_VERSION,
            "provider": self.provider,
            "model": self._model,
            "query": self._query,
            "credential": self.credential,
        }
        return sha256(dump_json({**known, **facts}, sort_keys=True).encode()).hexdigest()

    # Sending

    def check(self) -> None:
        """Make sure that a call could be sent. Nothing is sent.

        Raises:
            ConfigurationError: The key is missing; the message names the environment variable.
        """
        self._authorization()

    def call(
        self,
        url: str,
        body: bytes,
        settings: ModelSettings,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> HttpCall:
        """Return a request that is ready to be sent.

        Args:
            url: One that :meth:`url` returned.
            body: JSON.
            settings: Where a timeout and further headers are taken from.
            headers: What this call cannot do without, above all others; names in lower case.

        Raises:
            ConfigurationError: The key is missing.
        """
        fixed, _ = self._authorization()
        extra = {name.lower(): value for name, value in settings.extra_headers.items()}
        return HttpCall(
            url=url,
            headers={**fixed, **extra, **(headers or {})},
            body=body,
            provider=self.provider,
            model=self._model,
            timeout=settings.timeout,
        )

    def question(self, url: str) -> HttpCall:
        """Return a request that asks for what is at an address.

        Raises:
            ConfigurationError: The key is missing.
        """
        fixed, _ = self._authorization()
        return HttpCall(
            url=url,
            headers=fixed,
            body=b"",
            provider=self.provider,
            model=self._model,
            method="GET",
        )

    async def post(self, call: HttpCall) -> HttpAnswer:
        """Send a request and read the whole answer.

        Raises:
            ModelError: There is none, or its status is not one of success.
        """
        answer = await self._transport.post(call)
        if answer.status >= 300:
            raise self._refused(answer.status, answer.headers, answer.body)
        return answer

    async def open(self, call: HttpCall) -> HttpStream:
        """Send a request and return the answer to be read as it comes. The caller closes it.

        Raises:
            ModelError: There is none, or its status is not one of success; it was closed.
        """
        response = await self._transport.open(call)
        if response.status < 300:
            return response
        try:
            body = await response.read()
        finally:
            await response.aclose()
        raise self._refused(response.status, response.headers, body)

    def origin(self, headers: Mapping[str, str]) -> Origin:
        """Return whose answer it is that came with these headers."""
        return Origin(
            provider=self.provider,
            model=self._model,
            base_url=self._base_url,
            request_id=request_id(headers),
            secrets=self._secrets(),
        )

    async def aclose(self) -> None:
        """Close the connections of this event loop; a client that was passed in stays open."""
        await self._transport.aclose()

    # What lets a call in

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

    def _secret(self) -> str | None:
        """Return all that authorises a call or travels with it, in one text; ``None`` for nothing."""
        client, names = self._transport.client, (_auth_header(self._preset.auth), "authorization")
        theirs = [] if client is None else [client.headers[n] for n in names if n in client.headers]
        given = [self._key(), self._credentials, self._given_headers, theirs]
        return dump_json(given, sort_keys=True) if any(given) else None

    def _require_own_authorization(self) -> None:
        """Let a missing key pass when the URL, the headers or the client authorise themselves."""
        header = _auth_header(self._preset.auth)
        client = self._transport.client
        if self._credentials is not None or {header, "authorization"} & self._given_headers.keys():
            return
        if client is not None and header in client.headers:
            return
        variables = " or ".join(f"`{name}`" for name in self._preset.key_env) or "its variable"
        raise ConfigurationError(
            f"no key for {self.provider}: set {variables}, or pass api_key= "
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
                    f"the key for {self.provider} holds characters that no header can carry"
                )
            bearer = self._preset.auth == "bearer"
            fixed[_auth_header(self._preset.auth)] = f"Bearer {key}" if bearer else key
        if self._preset.auth == "anthropic":
            fixed["anthropic-version"] = "2023-06-01"
        if self._credentials is not None:
            fixed["authorization"] = f"Basic {b64encode(self._credentials.encode()).decode()}"
        return fixed

    def _refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        return error_from_response(
            status,
            headers,
            body,
            provider=self.provider,
            model=self._model,
            secrets=self._secrets(),
            missing_model=self._preset.missing_model,
        )

    def _secrets(self) -> Sequence[str]:
        key = self._authorization()[1]
        return (key,) if len(key) >= _SHORTEST_SECRET else ()


def _base_url_of(preset: ServerPreset, given: str | None) -> str:
    if given is not None and (given.strip() or preset.local):
        return given
    named = os.environ.get(preset.base_url_env, "").strip() if preset.base_url_env else ""
    found = named or preset.base_url
    if found is None:
        hint = f", or set `{preset.base_url_env}`" if preset.base_url_env else ""
        raise ConfigurationError(f"{preset.name} needs a base URL: pass base_url={hint}")
    return found


def _split(preset: ServerPreset, base_url: str) -> tuple[str, dict[str, str]]:
    try:
        address, query = split_base_url(preset, base_url)
        _ = urlsplit(address).port  # reading it checks it
    except ConfigurationError:
        raise
    except ValueError:
        # From nothing, and without the address: what cannot be taken apart may hold a password.
        raise ConfigurationError(
            f"the base URL of {preset.name} is no address: check its host and its port"
        ) from None
    return address, query


def _query_of(preset: ServerPreset, base_url: str) -> dict[str, str]:
    if preset.unversioned is not None and base_url.endswith(preset.unversioned):
        return {}
    named = {name: os.environ.get(env, "").strip() for name, env in preset.query_env.items()}
    return {**preset.query, **{name: value for name, value in named.items() if value}}


def _auth_header(auth: str) -> str:
    return {"bearer": "authorization", "anthropic": "x-api-key"}.get(auth, auth)
