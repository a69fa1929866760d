"""The middleware that does not let a refusal pass as an answer."""

from typing import Any

import pytest

from tinyagents import AgentHarness, AgentRun, Usage, tool
from tinyagents.harness.errors import (
    ConfigurationError,
    ContentFilterError,
    ModelRefusedError,
    ServerError,
)
from tinyagents.harness.events import FallbackSelected
from tinyagents.harness.middleware import RefusalMiddleware
from tinyagents.harness.stream import MessageDiscarded, TextDelta
from tinyagents.testkit import (
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    refuse,
    say,
)

CUT = say("How to", finish_reason="content_filter")
BLOCKED = fail(ContentFilterError("the prompt was blocked"))


def make(first: Any, other: Any = (), **options: Any) -> AgentHarness:
    models = {"main": ScriptedModel([first]), "other": ScriptedModel(other)}
    return AgentHarness(models=models, middleware=[RefusalMiddleware(**options)], sleep=FakeSleep())


def fallbacks(run: AgentRun[Any, Any]) -> list[tuple[str, str]]:
    return [(e.from_model, e.to_model) for e in run.events if isinstance(e, FallbackSelected)]


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (refuse("I cannot help."), "refusal", "I cannot help."),
        (say("No.", finish_reason="refusal"), "refusal", "No."),
        (CUT, "content_filter", "How to"),
    ],
)
async def test_a_refusal_is_an_error_that_holds_the_words(
    answer: Any, reason: str, text: str
) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        await make(answer).invoke(None, "?")
    error = caught.value
    assert (error.reason, error.text, error.model) == (reason, text, "main")
    assert text not in str(error)
    assert not error.retryable
    assert error.run is not None
    assert error.run.usage.total_tokens > 0
    assert error.run.messages[-1].role == "assistant"


async def test_an_error_of_a_content_filter_stays_what_it_is() -> None:
    with pytest.raises(ContentFilterError, match="the prompt was blocked"):
        await make(BLOCKED).invoke(None, "?")


@pytest.mark.parametrize("answer", [refuse("I cannot."), CUT, BLOCKED])
async def test_a_replacement_is_the_answer_and_what_it_took_is_counted(answer: Any) -> None:
    run = await make(answer, replacement="Ask me something else.").invoke(None, "?")
    assert run.text == "Ask me something else."
    assert run.status == "completed"
    assert run.response is not None
    assert run.response.refusal is None
    assert run.response.finish_reason == "stop"
    assert run.model_calls == 1
    assert_event_grammar(run)


@pytest.mark.parametrize("answer", [refuse("I cannot."), CUT, BLOCKED])
async def test_another_model_is_asked_once(answer: Any) -> None:
    agent = make(answer, [say("Here.")], fallback="other")
    run = await agent.invoke(None, "?")
    assert run.text == "Here."
    assert fallbacks(run) == [("main", "other")]
    assert run.resolved_model is not None
    assert run.resolved_model.name == "other"
    assert run.model_calls == 1
    assert_event_grammar(run)


async def test_both_answers_are_paid_for() -> None:
    used = Usage(input_tokens=10, output_tokens=5)
    refused = say("No.", usage=used, finish_reason="refusal")
    run = await make(refused, [say("Here.", usage=used)], fallback="other").invoke(None, "?")
    assert run.usage == used + used


async def test_where_the_other_model_refuses_too_there_is_no_third() -> None:
    options = {"fallback": "other", "replacement": "Sorry."}
    run = await make(refuse("No."), [refuse("Nor I.")], **options).invoke(None, "?")
    assert (run.text, fallbacks(run)) == ("Sorry.", [("main", "other")])
    with pytest.raises(ModelRefusedError) as caught:
        await make(refuse("No."), [refuse("Nor I.")], fallback="other").invoke(None, "?")
    assert (caught.value.model, caught.value.text) == ("other", "Nor I.")


async def test_the_fallback_is_not_asked_again_by_its_own_refusal() -> None:
    agent = make(say("x"), [refuse("No.")], fallback="other")
    with pytest.raises(ModelRefusedError):
        await agent.invoke(None, "?", model="other")


async def test_what_the_other_model_fails_with_is_raised() -> None:
    agent = make(refuse("No."), [fail(ServerError("down", retryable=False))], fallback="other")
    with pytest.raises(ServerError, match="down"):
        await agent.invoke(None, "?")


async def test_answers_and_other_errors_pass() -> None:
    run = await make(say("Yes."), fallback="other", replacement="x").invoke(None, "?")
    assert (run.text, fallbacks(run)) == ("Yes.", [])
    with pytest.raises(ServerError):
        await make(fail(ServerError("down", retryable=False)), replacement="x").invoke(None, "?")


async def test_calls_in_a_refused_answer_do_not_run() -> None:
    @tool
    async def pay() -> str:
        """Pay."""
        raise AssertionError

    model = ScriptedModel([refuse("No.") + call("pay")])
    agent = AgentHarness(
        model=model, tools=[pay], middleware=[RefusalMiddleware(replacement="Sorry.")]
    )
    run = await agent.invoke(None, "?")
    assert (run.text, run.tool_calls) == ("Sorry.", 0)


async def test_in_a_stream_the_refused_answer_is_void() -> None:
    agent = make(CUT, [say("Here.")], fallback="other")
    kinds: list[str] = []
    async with agent.stream(None, "?") as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta | MessageDiscarded):
                kinds.append(getattr(chunk, "text", "void"))
        run = await stream.result()
    assert "".join(kinds) == "How tovoidHere."
    assert run.text == "Here."


async def test_a_replacement_of_refused_words_is_streamed() -> None:
    texts: list[str] = []
    async with make(refuse("No."), replacement="Sorry.").stream(None, "?") as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                texts.append(chunk.text)
    assert texts == ["Sorry."]


async def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="blank"):
        RefusalMiddleware(replacement=" ")
    with pytest.raises(ConfigurationError, match="`third`.*there are `main`, `other`"):
        await make(say("x"), fallback="third").invoke(None, "?")
