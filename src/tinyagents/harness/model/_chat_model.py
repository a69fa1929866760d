"""The interface that every model implements."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ._profile import ModelProfile
from ._request import ModelRequest
from ._response import ModelResponse
from ._stream import ModelStreamItem

if TYPE_CHECKING:
    from ..context import RunContext


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers messages. A plain class with these members is enough.

    A model is shared by runs and must not keep anything of one. It raises
    :class:`~tinyagents.harness.errors.ModelError` for whatever goes wrong with the provider, and
    neither retries nor falls back: the run does. ``ctx`` is the run, or ``None`` outside one.

    One whose answers may be cached also has a text as ``cache_identity``: see
    :func:`tinyagents.harness.cache.model_identity`.
    """

    @property
    def profile(self) -> ModelProfile:
        """What the model can do."""
        ...

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece."""
        ...

    def stream(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer piece by piece. The iterator is closed by whoever reads it, however it ends."""
        ...
