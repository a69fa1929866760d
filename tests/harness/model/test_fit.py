"""What a model is known not to take: refused, or put into another form."""

from dataclasses import replace
from typing import Any

import pytest

from tinyagents.harness.errors import CapabilityError, InvalidRequestError
from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    FileBlock,
    ImageBlock,
    Message,
    SystemMessage,
    TextBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelProfile,
    ModelRequest,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolSchema,
    fit_request,
)

HI = UserMessage(content="hi")
PICTURE = ImageBlock.from_bytes(b"png", "image/png")
SOUND = AudioBlock.from_bytes(b"wav", "audio/wav")
PAPER = FileBlock.from_bytes(b"pdf", "application/pdf", "a.pdf")
SEARCH = ToolSchema(name="search", description="", parameters={"type": "object"})
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
WANTED = JsonSchemaFormat(name="City", schema=CITY)
EFFORT = ModelSettings(reasoning=ReasoningConfig(effort="high"))

# What a profile says, a request that it does not fit, the words for it, and the field's name.
CASES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"messages": [UserMessage(content=[PICTURE])]}, "a `image` block in a user", "input_mod"),
    ({}, {"messages": [UserMessage(content=[SOUND])]}, "a `audio` block in a user", "input_mod"),
    ({}, {"messages": [UserMessage(content=[PAPER])]}, "a `file` block in a user", "input_mod"),
    (
        {},
        {"messages": [HI, ToolMessage(tool_call_id="c", content=[PICTURE])]},
        "a `image` block in a tool result",
        "input_mod",
    ),
    (
        {"forced_tool_choice": False},
        {"tools": [SEARCH], "tool_choice": "required"},
        "a forced tool choice",
        "forced_tool_choice",
    ),
    (
        {"forced_tool_choice": False},
        {"tools": [SEARCH], "tool_choice": NamedTool("search")},
        "a forced tool choice",
        "forced_tool_choice",
    ),
    (
        {"json_schema": False},
        {"response_format": WANTED},
        "answers of a JSON schema",
        "json_schema",
    ),
    (
        {"json_mode": False},
        {"response_format": JsonObjectFormat()},
        "JSON answers without a schema",
        "json_mode",
    ),
    ({"reasoning": False}, {"settings": EFFORT}, "a reasoning effort", "reasoning"),
    ({"reasoning_effort": False}, {"settings": EFFORT}, "a reasoning effort", "reasoning_effort"),
    (
        {"max_output_tokens": 4_096},
        {"settings": ModelSettings(max_tokens=9_999)},
        "`max_tokens` of 9,999",
        "max_output_tokens",
    ),
]


def asked(**request: Any) -> ModelRequest:
    return ModelRequest(**{"messages": [HI], **request})


def of(**facts: Any) -> ModelProfile:
    return ModelProfile(provider="acme", model="m-1", **facts)


@pytest.mark.parametrize(("facts", "request_", "words", "capability"), CASES)
def test_what_a_model_cannot_take_is_refused_with_its_name_and_the_remedy(
    facts: dict[str, Any], request_: dict[str, Any], words: str, capability: str
) -> None:
    with pytest.raises(CapabilityError) as caught:
        fit_request(asked(**request_), of(**facts))
    error = caught.value
    assert isinstance(error, InvalidRequestError)
    assert f"`m-1` at acme cannot take {words}" in error.message
    assert 'RunPolicy(unsupported="degrade")' in error.message
    assert (error.model, error.provider) == ("m-1", "acme")
    assert error.capability.startswith(capability)


@pytest.mark.parametrize(("facts", "request_", "words", "capability"), CASES)
def test_or_it_is_put_into_a_form_that_fits_and_told(
    facts: dict[str, Any], request_: dict[str, Any], words: str, capability: str
) -> None:
    request = asked(**request_)
    before = replace(request, messages=list(request.messages))
    fitted = fit_request(request, of(**facts), "degrade")
    (notice,) = fitted.notices
    assert f"`m-1` at acme cannot take {words}" in notice
    assert fit_request(fitted.request, of(**facts)).notices == ()
    assert request == before


@pytest.mark.parametrize(("facts", "request_", "words", "capability"), CASES)
def test_what_is_not_known_of_a_model_is_let_through(
    facts: dict[str, Any], request_: dict[str, Any], words: str, capability: str
) -> None:
    unknown = of(uncertain_inputs=frozenset({"image", "audio", "file"}), reasoning=None)
    request = asked(**request_)
    assert fit_request(request, unknown).request is request


def test_a_request_that_fits_is_not_copied() -> None:
    request = asked(tools=[SEARCH], response_format=WANTED, settings=EFFORT)
    fitted = fit_request(request, ModelProfile.permissive(), "degrade")
    assert fitted.request is request
    assert fitted.notices == ()


def test_a_text_stands_where_something_was_left_out() -> None:
    said = AssistantMessage(content=[SOUND.model_copy(update={"transcript": "Hello."})])
    messages: list[Message] = [UserMessage(content=[TextBlock(text="See"), PICTURE, PAPER]), said]
    fitted = fit_request(asked(messages=messages), of(), "degrade").request
    assert fitted.messages[0].text == (
        "See"
        "[An image (image/png) was left out: this model cannot take it.]"
        "[A file (a.pdf, application/pdf) was left out: this model cannot take it.]"
    )
    assert fitted.messages[1].text == "Hello."


def test_what_a_model_has_said_itself_goes_back_to_it() -> None:
    drew = AssistantMessage(content=[PICTURE])
    speaks = of(output_modalities=frozenset({"text", "image"}))
    assert fit_request(asked(messages=[HI, drew]), speaks, "degrade").request.messages[1] is drew
    assert fit_request(asked(messages=[HI, drew]), of()).request.messages[1] is drew


@pytest.mark.parametrize(
    ("choice", "words"), [("required", "Call a tool"), (NamedTool("search"), "the tool `search`")]
)
def test_a_forced_choice_becomes_an_instruction_behind_the_others(choice: Any, words: str) -> None:
    system = SystemMessage(content="Be brief.")
    request = asked(messages=[system, HI], tools=[SEARCH], tool_choice=choice)
    fitted = fit_request(request, of(forced_tool_choice=False), "degrade").request
    assert fitted.tool_choice == "auto"
    assert fitted.messages[0] is system
    assert words in fitted.messages[1].text
    assert fitted.messages[2] is HI


@pytest.mark.parametrize(("json_mode", "left"), [(True, JsonObjectFormat()), (None, None)])
def test_a_schema_is_told_and_any_json_asked_for_where_that_can_be(
    json_mode: bool | None, left: JsonObjectFormat | None
) -> None:
    profile = of(json_schema=False, json_mode=json_mode)
    fitted = fit_request(asked(response_format=WANTED), profile, "degrade").request
    assert fitted.response_format == left
    assert '"city"' in fitted.messages[0].text


def test_settings_that_a_model_has_no_use_for_are_left_out_or_lowered() -> None:
    settings = ModelSettings(
        temperature=0, max_tokens=9_999, reasoning=ReasoningConfig(summary="auto")
    )
    profile = of(temperature=False, reasoning=False, max_output_tokens=100)
    made = fit_request(asked(settings=settings), profile, "degrade")
    left = made.request.settings
    assert (left.temperature, left.max_tokens, left.reasoning) == (None, 100, None)
    assert len(made.notices) == 3


def test_a_temperature_is_left_out_under_either_policy_and_said() -> None:
    fitted = fit_request(asked(settings=ModelSettings(temperature=0.5)), of(temperature=False))
    assert fitted.request.settings.temperature is None
    assert fitted.notices == ("`m-1` at acme cannot take a temperature: left out",)


def test_not_to_think_is_no_demand_on_a_model_that_does_not() -> None:
    settings = ModelSettings(reasoning=ReasoningConfig(effort="none"))
    fitted = fit_request(asked(settings=settings), of(reasoning=False))
    assert fitted.request.settings.reasoning is None
    assert fitted.notices == ()


@pytest.mark.parametrize("policy", ["fail", "degrade"])
def test_tools_have_no_other_form_within_a_request(policy: Any) -> None:
    with pytest.raises(CapabilityError, match=r"tools \(1 are offered\)"):
        fit_request(asked(tools=[SEARCH]), of(tool_calling=False), policy)


def test_of_a_model_that_nobody_knows_the_refusal_says_so_and_where_to_declare_it() -> None:
    with pytest.raises(CapabilityError, match="not in the table of known models.*load_profiles"):
        fit_request(asked(tools=[SEARCH]), of(tool_calling=False, known=False))
