"""Messages in words, for whoever summarises or searches them."""

from collections.abc import Iterator
from typing import Final

from ..message import Block, Message, ToolCallBlock
from ..text import dump_json

MOST_OF_A_PAYLOAD: Final = 2_000
"""How many characters of one text, value or argument list a rendering has."""


def render_message(message: Message, *, most: int = MOST_OF_A_PAYLOAD) -> str:
    """Return a message in words, with everything that can be said of its blocks.

    Texts, JSON, reasoning, calls with their arguments, and results with the id of their call;
    images, sound, files and withheld reasoning as markers. What is longer than ``most`` characters
    is cut, and a mark in its place says how many are left out.
    """
    lines = [line for block in message.content for line in _lines(block, most)]
    return "\n".join((_head(message), *lines))


def _head(message: Message) -> str:
    match message.role:
        case "tool":
            name = f" {message.name}" if message.name else ""
            failed = ", an error" if message.is_error else ""
            return f"tool{name} (result of {message.tool_call_id}{failed}):"
        case "assistant" if message.state == "partial":
            return "assistant (cut off):"
        case role:
            return f"{role} {message.name}:" if message.name else f"{role}:"


def _lines(block: Block, most: int) -> Iterator[str]:
    match block.type:
        case "text":
            yield _cut(block.text, most)
        case "json":
            yield _cut(dump_json(block.value), most)
        case "image" | "audio" | "file":
            where = block.url if block.url and not block.url.startswith("data:") else None
            facts = [getattr(block, "name", None), block.media_type, where, block.file_id]
            told = ", ".join(fact for fact in facts if fact)
            yield f"[{block.type}{': ' if told else ''}{_cut(told, most)}]"
            if block.type == "audio" and block.transcript:
                yield _cut(block.transcript, most)
        case "tool_call":
            yield from _call(block, most)
        case "tool_result":
            yield f"[result of {block.tool_call_id}{', an error' if block.is_error else ''}]"
            for inner in block.content:
                yield from _lines(inner, most)
        case "reasoning":
            if block.text:
                yield f"[reasoning] {_cut(block.text, most)}"
            elif block.redacted:
                yield "[redacted reasoning]"
        case "citation":
            cited = block.title or block.url or "source"
            yield f"[citation: {_cut(cited, most)}]"
        case "refusal":
            yield f"[refusal] {_cut(block.text, most)}"
        case "provider_extension":
            yield f"[{block.provider} extension] {_cut(dump_json(block.data), most)}"


def _call(call: ToolCallBlock, most: int) -> Iterator[str]:
    if call.invalid is None:
        yield f"[call {call.id}] {call.name}({_cut(dump_json(call.arguments), most)})"
    else:
        raw, reason = _cut(call.invalid.raw, most), _cut(call.invalid.reason, most)
        yield f"[invalid call {call.id}] {call.name}({raw}): {reason}"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = most - most // 4
    tail = most - head
    left = len(text) - most
    return f"{text[:head]} [... {left} of {len(text)} characters left out ...] {text[-tail:]}"
