"""How a model is asked for a typed answer: as the caller wants, and for each model anew."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AssistantMessage,
    Middleware,
    NativeOutput,
    Output,
    PromptedOutput,
    RunContext,
    RunLimits,
    RunPolicy,
    SystemMessage,
    ToolMessage,
    ToolOutput,
    UserMessage,
    tool,
)
from tinyagents.harness.errors import (
    CapabilityError,
    ConfigurationError,
    InvalidRequestError,
    ServerError,
    ToolNotFoundError,
)
from tinyagents.harness.events import ModelAdapted, OutputRecovered
from tinyagents.harness.message import (
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    repair_messages,
)
from tinyagents.harness.middleware import ModelHandler
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ReasoningConfig,
)
from tinyagents.harness.retry import FallbackPolicy, RetryPolicy
from tinyagents.testkit import (
    ScriptedModel,
    assert_event_grammar,
    call,
    calls,
    fail,
    say,
)

NATIVE = ModelProfile(native_structured_output=True, json_schema=True, tool_calling=True)
BY_TOOL = ModelProfile(native_structured_output=False, tool_calling=True)
PLAIN = ModelProfile(model="small", json_schema=False, tool_calling=False, json_mode=True)
PROFILES = {"native": NATIVE, "tool": BY_TOOL, "prompted": PLAIN}
ANSWERS = {"native": say('{"title":"T"}'), "prompted": say('{"title":"T"}')}
ONCE = RetryPolicy(max_attempts=1)


class Report(BaseModel):
    title: str


@dataclass
class Refund:
    """Money back."""

    amount: int


@tool
async def lookup(key: str) -> str:
    """Look up."""
    return "found"


def strategy_of(request: ModelRequest) -> str:
    """How a request asks for the answer."""
    if isinstance(request.response_format, JsonSchemaFormat):
        return "native"
    if any(schema.name == "Report" for schema in request.tools):
        return "tool"
    told = [m for m in request.messages if isinstance(m, SystemMessage) and "JSON" in m.text]
    return "prompted" if told else "none"


def answer(strategy: str) -> Any:
    return call("Report", title="T") if strategy == "tool" else say('{"title":"T"}')


@pytest.mark.parametrize("strategy", PROFILES)
async def test_the_profile_decides_how_a_model_is_asked(strategy: str) -> None:
    model = ScriptedModel([answer(strategy)], profile=PROFILES[strategy])
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert strategy_of(model.requests[0]) == strategy


@pytest.mark.parametrize(
    ("wrapped", "strategy"),
    [
        (Output(Report), "native"),
        (NativeOutput(Report), "native"),
        (ToolOutput(Report), "tool"),
        (PromptedOutput(Report), "prompted"),
    ],
)
async def test_the_caller_may_decide_instead(wrapped: Output[Report], strategy: str) -> None:
    model = ScriptedModel([answer(strategy)], profile=NATIVE)
    run = await AgentHarness(model=model).invoke(None, "go", output=wrapped)
    assert run.output == Report(title="T")
    assert strategy_of(model.requests[0]) == strategy


async def test_a_prompted_answer_is_asked_for_behind_the_instructions_and_not_kept() -> None:
    model = ScriptedModel([say('{"title":"T"}')], profile=PLAIN)
    wanted = PromptedOutput(Report, template="Write {schema} now.")
    run = await AgentHarness(model=model, system="Be brief.").invoke(None, "go", output=wanted)
    request = model.requests[0]
    assert [m.text[:9] for m in request.messages] == ["Be brief.", 'Write {"t', "go"]
    assert isinstance(request.response_format, JsonObjectFormat)
    assert [m.role for m in run.messages] == ["user", "assistant"]


async def test_a_model_without_json_mode_is_asked_in_words_alone() -> None:
    plain = ModelProfile(json_schema=False, tool_calling=False, json_mode=False)
    model = ScriptedModel([say("Sure! {title: 'T'}"), say('Sure! {title: "T"}')], profile=plain)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert model.requests[0].response_format is None
    (recovered,) = (event for event in run.events if isinstance(event, OutputRecovered))
    assert (recovered.step, recovered.schema_name) == ("relaxed", "Report")
    assert_event_grammar(run.events)


@pytest.mark.parametrize("wanted", [NativeOutput(Report), ToolOutput(Report)])
async def test_a_strategy_that_the_model_cannot_do_is_refused_before_any_call(
    wanted: Output[Report],
) -> None:
    model = ScriptedModel([], profile=PLAIN)
    with pytest.raises(CapabilityError, match="small"):
        await AgentHarness(model=model).invoke(None, "go", output=wanted)
    assert model.calls == 0


async def test_such_a_strategy_is_told_in_words_where_that_is_the_policy() -> None:
    policy = RunPolicy(unsupported="degrade")
    model = ScriptedModel([say('{"title":"T"}')], profile=PLAIN)
    run = await AgentHarness(model=model, policy=policy).invoke(
        None, "go", output=NativeOutput(Report)
    )
    assert run.output == Report(title="T")
    assert any(
        "cannot take" in n for e in run.events if isinstance(e, ModelAdapted) for n in e.notices
    )

    said = '<tool_call>{"name": "Report", "arguments": {"title": "T"}}</tool_call>'
    model = ScriptedModel([say(said)], profile=PLAIN)
    run = await AgentHarness(model=model, policy=policy).invoke(
        None, "go", output=ToolOutput(Report)
    )
    assert run.output == Report(title="T")
    assert any(
        "prompt describes" in n
        for e in run.events
        if isinstance(e, ModelAdapted)
        for n in e.notices
    )


@pytest.mark.parametrize("first", PROFILES)
@pytest.mark.parametrize("second", PROFILES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_fallback_model_is_asked_in_its_own_way(
    first: str, second: str, streamed: bool
) -> None:
    failing = ScriptedModel([fail(ServerError("down"))], profile=PROFILES[first])
    other = ScriptedModel([answer(second)], profile=PROFILES[second])
    policy = RunPolicy(retry=ONCE, fallback=FallbackPolicy(models=("other",)))
    agent = AgentHarness(models={"first": failing, "other": other}, policy=policy)
    if streamed:
        run = await agent.stream(None, "go", output=Report).result()
    else:
        run = await agent.invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert strategy_of(failing.requests[0]) == first
    assert strategy_of(other.requests[0]) == second
    alone = ScriptedModel([answer(second)], profile=PROFILES[second])
    await AgentHarness(model=alone).invoke(None, "go", output=Report)
    sent, expected = other.requests[0], alone.requests[0]
    assert (sent.tools, sent.tool_choice, sent.response_format, sent.messages) == (
        expected.tools,
        expected.tool_choice,
        expected.response_format,
        expected.messages,
    )


class Choose(Middleware[Any]):
    """Gives the call to another model, after the answer of the first where ``twice``."""

    def __init__(self, *, twice: bool = False) -> None:
        self.twice = twice

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        if self.twice:
            await call_next(request)
        request.model = "other"
        return await call_next(request)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("first", PROFILES)
@pytest.mark.parametrize("second", PROFILES)
async def test_a_model_that_a_hook_chooses_is_asked_in_its_own_way(
    first: str, second: str, twice: bool
) -> None:
    before = ScriptedModel([answer(first)], profile=PROFILES[first])
    other = ScriptedModel([answer(second)], profile=PROFILES[second])
    agent = AgentHarness(
        models={"first": before, "other": other}, tools=[], middleware=[Choose(twice=twice)]
    )
    run = await agent.invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert strategy_of(other.requests[0]) == second
    assert other.requests[0].tool_choice == ("required" if second == "tool" else "auto")


class OwnFormat(Middleware[Any]):
    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        request.response_format = JsonSchemaFormat(name="own", schema={"type": "object"})


async def test_a_response_format_of_a_hook_stands() -> None:
    model = ScriptedModel([say('{"title":"T"}')], profile=BY_TOOL)
    agent = AgentHarness(model=model, middleware=[OwnFormat()])
    run = await agent.invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert model.requests[0].response_format == JsonSchemaFormat(
        name="own", schema={"type": "object"}
    )
    assert model.requests[0].tools == ()


async def test_no_call_is_forced_while_the_model_reasons() -> None:
    settings = ModelSettings(reasoning=ReasoningConfig(effort="high"))
    model = ScriptedModel([say("Hm."), call("Report", title="T")], profile=BY_TOOL)
    run = await AgentHarness(model=model, settings=settings).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert [request.tool_choice for request in model.requests] == ["auto", "auto"]
    assert "by calling `Report`" in model.requests[1].messages[-1].text


@pytest.mark.parametrize("output", [Report | Refund, [Report, Refund]])
async def test_the_model_chooses_one_of_several_types(output: Any) -> None:
    model = ScriptedModel([call("Refund", amount=3)], profile=BY_TOOL)
    run = await AgentHarness(model=model).invoke(None, "go", output=output)
    assert run.output == Refund(3)
    assert [schema.name for schema in model.requests[0].tools] == ["Report", "Refund"]
    model = ScriptedModel([say('{"value":{"amount":3}}')], profile=NATIVE)
    run = await AgentHarness(model=model).invoke(None, "go", output=output)
    assert run.output == Refund(3)


async def test_a_wrong_choice_names_the_tool_that_was_called() -> None:
    model = ScriptedModel([call("Refund", amount="x"), call("Report", title="T")], profile=BY_TOOL)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report | Refund)
    assert run.output == Report(title="T")
    told = model.requests[1].messages[-1]
    assert isinstance(told, ToolMessage)
    assert "`Refund`" in told.text
    words = ScriptedModel([say("no"), call("Report", title="T")], profile=BY_TOOL)
    await AgentHarness(model=words).invoke(None, "go", output=Report | Refund)
    assert "by calling `Report` or `Refund`" in words.requests[1].messages[-1].text


async def test_who_calls_a_tool_that_there_is_not_is_told_the_one_for_the_answer() -> None:
    steps = [call("report", title="T"), call("Report", title="T")]
    agent = AgentHarness(model=ScriptedModel([steps[0]], profile=BY_TOOL), tools=[lookup])
    with pytest.raises(ToolNotFoundError, match="there are `lookup`, `Report`"):
        await agent.invoke(None, "go", output=Report)
    model = ScriptedModel(steps, profile=BY_TOOL)
    agent = AgentHarness(model=model, policy=RunPolicy.resilient())
    run = await agent.invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    assert "The tools are: `Report`." in model.requests[1].messages[-1].text


async def test_no_type_of_a_union_may_be_named_like_a_tool() -> None:
    @tool(name="Refund")
    async def refund() -> str:
        """Refund."""
        return ""

    agent = AgentHarness(model=ScriptedModel([], profile=BY_TOOL), tools=[refund])
    with pytest.raises(InvalidRequestError, match="Refund"):
        await agent.invoke(None, "go", output=Report | Refund)


async def test_a_model_that_calls_the_output_unasked_is_understood() -> None:
    # As after a fallback from a model that was asked that way.
    model = ScriptedModel([call("Report", title="T")], profile=NATIVE)
    run = await AgentHarness(model=model, tools=[lookup]).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")


FORMAT = JsonSchemaFormat(
    name="city",
    schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)


async def test_the_policys_format_goes_with_every_call_and_its_value_is_the_output() -> None:
    steps = [call("lookup", key="k"), say('{"name":1}'), say('{"name":"Oslo"}')]
    model = ScriptedModel(steps, profile=BY_TOOL)
    policy = RunPolicy(default_response_format=FORMAT)
    agent = AgentHarness(model=model, tools=[lookup], policy=policy)
    run: Any = await agent.invoke(None, "go")
    assert run.output == {"name": "Oslo"}
    assert [request.response_format for request in model.requests] == [FORMAT] * 3


async def test_an_output_of_the_call_stands_over_the_policys_format() -> None:
    model = ScriptedModel([say('{"title":"T"}')], profile=NATIVE)
    policy = RunPolicy(default_response_format=FORMAT)
    run = await AgentHarness(model=model, policy=policy).invoke(None, "go", output=Report)
    assert run.output == Report(title="T")
    agent = AgentHarness(model=ScriptedModel([say("hi")])).replace(policy=policy)
    with pytest.raises(InvalidRequestError, match="no JSON Schema"):
        agent.replace(
            policy=RunPolicy(
                default_response_format=JsonSchemaFormat(name="x", schema={"type": "strin"})
            )
        )


async def test_what_is_no_response_format_is_refused_when_the_agent_is_made() -> None:
    policy = RunPolicy(default_response_format=Report)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="default_response_format"):
        AgentHarness(model=ScriptedModel([]), policy=policy)


async def test_any_object_is_a_format_of_the_policy_too() -> None:
    model = ScriptedModel([say("[1]"), say('{"a":1}')], profile=NATIVE)
    policy = RunPolicy(default_response_format=JsonObjectFormat())
    run: Any = await AgentHarness(model=model, policy=policy).invoke(None, "go")
    assert run.output == {"a": 1}
    assert model.requests[0].response_format == JsonObjectFormat()


@pytest.mark.parametrize("strategy", PROFILES)
async def test_the_last_answer_that_a_limit_allows_is_typed_too(strategy: str) -> None:
    profile = PROFILES[strategy].model_copy(update={"tool_calling": True})
    wanted: Output[Report] = (PromptedOutput if strategy == "prompted" else Output)(Report)
    steps = [call("lookup", key="k"), answer(strategy)]
    model = ScriptedModel(steps, profile=profile)
    policy = RunPolicy(on_limit="final_answer", limits=RunLimits(max_model_calls=1))
    run = await AgentHarness(model=model, tools=[lookup], policy=policy).invoke(
        None, "go", output=wanted
    )
    assert (run.status, run.output) == ("stopped", Report(title="T"))
    assert all(schema.name != "lookup" for schema in model.requests[1].tools)
    assert not repair_messages(run.messages).changed


async def test_an_answer_beside_calls_counts_where_the_last_one_does_not_fit() -> None:
    saved: list[str] = []

    async def save(title: str) -> int:
        saved.append(title)
        return 7

    early = calls(call("save", title="early"), call("lookup", key="k"))
    model = ScriptedModel([early, say("No time.")], profile=BY_TOOL)
    policy = RunPolicy(on_limit="final_answer", limits=RunLimits(max_model_calls=1))
    run = await AgentHarness(model=model, tools=[lookup], policy=policy).invoke(
        None, "go", output=save
    )
    assert (run.status, run.output, saved) == ("stopped", 7, ["early"])


async def test_a_last_answer_that_does_not_fit_is_left_as_it_is() -> None:
    steps = [call("lookup", key="k"), say("No time.")]
    model = ScriptedModel(steps, profile=NATIVE)
    policy = RunPolicy(on_limit="final_answer", limits=RunLimits(max_model_calls=1))
    run = await AgentHarness(model=model, tools=[lookup], policy=policy).invoke(
        None, "go", output=Report
    )
    found: object = run.output
    assert (run.status, found, run.text) == ("stopped", None, "No time.")
    assert "output.invalid" in [event.kind for event in run.events]


async def test_one_model_call_is_answered_by_a_tool_too_and_runs_no_other() -> None:
    model = ScriptedModel([call("Report", title="T")], profile=BY_TOOL)
    response = await AgentHarness(model=model).invoke_model("go", output=Report)
    assert response.structured == Report(title="T")

    turn = calls(call("lookup", key="k"), call("Report", title="T"))
    model = ScriptedModel([turn], profile=BY_TOOL)
    response = await AgentHarness(model=model).invoke_model("go", output=Report, tools=[lookup])
    assert response.structured == Report(title="T")
    assert [made.name for made in response.message.tool_calls] == ["lookup", "Report"]


async def test_what_stood_beside_the_call_stays_in_the_history() -> None:
    thought = ReasoningBlock(text="hm", signature="seal", data="d")
    hidden = ReasoningBlock(data="d")
    search = ToolCallBlock(id="0", name="search", arguments={})
    hits = ToolResultBlock(tool_call_id="0", content=[TextBlock(text="none")])
    made = ToolCallBlock(id="1", name="Report", arguments={"title": "T"})
    beside = [thought, hidden, search, hits, TextBlock(text="Here:")]
    message = AssistantMessage(content=[*beside, made])
    model = ScriptedModel([ModelResponse(message, finish_reason="tool_calls")], profile=BY_TOOL)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert run.messages[-1].content == [
        ReasoningBlock(text="hm"),
        search,
        hits,
        TextBlock(text="Here:"),
        TextBlock(text='\n\n{"title":"T"}'),
    ]


async def test_the_next_turn_can_be_asked_in_another_way() -> None:
    model = ScriptedModel([call("Report", title="T")], profile=BY_TOOL)
    run = await AgentHarness(model=model).invoke(None, "go", output=Report)
    assert [type(m) for m in run.messages] == [UserMessage, AssistantMessage]
    other = ScriptedModel([say("Fine.")], profile=NATIVE)
    following = await AgentHarness(model=other).invoke(
        None, [*run.messages, UserMessage(content="Thanks.")]
    )
    assert following.text == "Fine."
