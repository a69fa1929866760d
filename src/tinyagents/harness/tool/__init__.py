"""Tools: what models can call, how a call is checked, and how it runs."""

from ._context import InterruptSignal, ToolContext, ToolError
from ._decorator import FunctionTool, ToolLike, as_tool, tool
from ._inject import Injected
from ._names import wire_names
from ._normalize import normalize_arguments
from ._policy import (
    ToolAccess,
    ToolDisplay,
    ToolPolicy,
    ToolRuntime,
    ToolSideEffects,
)
from ._registry import ToolRegistry
from ._result import ToolResult, as_result
from ._tool import BoundCall, Tool

__all__ = (
    "BoundCall",
    "FunctionTool",
    "Injected",
    "InterruptSignal",
    "Tool",
    "ToolAccess",
    "ToolContext",
    "ToolDisplay",
    "ToolError",
    "ToolLike",
    "ToolPolicy",
    "ToolRegistry",
    "ToolResult",
    "ToolRuntime",
    "ToolSideEffects",
    "as_result",
    "as_tool",
    "normalize_arguments",
    "tool",
    "wire_names",
)
