"""A tool that reads addresses on the web, within an allow-list."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from ..concurrency import in_thread
from ..errors import ConfigurationError, FetchError
from ..guarded_fetch import Fetched, FetchLimits, GuardedFetch, HostPolicy
from ..text import JsonObject, window
from ..tool import Tool, ToolError, ToolPolicy, ToolResult, ToolRuntime, ToolSideEffects
from ._page import Page, read_page

_SAFE_METHODS = frozenset({"GET", "HEAD"})
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_LIMITS = FetchLimits(max_bytes=2 * 2**20, seconds=20.0)
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}(?:; ?charset=[\w-]{1,30})?", re.ASCII)
_LONGEST_BODY = 256 * 1024
_LONGEST_LINE = 500


def http_fetch_tool(
    *,
    hosts: Collection[str] | None = None,
    methods: Sequence[str] = ("GET", "HEAD"),
    headers: Mapping[str, Mapping[str, str]] | None = None,
    max_characters: int = 20_000,
    limits: FetchLimits | None = None,
    fetch: GuardedFetch | None = None,
    name: str = "http_fetch",
) -> Tool:
    """Make a tool with which a model reads addresses of the hosts that you name, and no others.

    Names are looked up once, and what stands for an address outside of the public internet is refused;
    so is every redirect that leads to such a place or out of the list. HTML is told as text, JSON with
    indents, and of anything else than text its type and size. What the pages say is other people's
    text: a model may take it for instructions.

    Args:
        hosts: ``example.com``, or ``*.example.com`` for all names below it; over the usual ports.
        methods: What the model may ask with. Those beyond ``GET`` and ``HEAD`` send what the model
            writes to the host, and change things there.
        headers: What to send to an origin, such as its key: ``{"https://api.example.com": {...}}``.
            Models do not see it, and nobody else gets it, after a redirect or over plain HTTP.
        max_characters: How much of a text the model gets at once; it can ask for what follows.
        limits: How much one call may bring, and how long it may take; 2 MiB and 20 s by default.
        fetch: How addresses are reached, with a policy of its own, in the place of ``hosts`` and
            ``limits``; the policy must name its hosts.
        name: The tool's name.

    Raises:
        ConfigurationError: No hosts are named, or a host, a method or a limit cannot be one.
    """
    guarded = _guarded(hosts, limits, fetch)
    unknown = [method for method in methods if method not in _METHODS]
    if unknown or not methods or isinstance(methods, str):
        raise ConfigurationError(f"`methods` of `{name}` takes some of {', '.join(_METHODS)}")
    if max_characters < 1:
        raise ConfigurationError(f"`max_characters` of `{name}` must be above 0")
    caller = _Caller(
        fetch=guarded,
        methods=tuple(methods),
        headers={_own_origin(url): dict(each) for url, each in (headers or {}).items()},
        max_characters=max_characters,
    )
    return Tool.from_schema(
        caller,
        name=name,
        description=_description(guarded, methods),
        parameters=_parameters(methods),
        policy=_policy(methods),
    )


def _guarded(
    hosts: Collection[str] | None, limits: FetchLimits | None, fetch: GuardedFetch | None
) -> GuardedFetch:
    if fetch is not None and (hosts is not None or limits is not None):
        raise ConfigurationError("`fetch` has its own hosts and limits: pass either it or those")
    if fetch is None:
        fetch = GuardedFetch(hosts=HostPolicy(hosts=hosts), limits=limits or _LIMITS)
    if not fetch.hosts.hosts:
        raise ConfigurationError(
            "a tool that fetches needs to know from where: name the hosts, as in "
            '`http_fetch_tool(hosts=["docs.example.com"])`'
        )
    return fetch


def _description(fetch: GuardedFetch, methods: Sequence[str]) -> str:
    hosts = ", ".join(sorted(fetch.hosts.hosts or ()))
    what = "Read an address on the web" if _SAFE_METHODS.issuperset(methods) else "Send a request"
    return f"{what}. The hosts that can be reached are: {hosts}."


def _parameters(methods: Sequence[str]) -> JsonObject:
    properties: dict[str, Any] = {
        "url": {"type": "string", "description": "The address, with http:// or https://."},
        "start": {
            "type": "integer",
            "minimum": 0,
            "description": "The character of the text to begin at; 0 by default.",
        },
        "as_sent": {
            "type": "boolean",
            "description": "Give HTML and JSON as they were sent, and not as text.",
        },
    }
    if len(methods) > 1:
        properties["method"] = {
            "type": "string",
            "enum": list(methods),
            "description": f"{methods[0]} by default.",
        }
    if not _SAFE_METHODS.issuperset(methods):
        properties["body"] = {"type": "string", "description": "What to send."}
        properties["content_type"] = {
            "type": "string",
            "description": "The media type of the body; application/json by default.",
        }
    return {
        "type": "object",
        "properties": properties,
        "required": ["url"],
        "additionalProperties": False,
    }


def _policy(methods: Sequence[str]) -> ToolPolicy:
    safe = _SAFE_METHODS.issuperset(methods)
    return ToolPolicy(
        side_effects=ToolSideEffects(
            read_only=safe,
            network=True,
            external_service=not safe,
            destructive="DELETE" in methods,
        ),
        runtime=ToolRuntime(idempotent=safe, cancelable=safe),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    """Answers the calls of the tool."""

    fetch: GuardedFetch
    methods: tuple[str, ...]
    headers: Mapping[str, Mapping[str, str]] = field(repr=False)
    max_characters: int

    async def __call__(self, arguments: dict[str, Any]) -> ToolResult:
        method = arguments.get("method", self.methods[0])
        url, body = arguments["url"], arguments.get("body")
        if body is not None and method in _SAFE_METHODS:
            raise ToolError(f"A {method} has no body.")
        content = None if body is None else str(body).encode()
        if content is not None and len(content) > _LONGEST_BODY:
            raise ToolError(f"The body is longer than {_LONGEST_BODY} bytes.")
        headers = dict(self.headers.get(_origin(url), {}))
        if content is not None:
            headers["content-type"] = _content_type(arguments.get("content_type"))
        try:
            fetched = await self.fetch.send(method, url, headers=headers, body=content)
        except FetchError as exc:
            raise ToolError(f"The request failed: {exc.message}.") from exc
        page = await in_thread(partial(read_page, fetched, as_sent=bool(arguments.get("as_sent"))))
        text = self._told(method, url, fetched, page, int(arguments.get("start", 0)))
        return ToolResult(text, is_error=fetched.status >= 400)

    def _told(self, method: str, url: str, fetched: Fetched, page: Page, start: int) -> str:
        """Return the answer for the model: a line for each fact, an empty one, and the text."""
        facts = [f"{method} {_line(fetched.url)}: {_status(fetched.status)}"]
        if fetched.url.partition("#")[0] != url.partition("#")[0]:
            facts.append(f"asked for: {_line(url)}")
        if page.media_type:
            facts.append(f"type: {_line(page.media_type)}")
        if page.title:
            facts.append(f"title: {_line(page.title)}")
        if method == "HEAD":
            facts.extend(_size(fetched.headers))
            return "\n".join(facts)
        if page.text is None:
            return "\n".join((*facts, f"The content is no text: {len(fetched.content)} bytes."))
        if not page.text:
            return "\n".join((*facts, "The content is empty."))
        return "\n".join((*facts, "", window(page.text, start, self.max_characters)))


def _own_origin(url: str) -> str:
    origin = _origin(url)
    if not origin or url.removesuffix("/").count("/") != 2:
        raise ConfigurationError(
            f"`headers` are for origins such as `https://api.example.com`, got {url[:_LONGEST_LINE]!r}"
        )
    return origin


def _origin(url: str) -> str:
    """Return whom the headers of an address are for, read as the fetch reads it; or nothing."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return ""
    host = parsed.raw_host.decode("ascii").lower().removesuffix(".")
    port = parsed.port or {"https": 443, "http": 80}.get(parsed.scheme)
    return f"{parsed.scheme}://{host}:{port}" if host and port else ""


def _content_type(given: str | None) -> str:
    if given is None:
        return "application/json"
    if not _MEDIA_TYPE.fullmatch(given):
        raise ToolError("The content_type is none: it is such as application/json.")
    return given


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _size(headers: Mapping[str, str]) -> list[str]:
    shown = [(name, headers.get(name)) for name in ("content-length", "last-modified", "etag")]
    return [f"{name}: {_line(value)}" for name, value in shown if value]


def _line(text: str) -> str:
    """Return a text of another party on one line, and not too long."""
    shown = "".join(c if c.isprintable() else " " for c in text[: _LONGEST_LINE + 1])
    return shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]}…"
