"""The tool with which a model reads what was stored."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import Field

from ..context import RunContext
from ..errors import ConfigurationError, UnsafePathError
from ..text import defused, window
from ..tool import Tool, ToolContext, ToolError, ToolPolicy, tool
from ._names import artifact_scope, safe_part
from ._pointer import ARTIFACT_MARKER
from ._types import ArtifactStore

READ_TAG: Final = "artifacts.read"
"""Marks the tool: its own results are never stored again."""

ArtifactPath = Annotated[
    str, Field(min_length=1, max_length=4_096, description="The path that the pointer names.")
]
Start = Annotated[int, Field(ge=0, description="The character of the text to begin at.")]


def read_artifact_tool(
    store: ArtifactStore,
    *,
    max_characters: int = 8_000,
    scope: Callable[[RunContext[Any]], str | None] = artifact_scope,
    name: str = "read_artifact",
) -> Tool:
    """Make the tool that reads stored results, a part at a time.

    Args:
        store: Where they are.
        max_characters: How much the model gets at once; it can ask for what follows.
        scope: What a run may read: the folder of this name only, or all with ``None``. The default is
            that of :class:`~tinyagents.harness.middleware.ArtifactMiddleware`.
        name: The tool's name.

    Raises:
        ConfigurationError: ``max_characters`` is not above 0.
    """
    if max_characters < 1:
        raise ConfigurationError(f"`max_characters` of `{name}` must be above 0")

    @tool(name=name, policy=ToolPolicy.read_only(), tags=[READ_TAG])
    async def read(path: ArtifactPath, start: Start = 0, *, ctx: ToolContext) -> str:
        """Read a result that was too long to be shown."""
        own = scope(ctx.run)
        try:
            text = await store.read(path, scope=None if own is None else safe_part(own))
        except (UnsafePathError, OSError) as exc:
            # One answer for all: what else there is in the store is nobody's business.
            raise ToolError(f"There is no artifact {path[:200]!r} to read.") from exc
        return defused(window(text, start, max_characters), ARTIFACT_MARKER)

    return read
