"""What the keys of stored responses are made of."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyagents import AssistantMessage, SystemMessage, ToolMessage, Usage, UserMessage
from tinyagents.harness.cache import (
    UNKEYED,
    cache_key,
    credential_fingerprint,
    decode_response,
    encode_response,
    is_storable,
    model_identity,
    scoped_cache_key,
)
from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.message import (
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
)
from tinyagents.harness.model import (
    CapabilitySet,
    FinishReason,
    JsonSchemaFormat,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolSchema,
)
from tinyagents.harness.providers import AnthropicModel, MockModel, OpenAIChatModel
from tinyagents.harness.text import JsonObject
from tinyagents.harness.tool_calling import PromptGuidedModel
from tinyagents.testkit import FakeChatModel

TOOL = ToolSchema(name="f", description="d", parameters={"type": "object", "properties": {}})
ASKED = ModelRequest([UserMessage(content="hi")], (TOOL,))


def settings(**given: Any) -> ModelRequest:
    return replace(ASKED, settings=ModelSettings(**given))


def schema(**changes: Any) -> ModelRequest:
    form = JsonSchemaFormat(name="City", schema={"type": "object"})
    return replace(ASKED, response_format=replace(form, **changes))


PAIRS = [
    (settings(max_tokens=10), settings(max_tokens=11)),
    (settings(stop=("a",)), settings(stop=("b",))),
    (settings(stop=("a", "b")), settings(stop=("b", "a"))),
    (settings(), settings(temperature=0.0)),
    (settings(), settings(temperature=None)),  # overrides a default of the model
    (settings(temperature=0.0), settings(temperature=float("nan"))),
    (settings(seed=1), settings(seed=2)),
    (settings(reasoning=ReasoningConfig(effort="low")), settings(reasoning=ReasoningConfig())),
    (settings(provider_options={"a": 1}), settings(provider_options={"a": 2})),
    (settings(provider_options={"a": 2**70}), settings(provider_options={"a": 2**70 + 1})),
    (settings(extra_headers={"x": "1"}), settings(extra_headers={"x": "2"})),
    (ASKED, replace(ASKED, tool_choice="required")),
    (replace(ASKED, tool_choice="none"), replace(ASKED, tool_choice=NamedTool("none"))),
    (ASKED, replace(ASKED, tools=(replace(TOOL, description="other"),))),
    (ASKED, replace(ASKED, tools=(replace(TOOL, strict=True),))),
    (ASKED, replace(ASKED, tools=())),
    (schema(), ASKED),
    (schema(), schema(schema={"type": "object", "title": "x"})),
    (schema(), schema(strict=True)),
    (ASKED, replace(ASKED, messages=[SystemMessage(content="hi")])),
    (ASKED, replace(ASKED, messages=[UserMessage(content=[TextBlock(text="h"), TextBlock(text="i")])])),
    (ASKED, replace(ASKED, messages=[*ASKED.messages, *ASKED.messages])),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_requests_that_differ_in_what_can_change_the_answer_differ_in_key(
    one: ModelRequest, other: ModelRequest
) -> None:
    # C68
    assert cache_key(one) != cache_key(other)


def test_the_order_of_keys_does_not_matter_and_that_of_lists_does() -> None:
    # C68
    one = settings(provider_options={"a": 1, "b": {"c": 2, "d": [1, 2]}})
    same = settings(provider_options={"b": {"d": [1, 2], "c": 2}, "a": 1})
    other = settings(provider_options={"b": {"d": [2, 1], "c": 2}, "a": 1})
    assert cache_key(one) == cache_key(same) != cache_key(other)
    parameters: JsonObject = {"properties": {}, "type": "object"}
    assert cache_key(ASKED) == cache_key(
        replace(ASKED, tools=[replace(TOOL, parameters=parameters)])
    )


@pytest.mark.parametrize(
    "changed",
    [
        replace(ASKED, metadata={"page": 1}),
        replace(ASKED, tags=("t",)),
        replace(ASKED, prompt_fingerprint="f"),
        replace(ASKED, cache=True),
        settings(timeout=3.0),
    ],
)
def test_what_cannot_change_the_answer_does_not_change_the_key(changed: ModelRequest) -> None:
    assert cache_key(changed) == cache_key(ASKED)


def test_what_only_the_application_sees_of_a_message_does_not_change_the_key() -> None:
    said = AssistantMessage(content="a", usage=Usage(input_tokens=1))
    result = ToolMessage(tool_call_id="c", content="r", artifact={"rows": 1}, trusted_verbatim=True)
    with_it = replace(ASKED, messages=[said, result])
    without = replace(
        ASKED,
        messages=[AssistantMessage(content="a"), ToolMessage(tool_call_id="c", content="r")],
    )
    assert cache_key(with_it) == cache_key(without)


def test_the_fields_that_are_left_out_are_fields() -> None:
    assert UNKEYED["request"] <= {field.name for field in fields(ModelRequest)}
    assert UNKEYED["settings"] <= ModelSettings.model_fields.keys()
    assert UNKEYED["message"] <= {
        *ToolMessage.model_fields,
        *AssistantMessage.model_fields,
    }


def test_the_key_is_the_same_in_every_process() -> None:
    program = (
        "from tinyagents.harness.cache import cache_key\n"
        "from tinyagents.harness.model import CapabilitySet, ModelRequest\n"
        "from tinyagents import UserMessage\n"
        "kinds = frozenset({'image', 'audio', 'file', 'text'})\n"
        "need = CapabilitySet(input_modalities=kinds)\n"
        "print(cache_key(ModelRequest([UserMessage(content='hi')], required_capabilities=need)))\n"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(keys) == 1
    need = CapabilitySet(input_modalities=frozenset({"image", "audio", "file", "text"}))
    asked = ModelRequest([UserMessage(content="hi")], required_capabilities=need)
    assert keys == {f"{cache_key(asked)}\n"}


def test_a_request_without_a_form_in_json_has_no_key() -> None:
    with pytest.raises(InvalidRequestError, match="`object`"):
        cache_key(settings(provider_options={"a": object()}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def typed(value: object) -> object:
    """A value in which 1 and True are not the same, nor lists in another order."""
    match value:
        case dict():
            return frozenset((key, typed(item)) for key, item in value.items())
        case list():
            return ("list", *map(typed, value))
        case _:
            return type(value).__name__, value


@given(
    one=st.dictionaries(st.text(max_size=3), JSON), other=st.dictionaries(st.text(max_size=3), JSON)
)
def test_keys_are_equal_exactly_where_what_is_asked_is(one: Any, other: Any) -> None:
    keys = [cache_key(settings(provider_options=each)) for each in (one, other)]
    assert (keys[0] == keys[1]) is (typed(one) == typed(other))


def test_the_scope_keeps_models_streams_and_namespaces_apart() -> None:
    def key(**scope: Any) -> str:
        return scoped_cache_key(ASKED, **{"identity": "m", "streaming": False, **scope})

    others = [key(identity="n"), key(streaming=True), key(namespace="a"), key(namespace="b")]
    assert len({key(), *others}) == 5
    assert key() == key(namespace=None)


@pytest.mark.parametrize(
    "make",
    [
        lambda **facts: OpenAIChatModel("m", **{"api_key": "k-one-two-three", **facts}),
        lambda **facts: AnthropicModel("m", **{"api_key": "k-one-two-three", **facts}),
    ],
)
def test_an_adapter_tells_keys_addresses_and_headers_apart(make: Callable[..., object]) -> None:
    made = [
        make(),
        make(api_key="another-key-entirely"),
        make(base_url="https://eu.example.com/v1"),
        make(headers={"x-organization": "b"}),
        make(settings=ModelSettings(temperature=0)),
    ]
    identities = [model_identity(each) for each in made]
    assert len(set(identities)) == len(made)
    assert identities[0] == model_identity(make())


def test_a_credential_leaves_sixteen_digits_and_nothing_of_itself() -> None:
    fingerprint = credential_fingerprint("sk-secret")
    assert len(fingerprint) == 16
    assert int(fingerprint, 16) >= 0
    assert fingerprint == credential_fingerprint("sk-secret") != credential_fingerprint("sk-other")
    assert credential_fingerprint("") == credential_fingerprint(None) == "no-credential"


def test_a_model_without_an_identity_has_none_and_a_wrapper_has_that_of_its_model() -> None:
    class Plain:
        profile = FakeChatModel().profile

    assert model_identity(Plain()) is None
    assert model_identity(FakeChatModel(name="a")) != model_identity(FakeChatModel(name="b"))
    assert model_identity(MockModel()) != model_identity(MockModel())
    wrapped = PromptGuidedModel(FakeChatModel(name="a"))
    assert str(model_identity(wrapped)).startswith(f"{model_identity(FakeChatModel(name='a'))}+")


@pytest.mark.parametrize(
    "reason", ["length", "content_filter", "refusal", "error", "pause", "other", None]
)
def test_an_answer_that_is_not_whole_is_not_for_others(reason: FinishReason | None) -> None:
    # C68
    assert is_storable(ModelResponse(AssistantMessage(content="a"), "stop"))
    assert not is_storable(ModelResponse(AssistantMessage(content="a"), reason))


@pytest.mark.parametrize(
    ("message", "storable"),
    [
        (AssistantMessage(content="  "), False),
        (AssistantMessage(content=[]), False),
        (AssistantMessage(content=[ReasoningBlock(text="hm")]), False),
        (AssistantMessage(content=[TextBlock(text="a"), RefusalBlock(text="no")]), False),
        (AssistantMessage(content="a", state="partial"), False),
        (AssistantMessage(content=[ToolCallBlock(id="c", name="f", arguments={})]), True),
        (AssistantMessage(content=[ImageBlock(data="aGk=", media_type="image/png")]), True),
    ],
)
def test_an_answer_that_says_nothing_is_not_for_others(
    message: AssistantMessage, storable: bool
) -> None:
    assert is_storable(ModelResponse(message, "stop")) is storable


def test_every_field_of_a_response_is_stored_or_belongs_to_its_call() -> None:
    of_the_call = {
        "resolved_model", "structured", "attempts", "served_from_cache", "cache_key", "timing",
    }  # fmt: skip
    filled: dict[str, Any] = {
        "message": AssistantMessage(content="a"),
        "finish_reason": "stop",
        "raw": {"a": 1},
        "notices": ("n",),
        "safety": {"b": 2},
    }
    for field in fields(ModelResponse):
        if field.name not in of_the_call:
            filled.setdefault(field.name, field.name)
    kept = ModelResponse(**filled)
    assert decode_response(encode_response(kept)) == kept
