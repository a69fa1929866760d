"""Tools: what models can call, how a call is checked, and how it runs."""

from ._attempts import may_pass
from ._context import InterruptSignal, ToolContext, ToolError
from ._decorator import FunctionTool, ToolLike, as_tool, tool
from ._display import call_detail, call_display, tool_label
from ._inject import Injected
from ._names import wire_names
from ._normalize import normalize_arguments
from ._policy import (
    SIDE_EFFECTS,
    SideEffect,
    ToolAccess,
    ToolDisplay,
    ToolPolicy,
    ToolRuntime,
    ToolSideEffects,
)
from ._registry import ToolRegistry
from ._result import ToolResult, as_result, cut_result
from ._tool import BoundCall, Tool

__all__ = (
    "SIDE_EFFECTS",
    "BoundCall",
    "FunctionTool",
    "Injected",
    "InterruptSignal",
    "SideEffect",
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
    "call_detail",
    "call_display",
    "cut_result",
    "may_pass",
    "normalize_arguments",
    "tool",
    "tool_label",
    "wire_names",
)
