"""Estimating what a whole prompt is in tokens, from its messages, tools and answer format."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from ..concurrency import in_thread
from ..memo import FormatCache, MessageCache, ToolsetCache
from ..message import AssistantMessage, Block, MediaBlock, Message
from ..model import JsonSchemaFormat, ModelRequest, ToolSchema
from ..text import encode_json
from ._counters import HeuristicTokenCounter, TokenCounter, TokenCounterLike, as_token_counter
from ._images import image_tokens

_MESSAGE_TOKENS = 3
"""What marks a message off from its neighbours, as OpenAI's cookbook gives it for its chat models."""
_LEAST_MEDIA_TOKENS = 256
_AUDIO_BYTES_PER_TOKEN = 400
"""Compressed speech of 32 kbit/s at ten tokens a second, as OpenAI counts input sound."""
_FILE_BYTES_PER_TOKEN = 64
"""A guess for documents, which hold more than their text."""
_MOST_SCALED = 1.25
_QUICK = 5_000
"""So many characters a tokenizer works through in about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimate:
    """About how many tokens a prompt is, in parts."""

    messages: int = 0
    tools: int = 0
    response_format: int = 0
    floor: int = 0
    """What a provider has counted for a part of the same messages, and what follows that part."""
    scale: float = 1.0
    """What the parts are multiplied by, so that they fit what a provider has counted."""

    @property
    def total(self) -> int:
        """All of it; never below what a provider has reported."""
        parts = self.messages + self.tools + self.response_format
        return max(math.ceil(parts * self.scale), self.floor)


class TokenEstimator:
    """Estimates prompts: text by a counter, everything else by its kind and size.

    Nothing that a provider bills counts as nothing: pictures, sound, files, reasoning, calls with
    their arguments, results, tool schemas. What was counted of a message is kept as long as the
    message lives, so that the time for a turn does not grow with the conversation.

    Args:
        counter: Counts text: a :class:`TokenCounter`, or any object with ``encode(text)``. The
            heuristic one by default.
        calibrated: Multiply the estimate by how far what the provider has counted is above it, for
            the part that it has counted; by 1.25 at most, and never by less than 1.

    Raises:
        ConfigurationError: The counter counts nothing.
    """

    __slots__ = ("_calibrated", "_formats", "_is_slow", "_messages", "_toolsets", "counter")

    def __init__(
        self, counter: TokenCounterLike | None = None, *, calibrated: bool = False
    ) -> None:
        self.counter: TokenCounter = as_token_counter(counter)
        self._calibrated = calibrated
        self._is_slow = not isinstance(self.counter, HeuristicTokenCounter)
        self._messages: MessageCache[None, int] = MessageCache(self._of_message)
        self._toolsets: ToolsetCache[int] = ToolsetCache(self._of_tools)
        self._formats: FormatCache[int] = FormatCache(self._of_format)

    def text(self, text: str) -> int:
        """Return about how many tokens a text is."""
        return self.counter.count_text(text)

    async def counted(self, text: str) -> int:
        """Return about how many tokens a text is, without holding up other runs where it is long."""
        if self._is_slow and len(text) > _QUICK:
            return await in_thread(partial(self.counter.count_text, text))
        return self.counter.count_text(text)

    async def prepare(self, messages: Sequence[Message]) -> None:
        """Count new messages where other runs need not wait for it: what is asked next is known.

        A tokenizer works in a thread on those that are long; else nothing is done.
        """
        if not self._is_slow:
            return
        new = [message for message in messages if not self._messages.has(message, None)]
        if sum(map(_characters, new)) > _QUICK:
            await in_thread(partial(self.messages, new))

    def message(self, message: Message) -> int:
        """Return about how many tokens a message is, with what marks it off from others."""
        return self._messages.of(message, None)

    def messages(self, messages: Sequence[Message]) -> int:
        """Return about how many tokens messages are; 0 for none."""
        of, total = self._messages.of, 0
        for message in messages:
            total += of(message, None)
        return total

    def tools(self, tools: Sequence[ToolSchema]) -> int:
        """Return about how many tokens the schemas of tools are; 0 for none."""
        return self._toolsets.of(tools) if tools else 0

    def request(self, request: ModelRequest, *, reported: bool = True) -> TokenEstimate:
        """Estimate what a request sends: see :meth:`prompt`."""
        wanted = request.response_format
        return self.prompt(
            request.messages,
            request.tools,
            wanted if isinstance(wanted, JsonSchemaFormat) else None,
            reported=reported,
        )

    def prompt(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        response_format: JsonSchemaFormat | None = None,
        *,
        reported: bool = True,
    ) -> TokenEstimate:
        """Estimate a prompt.

        Args:
            messages: What is sent, the system prompt included.
            tools: The tools that are offered.
            response_format: The form that the answer must have.
            reported: Whether what the provider has counted for the latest answer among the messages,
                prompt and answer together, stands for all up to there. Pass ``False`` where that
                prompt was another one, as after a history was shortened.
        """
        own = self.messages(messages)
        schemas = self.tools(tools)
        form = self._formats.of(response_format) if response_format is not None else 0
        floor, scale = 0, 1.0
        known = _reported(messages) if reported else None
        if known is not None:
            place, used = known
            tail = self.messages(messages[place + 1 :])
            floor = used + tail
            if self._calibrated and len(messages) > 1:
                so_far = own - tail + schemas + form
                scale = min(max(used / so_far, 1.0), _MOST_SCALED)
        return TokenEstimate(
            messages=own, tools=schemas, response_format=form, floor=floor, scale=scale
        )

    def _of_message(self, message: Message, _: None) -> int:
        count = self.counter.count_text
        total = _MESSAGE_TOKENS + count(message.role)
        name = getattr(message, "name", None)
        if name:
            total += count(name)
        if message.role == "tool":
            total += count(message.tool_call_id)
        return total + sum(map(self._of_block, message.content))

    def _of_block(self, block: Block) -> int:
        count = self.counter.count_text
        match block.type:
            case "text" | "refusal":
                return count(block.text)
            case "reasoning":
                return max(1, count(block.text or block.data or ""))
            case "tool_call":
                raw = block.invalid.raw if block.invalid is not None else _json(block.arguments)
                return count(block.id) + count(block.name) + count(raw)
            case "tool_result":
                return count(block.tool_call_id) + sum(map(self._of_block, block.content))
            case "json":
                return max(1, count(_json(block.value)))
            case "citation":
                shown = (block.url, block.title, block.text)
                return max(1, sum(count(text) for text in shown if text))
            case "provider_extension":
                return max(1, count(_json(block.data)))
            case "image":
                return image_tokens(block)
            case "audio":
                return _of_bytes(block, _AUDIO_BYTES_PER_TOKEN) + count(block.transcript or "")
            case "file":
                if (block.media_type or "").startswith("text/") and block.data is not None:
                    return max(1, _byte_count(block) // 4)
                return _of_bytes(block, _FILE_BYTES_PER_TOKEN)

    def _of_tools(self, tools: Sequence[ToolSchema]) -> int:
        return sum(map(self._of_tool, tools))

    def _of_tool(self, tool: ToolSchema) -> int:
        # The title and description at the top are said in the name and description already.
        told = {k: v for k, v in tool.parameters.items() if k not in ("title", "description")}
        count = self.counter.count_text
        return _MESSAGE_TOKENS + count(tool.name) + count(tool.description) + count(_json(told))

    def _of_format(self, wanted: JsonSchemaFormat) -> int:
        return self.counter.count_text(_json(wanted.schema)) + _MESSAGE_TOKENS


def _json(value: JsonValue) -> str:
    return encode_json(value).decode()


def _of_bytes(block: MediaBlock, bytes_per_token: int) -> int:
    return max(_LEAST_MEDIA_TOKENS, _byte_count(block) // bytes_per_token)


def _byte_count(block: MediaBlock) -> int:
    return len(block.data or "") * 3 // 4


def _characters(message: Message) -> int:
    return sum(len(getattr(block, "text", None) or "") for block in message.content)


def _reported(messages: Sequence[Message]) -> tuple[int, int] | None:
    """Return the place of the latest answer that was counted, and the tokens up to its end."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if not isinstance(message, AssistantMessage):
            continue
        usage = message.usage
        if usage is not None and usage.source == "reported" and usage.total_tokens:
            return place, usage.total_tokens
    return None
