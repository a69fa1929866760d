"""The keys of responses: digests of all that can change an answer, the same in every process."""

import base64
import json
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, Final, cast

import orjson
from pydantic import BaseModel

from ..errors import InvalidRequestError
from ..message import MessageBase
from ..model import ModelRequest, ModelSettings

UNKEYED: Final[Mapping[str, frozenset[str]]] = {
    "request": frozenset({"cache", "metadata", "prompt_fingerprint", "retry", "segments", "tags"}),
    "settings": frozenset({"timeout"}),
    "message": frozenset({"artifact", "trusted_verbatim", "usage"}),
}
"""The fields that are no part of a key, since they cannot change the answer: all others are, those
that a later version adds too, until they are listed here."""

_KEY_FORMAT = 1
"""To be raised with every change of what a key is made of, or of how it is written."""
_REQUEST_FIELDS = tuple(
    field.name for field in fields(ModelRequest) if field.name not in UNKEYED["request"]
)
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SALT = b"tinyagents.response-cache.credential:"
"""The same everywhere, so that processes share entries; it makes tables of known hashes useless."""


def cache_key(request: ModelRequest) -> str:
    """Return the SHA-256, in hex, of everything in a request that can change its answer.

    That is all of it but :data:`UNKEYED`, as JSON with sorted keys: the order of a mapping's keys
    does not matter, that of a list does. A setting that is missing differs from one that is zero or
    empty. It says nothing of who answers: see :func:`scoped_cache_key`.

    Raises:
        InvalidRequestError: Something in the request has no form in JSON.
    """
    asked = {name: getattr(request, name) for name in _REQUEST_FIELDS}
    return _digest(asked)


def scoped_cache_key(
    request: ModelRequest, *, identity: str, streaming: bool, namespace: str | None = None
) -> str:
    """Return the key under which an answer is kept.

    Args:
        request: What was asked.
        identity: Who answers: see :func:`model_identity`.
        streaming: Whether the answer was streamed.
        namespace: Keeps entries apart, such as those of tenants.

    Raises:
        InvalidRequestError: Something in the request has no form in JSON.
    """
    return _digest([_KEY_FORMAT, identity, streaming, namespace, cache_key(request)])


def model_identity(model: object) -> str | None:
    """Return what tells a model's answers from those of others; ``None`` where it does not say.

    That is its ``cache_identity``: a text that is another one for another endpoint, model,
    credential, or default that shapes an answer. A model without one is never cached.
    """
    identity: object = getattr(model, "cache_identity", None)
    return identity if isinstance(identity, str) and identity else None


def credential_fingerprint(secret: str | None) -> str:
    """Return 16 hex digits that tell one credential from another, and nothing of what it is."""
    if not secret:
        return "no-credential"
    return sha256(_SALT + secret.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _digest(value: object) -> str:
    try:
        data = orjson.dumps(value, default=_form, option=_OPTIONS)
    except TypeError:
        # Integers over 64 bits, lone surrogates and keys that are no strings are beyond orjson.
        data = _encode_slowly(value)
    return sha256(data).hexdigest()


def _encode_slowly(value: object) -> bytes:
    try:
        return json.dumps(value, default=_form, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidRequestError(f"the request has no key: {exc}") from exc


def _form(value: object) -> object:
    """Return what stands in the JSON for what JSON does not know."""
    match value:
        case MessageBase():
            return value.model_dump(exclude=set(UNKEYED["message"]), warnings=False)
        case ModelSettings() if not value.model_fields_set:
            return {}  # as most are
        case ModelSettings():
            # One that is set to nothing overrides the model's own; one that is not set does not.
            return value.model_dump(
                exclude=set(UNKEYED["settings"]), exclude_unset=True, warnings=False
            )
        case BaseModel():
            return value.model_dump(warnings=False)
        case bytes() | bytearray():
            return {"base64": base64.b64encode(value).decode()}
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case AbstractSet():
            return sorted(map(_digest, cast("AbstractSet[object]", value)))
        case Sequence():
            return list(cast("Sequence[object]", value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            held: dict[str, Any] = {each.name: getattr(value, each.name) for each in fields(value)}
            return {"": type(value).__name__, **held}
        case _:
            raise TypeError(f"`{type(value).__name__}` has no form in JSON")
