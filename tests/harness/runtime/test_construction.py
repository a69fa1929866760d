"""What cannot work is refused where it is written, with what to do instead."""

from functools import partial
from typing import Any, Literal

import pytest

from tinyagents import AgentHarness, Middleware, RunContext, RunLimits, RunPolicy, tool
from tinyagents.harness.errors import ConfigurationError, InvalidRequestError
from tinyagents.harness.middleware import (
    ModelDelta,
    after_tool,
    before_model,
    filter_deltas,
    on_tool_delta,
)
from tinyagents.harness.retry import FallbackPolicy
from tinyagents.testkit import EventRecorder, ScriptedModel, call, say, say_json


def agent(**options: Any) -> AgentHarness:
    return AgentHarness(model=ScriptedModel([say("hello")] * 3), **options)


async def test_an_unknown_option_of_a_run_is_refused_and_limits_are_pointed_to_the_config() -> None:
    options: Any = {"limits": RunLimits(max_model_calls=1)}
    with pytest.raises(TypeError, match="config=RunConfig"):
        await agent().invoke(None, "hi", **options)
    misspelt: Any = {"confg": None}
    with pytest.raises(TypeError, match="confg"):
        agent().stream(None, "hi", **misspelt)


@pytest.mark.parametrize("model", [ScriptedModel, 3])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(ConfigurationError, match="no model"):
        AgentHarness(model=model)


def test_an_unknown_model_name_lists_what_is_registered() -> None:
    with pytest.raises(ConfigurationError, match="`first`"):
        AgentHarness(model="nope", models={"first": ScriptedModel([])})


def test_a_fallback_on_a_model_that_is_not_registered_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="nope"):
        agent(policy=RunPolicy(fallback=FallbackPolicy(models=("nope",))))
    name: Any = "default"
    with pytest.raises(ConfigurationError, match="sequence"):
        FallbackPolicy(models=name)


def test_a_policy_value_that_does_not_exist_is_refused() -> None:
    value: Any = "stop"
    with pytest.raises(ConfigurationError, match=r"on_limit.*stop_with_partial"):
        RunPolicy(on_limit=value)


class Audit(Middleware):
    async def before_agent(self, ctx: RunContext) -> None:
        pass


class Blocking(Middleware):
    def before_model(self, ctx: RunContext, request: object) -> None:  # type: ignore[override]
        pass


class Narrow(Middleware):
    async def before_model(self, request: object) -> None:  # type: ignore[override]
        pass


class SetLater(Middleware):
    def __init__(self) -> None:
        self.before_agent = self.begin  # type: ignore[method-assign]

    async def begin(self, ctx: RunContext) -> None:
        pass


class Misspelt(Middleware):
    async def before_modle(self, ctx: RunContext, request: object) -> None:
        pass

    async def wrap_tool_call(self, ctx: RunContext, request: object, call_next: object) -> None:
        pass

    async def after_all(self) -> None:
        """One that is like no hook."""


@pytest.mark.parametrize(
    ("middleware", "says"),
    [
        ([Audit], r"Audit\(\)"),
        ([lambda ctx: None], "no middleware"),
        ([before_model], "no middleware"),
        ([Blocking()], "async def"),
        ([Narrow()], r"takes \(request\), and a run calls it with \(ctx, request\)"),
        ([SetLater()], "define it in a class"),
        (Audit(), "list"),
        (Audit, "list"),
        (None, "list"),
        ("audit", "list"),
    ],
)
def test_middleware_that_could_not_work_is_refused(middleware: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        agent(middleware=middleware)


def test_a_method_that_is_nearly_a_hook_is_remarked_on(caplog: pytest.LogCaptureFixture) -> None:
    agent(middleware=[Misspelt()])
    assert "`Misspelt.before_modle` is no hook" in caplog.text
    assert "did you mean `before_model`" in caplog.text
    assert "`Misspelt.wrap_tool_call` is no hook" in caplog.text
    assert "did you mean `wrap_tool`" in caplog.text
    assert "after_all" not in caplog.text


async def slow(*_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("decorate", "function", "says"),
    [
        (before_model, "a text", "of a function, not of 'a text'"),
        (before_model, before_model(slow), "of a function"),
        (before_model, lambda ctx: None, r"takes \(ctx\), and .* with \(ctx, request\)"),
        (after_tool, lambda ctx, call: None, r"\(ctx, call, result\)"),
        (on_tool_delta, slow, "must not be async"),
        (filter_deltas, slow, "must not be async"),
    ],
)
def test_a_function_that_could_not_be_a_hook_is_refused(
    decorate: Any, function: Any, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        decorate(function)


class Filter:
    """Shows nothing."""

    def __init__(self, ctx: RunContext) -> None:
        self.ctx = ctx

    def push(self, delta: ModelDelta) -> list[ModelDelta]:
        return []

    def flush(self) -> list[ModelDelta]:
        return []


def test_a_hook_may_be_anything_that_takes_what_it_is_called_with() -> None:
    class Fixed(Middleware):
        @staticmethod
        async def before_agent(*_: object) -> None:
            pass

    made = [after_tool(partial(slow, agent())), before_model(print), filter_deltas(Filter), Fixed()]
    assert len(agent(middleware=made).middleware) == len(made)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"system": 3}, "`system` is a text"),
        ({"listeners": [3]}, "3 is no listener"),
        ({"listeners": [EventRecorder]}, "no listener"),
    ],
)
def test_instructions_and_listeners_of_another_type_are_refused(options: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        agent(**options)
    with pytest.raises(ConfigurationError, match=says):
        agent().replace(**options)


async def test_an_input_that_is_no_message_is_refused() -> None:
    for wrong in (None, 3, [3], [{"role": "user"}]):
        given: Any = wrong
        with pytest.raises(InvalidRequestError):
            await agent().invoke(None, given)
    config: Any = {"thread_id": "t"}
    with pytest.raises(InvalidRequestError, match="RunConfig"):
        await agent().invoke(None, "hi", config=config)


def test_a_background_run_needs_an_event_loop() -> None:
    with pytest.raises(InvalidRequestError, match="event loop"):
        agent().start(None, "hi")


async def test_one_mode_may_be_given_as_a_word() -> None:
    chunks = [chunk.type async for chunk in agent().stream(None, "hi", modes="final")]
    assert chunks == ["final"]


async def test_a_list_or_literal_is_taken_with_and_without_its_wrapping() -> None:
    for text in ([1, 2], {"value": [1, 2]}):
        harness = AgentHarness(model=ScriptedModel([say_json(text)]))
        run = await harness.invoke(None, "go", output=list[int])
        assert run.output == [1, 2]
    harness = AgentHarness(model=ScriptedModel([say_json("yes")]))
    chosen = await harness.invoke(None, "go", output=Literal["yes", "no"])
    assert chosen.output == "yes"


async def test_a_run_shows_itself_in_one_line() -> None:
    run = await agent().invoke(None, "hi")
    assert "hello" in repr(run)
    assert len(repr(run)) < 200
    assert repr(agent().stream(None, "hi")).startswith("AgentStream('run_")


def test_the_version_and_the_packages_are_at_the_root() -> None:
    import tinyagents

    assert tinyagents.__version__
    assert tinyagents.harness.__name__ == "tinyagents.harness"
    assert "import_module" not in dir(tinyagents)


async def test_a_tool_that_fails_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    async def broken() -> str:
        """Fail."""
        raise KeyError("nope")

    harness = AgentHarness(model=ScriptedModel([call("broken"), say("done")]), tools=[broken])
    await harness.invoke(None, "go")
    (record,) = [r for r in caplog.records if r.name == "tinyagents.agent_loop"]
    assert record.exc_info is not None
    assert "broken" in record.getMessage()
