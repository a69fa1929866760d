"""What is known of a call that a client makes, and what its tool gets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..context import RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCall:
    """What is known of a call before it is run."""

    tool: str
    client: str | None
    """What the client calls itself; it can say anything."""
    headers: Mapping[str, str] | None = field(repr=False)
    """The headers of the request, in lower case; ``None`` over the standard streams. Not shown in reprs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What the tool of one call gets: the parts of a run that are the application's own."""

    data: Any = None
    state: Any = None
    config: RunConfig | None = None


ContextFactory: TypeAlias = Callable[[ServedCall], CallContext | Awaitable[CallContext]]
