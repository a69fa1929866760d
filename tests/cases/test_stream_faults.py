"""Streams that are cut oddly, fail or fall silent, and what is asked again."""

import dataclasses
import socket
import time

import anyio
import anyio.abc
import httpx
import orjson
import pytest

from tests.harness.providers.server import Reply, Seen, Server, eventually, serve, single_bytes
from tinyagents import AgentHarness, RunConfig, RunPolicy, ToolContext, tool
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    ModelError,
    ProviderTimeoutError,
    ServerError,
)
from tinyagents.harness.policy import PayloadCapture
from tinyagents.harness.providers import OpenAIChatModel, Timeouts
from tinyagents.harness.retry import FallbackPolicy
from tinyagents.testkit import (
    DeterministicClock,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    say,
)

from .wire import END, agent_on, in_turn, is_valid, kinds, model_at, piece, streamed, text, whole

# Split anywhere


def odd_bytes() -> bytes:
    """A comment, CRLF line ends, an event of two data lines, and text beyond ASCII."""
    head, tail = orjson.dumps(text("two lines")).split(b',"choices"')
    two_lines = b"data: " + head + b'\ndata: ,"choices"' + tail + b"\n\n"
    # Both at once: a line end that is cut in two is one line end all the same.
    both = two_lines.replace(b"\n", b"\r\n").replace(b"two lines", b" of both")
    return b"".join(
        (
            b": ping\n\n",
            b"data: " + orjson.dumps(text("crlf ")) + b"\r\n\r\n",
            two_lines,
            both,
            b"data: " + orjson.dumps(text(" na\u00efve \U0001f642")) + b"\n\n",
            b"data: " + orjson.dumps(END) + b"\n\ndata: [DONE]\n\n",
        )
    )


async def test_a_stream_split_at_any_byte_gives_the_same_events() -> None:
    # C34
    data = odd_bytes()
    ways = [(data,), single_bytes(data), *((data[:at], data[at:]) for at in range(1, len(data)))]
    headers = {"content-type": "text/event-stream"}
    script = in_turn(*(Reply(pieces=pieces, headers=headers) for pieces in ways))
    expected: list[str] | None = None
    async with serve(script) as server, model_at(server) as model:
        clock = DeterministicClock()
        policy = RunPolicy(capture=PayloadCapture.all())
        agent = AgentHarness(model=model, policy=policy, clock=clock)
        for pieces in ways:
            stream = agent.stream(None, "go", config=RunConfig(run_id="r"), modes={"events"})
            seen = [chunk.event.model_dump_json() async for chunk in stream]  # type: ignore[union-attr]
            assert (await stream.result()).text == "crlf two lines of both na\u00efve \U0001f642"
            expected = expected or seen
            assert seen == expected, pieces
        assert len(server.requests) == len(ways)


# Failures before the first delta


BUSY = Reply.json({"error": {"message": "slow down", "type": "rate_limit"}}, status=429)
IN_A_STREAM = Reply.events({"error": {"message": "overloaded", "code": 503}}, done=False)
IN_A_DOCUMENT = Reply.json({"error": {"message": "overloaded", "code": 503}})


@pytest.mark.parametrize(
    ("failure", "stream"),
    [
        pytest.param(BUSY, True, id="429-streamed"),
        pytest.param(BUSY, False, id="429-plain"),
        pytest.param(IN_A_STREAM, True, id="in-a-stream"),
        pytest.param(IN_A_DOCUMENT, True, id="in-a-document-for-a-stream"),
        pytest.param(IN_A_DOCUMENT, False, id="in-a-document"),
    ],
)
async def test_a_model_that_fails_before_its_first_piece_is_followed_by_the_next(
    failure: Reply, stream: bool
) -> None:
    # C35
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    answer = streamed(text("blue"), END, piece(usage=usage)) if stream else whole(
        {"content": "blue"}, usage=usage
    )  # fmt: skip
    async with serve(failure) as first, serve(answer) as second:
        agent = AgentHarness(
            models={"one": model_at(first), "two": model_at(second)},
            policy=RunPolicy(fallback=FallbackPolicy(models=("two",))),
            sleep=FakeSleep(),
        )
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
        await close(agent)
    assert run.text == "blue"
    assert kinds(run).count("model.fallback_selected") == 1
    recorded = [event for event in run.events if event.kind == "usage.recorded"]
    assert [event.model for event in recorded] == ["two"]  # type: ignore[attr-defined]
    assert (run.usage.input_tokens, run.usage.output_tokens) == (5, 1)
    assert (len(first.requests), len(second.requests)) == (4, 1)
    assert_event_grammar(run.events)


async def close(agent: AgentHarness) -> None:
    for name in agent.models:
        model = agent.models.get(name)
        assert isinstance(model, OpenAIChatModel)
        await model.aclose()


# Silence


async def test_a_stream_that_falls_silent_ends_the_run_once_and_lets_the_connection_go() -> None:
    # C37
    reply = Reply.events(text("one"), done=False, then="hang")
    async with serve(reply) as server, model_at(server, timeout=Timeouts(idle=0.2)) as model:
        policy = RunPolicy(retry=dataclasses.replace(RunPolicy().retry, max_attempts=1))
        agent = AgentHarness(model=model, policy=policy)
        began = time.monotonic()
        with anyio.fail_after(10), pytest.raises(ProviderTimeoutError, match="silent") as caught:
            await agent.stream(None, "go").result()
        took = time.monotonic() - began
        await eventually(lambda: server.gone == [1])
    assert 0.15 < took < 2.5  # the case asks for 0.5 s, on a machine that has nothing else to do
    run = caught.value.run
    ends = [kind for kind in kinds(run) if kind.startswith("run.") and kind != "run.started"]
    assert ends == ["run.failed"]
    assert run is not None
    assert run.text == "one"
    assert is_valid(run)
    assert_event_grammar(run.events)


# What is asked again


def refusal(status: int) -> Reply:
    return Reply.json({"error": {"message": "no"}}, status=status)


@pytest.mark.parametrize("status", [429, 503, 408])
async def test_statuses_that_may_pass_are_asked_again_after_growing_waits(status: int) -> None:
    # C38
    sleep = FakeSleep(DeterministicClock())
    replies = refusal(status), refusal(status), whole({"content": "up"})
    async with agent_on(*replies, sleep=sleep) as (agent, server):
        run = await agent.invoke(None, "go")
    assert (run.text, len(server.requests)) == ("up", 3)
    assert 0 < sleep.delays[0] < sleep.delays[1]


@pytest.mark.parametrize(("status", "error"), [(400, BadRequestError), (401, AuthenticationError)])
async def test_statuses_that_no_retry_helps_fail_at_once(
    status: int, error: type[ModelError]
) -> None:
    # C38
    sleep = FakeSleep()
    async with agent_on(refusal(status), sleep=sleep) as (agent, server):
        with pytest.raises(error):
            await agent.invoke(None, "go")
    assert (len(server.requests), sleep.delays) == (1, [])


async def test_a_connection_that_is_reset_is_opened_again_after_growing_waits() -> None:
    # C38
    sleep, left = FakeSleep(), 2

    async def reset_or_answer(stream: anyio.abc.SocketStream) -> None:
        nonlocal left
        async with stream:
            received = b""
            while not received.endswith(b"}"):
                received += await stream.receive()
            if left:
                left -= 1
                raw: socket.socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)
                # To linger for no time is to reset.
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            body = orjson.dumps({"choices": [{"message": {"content": "up"}}]})
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            await stream.send(head % len(body) + body)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, reset_or_answer)
        async with model_at(Server(f"http://127.0.0.1:{port}")) as model:
            run = await AgentHarness(model=model, sleep=sleep).invoke(None, "go")
        tasks.cancel_scope.cancel()
    assert (run.text, left) == ("up", 0)
    assert 0 < sleep.delays[0] < sleep.delays[1]


async def test_a_read_that_times_out_is_tried_again_after_growing_waits() -> None:
    # C38
    sleep = FakeSleep()
    silent = Reply(pieces=(b"{",), then="hang")
    script = in_turn(silent, silent, whole({"content": "up"}))
    async with (
        serve(script) as server,
        httpx.AsyncClient(timeout=httpx.Timeout(5, read=0.1)) as own,
    ):
        agent = AgentHarness(model=model_at(server, http_client=own), sleep=sleep)
        run = await agent.invoke(None, "go")
    assert (run.text, len(server.requests)) == ("up", 3)
    assert 0 < sleep.delays[0] < sleep.delays[1]


async def test_an_error_in_the_code_is_never_retried() -> None:
    # C38
    sleep = FakeSleep()
    model = ScriptedModel([fail(ValueError("bad"))])
    with pytest.raises(ValueError, match="bad"):
        await AgentHarness(model=model, sleep=sleep).invoke(None, "go")
    assert (model.calls, sleep.delays) == (1, [])


@pytest.mark.parametrize("failure", [ConnectionResetError, TimeoutError, ServerError])
async def test_a_tool_without_the_mark_runs_once_whatever_it_raises(
    failure: type[Exception],
) -> None:
    # C38
    ran: list[int] = []

    async def pay(ctx: ToolContext[None]) -> str:
        """Pay."""
        ran.append(ctx.attempt)
        raise failure("reset")

    with pytest.raises(ConfigurationError, match="idempotent"):
        tool(pay, retries=3)
    sleep = FakeSleep()
    model = ScriptedModel([call("pay"), say("sorry")])
    run = await AgentHarness(model=model, tools=[pay], sleep=sleep).invoke(None, "go")
    assert (ran, sleep.delays, run.text) == ([1], [], "sorry")


def test_the_replies_of_the_cases_are_what_they_say() -> None:
    seen = Seen(path="/", headers={}, body=b"{}")
    script = in_turn(refusal(400), whole({"content": "x"}))
    assert [script(seen).status for _ in range(3)] == [400, 200, 200]
