"""Random conversations that are well formed, for properties of what is cut out of them."""

from hypothesis import strategies as st

from tinyagents import (
    AssistantMessage,
    ReasoningBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.message import Message

_WORDS = st.sampled_from(["a", "some words", "x" * 300, "漢字"])


@st.composite
def histories(draw: st.DrawFn, trusted: bool = False) -> list[Message]:
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(SystemMessage(content=draw(_WORDS)))
    for turn in range(draw(st.integers(1, 5))):
        messages.append(UserMessage(content=draw(_WORDS)))
        for step in range(draw(st.integers(0, 3))):
            if draw(st.booleans()):
                messages.append(AssistantMessage(content=[ReasoningBlock(signature="s")]))
            ids = [f"c{turn}.{step}.{n}" for n in range(draw(st.integers(1, 4)))]
            calls = [ToolCallBlock(id=each, name="f") for each in ids]
            messages.append(AssistantMessage(content=[TextBlock(text="hm"), *calls]))
            messages += [
                ToolMessage(
                    tool_call_id=each,
                    content=draw(_WORDS),
                    trusted_verbatim=trusted and draw(st.booleans()),
                )
                for each in ids
            ]
        if draw(st.booleans()):
            messages.append(AssistantMessage(content=draw(_WORDS)))
    return messages
