"""From a reference to its bytes, by the way that its form asks for and the policy allows."""

import base64
import os
import re
import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NoReturn, TypeAlias
from urllib.parse import unquote, urlsplit

from ..concurrency import in_thread
from ..errors import FetchError, FetchRefusedError, MediaInputError, UnsafePathError
from ..gunzip import Gunzip
from ..safe_open import open_inside
from ._policy import InputPolicy

Media: TypeAlias = Literal["image", "file"]

_LONGEST_SHOWN = 200
_LONGEST_NAME = 255
_LONGEST_HEAD = 1_000
"""Characters of a data URI before its data."""
_QUICK = 2**16
"""Characters that are decoded at once; more go to a thread."""
_GZIP: Final = frozenset({"application/gzip", "application/x-gzip"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}://")
_MISSING: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The bytes behind a reference, and what was said of them."""

    content: bytes = field(repr=False)
    said: str = ""
    """The type that a header or a data URI names."""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A reference that is being loaded."""

    reference: str
    media: Media
    max_bytes: int

    @property
    def shown(self) -> str:
        """The reference for errors: short, and without credentials, query and data."""
        if _is_data(self.reference):
            return f"{self.reference.partition(',')[0][:_LONGEST_SHOWN]},…"
        scheme, mark, rest = self.reference.partition("://")
        if not mark:
            return self.reference[:_LONGEST_SHOWN]
        place, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
        return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"[:_LONGEST_SHOWN]

    def failed(
        self, reason: str, why: str, *, limit: int | None = None, retryable: bool = False
    ) -> MediaInputError:
        """Return the error that says what was wrong with the reference."""
        return MediaInputError(
            f"the {self.media} {self.shown!r} {why}",
            media=self.media,
            reason=reason,
            reference=self.shown,
            limit=limit,
            retryable=retryable,
        )

    def too_large(self, limit: int | None = None) -> MediaInputError:
        """Return the error of more bytes than are allowed; ``limit``: where that was less."""
        most = self.max_bytes if limit is None else limit
        return self.failed("size", f"is larger than {most} bytes", limit=most)


async def read_source(request: Request, policy: InputPolicy) -> Source:
    """Return the bytes behind a reference.

    Raises:
        MediaInputError: It could not be had, or may not.
    """
    reference = request.reference
    if _is_data(reference):
        decode = partial(_decode, request)
        return decode() if len(reference) <= _QUICK else await in_thread(decode)
    if reference[:8].lower().startswith(("http://", "https://")):
        return await _fetch(request, policy)
    if not reference or _SCHEME.match(reference):
        raise request.failed("bad_reference", "is no path, no data URI and no address of http")
    return await _read_local(request, policy)


def _base_name(path: str) -> str:
    """Return the last part of a path of any system, or the end of it: it is a name, and no path."""
    name = re.split(r"[/\\]", path)[-1].strip()
    return "" if name in (".", "..") else name[-_LONGEST_NAME:]


def _is_data(reference: str) -> bool:
    return reference[:5].lower() == "data:"


def _decode(request: Request) -> Source:
    """Undo a data URI (RFC 2397) in base64, and gzip inside of it."""
    head, comma, body = request.reference.partition(",")
    kind, *parameters = (part.strip() for part in head[5:].split(";"))
    if (
        not comma
        or len(head) > _LONGEST_HEAD
        or not parameters
        or parameters[-1].lower() != "base64"
    ):
        raise request.failed("bad_reference", "is no data URI in base64")
    content = _from_base64(request, unquote(body) if "%" in body else body)
    named = {
        name.strip().lower(): unquote(value.strip().strip('"'))
        for name, _, value in (part.partition("=") for part in parameters)
    }
    if kind.lower() in _GZIP and "original_mime" in named:
        kind, content = named["original_mime"], _unpacked(request, content)
    return Source(content=content, said=kind, name=_base_name(named.get("name", "")))


def _from_base64(request: Request, text: str) -> bytes:
    text = "".join(text.split()).rstrip("=")
    if len(text) * 3 // 4 > request.max_bytes:
        raise request.too_large()
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError as exc:
        raise request.failed("bad_reference", "holds data that is not base64") from exc


def _unpacked(request: Request, packed: bytes) -> bytes:
    unpacker, content = Gunzip(), bytearray()
    unpacker.feed(packed)
    try:
        while piece := unpacker.piece():
            content += piece
            if len(content) > request.max_bytes:
                raise request.too_large()
    except zlib.error as exc:
        raise request.failed("bad_reference", "holds data that is not gzip") from exc
    if not unpacker.complete:
        raise request.failed("bad_reference", "holds gzip data without an end")
    return bytes(content)


async def _fetch(request: Request, policy: InputPolicy) -> Source:
    if policy.fetch is None:
        raise request.failed("disabled", "is an address, and the policy has no `fetch`")
    try:
        fetched = await policy.fetch.get(request.reference, max_bytes=request.max_bytes)
    except FetchError as exc:
        _raise_fetch_error(request, exc)
    if not 200 <= fetched.status < 300:
        raise request.failed(
            "not_found" if fetched.status in _MISSING else "fetch_failed",
            f"was answered with HTTP {fetched.status}",
            retryable=fetched.status == 429 or fetched.status >= 500,
        )
    return Source(
        content=fetched.content,
        said=fetched.headers.get("content-type", ""),
        name=_base_name(unquote(urlsplit(fetched.url).path)),
    )


def _raise_fetch_error(request: Request, exc: FetchError) -> NoReturn:
    if isinstance(exc, FetchRefusedError):
        raise request.failed("refused", f"was refused: {exc.message}") from exc
    if exc.reason == "size":
        raise request.too_large(exc.limit) from exc
    raise request.failed(
        "fetch_failed", f"has failed: {exc.message}", retryable=exc.retryable
    ) from exc


async def _read_local(request: Request, policy: InputPolicy) -> Source:
    if policy.root is None:
        raise request.failed("disabled", "is a path, and the policy has no `root`")
    try:
        content = await in_thread(partial(_read_inside, policy.root, request))
    except UnsafePathError as exc:
        reason = "bad_reference" if exc.reason == "name" else "refused"
        raise request.failed(reason, f"was refused: {exc.message}") from exc
    except (FileNotFoundError, NotADirectoryError) as exc:
        if not await in_thread(partial(os.path.isdir, policy.root)):
            raise request.failed("read_failed", "cannot be read: `root` is no folder") from exc
        raise request.failed("not_found", "does not exist") from exc
    except OSError as exc:
        raise request.failed(
            "read_failed", f"cannot be read: {exc.strerror or type(exc).__name__}"
        ) from exc
    return Source(content=content, name=_base_name(request.reference))


def _read_inside(root: str | os.PathLike[str], request: Request) -> bytes:
    with open_inside(root, request.reference) as file:
        if os.fstat(file.fileno()).st_size > request.max_bytes:
            raise request.too_large()
        # It may grow, and what the system makes up says that it is empty.
        content = file.read(request.max_bytes + 1)
    if len(content) > request.max_bytes:
        raise request.too_large()
    return content
