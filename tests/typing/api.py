"""What a user's type checker infers of an agent: checked by mypy and pyright, never run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never, assert_type

from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AgentRun,
    AgentStream,
    AssistantMessage,
    CancellationToken,
    Final,
    Message,
    MessageCompleted,
    Middleware,
    PartialOutput,
    ReasoningDelta,
    RefusalDelta,
    RunConfig,
    RunContext,
    RunHandle,
    RunLimits,
    RunPolicy,
    RunSnapshot,
    StopWithFinal,
    TextBlock,
    TextDelta,
    TinyAgentsError,
    ToolCallBlock,
    ToolCompleted,
    ToolContext,
    ToolMessage,
    ToolStarted,
    Usage,
    UserMessage,
    tool,
)
from tinyagents.harness.cost import CostTotals
from tinyagents.harness.errors import LimitExceededError, RateLimitError
from tinyagents.harness.events import AgentEvent, ToolFailed
from tinyagents.harness.middleware import ToolCall, before_model, wrap_model
from tinyagents.harness.model import ModelRequest, ModelResponse
from tinyagents.harness.providers import OpenAIChatModel, resolve_model
from tinyagents.harness.stream import (
    CostUpdate,
    EventChunk,
    MessageDiscarded,
    StateUpdate,
    StreamChunk,
    ToolCallDelta,
    ToolProgress,
    UsageUpdate,
)
from tinyagents.harness.tool import ToolResult
from tinyagents.testkit import EventRecorder, ScriptedModel, assert_trajectory, call, say, think


@dataclass
class State:
    visited: list[str] = field(default_factory=list[str])


@dataclass
class Deps:
    """The application's dependencies."""

    rates: Mapping[str, float]


class Answer(BaseModel):
    city: str
    celsius: float


@tool
async def get_weather(city: str, *, ctx: ToolContext[Deps]) -> float:
    """Current weather for a city."""
    assert_type(ctx.data, Deps)
    return ctx.data.rates[city]


@tool
def double(n: int) -> int:
    """Double a number."""
    return n * 2


class Watch(Middleware[Deps]):
    """A middleware that knows the application's dependencies."""

    async def before_agent(self, ctx: RunContext[Deps]) -> None:
        assert_type(ctx.data, Deps)

    async def before_model(self, ctx: RunContext[Deps], request: ModelRequest) -> None:
        assert_type(request.messages, list[Message])
        if len(request.messages) > 100:
            ctx.request_control(StopWithFinal("enough"))

    async def after_tool(self, ctx: RunContext[Deps], call: ToolCall, result: ToolResult) -> None:
        assert_type(call.name, str)
        assert_type(result.is_error, bool)

    async def on_error(self, ctx: RunContext[Deps], error: BaseException) -> None:
        print(error)


class Plain(Middleware):
    """A middleware that takes no part in the application's types."""

    async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
        assert_type(response.text, str)


@before_model
async def brief(ctx: RunContext[Deps], request: ModelRequest) -> None:
    request.messages.append(UserMessage(content="Be brief."))


@wrap_model
async def timed(ctx: RunContext[Deps], request: ModelRequest, call: Any) -> ModelResponse:
    response: ModelResponse = await call(request)
    return response


def instructions(ctx: RunContext[Deps]) -> str:
    return ", ".join(ctx.data.rates)


def listen(event: AgentEvent) -> None:
    assert_type(event.offset, int)
    if isinstance(event, ToolFailed):
        assert_type(event.tool_name, str)


harness = AgentHarness(
    model=OpenAIChatModel("gpt-5-mini"),
    models={"local": "ollama:qwen3", "other": resolve_model("groq:x")},
    tools=[get_weather, double],
    middleware=[Watch(), Plain(), brief, timed],
    system=instructions,
    limits=RunLimits(max_model_calls=8, wall_clock=30.0),
    policy=RunPolicy.resilient(),
    listeners=[listen, EventRecorder()],
)


async def plain(deps: Deps) -> None:
    run = await harness.invoke(State(), "Weather in Paris?", data=deps)
    assert_type(run, AgentRun[State, None])
    assert_type(run.state, State)
    assert_type(run.state.visited, list[str])
    assert_type(run.output, None)
    assert_type(run.text, str)
    assert_type(run.messages, list[Message])
    assert_type(run.usage, Usage)
    assert_type(run.cost, CostTotals)
    assert_type(run.snapshot, RunSnapshot)
    assert_type(run.events[0], AgentEvent)

    nothing = await harness.invoke(None, [UserMessage(content="hi")], config=RunConfig(tags=("a",)))
    assert_type(nothing, AgentRun[None, None])

    for message in run.messages:
        match message:
            case AssistantMessage():
                assert_type(message.tool_calls, list[ToolCallBlock])
                texts = [block.text for block in message.content if isinstance(block, TextBlock)]
                assert_type(texts, list[str])
            case ToolMessage(tool_call_id=call_id):
                assert_type(call_id, str)
            case _:
                assert_type(message.text, str)


async def typed(deps: Deps, token: CancellationToken) -> None:
    run = await harness.invoke(State(), "Weather?", output=Answer, data=deps, cancellation=token)
    assert_type(run, AgentRun[State, Answer])
    assert_type(run.output.celsius, float)

    several = await harness.invoke(None, "Weather?", output=list[Answer])
    assert_type(several.output, list[Answer])
    by_schema = await harness.invoke(None, "Weather?", output={"type": "object"})
    assert_type(by_schema.output, Any)

    resumed = await harness.resume(run.snapshot, State(), output=Answer, answers={"q": "yes"})
    assert_type(resumed.output, Answer)
    assert_type(await harness.step(run.snapshot, State()), RunSnapshot)
    assert_type(await harness.invoke_model("One word?"), ModelResponse)
    assert_type(harness.invoke_sync(State(), "hi", output=Answer), AgentRun[State, Answer])
    assert_type(harness.replace(system="Be brief."), AgentHarness)


async def streamed(deps: Deps) -> str:
    stream = harness.stream(State(), "Weather?", output=Answer, data=deps)
    assert_type(stream, AgentStream[State, Answer])
    async with stream:
        async for chunk in stream:
            assert_type(chunk, StreamChunk[State, Answer])
            match chunk:
                case TextDelta(text=text):
                    assert_type(text, str)
                case ReasoningDelta() | RefusalDelta() | ToolCallDelta() | MessageDiscarded():
                    assert_type(chunk.call_id, str)
                case PartialOutput(value=partial):
                    assert_type(partial, Answer | None)
                case MessageCompleted(message=message):
                    assert_type(message, AssistantMessage)
                case ToolStarted(name=name) | ToolProgress(name=name):
                    assert_type(name, str)
                case ToolCompleted(message=answer):
                    assert_type(answer, ToolMessage)
                case StateUpdate() | UsageUpdate() | CostUpdate():
                    assert_type(chunk.offset, int)
                case EventChunk(event=event):
                    assert_type(event, AgentEvent)
                case Final(run=run):
                    assert_type(run.output, Answer)
                    assert_type(run.state, State)
                case _:
                    assert_never(chunk)
        result = await stream.result()
        assert_type(result, AgentRun[State, Answer])
        return result.output.city


async def in_the_background() -> None:
    handle = harness.start(State(), "Weather?", output=Answer)
    assert_type(handle, RunHandle[State, Answer])
    async for chunk in handle.subscribe(modes=["final"]):
        assert_type(chunk, StreamChunk[State, Answer])
    assert_type(await handle, AgentRun[State, Answer])


async def tools(ctx: ToolContext[Deps]) -> None:
    assert_type(await get_weather("Paris", ctx=ctx), float)
    assert_type(double(2), int)


async def errors() -> None:
    try:
        await harness.invoke(None, "hi")
    except LimitExceededError as error:
        assert_type(error.limit, str)
    except RateLimitError as error:
        assert_type(error.retry_after, float | None)
    except TinyAgentsError as error:
        assert_type(error.run, AgentRun[Any, Any] | None)


async def tested() -> None:
    model = ScriptedModel([think("hm") + call("double", n=2), "four", say("ok")])
    run = await AgentHarness(model=model, tools=[double]).invoke(State(), "hi")
    assert_trajectory(run.events).model_called().tool_called("double", n=2).completed()


async def mistakes(wrong: AgentHarness) -> None:
    await wrong.invoke()  # type: ignore[call-overload]
    await wrong.invoke(None, "hi", colour="red")  # type: ignore[call-overload]
    await wrong.invoke(None, 5)  # type: ignore[call-overload]
    wrong.stream(None, "hi", modes={"token"})  # type: ignore[arg-type]
    AgentHarness(model=5)  # type: ignore[arg-type]
    wrong.name = "x"  # type: ignore[misc]
