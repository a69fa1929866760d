"""Guards: what they are asked, and what becomes of what they judge."""

from typing import Any

import anyio
import pytest

from tinyagents import AgentHarness, AgentRun, RunContext, UserMessage
from tinyagents.harness.cancel import CancellationToken
from tinyagents.harness.errors import (
    ConfigurationError,
    ContentBlockedError,
    RunCancelledError,
    ServerError,
    ToolRefusedError,
)
from tinyagents.harness.events import GuardrailTriggered
from tinyagents.harness.message import dump_messages
from tinyagents.harness.middleware import (
    Guard,
    Guarded,
    GuardrailMiddleware,
    GuardVerdict,
    Middleware,
    model_guard,
)
from tinyagents.harness.policy import RunPolicy
from tinyagents.harness.stream import Final, TextDelta, ToolCallDelta
from tinyagents.testkit import (
    FakeTool,
    ScriptedModel,
    assert_event_grammar,
    assert_never_shown,
    call,
    fail,
    say,
)

Ctx = RunContext[Any]
BAD = "forbidden words"
SPLIT = ("these are forb", "idden wo", "rds")


def no_bad(ctx: Ctx, guarded: Guarded) -> GuardVerdict | None:
    return GuardVerdict.block("against the rules") if BAD in guarded.text else None


def rewritten(ctx: Ctx, guarded: Guarded) -> GuardVerdict:
    return GuardVerdict.replace(guarded.text.replace(BAD, "kind words"))


async def flagged(ctx: Ctx, guarded: Guarded) -> GuardVerdict:
    return GuardVerdict.flag("look at it")


def broken(ctx: Ctx, guarded: Guarded) -> GuardVerdict:
    raise LookupError("no rules")


async def outcome(
    agent: AgentHarness, words: str, streamed: bool, chunks: list[object] | None = None
) -> tuple[AgentRun[Any, Any], list[str]]:
    """Run the agent and return the run with the texts that were shown on the way."""
    if not streamed:
        return await agent.invoke(None, words), []
    texts: list[str] = []
    run: AgentRun[Any, Any] | None = None
    async for chunk in agent.stream(None, words):
        if chunks is not None:
            chunks.append(chunk)
        match chunk:
            case TextDelta():
                texts.append(chunk.text)
            case Final():
                run = chunk.run
            case _:
                pass
    assert run is not None
    return run, texts


def actions(run: AgentRun[Any, Any]) -> list[tuple[str, str]]:
    return [(e.stage, e.verdict) for e in run.events if isinstance(e, GuardrailTriggered)]


both_ways = pytest.mark.parametrize("streamed", [True, False])


@both_ways
async def test_a_blocked_input_raises_and_is_not_in_the_session(streamed: bool) -> None:
    model = ScriptedModel([say("never")])
    agent = AgentHarness(model=model, middleware=[GuardrailMiddleware(input=[no_bad])])
    with pytest.raises(ContentBlockedError, match="against the rules") as caught:
        await outcome(agent, f"say {BAD}", streamed)
    run = caught.value.run
    assert run is not None
    assert (caught.value.stage, caught.value.by) == ("input", "GuardrailMiddleware")
    assert (run.messages[0].text, model.requests) == ("[withheld by a guardrail]", [])
    assert_never_shown([dump_messages(run.messages), *run.events], BAD, part=6)
    assert_event_grammar(run.events)


@both_ways
async def test_a_blocked_answer_raises_and_nothing_of_it_is_shown_or_kept(streamed: bool) -> None:
    agent = AgentHarness(
        model=ScriptedModel([say(*SPLIT) + call("look")]),
        tools=[FakeTool("look")],
        middleware=[GuardrailMiddleware(output=[no_bad])],
    )
    shown: list[object] = []
    with pytest.raises(ContentBlockedError) as caught:
        await outcome(agent, "go", streamed, shown)
    run = caught.value.run
    assert run is not None
    assert run.tool_calls == 0
    assert run.usage.output_tokens > 0
    assert_never_shown([*shown, dump_messages(run.messages), run.response], BAD, part=6)


@both_ways
@pytest.mark.parametrize("stage", ["input", "output"])
async def test_a_block_may_end_the_run_with_a_text(stage: str, streamed: bool) -> None:
    guards: Any = {stage: [no_bad]}
    agent = AgentHarness(
        model=ScriptedModel([say(*SPLIT)]),
        middleware=[GuardrailMiddleware(**guards, blocked_text="I cannot.")],
    )
    run, texts = await outcome(agent, BAD if stage == "input" else "go", streamed)
    assert (run.status, run.text, actions(run)) == ("stopped", "I cannot.", [(stage, "block")])
    assert_never_shown([dump_messages(run.messages), *texts], BAD, part=6)
    if stage == "output" and streamed:
        assert texts == ["I cannot."]


@both_ways
async def test_a_replaced_answer_and_input_are_what_the_run_goes_on_with(streamed: bool) -> None:
    model = ScriptedModel([say(*SPLIT)])
    agent = AgentHarness(
        model=model, middleware=[GuardrailMiddleware(input=[rewritten], output=[rewritten])]
    )
    run, texts = await outcome(agent, BAD, streamed)
    assert [message.text for message in run.messages] == ["kind words", "these are kind words"]
    assert model.requests[0].messages[-1].text == "kind words"
    assert "".join(texts) in ("", "these are kind words")


async def test_a_flag_lets_pass_and_need_not_hold_the_stream() -> None:
    held = AgentHarness(
        model=ScriptedModel([say("a", "b")]), middleware=[GuardrailMiddleware(output=[flagged])]
    )
    assert (await outcome(held, "go", True))[1] == ["ab"]
    live = AgentHarness(
        model=ScriptedModel([say("a", "b")]),
        middleware=[GuardrailMiddleware(output=[flagged], hold=False)],
    )
    run, texts = await outcome(live, "go", True)
    assert (texts, actions(run)) == (["a", "b"], [("output", "flag")])


async def test_only_new_input_is_judged_and_once() -> None:
    seen: list[str] = []

    def note(ctx: Ctx, guarded: Guarded) -> None:
        seen.append(guarded.text)

    model = ScriptedModel([call("look"), say("ok"), say("ok")])
    agent = AgentHarness(
        model=model, tools=[FakeTool("look")], middleware=[GuardrailMiddleware(input=[note])]
    )
    run = await agent.invoke(None, [UserMessage(content="one"), UserMessage(content="two")])
    await agent.invoke(None, [*run.messages, UserMessage(content="three")])
    assert seen == ["one", "two", "three"]


async def test_blocked_arguments_are_refused_and_blocked_results_are_told() -> None:
    look, give = FakeTool("look"), FakeTool("give", f"a {BAD}")
    agent = AgentHarness(
        model=ScriptedModel([call("look", q=BAD) + call("give", q="x"), say("ok")]),
        tools=[look, give],
        middleware=[GuardrailMiddleware(tool_arguments=[no_bad], tool_results=[no_bad])],
        policy=RunPolicy.resilient(),
    )
    run = await agent.invoke(None, "go")
    first, second = run.messages[2:4]
    assert (look.calls, len(give.calls)) == ([], 1)
    assert "against the rules" in first.text
    assert second.text == "[withheld by a guardrail]: against the rules"
    assert actions(run) == [("tool_arguments", "block"), ("tool_results", "block")]


async def test_a_refused_call_ends_the_run_where_the_policy_says_so() -> None:
    agent = AgentHarness(
        model=ScriptedModel([call("look", q=BAD), say("ok")]),
        tools=[FakeTool("look")],
        middleware=[GuardrailMiddleware(tool_arguments=[no_bad])],
        policy=RunPolicy(refused_tools="fail"),
    )
    with pytest.raises(ToolRefusedError, match="against the rules"):
        await agent.invoke(None, "go")


@pytest.mark.parametrize(("text", "ran"), [('{"q":"y"}', [{"q": "y"}]), ("no object", [])])
async def test_arguments_are_replaced_by_a_json_object(text: str, ran: list[Any]) -> None:
    look = FakeTool("look", BAD)
    agent = AgentHarness(
        model=ScriptedModel([call("look", q="x"), say("ok")]),
        tools=[look],
        middleware=[
            GuardrailMiddleware(
                tool_arguments=[lambda ctx, guarded: GuardVerdict.replace(text)],
                tool_results=[rewritten],
            )
        ],
        policy=RunPolicy.resilient(),
    )
    run = await agent.invoke(None, "go")
    assert look.calls == ran
    assert not ran or run.messages[2].text == "kind words"


@pytest.mark.parametrize(
    "guard", [broken, lambda ctx, guarded: "yes", lambda ctx, guarded: GuardVerdict("replace")]
)
async def test_a_guard_that_fails_blocks_unless_it_is_to_let_pass(guard: Guard) -> None:
    def agent(**settings: Any) -> AgentHarness:
        guardrail = GuardrailMiddleware(output=[guard], **settings)
        return AgentHarness(model=ScriptedModel([say("hi")]), middleware=[guardrail])

    with pytest.raises(ContentBlockedError, match="failed"):
        await agent().invoke(None, "go")
    run = await agent(on_failure="allow").invoke(None, "go")
    assert (run.text, actions(run)) == ("hi", [("output", "flag")])


async def test_guards_judge_at_once_and_the_strongest_verdict_wins() -> None:
    met = anyio.Event()

    async def waits(ctx: Ctx, guarded: Guarded) -> GuardVerdict:
        await met.wait()
        return GuardVerdict.flag()

    async def meets(ctx: Ctx, guarded: Guarded) -> GuardVerdict:
        met.set()
        return GuardVerdict.replace("other")

    guardrail = GuardrailMiddleware(output=[waits, meets])
    run = await AgentHarness(model=ScriptedModel([say("hi")]), middleware=[guardrail]).invoke(
        None, "go"
    )
    assert run.text == "other"
    assert sorted(actions(run)) == [("output", "flag"), ("output", "replace")]


async def test_an_answer_that_breaks_off_before_it_was_judged_leaves_no_words() -> None:
    broken_off = ServerError("gone", retryable=False)
    agent = AgentHarness(
        model=ScriptedModel([say(*SPLIT) + fail(broken_off)]),
        middleware=[GuardrailMiddleware(output=[no_bad])],
    )
    with pytest.raises(ServerError) as caught:
        await outcome(agent, "go", True)
    assert caught.value.run is not None
    assert_never_shown([dump_messages(caught.value.run.messages)], BAD, part=6)


@pytest.mark.parametrize("judged", [False, True])
async def test_of_an_answer_that_a_hook_fails_over_only_judged_words_are_kept(judged: bool) -> None:
    class Broken(Middleware[Any]):
        async def after_model(self, ctx: Any, response: Any) -> None:
            raise ValueError("broken")

    guards = GuardrailMiddleware(output=[lambda ctx, guarded: None])
    hooks: list[Middleware[Any]] = [Broken(), guards] if judged else [guards, Broken()]
    agent = AgentHarness(model=ScriptedModel([say("some words")]), middleware=hooks)
    with pytest.raises(ValueError, match="broken") as caught:
        await agent.invoke(None, "go")
    run: Any = getattr(caught.value, "run")  # noqa: B009 - put there by the run
    assert ("some words" in dump_messages(run.messages)) is judged
    assert judged or "some words" not in repr(run.response)


async def test_a_run_that_is_cancelled_while_a_guard_judges_keeps_no_words() -> None:
    token = CancellationToken()

    async def judge(ctx: Any, guarded: Guarded) -> None:
        token.cancel()
        await anyio.sleep_forever()

    agent = AgentHarness(
        model=ScriptedModel([say("some words")]), middleware=[GuardrailMiddleware(output=[judge])]
    )
    with pytest.raises(RunCancelledError) as caught:
        await agent.invoke(None, "go", cancellation=token)
    assert caught.value.run is not None
    assert "some words" not in dump_messages(caught.value.run.messages)


async def test_a_model_judges_by_a_rule_and_its_tokens_are_counted() -> None:
    judge = ScriptedModel([say('{"verdict": "block", "reason": "too rude"}')])
    guardrail = GuardrailMiddleware(output=[model_guard(judge, "Be polite.", name="polite")])
    agent = AgentHarness(model=ScriptedModel([say("rude")]), middleware=[guardrail])
    with pytest.raises(ContentBlockedError, match="too rude") as caught:
        await agent.invoke(None, "go")
    run = caught.value.run
    assert run is not None
    assert [e.guard for e in run.events if isinstance(e, GuardrailTriggered)] == ["polite"]
    assert len([e for e in run.events if e.kind == "usage.recorded"]) == 2
    assert "Be polite." in judge.requests[0].messages[0].text


async def test_calls_of_an_answer_that_is_held_are_shown_when_it_was_judged() -> None:
    agent = AgentHarness(
        model=ScriptedModel([say("hm") + call("look", q="x"), say("ok")]),
        tools=[FakeTool("look")],
        middleware=[GuardrailMiddleware(output=[flagged])],
    )
    shown = [c.arguments async for c in agent.stream(None, "go") if isinstance(c, ToolCallDelta)]
    assert shown == ['{"q":"x"}']


@pytest.mark.parametrize(
    "make",
    [
        lambda: GuardrailMiddleware(),
        lambda: GuardrailMiddleware(input=["no"]),  # type: ignore[list-item]
        lambda: GuardrailMiddleware(input=[no_bad], on_failure="maybe"),  # type: ignore[arg-type]
        lambda: model_guard(ScriptedModel([]), " "),
    ],
)
def test_a_setting_that_cannot_work_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()
