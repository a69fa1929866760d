"""The words of HTTP that adapters and transport share: a call, its answer, and what a client must do."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


class HttpResponse(Protocol):
    """What is used of a response of httpx or httpx2."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, looked up in any case."""
        ...

    @property
    def is_stream_consumed(self) -> bool:
        """Whether the body was read already, by a hook of the client, and is kept."""
        ...

    def aiter_bytes(self, /) -> AsyncIterator[bytes]:
        """Read the body with its content encoding undone."""
        ...

    def aiter_raw(self, /) -> AsyncIterator[bytes]:
        """Read the body as it was sent."""
        ...

    async def aclose(self) -> None:
        """Give the connection back."""
        ...


class HttpClient(Protocol):
    """What is used of an ``AsyncClient`` of httpx or httpx2."""

    @property
    def headers(self) -> Any:
        """What the client sends with every request."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it can send nothing any more."""
        ...

    def build_request(
        self,
        method: str,
        url: str,
        /,
        *,
        content: Any = ...,
        headers: Any = ...,
        timeout: Any = ...,
    ) -> Any:
        """Prepare a request."""
        ...

    async def send(
        self, request: Any, /, *, stream: bool = ..., follow_redirects: bool = ...
    ) -> Any:
        """Send one; with ``stream`` its body is read later."""
        ...

    async def aclose(self) -> None:
        """Close the client and its connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds that the phases of a call may take; ``None`` for without end."""

    connect: float | None = 30.0
    """To connect."""
    total: float | None = 600.0
    """For a plain call, from sending it to the end of the answer."""
    idle: float | None = 300.0
    """For a streamed answer to begin, and between two pieces of it."""
    stream: float | None = None
    """For a streamed call, from sending it to the end of the answer."""

    @classmethod
    def of(cls, timeout: "float | Timeouts | None") -> "Timeouts":
        """Return timeouts from what a constructor takes: a number is for the whole of any call."""
        if isinstance(timeout, Timeouts):
            return timeout
        return cls() if timeout is None else cls(total=timeout, stream=timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    """One request, ready to be sent, and who it is for."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    """They hold the key, so they are kept out of ``repr``."""
    body: bytes = field(repr=False)
    provider: str
    model: str
    timeout: float | None = None
    """Seconds for this call, in the place of the transport's own."""
    method: Literal["GET", "POST"] = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
