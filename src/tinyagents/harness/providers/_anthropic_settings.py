"""Settings, thinking and the form of the answer as fields of a Messages call."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from ..errors import InvalidRequestError
from ..json_schema import Place, rebuilt
from ..model import (
    JsonSchemaFormat,
    ModelSettings,
    ReasoningConfig,
)
from ..text import JsonObject
from ._anthropic_models import ClaudeTraits
from ._json import as_integer, as_object
from ._schema import ANTHROPIC_STRICT, close_schema, step, with_told

DEFAULT_MAX_TOKENS: Final = 16_384
"""The API wants ``max_tokens``: this, and a thinking budget on top, unless the model has less."""

RESERVED_OPTIONS: Final = frozenset(
    {
        *("model", "messages", "system", "tool_choice", "max_tokens", "temperature", "top_p"),
        *("stop_sequences", "stream"),
    }
)
"""Fields of the request that the adapter sets, and that ``provider_options`` may not."""

_BUDGETS: Final = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384}
"""Tokens that stand for an effort, for models that take only a budget."""
_LEAST_BUDGET: Final = 1_024
_NOT_TAKEN: Final[tuple[str, ...]] = ("seed", "frequency_penalty", "presence_penalty", "logprobs")
_LIMITS: Final[tuple[str, ...]] = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
"""Keywords that the API refuses in the schema of an answer; told in words, they still guide."""

_LEAST_THINKING_TOP_P: Final = 0.95
"""https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Feature compatibility"."""

Refuse: TypeAlias = Callable[[str], InvalidRequestError]
"""Makes the error for what a model cannot take."""


def check_options(options: Mapping[str, Any], refuse: Refuse) -> dict[str, Any]:
    """Return the request fields among ``provider_options``, without ``betas``, which is a header.

    Raises:
        InvalidRequestError: A field has a setting of its own.
    """
    reserved = sorted(RESERVED_OPTIONS.intersection(options))
    if reserved:
        raise refuse(f"provider options that have settings of their own: {', '.join(reserved)}")
    return {name: value for name, value in options.items() if name != "betas"}


def settings_fields(
    settings: ModelSettings, traits: ClaudeTraits, most: int | None, refuse: Refuse
) -> tuple[dict[str, Any], list[str]]:
    """Return the request fields of the settings, and what was left out of them.

    Args:
        settings: How to answer.
        traits: What the model takes.
        most: The most tokens that it can answer with, where that is known.
        refuse: Makes the error for a setting that cannot be sent.

    Raises:
        InvalidRequestError: The API has no form for a setting, or two contradict each other.
    """
    for name in _NOT_TAKEN:
        if getattr(settings, name) is not None:
            raise refuse(f"the setting `{name}`")
    fields = _reasoning(settings.reasoning, traits, refuse)
    chosen = settings.provider_options.get("thinking", fields.get("thinking"))
    thinking = as_object(chosen) or {}
    budget = as_integer(thinking.get("budget_tokens")) or 0
    fields["max_tokens"] = _max_tokens(settings.max_tokens, budget, most, refuse)
    left_out = _add_sampling(fields, settings, traits, refuse, thinks=_thinks(thinking))
    if settings.stop:
        fields["stop_sequences"] = list(settings.stop)
    if settings.user is not None:
        fields["metadata"] = {"user_id": settings.user}
    return fields, left_out


def _max_tokens(given: int | None, budget: int, most: int | None, refuse: Refuse) -> int:
    chosen = given
    if chosen is None:
        chosen = DEFAULT_MAX_TOKENS + budget
        chosen = chosen if most is None else min(chosen, most)
    if budget >= chosen:
        raise refuse(f"a thinking budget of {budget} within `max_tokens` of {chosen}")
    return chosen


def _thinks(thinking: Mapping[str, Any]) -> bool:
    return thinking.get("type") in ("enabled", "adaptive")


def _add_sampling(
    fields: dict[str, Any],
    settings: ModelSettings,
    traits: ClaudeTraits,
    refuse: Refuse,
    *,
    thinks: bool,
) -> list[str]:
    """Add what steers the choice of words; return what was left out, a sentence each."""
    if settings.top_p is not None:
        if not traits.sampling:
            raise refuse("the setting `top_p`")
        if thinks and settings.top_p < _LEAST_THINKING_TOP_P:
            raise refuse(
                f"a `top_p` of {settings.top_p} while it thinks: the least is {_LEAST_THINKING_TOP_P}"
            )
        fields["top_p"] = settings.top_p
    temperature = settings.temperature
    if temperature is None or not traits.sampling:
        return []  # that a model takes none is told where the request is fitted to it
    if thinks:
        return ["a temperature was left out: the model takes none while it thinks (`reasoning`)"]
    if settings.top_p is not None and traits.one_sampling:
        raise refuse("`temperature` and `top_p` at once: one of them")
    if temperature > 1:
        raise refuse(f"a temperature of {temperature}: it goes from 0 to 1")
    fields["temperature"] = temperature
    return []


def _reasoning(
    config: ReasoningConfig | None, traits: ClaudeTraits, refuse: Refuse
) -> dict[str, Any]:
    if config is None:
        return {}
    effort, budget = config.effort, config.budget_tokens
    if config.summary not in (None, "auto"):
        raise refuse(f"summaries of reasoning that are `{config.summary}`: only `auto`")
    if effort == "none" and budget is None:
        return {"thinking": {"type": "disabled"}}
    thinking: dict[str, JsonValue]
    fields: dict[str, Any] = {}
    if budget is None and effort is not None and traits.thinking == "budget":
        budget = _BUDGETS[effort]
        effort = None
    if budget is not None:
        if traits.thinking == "adaptive":
            raise refuse("`budget_tokens`: it takes an `effort`")
        if budget < _LEAST_BUDGET:
            raise refuse(f"a thinking budget of {budget}: the least is {_LEAST_BUDGET}")
        thinking = {"type": "enabled", "budget_tokens": budget}
    elif traits.thinking == "budget":
        return {}  # a summary alone asks for nothing that such a model does not show anyway
    else:
        thinking = {"type": "adaptive"}
    if effort is not None:
        if traits.thinking == "budget":
            raise refuse("a reasoning effort beside `budget_tokens`")
        fields["output_config"] = {"effort": "low" if effort == "minimal" else effort}
    if config.summary is not None and traits.thinking != "budget":
        thinking["display"] = "summarized"
    return {"thinking": thinking, **fields}


def output_format(
    wanted: JsonSchemaFormat, traits: ClaudeTraits, refuse: Refuse
) -> tuple[JsonObject, list[str]]:
    """Return the part of ``output_config`` that holds the answer to a schema.

    Returns:
        The part, and what the API does not hold the answer to, a sentence each. The part is empty
        where the API cannot be held to the schema at all, which then has to be told in words.

    Raises:
        InvalidRequestError: The model cannot be held to a schema, or not to this one, which must be
            strict.
    """
    if traits.json_schema is False:
        raise refuse("answers of a JSON schema")
    closed = close_schema(wanted.schema, ANTHROPIC_STRICT)
    if closed.obstacles and wanted.strict:
        raise refuse(f"the schema `{wanted.name}`: {'; '.join(closed.obstacles)}")
    if closed.obstacles:
        return {}, [f"format `{wanted.name}` is only described: {o}" for o in closed.obstacles]
    schema, described = without_limits(closed.schema)
    notices = [f"format `{wanted.name}`: {each}" for each in described]
    return {"format": {"type": "json_schema", "schema": schema}}, notices


def without_limits(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return a copy whose limits are told in the descriptions, and a sentence for each limit."""
    described: list[str] = []
    return _without_limits(schema, "$", described), described


def _without_limits(schema: JsonObject, path: str, described: list[str]) -> JsonObject:
    def inner(place: Place, part: JsonObject) -> JsonObject:
        return _without_limits(part, path + step(place), described)

    made = rebuilt(schema, inner)
    told = {name: made.pop(name) for name in _LIMITS if name in made}
    least = made.get("minItems")
    if least not in (None, 0, 1):
        told["minItems"] = made.pop("minItems")
    described.extend(f"`{path}`: `{name}` is only described" for name in told)
    return with_told(made, told)
