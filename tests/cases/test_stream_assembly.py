"""Tool calls put together from the pieces that providers really send."""

from typing import Any

import pytest

from tinyagents import AgentRun, ToolCompleted, ToolStarted, tool
from tinyagents.harness.stream import StreamChunk, ToolCallDelta

from .dialects import ANTHROPIC, GEMINI, OLLAMA, RESPONSES, Called, Dialect, Json, Said
from .wire import END, END_CALLS, agent_on, fragment, kinds, results, streamed, text

LAST = streamed(text("done"), END)


async def follow(
    *pieces: Any, tools: list[Any]
) -> tuple[AgentRun[None, None], list[StreamChunk[None, None]]]:
    async with agent_on(streamed(*pieces, END_CALLS), LAST, tools=tools) as (agent, _):
        stream = agent.stream(None, "go")
        chunks = [chunk async for chunk in stream]
        return await stream.result(), chunks


async def test_a_call_whose_index_starts_at_one_is_the_only_call() -> None:
    # C13
    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    run, chunks = await follow(
        fragment('{"a"', index=1, id="t1", name="add"), fragment(':1,"b":2}', index=1), tools=[add]
    )
    assert [result.text for result in results(run)] == ["3"]
    assert [call.id for call in run.messages[1].tool_calls] == ["t1"]  # type: ignore[union-attr]
    assert kinds(run).count("tool.started") == 1
    assert [c.arguments for c in chunks if isinstance(c, ToolCallDelta)] == ['{"a"', ':1,"b":2}']
    assert sum(isinstance(chunk, ToolStarted | ToolCompleted) for chunk in chunks) == 2


async def test_two_ids_at_one_index_are_two_calls_that_both_run() -> None:
    # C14
    seen: list[int] = []

    @tool
    async def f(x: int) -> int:
        """Note."""
        seen.append(x)
        return x

    run, _ = await follow(
        fragment('{"x":1}', id="u1", name="f"), fragment('{"x":2}', id="u2", name="f"), tools=[f]
    )
    assert sorted(seen) == [1, 2]
    assert [(r.tool_call_id, r.text) for r in results(run)] == [("u1", "1"), ("u2", "2")]


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
async def test_an_id_on_every_piece_and_a_summary_of_them_are_one_call(named: bool) -> None:
    # C16
    seen: list[str] = []

    @tool
    async def search(q: str) -> str:
        """Search."""
        seen.append(q)
        return q

    cut = ['{"q"', ':"mo', 'ss"}', '{"q":"moss"}']
    pieces = [
        fragment(part, id="w1", name="search" if named or not number else None)
        for number, part in enumerate(cut)
    ]
    run, _ = await follow(*pieces, tools=[search])
    assert seen == ["moss"]
    assert [result.text for result in results(run)] == ["moss"]
    assert kinds(run).count("tool.started") == 1


CUT = ['{"q"', ':"mo', 'ss"}']
WHOLE = "".join(CUT)
CALL = {"id": "w1", "name": "search"}


def responses_summary() -> list[Json]:
    """The pieces, and the whole in each of the three events that say it again."""
    whole = Said(calls=(Called(**CALL, arguments=WHOLE),))
    begun, added, delta, *end = RESPONSES.events(whole)
    deltas = [{**delta, "delta": part} for part in CUT]
    done = {**delta, "type": "response.function_call_arguments.done", "arguments": WHOLE}
    return [begun, added, *deltas, {n: v for n, v in done.items() if n != "delta"}, *end]


def anthropic_summary(*, pieces_first: bool) -> list[Json]:
    """A gateway that begins with the whole input, or sends it once more after its pieces."""
    begun, start, delta, stop, *end = ANTHROPIC.events(
        Said(calls=(Called(**CALL, arguments=WHOLE),))
    )
    deltas = [{**delta, "delta": {**delta["delta"], "partial_json": part}} for part in CUT]
    if pieces_first:
        return [begun, start, *deltas, delta, stop, *end]
    block = {**start["content_block"], "input": {"q": "moss"}}
    return [begun, {**start, "content_block": block}, *deltas, stop, *end]


def again(dialect: Dialect) -> list[Json]:
    """The call, whole, twice: these APIs do not cut one."""
    begun, called, *end = dialect.events(Said(calls=(Called(**CALL, arguments=WHOLE),)))
    return [begun, called, called, *end]


SUMMARIES = [
    pytest.param(RESPONSES, responses_summary(), id="responses"),
    pytest.param(ANTHROPIC, anthropic_summary(pieces_first=True), id="anthropic-after"),
    pytest.param(ANTHROPIC, anthropic_summary(pieces_first=False), id="anthropic-before"),
    pytest.param(GEMINI, again(GEMINI), id="gemini"),
    pytest.param(OLLAMA, again(OLLAMA), id="ollama"),
]


@pytest.mark.parametrize(("dialect", "events"), SUMMARIES)
async def test_a_call_that_is_said_again_under_its_id_is_one_call_in_every_api(
    dialect: Dialect, events: list[Json]
) -> None:
    # C16
    seen: list[str] = []

    @tool
    async def search(q: str) -> str:
        """Search."""
        seen.append(q)
        return q

    last = dialect.answer(Said(text="done"), stream=True)
    async with agent_on(dialect.streamed(*events), last, tools=[search], dialect=dialect) as (
        agent,
        _,
    ):
        run = await agent.stream(None, "go").result()
    assert seen == ["moss"]
    assert [(result.tool_call_id, result.text) for result in results(run)] == [("w1", "moss")]
    assert kinds(run).count("tool.started") == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_calls_cut_by_the_token_limit_never_run_and_end_as_truncation(stream: bool) -> None:
    # C17, over the wire: the model does the same each time.
    from tinyagents.harness.errors import TruncatedResponseError

    from .wire import piece, whole

    ran: list[str] = []

    @tool
    async def write(body: str) -> str:
        """Write."""
        ran.append(body)
        return "ok"

    bodies = ['{"body":"whole"}', '{"body":"abc']
    if stream:
        parts = [fragment(b, index=i, id=f"c{i}", name="write") for i, b in enumerate(bodies)]
        reply = streamed(*parts, piece({}, "length"))
    else:
        made = [
            {"id": f"c{i}", "type": "function", "function": {"name": "write", "arguments": b}}
            for i, b in enumerate(bodies)
        ]
        reply = whole({"content": None, "tool_calls": made}, "length")
    async with agent_on(reply, tools=[write]) as (agent, server):
        with pytest.raises(TruncatedResponseError, match="cut by the token limit") as caught:
            await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
        assert len(server.requests) == 3
        told = [m for m in server.requests[1].document["messages"] if m["role"] == "tool"]
    assert ran == []
    assert len(told) == 2
    assert all("cut" in message["content"] for message in told)
    assert all(result.outcome == "not_started" for result in results(caught.value.run))
