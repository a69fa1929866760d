"""Functions that take the answer, and validators that look at it: called once, and kept out of history."""

from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    CancellationToken,
    Injected,
    Output,
    RunConfig,
    RunContext,
    RunPolicy,
    RunSnapshot,
    ToolContext,
    ToolError,
    ToolMessage,
    tool,
)
from tinyagents.harness.errors import (
    ConfigurationError,
    InvalidRequestError,
    ResumeError,
    RunCancelledError,
    StructuredOutputError,
)
from tinyagents.harness.events import OutputInvalid
from tinyagents.harness.message import repair_messages
from tinyagents.harness.model import ModelProfile
from tinyagents.harness.policy import PayloadCapture
from tinyagents.testkit import (
    EventRecorder,
    ScriptedModel,
    assert_event_grammar,
    call,
    calls,
    delay,
    say,
    say_json,
)
from tinyagents.testkit.checkpoints import CheckpointOutcome, for_every_checkpoint

NATIVE = ModelProfile(native_structured_output=True, json_schema=True, tool_calling=True)
BY_TOOL = ModelProfile(native_structured_output=False, tool_calling=True)
BOTH = pytest.mark.parametrize("profile", [NATIVE, BY_TOOL], ids=["native", "tool"])


class Report(BaseModel):
    title: str


class Saved(BaseModel):
    number: int


@tool
async def lookup(key: str) -> str:
    """Look up."""
    return "found"


@tool
async def ask(question: str, *, ctx: ToolContext) -> str:
    """Ask somebody."""
    return str(ctx.ask(question))


def answered(profile: ModelProfile, name: str, **arguments: Any) -> Any:
    return call(name, arguments) if profile is BY_TOOL else say_json(arguments)


@BOTH
async def test_what_a_function_returns_is_the_output(profile: ModelProfile) -> None:
    async def save(title: str) -> Saved:
        """Save it."""
        return Saved(number=len(title))

    model = ScriptedModel([answered(profile, "save", title="abc")], profile=profile)
    run = await AgentHarness(model=model).invoke(None, "go", output=save)
    assert run.output == Saved(number=3)
    assert run.text == '{"title":"abc"}'
    assert [m.role for m in run.messages] == ["user", "assistant"]
    assert run.tool_calls == 0


@BOTH
async def test_a_plain_function_runs_in_a_thread_and_sees_the_run(profile: ModelProfile) -> None:
    def save(
        title: str,
        ctx: RunContext[int],
        call: ToolContext[int],
        state: Annotated[str, Injected("state")],
    ) -> str:
        return f"{title} {ctx.data} {call.call_id} {state} {anyio.from_thread.run_sync(int)}"

    model = ScriptedModel([answered(profile, "save", title="T")], profile=profile)
    config = RunConfig(run_id="r")
    run = await AgentHarness(model=model).invoke("s", "go", output=save, data=7, config=config)
    assert run.output == "T 7 r-model-1 s 0"


@BOTH
async def test_a_function_may_have_the_model_asked_again(profile: ModelProfile) -> None:
    def save(title: str) -> str:
        if title == "a":
            raise ToolError("the title is taken")
        return title

    steps = [answered(profile, "save", title="a"), answered(profile, "save", title="b")]
    model = ScriptedModel(steps, profile=profile)
    policy = RunPolicy(capture=PayloadCapture(model_io=True))
    run = await AgentHarness(model=model, policy=policy).invoke(None, "go", output=save)
    assert run.output == "b"
    assert "the title is taken" in model.requests[1].messages[-1].text
    (invalid,) = (event for event in run.events if isinstance(event, OutputInvalid))
    assert (invalid.schema_name, invalid.attempt, invalid.asks_again) == ("save", 1, True)
    assert invalid.errors == ("the title is taken",)
    assert_event_grammar(run.events)


@BOTH
async def test_when_it_never_accepts_one_the_error_holds_the_answer(profile: ModelProfile) -> None:
    async def save(title: str) -> str:
        raise ToolError(f"not {title}")

    model = ScriptedModel([answered(profile, "save", title="a")] * 2, profile=profile)
    agent = AgentHarness(model=model, policy=RunPolicy(structured_retries=1))
    with pytest.raises(StructuredOutputError, match="not a") as caught:
        await agent.invoke(None, "go", output=save)
    assert caught.value.text == '{"title":"a"}'
    assert caught.value.answer is not None
    assert caught.value.run is not None
    events = [e for e in caught.value.run.events if isinstance(e, OutputInvalid)]
    assert [(e.attempt, e.asks_again, e.errors) for e in events] == [
        (1, True, None),
        (2, False, None),
    ]
    assert caught.value.run.output is None
    assert_event_grammar(caught.value.run.events)


@BOTH
async def test_what_else_a_function_raises_ends_the_run(profile: ModelProfile) -> None:
    async def save(title: str) -> str:
        raise OSError("disk")

    model = ScriptedModel([answered(profile, "save", title="a")], profile=profile)
    with pytest.raises(OSError, match="disk") as caught:
        await AgentHarness(model=model).invoke(None, "go", output=save)
    run: Any = caught.value.run  # type: ignore[attr-defined]
    assert run.status == "failed"
    assert model.calls == 1


async def test_a_function_cannot_wait_for_an_answer_from_outside() -> None:
    async def save(title: str, ctx: ToolContext) -> Any:
        return ctx.ask("really?")

    model = ScriptedModel([say('{"title":"a"}')], profile=NATIVE)
    with pytest.raises(InvalidRequestError, match="asked a question"):
        await AgentHarness(model=model).invoke(None, "go", output=save)


@BOTH
async def test_a_function_is_cancelled_with_its_run(profile: ModelProfile) -> None:
    token = CancellationToken()

    async def save(title: str) -> None:
        token.cancel("enough")
        await anyio.sleep_forever()

    model = ScriptedModel([answered(profile, "save", title="a")], profile=profile)
    with pytest.raises(RunCancelledError) as caught:
        await AgentHarness(model=model).invoke(None, "go", output=save, cancellation=token)
    assert caught.value.run is not None
    assert_event_grammar(caught.value.run.events)
    snapshot = caught.value.run.snapshot
    assert RunSnapshot.model_validate_json(snapshot.model_dump_json()) == snapshot


@BOTH
async def test_a_function_is_not_called_with_an_answer_that_others_may_replace(
    profile: ModelProfile,
) -> None:
    saved: list[str] = []

    async def save(title: str) -> int:
        saved.append(title)
        return len(saved)

    early = calls(call("save", title="early"), call("lookup", key="k"))
    late = answered(profile, "save", title="late")
    agent = AgentHarness(model=ScriptedModel([early, late], profile=profile), tools=[lookup])
    run = await agent.invoke(None, "go", output=save)
    assert (run.output, saved) == (1, ["late"])

    saved.clear()
    agent = AgentHarness(model=ScriptedModel([early, say("")], profile=profile), tools=[lookup])
    run = await agent.invoke(None, "go", output=save)
    assert (run.output, saved) == (1, ["early"])


@BOTH
async def test_validators_look_at_the_answer_in_turn_and_may_change_it(
    profile: ModelProfile,
) -> None:
    def upper(report: Report) -> Report:
        return Report(title=report.title.upper())

    async def marked(report: Report, ctx: RunContext[str]) -> Report:
        return Report(title=report.title + ctx.data)

    model = ScriptedModel([answered(profile, "Report", title="t")], profile=profile)
    agent = AgentHarness(model=model, output_validators=[marked])
    run = await agent.invoke(None, "go", output=Output(Report, validators=[upper]), data="!")
    assert run.output == Report(title="T!")
    assert run.snapshot.structured == {"title": "T!"}


@BOTH
async def test_a_validator_may_have_the_model_asked_again(profile: ModelProfile) -> None:
    def check(report: Report) -> Report:
        if report.title == "a":
            raise ToolError("no single letters")
        return report

    steps = [answered(profile, "Report", title="a"), answered(profile, "Report", title="ab")]
    model = ScriptedModel(steps, profile=profile)
    run = (
        await AgentHarness(model=model)
        .replace(output_validators=[check])
        .invoke(None, "go", output=Report)
    )
    assert run.output == Report(title="ab")
    told = model.requests[1].messages[-1]
    assert "no single letters" in told.text
    assert isinstance(told, ToolMessage) is (profile is BY_TOOL)


async def test_a_validator_that_forgets_to_return_the_answer_is_told_so() -> None:
    def check(report: Report) -> None:
        assert report.title

    def dropped(report: Report | None) -> None:
        return None

    model = ScriptedModel([say_json({"title": "t"})] * 2, profile=NATIVE)
    agent = AgentHarness(model=model)
    with pytest.raises(ConfigurationError, match=r"check.*returned nothing"):
        await agent.invoke(None, "go", output=Output(Report, validators=[check]))
    optional: Output[Any] = Output(Report | None, validators=[dropped])
    assert (await agent.invoke(None, "go", output=optional)).output is None


@BOTH
async def test_the_model_can_be_told_in_other_words(profile: ModelProfile) -> None:
    wanted = Output(Report, retry_message="Look again ({errors})")
    steps = [answered(profile, "Report", titel="a"), answered(profile, "Report", title="ab")]
    model = ScriptedModel(steps, profile=profile)
    await AgentHarness(model=model).invoke(None, "go", output=wanted)
    told = model.requests[1].messages[-1].text
    assert told.startswith("Look again (answer.title is missing). ")
    assert "does not fit" not in told


async def test_what_is_no_validator_is_refused_by_the_harness() -> None:
    with pytest.raises(ConfigurationError, match="validator"):
        AgentHarness(model=ScriptedModel([]), output_validators=[lambda: None])


async def test_many_runs_share_one_output() -> None:
    async def save(title: str, ctx: RunContext[int]) -> str:
        await anyio.lowlevel.checkpoint()
        return f"{title}{ctx.data}"

    wanted = Output(save)
    found: dict[int, str] = {}

    async def one(agent: AgentHarness, number: int) -> None:
        run = await agent.invoke(None, "go", output=wanted, data=number)
        found[number] = run.output

    agent = AgentHarness(model=ScriptedModel([say('{"title":"t"}')] * 20, profile=NATIVE))
    async with anyio.create_task_group() as tg:
        for number in range(20):
            tg.start_soon(one, agent, number)
    assert found == {number: f"t{number}" for number in range(20)}


@BOTH
async def test_a_run_that_goes_on_from_a_snapshot_ends_the_same(profile: ModelProfile) -> None:
    saved: list[str] = []

    async def save(title: str) -> Saved:
        """Save it."""
        saved.append(title)
        return Saved(number=7)

    steps = [call("ask", question="?"), answered(profile, "save", title="t")]
    agent = AgentHarness(model=ScriptedModel(steps, profile=profile), tools=[ask])
    waiting = await agent.invoke(None, "go", output=save)
    assert waiting.status == "interrupted"
    run = await agent.resume(waiting.snapshot.model_dump_json(), None, answers="yes", output=save)
    assert (run.output, saved) == (Saved(number=7), ["t"])


@BOTH
async def test_a_run_that_is_driven_phase_by_phase_calls_its_function_once(
    profile: ModelProfile,
) -> None:
    saved: list[str] = []

    async def save(title: str) -> Saved:
        saved.append(title)
        return Saved(number=7)

    agent = AgentHarness(
        model=ScriptedModel([answered(profile, "save", title="t")], profile=profile)
    )
    snapshot = agent.snapshot("go")
    while snapshot.phase != "done":
        stored = snapshot.model_dump_json()
        snapshot = await agent.step(RunSnapshot.model_validate_json(stored), None, output=save)
    assert saved == ["t"]
    assert (snapshot.structured, snapshot.structured_done) == ({"number": 7}, True)


async def test_a_run_inside_a_tool_keeps_its_output_while_the_tool_waits() -> None:
    saved: list[str] = []

    async def save(title: str) -> Saved:
        saved.append(title)
        return Saved(number=7)

    inner = AgentHarness(model=ScriptedModel([say('{"title":"t"}')], profile=NATIVE))

    @tool
    async def report(*, ctx: ToolContext) -> str:
        """Report."""
        run = await inner.invoke(None, "go", output=save, context=ctx)
        return f"{run.output.number} {ctx.ask('sure?')}"

    agent = AgentHarness(model=ScriptedModel([call("report"), say("done")]), tools=[report])
    waiting = await agent.invoke(None, "go")
    run = await agent.resume(waiting.snapshot.model_dump_json(), None, answers="yes")
    assert [m.text for m in run.messages if m.role == "tool"] == ["7 yes"]
    assert saved == ["t"]


async def test_an_early_answer_outlives_an_interrupt() -> None:
    early = calls(call("Report", title="early"), call("ask", question="?"))
    agent = AgentHarness(model=ScriptedModel([early, say("")], profile=BY_TOOL), tools=[ask])
    waiting = await agent.invoke(None, "go", output=Report)
    run = await agent.resume(waiting.snapshot.model_dump_json(), None, answers="y", output=Report)
    assert run.output == Report(title="early")


async def test_a_new_question_is_not_answered_with_the_old_answer() -> None:
    steps = [call("Report", title="old"), say(""), call("Report", title="new")]
    agent = AgentHarness(model=ScriptedModel(steps, profile=BY_TOOL))
    first = await agent.invoke(None, "go", output=Report)
    second = await agent.resume(first.snapshot, None, input="And now?", output=Report)
    assert second.output == Report(title="new")


async def test_the_answer_that_waits_to_be_read_needs_its_type() -> None:
    agent = AgentHarness(model=ScriptedModel([say('{"title":"t"}')], profile=NATIVE))
    snapshot = agent.snapshot("go")
    while snapshot.phase != "structured":
        snapshot = await agent.step(snapshot, None, output=Report)
    with pytest.raises(ResumeError, match="output="):
        await agent.step(snapshot, None)
    run = await agent.resume(snapshot, None, output=Report)
    assert run.output == Report(title="t")


async def test_an_output_without_a_json_form_is_not_part_of_a_snapshot() -> None:
    async def open_it(title: str) -> object:
        return object()

    model = ScriptedModel([say('{"title":"t"}')], profile=NATIVE)
    run = await AgentHarness(model=model).invoke(None, "go", output=open_it)
    assert type(run.output) is object
    assert run.snapshot.structured is None
    assert RunSnapshot.model_validate_json(run.snapshot.model_dump_json()) == run.snapshot


class Typed:
    """A run whose answer is taken by a function and a validator that wait, made anew each time."""

    def __init__(self, profile: ModelProfile, *, streamed: bool) -> None:
        self.profile = profile
        self.streamed = streamed

    def __call__(self) -> Any:
        async def save(title: str) -> str:
            await anyio.lowlevel.checkpoint()
            if title == "a":
                raise ToolError("taken")
            return title

        async def check(value: str) -> str:
            await anyio.lowlevel.checkpoint()
            return value

        self.recorder = EventRecorder()
        steps = [answered(self.profile, "save", title=title) for title in ("a", "b")]
        model = ScriptedModel([delay(0, step) for step in steps], profile=self.profile)
        agent = AgentHarness(
            model=model, listeners=[self.recorder], output_validators=[check], tools=[lookup]
        )
        if self.streamed:
            return agent.stream(None, "go", output=save, modes="output").result()
        return agent.invoke(None, "go", output=save)

    def check(self, outcome: CheckpointOutcome[Any]) -> None:
        if self.recorder.events:
            assert_event_grammar(self.recorder.events)
        run = getattr(outcome.error, "run", outcome.result)
        if run is None:
            return
        assert not repair_messages(run.messages).changed
        assert run.output == ("b" if run.status == "completed" else None)
        assert RunSnapshot.model_validate_json(run.snapshot.model_dump_json()) == run.snapshot


@BOTH
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancellation_at_any_point_leaves_no_half_an_output(
    profile: ModelProfile, streamed: bool
) -> None:
    scenario = Typed(profile, streamed=streamed)
    assert await for_every_checkpoint(scenario, check=scenario.check) > 4
