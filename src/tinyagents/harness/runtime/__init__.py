"""The facade: an agent, and the ways to run it."""

from ._handle import RunHandle
from ._harness import AgentHarness
from ._options import AgentInput, ModelLike, RunOptions, SystemPrompt
from ._stream import AgentStream
from ._workspace import WorkspaceLike

__all__ = (
    "AgentHarness",
    "AgentInput",
    "AgentStream",
    "ModelLike",
    "RunHandle",
    "RunOptions",
    "SystemPrompt",
    "WorkspaceLike",
)
