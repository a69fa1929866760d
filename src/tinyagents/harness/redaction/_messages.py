"""Messages without what was found in them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from ..message import (
    AudioBlock,
    Block,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    Message,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
)
from ..text import dump_json, parse_json
from ._redactor import Redactor

MessageT = TypeVar("MessageT", bound=Message)


def redact_message(
    redactor: Redactor,
    message: MessageT,
    found: "Counter[str] | None" = None,
    *,
    arguments: bool = True,
) -> MessageT:
    """Return a message without what is found in it; the message itself where nothing is.

    The texts of a message are read as one, as ``message.text`` is, so that nothing hides between two
    blocks. Sealed reasoning loses its seal with its words, since no provider would take it back;
    the places of citations are left out where the text around them has changed. Bytes are not
    looked into. What providers are given back verbatim is changed as well.

    Args:
        redactor: What finds, and what is written.
        message: It is not changed.
        found: Counts what was replaced, by label.
        arguments: Whether the arguments of tool calls are looked at.
    """
    changes: dict[str, Any] = {}
    content = redact_blocks(redactor, message.content, found, arguments=arguments)
    if content is not message.content:
        changes["content"] = content
    for name in ("provider_data", "artifact"):
        value = getattr(message, name, None)
        if value is not None and (new := redactor.json(value, found)) is not value:
            changes[name] = new
    if message.role == "user" and message.name is not None:
        _put(changes, "name", message.name, redactor.text(message.name, found))
    # The copy is of the same class.
    return cast("MessageT", message.model_copy(update=changes)) if changes else message


def redact_calls(
    redactor: Redactor, message: MessageT, found: "Counter[str] | None" = None
) -> MessageT:
    """Return a message whose tool calls are without what is found in their arguments."""
    content = [
        redact_blocks(redactor, [block], found)[0] if block.type == "tool_call" else block
        for block in message.content
    ]
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return cast("MessageT", message.model_copy(update={"content": content}))


def redact_partial(
    redactor: Redactor, message: MessageT, found: "Counter[str] | None" = None
) -> MessageT:
    """Return a message that was broken off, without what is found or may have been begun at its end."""
    content = message.content
    ends = {"text", "reasoning", "refusal"}
    cut: list[Block] = []
    for block in reversed(content):
        if block.type in ends:
            ends.discard(block.type)
            block = _open_end_cut(redactor, content, block)
        if not (block.type == "text" and not block.text):
            cut.append(block)
    cut.reverse()
    shorter = cast("MessageT", message.model_copy(update={"content": cut}))
    return redact_message(redactor, shorter, found)


def _open_end_cut(redactor: Redactor, content: Sequence[Block], last: Any) -> Any:
    """Return the last block of its kind without what may be the beginning of something."""
    before = "".join(_joined(content, last))
    whole = before + last.text
    certain = redactor.open_from(whole)
    kept = max(0, certain - len(before))
    return last if kept >= len(last.text) else last.model_copy(update={"text": last.text[:kept]})


def _joined(content: Sequence[Block], last: Block) -> Iterable[str]:
    if last.type == "reasoning":
        return
    for block in content:
        if block is last:
            return
        if block.type == last.type and isinstance(block, TextBlock | RefusalBlock):
            yield block.text


def redact_blocks(
    redactor: Redactor,
    content: list[Block],
    found: "Counter[str] | None" = None,
    *,
    arguments: bool = True,
) -> list[Block]:
    """Return the blocks without what is found in them; the same list where nothing is."""
    texts = _joined_texts(redactor, content, TextBlock, found)
    texts |= _joined_texts(redactor, content, RefusalBlock, found)
    moved = any(isinstance(content[place], TextBlock) for place in texts)
    cleaned: list[Block] = []
    changed = False
    for place, block in enumerate(content):
        new = _redacted(redactor, block, found, texts.get(place), arguments, moved)
        changed = changed or new is not block
        cleaned.append(new)
    return cleaned if changed else content


def _joined_texts(
    redactor: Redactor,
    content: Sequence[Block],
    kind: type[TextBlock] | type[RefusalBlock],
    found: "Counter[str] | None",
) -> dict[int, str]:
    """Return the new texts of the blocks of a kind, by their places, where they have changed."""
    blocks = [(place, block) for place, block in enumerate(content) if isinstance(block, kind)]
    if not blocks:
        return {}
    if len(blocks) == 1:
        [(place, block)] = blocks
        text = _text_or_json(redactor, block.text, found)
        return {} if text == block.text else {place: text}
    whole = "".join(block.text for _, block in blocks)
    matches = redactor.find(whole)
    if not matches:
        return {}
    if found is not None:
        found.update(match.label for match in matches)
    changed: dict[int, str] = {}
    begin = 0
    for place, block in blocks:
        end = begin + len(block.text)
        parts: list[str] = []
        done = begin
        for match in matches:
            if match.end <= begin or match.start >= end:
                continue
            parts.append(whole[done : max(done, match.start)])
            if match.start >= begin:
                parts.append(redactor.replacement(match, whole))
            done = min(match.end, end)
        parts.append(whole[done:end])
        text = "".join(parts)
        if text != block.text:
            changed[place] = text
        begin = end
    return changed


def _text_or_json(redactor: Redactor, text: str, found: "Counter[str] | None") -> str:
    """Redact a text, and where it is JSON also what its escapes hide."""
    text = redactor.text(text, found)
    if "\\" not in text or text[:1] not in ("{", "["):
        return text
    try:
        value = parse_json(text)
    except ValueError:
        return text
    cleaned = redactor.json(value, found)
    return text if cleaned is value else dump_json(cleaned)


def _redacted(
    redactor: Redactor,
    block: Block,
    found: "Counter[str] | None",
    text: str | None,
    arguments: bool,
    moved: bool,
) -> Block:
    """Return a block without what is found; ``text`` is its new text, which was redacted with others."""
    changes: dict[str, Any] = {}
    if block.provider_data is not None:
        _put(
            changes, "provider_data", block.provider_data, redactor.json(block.provider_data, found)
        )
    match block:
        case TextBlock() | RefusalBlock():
            if text is not None:
                changes["text"] = text
        case ReasoningBlock():
            _texts(redactor, block, ("text", "data"), changes, found)
            if changes:
                changes |= {"signature": None, "data": None, "provider_data": None}
        case ToolCallBlock() if arguments:
            _put(changes, "arguments", block.arguments, redactor.json(block.arguments, found))
            if block.invalid is not None:
                raw = redactor.text(block.invalid.raw, found)
                reason = redactor.text(block.invalid.reason)
                if (raw, reason) != (block.invalid.raw, block.invalid.reason):
                    changes["invalid"] = InvalidArguments(raw=raw, reason=reason)
        case CitationBlock():
            _texts(redactor, block, ("url", "title", "text"), changes, found)
            if moved and block.start is not None:
                changes |= {"start": None, "end": None}
        case ImageBlock() | AudioBlock() | FileBlock():
            names = ["transcript", "name", "file_id"]
            if block.url is not None and not block.url.startswith("data:"):
                names.append("url")
            _texts(redactor, block, names, changes, found)
        case _:
            for name in ("value", "data"):
                value = getattr(block, name, None)
                _put(changes, name, value, redactor.json(value, found))
            inner = getattr(block, "content", None)
            if inner is not None:
                inner = cast("list[Block]", inner)
                _put(changes, "content", inner, redact_blocks(redactor, inner, found))
    return block.model_copy(update=changes) if changes else block


def _texts(
    redactor: Redactor,
    block: Block,
    names: Iterable[str],
    changes: dict[str, Any],
    found: "Counter[str] | None",
) -> None:
    for name in names:
        value = getattr(block, name, None)
        if value is not None:
            _put(changes, name, value, redactor.text(value, found))


def _put(changes: dict[str, Any], name: str, old: object, new: object) -> None:
    if new is not old and new != old:
        changes[name] = new
