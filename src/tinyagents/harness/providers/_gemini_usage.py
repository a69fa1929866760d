"""Gemini's token counts in this library's meaning."""

from collections.abc import Mapping
from typing import Any

from ..usage import Usage
from ._json import as_integer


def read_gemini_usage(reported: Mapping[str, Any]) -> Usage | None:
    """Return a ``usageMetadata`` as usage; ``None`` when it counts nothing.

    ``promptTokenCount`` includes what came from the cache. Prompts of the provider's own tools count
    as input, thoughts as output; both stand beside the other counts and in ``totalTokenCount``.
    """
    prompt, answer, total = (
        _count(reported, name)
        for name in ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
    )
    if prompt is None and answer is None and total is None:
        return None
    thoughts = _count(reported, "thoughtsTokenCount") or 0
    tools = _count(reported, "toolUsePromptTokenCount") or 0
    given = total or 0
    if prompt is None:
        prompt = max(0, given - (answer or 0) - thoughts - tools)
    if answer is None:
        answer = max(0, given - prompt - thoughts - tools)
    input_tokens = prompt + tools
    return Usage(
        input_tokens=input_tokens,
        output_tokens=answer + thoughts,
        cache_read_tokens=min(_count(reported, "cachedContentTokenCount") or 0, input_tokens),
        reasoning_tokens=thoughts,
    )


def _count(reported: Mapping[str, Any], name: str) -> int | None:
    value = as_integer(reported.get(name))
    return None if value is None else max(0, value)
