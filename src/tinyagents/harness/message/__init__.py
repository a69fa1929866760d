"""Typed messages: what is said to a model, what it answers, and what tools return.

A message is a role and an ordered list of blocks. The order means something and survives every
round trip; a fact stands in one place only (an assistant's tool calls are its ``tool_call``
blocks). Messages and blocks are frozen pydantic models that check and clean what they are given.
"""

from ._blocks import (
    AudioBlock,
    Block,
    BlockBase,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    JsonBlock,
    MediaBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from ._messages import (
    AssistantMessage,
    Message,
    MessageBase,
    SystemMessage,
    ToolMessage,
    ToolOutcome,
    UserMessage,
    dump_messages,
    load_messages,
    plain_tool_message,
)
from ._repair import Repair, repair_messages, unanswered_calls
from ._retrieved import Retrieved, retrieval_of, retrieved_block

__all__ = (
    "AssistantMessage",
    "AudioBlock",
    "Block",
    "BlockBase",
    "CitationBlock",
    "FileBlock",
    "ImageBlock",
    "InvalidArguments",
    "JsonBlock",
    "MediaBlock",
    "Message",
    "MessageBase",
    "ProviderExtensionBlock",
    "ReasoningBlock",
    "RefusalBlock",
    "Repair",
    "Retrieved",
    "SystemMessage",
    "TextBlock",
    "ToolCallBlock",
    "ToolMessage",
    "ToolOutcome",
    "ToolResultBlock",
    "UserMessage",
    "dump_messages",
    "load_messages",
    "plain_tool_message",
    "repair_messages",
    "retrieval_of",
    "retrieved_block",
    "unanswered_calls",
)
