"""A typed answer: the same value however the model gives it, asked for again when it is wrong."""

import pytest
from pydantic import BaseModel

from tinyagents import AgentHarness, RunPolicy, ToolMessage, tool
from tinyagents.harness.errors import InvalidRequestError, StructuredOutputError
from tinyagents.harness.message import repair_messages
from tinyagents.harness.model import JsonSchemaFormat, ModelProfile
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, calls, refuse, say

NATIVE = ModelProfile(native_structured_output=True, json_schema=True, tool_calling=True)
BY_TOOL = ModelProfile(native_structured_output=False, tool_calling=True)


class Report(BaseModel):
    title: str


@tool
async def lookup(key: str) -> str:
    """Look up."""
    return "found"


async def test_a_model_with_native_schemas_answers_in_text() -> None:
    model = ScriptedModel([call("lookup", key="k"), say('{"title":"T"}')], profile=NATIVE)
    run = await AgentHarness(model=model, tools=[lookup]).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    form = model.requests[0].response_format
    assert isinstance(form, JsonSchemaFormat)
    assert form.name == "Report"
    assert not repair_messages(run.messages).changed


async def test_a_model_without_them_answers_by_calling_a_tool() -> None:
    model = ScriptedModel([call("lookup", key="k"), call("Report", title="T")], profile=BY_TOOL)
    run = await AgentHarness(model=model, tools=[lookup]).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert [schema.name for schema in model.requests[0].tools] == ["lookup", "Report"]
    assert model.requests[0].tool_choice == "auto"
    assert not repair_messages(run.messages).changed
    assert run.tool_calls == 1


async def test_the_output_tool_is_forced_where_it_is_the_only_one() -> None:
    model = ScriptedModel([call("Report", title="T")], profile=BY_TOOL)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert run.output.title == "T"
    assert model.requests[0].tool_choice == "required"


@pytest.mark.parametrize("profile", [NATIVE, BY_TOOL])
async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_errors(
    profile: ModelProfile,
) -> None:
    if profile is NATIVE:
        steps = [say('{"titel":"T"}'), say('{"title":"T"}')]
    else:
        steps = [call("Report", titel="T"), call("Report", title="T")]
    model = ScriptedModel(steps, profile=profile)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert "title" in model.requests[1].messages[-1].text
    assert "retry.scheduled" in [event.kind for event in run.events]
    assert_event_grammar(run.events)


async def test_after_the_allowed_repeats_the_error_holds_what_was_wrong() -> None:
    model = ScriptedModel([say("nonsense")] * 2, profile=NATIVE)
    harness = AgentHarness(model=model, policy=RunPolicy(structured_retries=1))
    with pytest.raises(StructuredOutputError) as caught:
        await harness.invoke(None, "go", output=Report)
    assert caught.value.schema_name == "Report"
    assert caught.value.text == "nonsense"
    assert model.calls == 2
    assert caught.value.run is not None


async def test_a_refusal_is_not_asked_again() -> None:
    model = ScriptedModel([refuse("No.")], profile=NATIVE)
    with pytest.raises(StructuredOutputError, match=r"refused.*No\."):
        await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert model.calls == 1


async def test_a_cut_answer_is_not_taken_even_where_it_parses() -> None:
    model = ScriptedModel([say('{"title":"T"}', finish_reason="length")], profile=NATIVE)
    with pytest.raises(StructuredOutputError, match="cut") as caught:
        await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert caught.value.text == '{"title":"T"}'


async def test_a_json_schema_gives_a_checked_mapping() -> None:
    schema = {
        "title": "City",
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
    model = ScriptedModel([say('{"name":1}'), say('{"name":"Oslo"}')], profile=NATIVE)
    run = await AgentHarness(model=model).invoke(None, "go", output=schema)
    assert run.output == {"name": "Oslo"}
    assert model.calls == 2


async def test_an_output_type_named_like_a_tool_is_refused_before_any_call() -> None:
    @tool(name="Report")
    async def report() -> str:
        """Report."""
        return ""

    model = ScriptedModel([])
    with pytest.raises(InvalidRequestError, match="Report"):
        await AgentHarness(model=model, tools=[report]).invoke(None, "go", output=Report)


async def test_the_answer_beside_real_calls_waits_for_their_results() -> None:
    turn = [call("Report", title="early"), call("lookup", key="k")]
    model = ScriptedModel([turn, call("Report", title="late")], profile=BY_TOOL)
    run = await AgentHarness(model=model, tools=[lookup]).invoke(None, "go", output=Report)
    assert run.output == Report(title="late")
    assert not repair_messages(run.messages).changed


async def test_one_model_call_gives_a_typed_value_too() -> None:
    model = ScriptedModel([say('{"title":"T"}')], profile=NATIVE)
    response = await AgentHarness(model=model).invoke_model("go", output=Report)
    assert response.structured == Report(title="T")


async def test_of_two_answers_at_once_the_last_that_fits_is_taken() -> None:
    wrong, right = call("Report", titel="T"), call("Report", title="T")
    model = ScriptedModel([calls(right, wrong)], profile=BY_TOOL)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert run.text == '{"title":"T"}'
    assert not repair_messages(run.messages).changed


async def test_an_answer_that_does_not_fit_beside_other_calls_is_asked_for_again() -> None:
    turn = calls(call("lookup", key="k"), call("Report", titel="T"))
    model = ScriptedModel([turn, call("Report", title="T")], profile=BY_TOOL)
    run = await AgentHarness(model=model, tools=[lookup]).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    results = [m for m in run.messages if isinstance(m, ToolMessage)]
    assert [m.is_error for m in results] == [False, True]
