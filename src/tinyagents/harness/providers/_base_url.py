"""Addresses of servers: as a caller gives them, as requests need them, and as logs may show them."""

from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from ..errors import ConfigurationError
from ._presets import ServerPreset


def split_base_url(preset: ServerPreset, base_url: str) -> tuple[str, dict[str, str]]:
    """Return a base URL without its query, its end made regular, and the query's parameters.

    A local runtime's may be incomplete: without a scheme, and without the end that is added.

    Raises:
        ConfigurationError: It is no address of an HTTP server.
    """
    text = base_url.strip()
    if preset.local and not text:
        text = preset.base_url or ""
    if preset.local and "://" not in text:
        text = f"http://{_with_port(text, preset.default_port)}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"`{without_credentials(base_url)}` is no base URL: it must be like "
            "https://host/v1, with http or https"
        )
    path = parts.path.rstrip("/")
    for endpoint in preset.endpoint_paths:
        path = path.removesuffix(endpoint).rstrip("/")
    if preset.local:
        path = path.removesuffix("/models").rstrip("/")
        path = path if path.endswith(preset.local_path) else f"{path}{preset.local_path}"
    query = {} if preset.local else dict(parse_qsl(parts.query, keep_blank_values=True))
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), query


def _with_port(address: str, port: int | None) -> str:
    """Return an address without a scheme with a port, where it has none and one is known.

    ``:8080`` is a port of this machine. The addresses that mean "all of this machine's" to a server
    are nothing that a client can connect to on every system, so they become its own.
    """
    if port is None:
        return address
    host, slash, path = address.partition("/")
    user, at, host = host.rpartition("@")
    bare_ipv6 = host.count(":") > 1 and "]:" not in host
    name, _, given = (host, "", "") if bare_ipv6 or ":" not in host else host.rpartition(":")
    name = name.strip("[]")
    name = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    name = f"[{name}]" if ":" in name else name
    return f"{user}{at}{name}:{given or port}{slash}{path}"


def split_credentials(base_url: str) -> tuple[str, str | None]:
    """Return a base URL without its ``user:password``, and these."""
    parts = urlsplit(base_url)
    credentials, at, host = parts.netloc.rpartition("@")
    if not at:
        return base_url, None
    return urlunsplit(parts._replace(netloc=host)), unquote(credentials)


def without_credentials(url: str) -> str:
    """Return a URL fit for logs: without user, password, query and fragment."""
    parts = urlsplit(url if "://" in url else f"//{url}")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")).removeprefix("//")
