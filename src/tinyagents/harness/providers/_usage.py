"""From what providers report of tokens to the one meaning of :class:`Usage`."""

from collections.abc import Mapping
from typing import Any

from ..usage import Usage
from ._json import as_object

_INPUT = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "eval_count")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
_CACHE_READ = (
    "cached_tokens",
    "prompt_cache_hit_tokens",  # DeepSeek
    "num_cached_tokens",  # Mistral
    "cache_read_tokens",
    "cache_read_input_tokens",
)
_CACHE_WRITE = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")


def merge_usage(known: dict[str, Any], reported: Mapping[str, Any]) -> None:
    """Take a report into ``known``: the latest value of each field counts, and none erases none."""
    for name, value in reported.items():
        details = as_object(value)
        if details is not None:
            known[name] = inner = {**(as_object(known.get(name)) or {})}
            merge_usage(inner, details)
        elif value is not None:
            known[name] = value


def read_usage(
    reported: Mapping[str, Any], *, cache_in_input: bool, hidden_output: bool
) -> Usage | None:
    """Return a report in this library's meaning; ``None`` when it counts nothing.

    Input includes the prompt cache and output includes reasoning, whatever the provider adds up.
    Parts never exceed their whole: where a provider says so, the whole is what it bills.

    Args:
        reported: The latest value of each field.
        cache_in_input: The provider's count of input holds what came from or went to the cache.
        hidden_output: Its total holds reasoning that its count of output does not.
    """
    given = [_count(reported, names) for names in (_INPUT, _OUTPUT, ("total_tokens",))]
    if given == [None, None, None]:
        return None
    details = _details(reported, _INPUT_DETAILS)
    read = _largest(_CACHE_READ, details, reported)
    written = _largest(_CACHE_WRITE, details, reported)
    reasoning = _largest(("reasoning_tokens",), _details(reported, _OUTPUT_DETAILS), reported)
    total = given[2] or 0
    input_tokens = given[0] if given[0] is not None else max(0, total - (given[1] or 0))
    output_tokens = given[1] if given[1] is not None else max(0, total - input_tokens)
    hidden = total - input_tokens - output_tokens
    if hidden > 0 and (hidden == reasoning or hidden_output):
        output_tokens += hidden
        reasoning = max(reasoning, hidden)
    if not cache_in_input:
        input_tokens += read + written
    read = min(read, input_tokens)
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=min(written, input_tokens - read),
        reasoning_tokens=min(reasoning, output_tokens),
    )


def _details(reported: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    found = (as_object(reported.get(name)) for name in names)
    return next(filter(None, found), dict[str, Any]())


def _count(report: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = report.get(name)
        if value is not None and (counted := _whole_number(value)) is not None:
            return counted
    return None


def _largest(names: tuple[str, ...], *reports: Mapping[str, Any]) -> int:
    """Return the most that any of the names counts: a provider repeats one count under several."""
    most = 0
    for report in reports:
        for name in names:
            value = report.get(name)
            if value:
                most = max(most, _whole_number(value) or 0)
    return most


def _whole_number(value: Any) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return int(value)
    return None
