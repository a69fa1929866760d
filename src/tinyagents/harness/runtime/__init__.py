"""The facade: an agent, and the ways to run it."""

from ._handle import RunHandle
from ._harness import AgentHarness
from ._stream import AgentStream

__all__ = ("AgentHarness", "AgentStream", "RunHandle")
