"""A model that cannot call tools, made into one that can."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..ids import IdGenerator, RandomIds
from ..model import ChatModel, ModelProfile, ModelRequest, ModelResponse, ModelStreamItem
from ._dialect import ToolDialect
from ._guided import guided_response, guided_stream
from ._replay import guided_request
from ._xml import XmlDialect

if TYPE_CHECKING:
    from ..context import RunContext

_RANDOM_IDS = RandomIds()


class PromptGuidedModel:
    """Lets a model without tool calls of its own use tools: they are described in its prompt.

    Its calls are read from its text, streamed or not, and the text of a call is not shown. A tool
    is called only by the exact name of one that the request offers. That it ``must`` call one is
    said in words, which nothing enforces. Requests without tools are passed on as they are.

    Args:
        model: The model. Closed with this one.
        dialect: How tools, calls and results are written.
    """

    def __init__(self, model: ChatModel, dialect: ToolDialect | None = None) -> None:
        self._model = model
        self._dialect: ToolDialect = dialect or XmlDialect()
        self._profiles: tuple[ModelProfile, ModelProfile] | None = None

    @property
    def profile(self) -> ModelProfile:
        """What the model can do with tools in its prompt."""
        inner = self._model.profile
        if self._profiles is None or self._profiles[0] is not inner:
            self._profiles = inner, inner.model_copy(update=_WITH_TOOLS)
        return self._profiles[1]

    @property
    def cache_identity(self) -> str:
        """The inner model's, with the name of the dialect; missing where that one has none."""
        identity: str = getattr(self._model, "cache_identity")  # noqa: B009 - not of every model
        return f"{identity}+{self._dialect.name}"

    def __repr__(self) -> str:
        return f"PromptGuidedModel({self._model!r}, {self._dialect!r})"

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
        """Close the inner model, if it can be closed."""
        close = getattr(self._model, "aclose", None)
        if close is not None:
            await close()

    async def invoke(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> ModelResponse:
        """Answer in one piece.

        Raises:
            ModelError: The call failed.
        """
        guided = guided_request(request, self._dialect)
        response = await self._model.invoke(guided, ctx=ctx)
        return guided_response(response, request, self._dialect, _ids_of(ctx))

    def stream(
        self, request: ModelRequest, *, ctx: "RunContext[Any] | None" = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer piece by piece; what may be part of a call is held back until that is known.

        Raises:
            ModelError: The call failed.
        """
        items = self._model.stream(guided_request(request, self._dialect), ctx=ctx)
        if not request.tools:
            return items
        return guided_stream(items, request, self._dialect, _ids_of(ctx))


_WITH_TOOLS = {
    "tool_calling": True,
    "parallel_tool_calls": True,
    "forced_tool_choice": False,
    "streaming_tool_chunks": False,
    # An answer that is held to a schema has no place for a call.
    "native_structured_output": False,
}


def _ids_of(ctx: "RunContext[Any] | None") -> IdGenerator:
    return ctx.ids if ctx is not None else _RANDOM_IDS
