"""tinyagents: what surrounds model calls in an application.

The names here are loaded when they are first used, so ``import tinyagents`` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .harness.agent_loop import AgentRun, RunSnapshot
    from .harness.cancel import CancellationToken
    from .harness.context import Interrupt, Jump, Pause, RunConfig, RunContext, StopWithFinal
    from .harness.errors import TinyAgentsError
    from .harness.limits import RunLimits
    from .harness.message import (
        AssistantMessage,
        AudioBlock,
        CitationBlock,
        FileBlock,
        ImageBlock,
        JsonBlock,
        Message,
        ProviderExtensionBlock,
        ReasoningBlock,
        RefusalBlock,
        SystemMessage,
        TextBlock,
        ToolCallBlock,
        ToolMessage,
        ToolResultBlock,
        UserMessage,
        dump_messages,
        load_messages,
    )
    from .harness.middleware import Middleware
    from .harness.model import ModelSettings
    from .harness.policy import RunPolicy
    from .harness.runtime import AgentHarness, AgentStream, RunHandle
    from .harness.stream import (
        Final,
        MessageCompleted,
        MessageDiscarded,
        PartialOutput,
        ReasoningDelta,
        RefusalDelta,
        TextDelta,
        ToolCompleted,
        ToolProgress,
        ToolStarted,
    )
    from .harness.structured import NativeOutput, Output, PromptedOutput, ToolOutput
    from .harness.tool import Injected, Tool, ToolContext, ToolError, ToolResult, tool
    from .harness.usage import Usage

_HOMES = {
    "agent_loop": ("AgentRun", "RunSnapshot"),
    "cancel": ("CancellationToken",),
    "context": ("Interrupt", "Jump", "Pause", "RunConfig", "RunContext", "StopWithFinal"),
    "errors": ("TinyAgentsError",),
    "limits": ("RunLimits",),
    "message": (
        "AssistantMessage",
        "AudioBlock",
        "CitationBlock",
        "FileBlock",
        "ImageBlock",
        "JsonBlock",
        "Message",
        "ProviderExtensionBlock",
        "ReasoningBlock",
        "RefusalBlock",
        "SystemMessage",
        "TextBlock",
        "ToolCallBlock",
        "ToolMessage",
        "ToolOutput",
        "ToolResultBlock",
        "UserMessage",
        "dump_messages",
        "load_messages",
    ),
    "middleware": ("Middleware",),
    "model": ("ModelSettings",),
    "policy": ("RunPolicy",),
    "runtime": ("AgentHarness", "AgentStream", "RunHandle"),
    "stream": (
        "Final",
        "MessageCompleted",
        "MessageDiscarded",
        "PartialOutput",
        "ReasoningDelta",
        "RefusalDelta",
        "TextDelta",
        "ToolCompleted",
        "ToolProgress",
        "ToolStarted",
    ),
    "structured": ("NativeOutput", "Output", "PromptedOutput", "ToolOutput"),
    "tool": ("Injected", "Tool", "ToolContext", "ToolError", "ToolResult", "tool"),
    "usage": ("Usage",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = (
    "AgentHarness",
    "AgentRun",
    "AgentStream",
    "AssistantMessage",
    "AudioBlock",
    "CancellationToken",
    "CitationBlock",
    "FileBlock",
    "Final",
    "ImageBlock",
    "Injected",
    "Interrupt",
    "JsonBlock",
    "Jump",
    "Message",
    "MessageCompleted",
    "MessageDiscarded",
    "Middleware",
    "ModelSettings",
    "NativeOutput",
    "Output",
    "PartialOutput",
    "Pause",
    "PromptedOutput",
    "ProviderExtensionBlock",
    "ReasoningBlock",
    "ReasoningDelta",
    "RefusalBlock",
    "RefusalDelta",
    "RunConfig",
    "RunContext",
    "RunHandle",
    "RunLimits",
    "RunPolicy",
    "RunSnapshot",
    "StopWithFinal",
    "SystemMessage",
    "TextBlock",
    "TextDelta",
    "TinyAgentsError",
    "Tool",
    "ToolCallBlock",
    "ToolCompleted",
    "ToolContext",
    "ToolError",
    "ToolMessage",
    "ToolOutput",
    "ToolProgress",
    "ToolResult",
    "ToolResultBlock",
    "ToolStarted",
    "Usage",
    "UserMessage",
    "dump_messages",
    "load_messages",
    "tool",
)


def __getattr__(name: str) -> object:
    value: object
    if name in _HOME_OF:
        value = getattr(import_module(f".harness.{_HOME_OF[name]}", __name__), name)
    elif name in ("harness", "testkit"):
        value = import_module(f".{name}", __name__)
    elif name == "__version__":
        value = import_module("importlib.metadata").version("tinyagents")
    else:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted((*__all__, "__version__", "harness", "testkit"))
