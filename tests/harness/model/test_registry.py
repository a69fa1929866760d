from collections.abc import AsyncIterator
from typing import Any

import pytest

from tinyagents.harness.errors import DuplicateNameError, ModelNotFoundError
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import (
    CapabilitySet,
    ChatModel,
    ModelHint,
    ModelProfile,
    ModelRegistry,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    ResolvedModel,
)


class Model:
    """A model that is only ever looked at."""

    def __init__(self, **profile: Any) -> None:
        self.profile = ModelProfile(provider="fake", **profile)

    async def invoke(self, request: ModelRequest, *, ctx: Any = None) -> ModelResponse:
        raise NotImplementedError

    def stream(self, request: ModelRequest, *, ctx: Any = None) -> AsyncIterator[ModelStreamItem]:
        raise NotImplementedError


TOOLS = CapabilitySet(tool_calling=True)


def registry(**models: Model) -> ModelRegistry:
    return ModelRegistry(models)


def asking(**changes: Any) -> ModelRequest:
    return ModelRequest(messages=[UserMessage(content="hi")], **changes)


def test_a_plain_class_is_a_model() -> None:
    assert isinstance(Model(), ChatModel)


def test_the_first_model_is_the_default_and_names_are_listed_sorted() -> None:
    models = registry(zebra=Model(), ape=Model())
    assert models.default == "zebra"
    assert models.names == tuple(models) == ("ape", "zebra")
    assert len(models) == 2
    assert "ape" in models
    assert "cow" not in models


def test_an_empty_registry_has_no_default() -> None:
    assert ModelRegistry().default is None
    with pytest.raises(ModelNotFoundError, match="no model is registered"):
        ModelRegistry().resolve(asking())


def test_a_name_is_given_once() -> None:
    models = registry(a=Model())
    with pytest.raises(DuplicateNameError, match="`a`") as caught:
        models.with_model("a", Model())
    assert caught.value.name == "a"


def test_a_missing_name_is_answered_with_those_that_there_are() -> None:
    models = registry(b=Model(), a=Model())
    with pytest.raises(ModelNotFoundError, match="`c`; there are `a`, `b`") as caught:
        models.get("c")
    assert caught.value.name == "c"
    with pytest.raises(ModelNotFoundError):
        models.with_default("c")
    with pytest.raises(ModelNotFoundError):
        ModelRegistry({"a": Model()}, default="c")


def test_the_default_can_be_chosen() -> None:
    models = ModelRegistry({"a": Model(), "b": Model()}, default="b")
    assert models.resolve(asking()).resolved.name == "b"
    assert models.with_default("a").resolve(asking()).resolved.name == "a"
    assert models.resolve(asking()).resolved.name == "b"


def test_what_is_asked_for_is_tried_in_order_of_precedence() -> None:
    models = registry(
        default=Model(), agent=Model(), low=Model(), high=Model(), previous=Model(), own=Model()
    )
    hints = [ModelHint(model="low"), ModelHint(model="high", priority=5)]

    def chosen(previous: str | None, agent: str | None, **changes: Any) -> tuple[str, str]:
        resolved = models.resolve(
            asking(**changes), previous=previous, agent_default=agent
        ).resolved
        return resolved.name, resolved.source

    every: dict[str, Any] = {"reuse_previous_model": True, "model_hints": hints}
    assert chosen("previous", "agent", model="own", **every) == ("own", "request_override")
    assert chosen("previous", "agent", **every) == ("previous", "state_reuse")
    assert chosen(None, "agent", **every) == ("high", "hint")
    assert chosen("previous", "agent", model_hints=hints) == ("high", "hint")
    assert chosen("previous", "agent") == ("agent", "agent_default")
    assert chosen("previous", None) == ("default", "registry_default")


def test_hints_of_one_priority_are_tried_as_given() -> None:
    models = registry(default=Model(), a=Model(), b=Model())
    hints = [ModelHint(model="missing"), ModelHint(model="b"), ModelHint(model="a")]
    binding = models.resolve(asking(model_hints=hints))
    assert binding.resolved.name == "b"
    assert binding.resolved.requested == "missing"


def test_a_model_that_cannot_serve_is_passed_over_with_the_reason() -> None:
    models = registry(plain=Model(), able=Model(tool_calling=True))
    binding = models.resolve(
        asking(model="plain", required_capabilities=TOOLS), agent_default="able"
    )
    assert binding.model is models.get("able")
    assert binding.skipped == ("`plain` lacks tool_calling",)
    assert binding.resolved == ResolvedModel(
        name="able", provider="fake", requested="plain", source="agent_default"
    )


def test_an_override_that_is_not_registered_falls_to_the_next_source() -> None:
    binding = registry(a=Model()).resolve(asking(model="gone"))
    assert (binding.resolved.name, binding.resolved.source) == ("a", "registry_default")
    assert binding.skipped == ("`gone` is not registered (there are `a`)",)


def test_without_any_candidate_the_error_says_why_of_each_once() -> None:
    models = registry(a=Model())
    with pytest.raises(ModelNotFoundError) as caught:
        models.resolve(asking(model="a", required_capabilities=TOOLS))
    assert str(caught.value).count("`a` lacks tool_calling") == 1
    assert caught.value.name == "a"


def test_a_retired_model_serves_only_where_that_is_allowed() -> None:
    models = registry(old=Model(status="retired"))
    for _ in range(2):  # whatever was allowed before is not remembered
        assert models.resolve(asking(), allow_retired=True).resolved.name == "old"
        with pytest.raises(ModelNotFoundError, match="`old` is retired"):
            models.resolve(asking())


def test_a_registry_is_not_changed_but_copied() -> None:
    models = registry(a=Model())
    assert models.resolve(asking()) is models.resolve(asking())
    more = models.with_model("b", Model()).with_default("b")
    assert more.resolve(asking()).resolved.name == "b"
    assert (more.names, models.names) == (("a", "b"), ("a",))
    assert models.resolve(asking()).resolved.name == "a"


def test_a_model_that_was_named_is_recorded_as_requested() -> None:
    models = registry(a=Model(model="a-1"))
    assert models.resolve(asking(model="a")).resolved == ResolvedModel(
        name="a", provider="fake", model="a-1", requested="a", source="request_override"
    )
    assert models.resolve(asking()).resolved.requested is None


def test_a_fallback_is_bound_or_says_why_not() -> None:
    models = registry(a=Model(tool_calling=True), b=Model(), old=Model(status="retired"))
    binding = models.bind_fallback("a", TOOLS, requested="main")
    assert not isinstance(binding, str)
    assert (binding.resolved.source, binding.resolved.requested) == ("fallback", "main")
    assert models.bind_fallback("b", TOOLS) == "`b` lacks tool_calling"
    assert models.bind_fallback("old") == "`old` is retired"
    assert models.bind_fallback("c") == "`c` is not registered (there are `a`, `b`, `old`)"
