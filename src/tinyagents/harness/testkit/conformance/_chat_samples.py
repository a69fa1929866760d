"""What the tests of a chat model ask: tools, conversations, and histories from elsewhere."""

import struct
import zlib
from typing import Any

from ...message import (
    AssistantMessage,
    AudioBlock,
    Block,
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
    UserMessage,
)
from ...model import Modality, ToolSchema

WEATHER = ToolSchema(
    name="get_weather",
    description="Tells the current weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TIME = ToolSchema(
    name="get_time",
    description="Tells the time.",
    parameters={"type": "object", "properties": {}},
)

ALPHABETS = {
    "astral": "\U0001f469\u200d\U0001f52c \U0001d518 \U00020bb7 \U0001f1eb\U0001f1f7",
    "combining": "e\u0301 n\u0303 \u0e01\u0e47 \u0928\u093f",
    "right to left": "\u0634\u0643\u0631\u0627 \u200f(\u05ea\u05d5\u05d3\u05d4)\u200e ok",
    "control": "tab\tline\nreturn\r\n\x01\x1b[0m\x7f\x85\u2028\u2029\ufeff|",
    "quoted": 'data: {"a": "\\n"}\n\ndata: [DONE]\n\n\\u0041 \\',
}
"""Texts in which encoders and splitters of lines make mistakes."""

CONVERSATIONS: dict[str, list[Message]] = {
    "a system message": [SystemMessage(content="Be brief."), UserMessage(content="How are you?")],
    "several system messages": [
        SystemMessage(content="Be brief."),
        SystemMessage(content="Be polite."),
        UserMessage(content="How are you?"),
    ],
    "a late system message": [
        UserMessage(content="My name is Ada."),
        AssistantMessage(content="Noted."),
        SystemMessage(content="From now on be brief."),
        UserMessage(content="How are you?"),
    ],
    "alternating turns": [
        UserMessage(content="My name is Ada."),
        AssistantMessage(content="Noted."),
        UserMessage(content="And I like maths."),
        AssistantMessage(content="Well noted."),
        UserMessage(content="How are you?"),
    ],
    "several users with names": [
        UserMessage(content="I am here.", name="ada"),
        UserMessage(content="So am I.", name="bob"),
        UserMessage(content="How are you?", name="ada"),
    ],
    "several blocks": [
        UserMessage(content=[TextBlock(text="I am Ada."), TextBlock(text="How are you?")]),
    ],
}
"""Shapes that every model must take."""


def _png() -> bytes:
    """Return a picture of 16 by 16 black points: as small as every provider takes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(17 * 16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """Return a tenth of a second of silence."""
    rate, sound = 8_000, bytes(1_600)
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    data = struct.pack("<4sI", b"data", len(sound)) + sound
    return struct.pack("<4sI4s", b"RIFF", 4 + len(head) + len(data), b"WAVE") + head + data


_PDF = (
    b"%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF\n"
)

IMAGE = ImageBlock.from_bytes(_png(), "image/png")
MEDIA: dict[Modality, tuple[Block, str]] = {
    "image": (IMAGE, "What colour is this picture?"),
    "audio": (AudioBlock.from_bytes(_wav(), "audio/wav"), "What is to be heard?"),
    "file": (
        FileBlock.from_bytes(_PDF, "application/pdf", "empty.pdf"),
        "How many pages has this document?",
    ),
}
"""Small files, each with a question."""

RESULTS: dict[str, ToolMessage] = {
    "text": ToolMessage(tool_call_id="call_a", content="18 degrees", name="get_weather"),
    "an error": ToolMessage(
        tool_call_id="call_a", content="no such city", name="get_weather", is_error=True
    ),
    "a JSON value": ToolMessage(
        tool_call_id="call_a", content=JsonBlock(value={"degrees": 18}), name="get_weather"
    ),
    "nothing": ToolMessage(tool_call_id="call_a", name="get_weather"),
    "no name": ToolMessage(tool_call_id="call_a", content="18 degrees"),
    "an image": ToolMessage(
        tool_call_id="call_a", content=[TextBlock(text="A picture:"), IMAGE], name="get_weather"
    ),
    "a file": ToolMessage(
        tool_call_id="call_a",
        content=[TextBlock(text="A report:"), MEDIA["file"][0]],
        name="get_weather",
    ),
}
"""What a tool may give back."""

FOREIGN_MARK = "other-provider"
"""Stands in everything of :data:`FOREIGN` that only its own provider can read."""


def _own(**fields: str) -> dict[str, Any]:
    return {"elsewhere": {name: f"{FOREIGN_MARK}-{value}" for name, value in fields.items()}}


FOREIGN: dict[str, list[Message]] = {
    "reasoning with a signature": [
        UserMessage(content="What is six times seven?"),
        AssistantMessage(
            content=[
                ReasoningBlock(text="", data=f"{FOREIGN_MARK}-secret", redacted=True),
                ReasoningBlock(
                    text="", signature=f"{FOREIGN_MARK}-seal", provider_data=_own(id="item")
                ),
                TextBlock(text="It is 42.", provider_data=_own(seal="text-seal")),
            ],
            provider_data=_own(container="box"),
            id=f"{FOREIGN_MARK}-message",
        ),
        UserMessage(content="And seven times eight?"),
    ],
    "calls with ids of another form": [
        UserMessage(content="What is the weather in Paris and Rome?"),
        AssistantMessage(
            content=[
                ToolCallBlock(
                    id="functions.get_weather:0",
                    name="get_weather",
                    arguments={"city": "Paris"},
                    provider_data=_own(seal="call-seal"),
                ),
                ToolCallBlock(id="x" * 80, name="get_weather", arguments={"city": "Rome"}),
            ]
        ),
        ToolMessage(tool_call_id="functions.get_weather:0", content="18 degrees"),
        ToolMessage(tool_call_id="x" * 80, content="24 degrees"),
        UserMessage(content="Which is warmer?"),
    ],
    "blocks of another provider": [
        UserMessage(content="Look it up."),
        AssistantMessage(
            content=[
                ProviderExtensionBlock(
                    provider="elsewhere", data={"type": f"{FOREIGN_MARK}-search", "query": "x"}
                ),
                TextBlock(text="I found it."),
                CitationBlock(
                    url="https://example.org/a", title="A page", provider_data=_own(i="c")
                ),
            ]
        ),
        UserMessage(content="Where?"),
    ],
    "a refusal": [
        UserMessage(content="Do what you must not."),
        AssistantMessage(content=[RefusalBlock(text="I must not.")]),
        UserMessage(content="Why?"),
    ],
}
"""Histories that other providers wrote, with the marks of things that are theirs alone."""


def answered(asked: str, answer: AssistantMessage, *results: ToolMessage | str) -> list[Message]:
    """Return the history of a question, its answer and the results of the calls in it."""
    told = [
        ToolMessage(tool_call_id=call.id, content=result, name=call.name)
        if isinstance(result, str)
        else result.model_copy(update={"tool_call_id": call.id})
        for call, result in zip(answer.tool_calls, results, strict=True)
    ]
    return [UserMessage(content=asked), answer, *told]


def comparable(message: AssistantMessage) -> list[Block]:
    """Return the blocks of a message, with the ids of its calls in a form that two answers share."""
    ids = {call.id: f"call {number}" for number, call in enumerate(message.tool_calls)}
    return [
        block.model_copy(update={"id": ids[block.id]}) if block.type == "tool_call" else block
        for block in message.content
    ]
