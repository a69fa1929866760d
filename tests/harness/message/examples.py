"""A block and a message of every kind, with every field set somewhere."""

from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
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
)
from tinyagents.harness.usage import Usage

BLOCKS: list[Block] = [
    TextBlock(text="Grüße 😀\n"),
    TextBlock(text="cached", provider_data={"anthropic": {"cache_control": {"type": "ephemeral"}}}),
    JsonBlock(value={"list": [1, 2.5, None, True, "x"], "big": 2**70}),
    ImageBlock(url="https://example.org/a.png", detail="high"),
    ImageBlock(data="aGk=", media_type="image/png"),
    AudioBlock(data="aGk=", media_type="audio/wav", transcript="hi"),
    FileBlock(file_id="file-1", name="a.pdf", media_type="application/pdf"),
    ToolCallBlock(
        id="k1",
        name="add",
        arguments={"a": 1, "b": {"c": [2]}},
        provider_id="call_0",
        provider_data={"gemini": {"thought_signature": "g1"}},
    ),
    ToolCallBlock(
        id="k2",
        name="add",
        invalid=InvalidArguments(raw='{"a":', reason="the arguments are not JSON"),
    ),
    ToolResultBlock(
        tool_call_id="s1",
        name="web_search",
        content=[TextBlock(text="found"), JsonBlock(value=[])],
        is_error=True,
    ),
    ReasoningBlock(text="Let me see.", signature="s1"),
    ReasoningBlock(signature="s2"),
    ReasoningBlock(data="zz", redacted=True),
    CitationBlock(url="https://example.org", title="T", text="quoted", start=0, end=5),
    RefusalBlock(text="I cannot help with that."),
    ProviderExtensionBlock(provider="anthropic", data={"type": "new_thing", "n": [1, None]}),
]

MESSAGES: list[Message] = [
    SystemMessage(content="Be brief.", name="app"),
    UserMessage(content="hello", id="m1", name="ann"),
    UserMessage(
        content=[TextBlock(text="What is this?"), ImageBlock(url="https://example.org/a.png")]
    ),
    AssistantMessage(
        content=[
            ReasoningBlock(signature="s1"),
            ReasoningBlock(data="zz", redacted=True),
            TextBlock(text="hi"),
            ToolCallBlock(
                id="k1",
                name="add",
                arguments={"a": 1},
                provider_data={"gemini": {"thought_signature": "g1"}},
            ),
        ],
        id="m2",
        usage=Usage(input_tokens=10, output_tokens=4, reasoning_tokens=2),
        provider_data={"openai": {"output_id": "msg_1"}},
    ),
    ToolMessage(
        tool_call_id="k1",
        name="add",
        content="interrupted",
        is_error=True,
        outcome="interrupted",
        trusted_verbatim=True,
        artifact={"rows": [1, 2]},
    ),
    ToolMessage(tool_call_id="k2", content=[]),
    AssistantMessage(content="cut o", state="partial"),
    AssistantMessage(content=[]),
]
