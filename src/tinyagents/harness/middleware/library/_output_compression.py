"""Verbose tool output made short before the model sees it."""

import re
from collections.abc import Collection
from functools import partial
from typing import Any

from pydantic import JsonValue

from ...concurrency import in_thread
from ...context import RunContext
from ...options import check_above_zero, names_of
from ...text import encode_json, parse_json
from ...token_estimation import TokenCounterLike, TokenEstimator
from ...tool import ToolResult
from .._base import Middleware, ToolCall
from ._result_text import replace_text, stays

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Control sequences of terminals (ECMA-48, 5.4), and operating system commands as xterm has them."""
_NUMBERS = re.compile(r"\d+")
_DEEPEST = 100
"""Deeper in, JSON is left as it is."""
_LARGE = 200_000
"""So many characters are worked on in a thread, so that other runs do not wait."""
_SHORT = 100
"""Texts in JSON that are no longer stay whole."""
_ALIKE = 3
"""So many lines in a row after one that differ from it in their numbers only are told with it."""


class OutputCompressionMiddleware(Middleware[Any]):
    """Makes the output of tools short: terminal codes, lines alike, long JSON lists and long texts.

    What is cut says how long it was. Errors are shortened, too; results that are ``trusted_verbatim``
    and those of the tools that read what was kept elsewhere stay, and so do images and files beside
    the text. The result's ``value``, which the application sees, stays whole.

    Hooks: ``after_tool``. It changes the text of a result, before it becomes a part of the transcript.
    Events: ``context.compressed``.

    Args:
        max_characters: What is longer is shortened to that, the marker left out.
        max_items: How many items of a JSON list are kept where it is too long.
        tools: The tools whose output is meant; all where it is ``None``.
        counter: Counts tokens: see :class:`~tinyagents.harness.token_estimation.TokenEstimator`.

    Raises:
        ConfigurationError: A number is not above 0, or names are given as one text.
    """

    def __init__(
        self,
        *,
        max_characters: int = 8_000,
        max_items: int = 20,
        tools: Collection[str] | None = None,
        counter: TokenCounterLike | None = None,
    ) -> None:
        check_above_zero(max_characters=max_characters, max_items=max_items)
        self._max_characters = max_characters
        self._max_items = max_items
        self._tools = names_of("tools", tools)
        self._estimator = TokenEstimator(counter)

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Shorten a result."""
        if stays(call, result) or (self._tools is not None and call.name not in self._tools):
            return
        text = result.joined_text()
        if len(text) > _LARGE:
            shorter = await in_thread(partial(self.shortened, text))
        else:
            shorter = self.shortened(text)
        if len(shorter) >= len(text):
            return
        replace_text(result, shorter)
        ctx.emit(
            "context.compressed",
            from_tokens=await self._estimator.counted(text),
            to_tokens=await self._estimator.counted(shorter),
            by=self.name,
        )

    def shortened(self, text: str) -> str:
        """Return a text as the middleware makes it."""
        text = _ESCAPES.sub("", text) if "\x1b" in text else text
        if len(text) <= self._max_characters:
            return text
        original = len(text)
        shorter = self._as_json(text) or _without_lines_alike(text)
        return min(text, _middle_cut(shorter, self._max_characters, original), key=len)

    def _as_json(self, text: str) -> str | None:
        """Return JSON with its long lists cut, and long texts where need be; ``None`` if it is none."""
        if text.lstrip()[:1] not in ("[", "{"):
            return None
        longest = len(text)
        try:
            value = parse_json(text)
            while True:
                shorter = encode_json(_cut_json(value, self._max_items, longest, 0)).decode()
                if len(shorter) <= self._max_characters or longest <= _SHORT:
                    return shorter
                longest = min(longest, self._max_characters) // 2
        except ValueError:
            return None


def _cut_json(value: JsonValue, items: int, longest: int, depth: int) -> JsonValue:
    """Return JSON without the ends of its long lists and the middles of its long texts."""
    if depth == _DEEPEST:
        return value
    match value:
        case dict():
            return {key: _cut_json(each, items, longest, depth + 1) for key, each in value.items()}
        case list():
            kept = [_cut_json(each, items, longest, depth + 1) for each in value[:items]]
            if len(value) > items:
                kept.append(f"[… cut: {len(value) - items} of {len(value)} items …]")
            return kept
        case str():
            return _middle_cut(value, longest, len(value))
        case _:
            return value


def _without_lines_alike(text: str) -> str:
    """Tell a run of lines that differ in their numbers only as its first, and how many followed."""
    lines: list[str] = []
    shape, alike = None, 0
    for line in [*text.split("\n"), None]:
        same = _NUMBERS.sub("0", line) if line is not None else None
        if same == shape and line is not None:
            alike += 1
            lines.append(line)
            continue
        if alike >= _ALIKE:
            del lines[-alike:]
            lines.append(f"[… {alike} more lines like this …]")
        if line is not None:
            lines.append(line)
        shape, alike = same, 0
    return "\n".join(lines)


def _middle_cut(text: str, most: int, original: int) -> str:
    if len(text) <= most:
        return text
    head = (most + 1) // 2
    tail = most - head
    cut = f"{text[:head]}\n[… cut: {original} characters in all …]\n{text[len(text) - tail :]}"
    return min(text, cut, key=len)
