"""Streams that are cut oddly, fail or fall silent, and what is asked again."""

import dataclasses
import socket
import time
from collections.abc import AsyncIterator, Callable

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
from tinyagents.harness.events import RetryScheduled, UsageRecorded
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import ModelRequest, ModelStreamItem, StreamCompleted
from tinyagents.harness.policy import PayloadCapture
from tinyagents.harness.providers import Timeouts
from tinyagents.harness.retry import FallbackPolicy
from tinyagents.harness.usage import Usage
from tinyagents.testkit import (
    DeterministicClock,
    FakeSleep,
    ScriptedModel,
    assert_event_grammar,
    call,
    fail,
    say,
)

from .dialects import CHAT, OLLAMA, Called, Counted, Dialect, Said, every_dialect
from .wire import agent_on, in_turn, is_valid, kinds, model_at, text, whole

# Split anywhere


WORDS = "na\u00efve \U0001f642"
SPENT = Counted(fresh=5, output=3)
SAID = Said(
    text=WORDS, calls=(Called(id="k1", name="look", arguments=f'{{"at":"{WORDS}"}}'),), usage=SPENT
)


def odd_bytes(dialect: Dialect) -> bytes:
    """A comment, CRLF line ends, an event of two data lines, and text beyond ASCII.

    A stream of JSON lines has no comments and no second line, but blank lines and CRLF.
    """
    first, second, third, *others = map(dialect.frame, dialect.events(SAID))
    if dialect is OLLAMA:
        return b"\n".join([b"", first, second.replace(b"\n", b"\r\n"), third, *others])
    crlf = first.replace(b"\n", b"\r\n")
    two_lines = second.replace(b",", b"\ndata: ,", 1)
    # Both at once: a line end that is cut in two is one line end all the same.
    both = third.replace(b",", b"\ndata: ,", 1).replace(b"\n", b"\r\n")
    return b"".join((b": ping\n\n", crlf, two_lines, both, *others, dialect.end))


@every_dialect
async def test_a_stream_split_at_any_byte_gives_the_same_events(dialect: Dialect) -> None:
    # C34
    data = odd_bytes(dialect)
    ways = [(data,), single_bytes(data), *((data[:at], data[at:]) for at in range(1, len(data)))]
    left = iter(ways)

    async def pieces() -> AsyncIterator[bytes]:
        for piece in next(left):
            yield piece

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": dialect.kind}, content=pieces())

    request = ModelRequest(messages=[UserMessage(content="go")])
    seen: list[list[ModelStreamItem]] = []
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        model = dialect.model("http://model.example", http_client=client)
        for _ in ways:
            seen.append([item async for item in model.stream(request)])
    assert isinstance(last := seen[0][-1], StreamCompleted)
    assert last.response.text == WORDS
    assert [(c.id, c.arguments) for c in last.response.message.tool_calls] == [
        ("k1", {"at": WORDS})
    ]
    assert last.response.usage == Usage(input_tokens=5, output_tokens=3)
    for items, pieces_of_it in zip(seen, ways, strict=True):
        assert items == seen[0], pieces_of_it


@pytest.mark.parametrize("dialect", [CHAT, OLLAMA], ids=lambda dialect: dialect.name)
async def test_a_run_tells_the_same_however_its_stream_is_split(dialect: Dialect) -> None:
    # C34
    data = dialect.bytes_of(dialect.events(Said(text=WORDS, usage=SPENT)))
    ways = [(data,), single_bytes(data), *((data[:at], data[at:]) for at in range(1, len(data), 7))]
    headers = {"content-type": dialect.kind}
    script = in_turn(*(Reply(pieces=pieces, headers=headers) for pieces in ways))
    async with serve(script) as server, model_at(server, dialect) as model:
        policy = RunPolicy(capture=PayloadCapture.all())
        agent = AgentHarness(model=model, policy=policy, clock=DeterministicClock())
        expected: list[str] | None = None
        for pieces in ways:
            stream = agent.stream(None, "go", config=RunConfig(run_id="r"), modes={"events"})
            seen = [chunk.event.model_dump_json() async for chunk in stream]  # type: ignore[union-attr]
            assert (await stream.result()).text == WORDS
            expected = expected or seen
            assert seen == expected, pieces
        assert len(server.requests) == len(ways)


# Failures before the first delta


FAILURES: dict[str, Callable[[Dialect], Reply]] = {
    "429": lambda dialect: Reply.json(dialect.limited, status=429),
    "in-a-document": lambda dialect: Reply.json(dialect.overload),
    "in-a-stream": lambda dialect: dialect.streamed(dialect.overload_event),
    "in-a-stream-that-began": lambda dialect: dialect.streamed(
        dialect.events(Said())[0], dialect.overload_event
    ),
}
WAYS = [
    pytest.param(failure, stream, id=f"{failure}-{'streamed' if stream else 'plain'}")
    for failure in FAILURES
    for stream in (True, False)
    if stream or not failure.startswith("in-a-stream")
]


@every_dialect
@pytest.mark.parametrize(("failure", "stream"), WAYS)
async def test_a_model_that_fails_before_its_first_piece_is_followed_by_the_next(
    failure: str, stream: bool, dialect: Dialect
) -> None:
    # C35
    answer = dialect.answer(Said(text="blue", usage=Counted(fresh=5, output=1)), stream=stream)
    async with (
        serve(FAILURES[failure](dialect)) as first,
        serve(answer) as second,
        model_at(first, dialect) as one,
        model_at(second, dialect) as two,
    ):
        agent = AgentHarness(
            models={"one": one, "two": two},
            policy=RunPolicy(fallback=FallbackPolicy(models=("two",))),
            sleep=FakeSleep(),
        )
        run = await (agent.stream(None, "go").result() if stream else agent.invoke(None, "go"))
    assert run.text == "blue"
    assert kinds(run).count("model.fallback_selected") == 1
    recorded = [event for event in run.events if isinstance(event, UsageRecorded)]
    assert [event.model for event in recorded] == ["two"]
    assert (run.usage.input_tokens, run.usage.output_tokens) == (5, 1)
    retried = [event for event in run.events if isinstance(event, RetryScheduled)]
    assert {event.error_kind for event in retried} == {
        "rate_limit" if failure == "429" else "server"
    }
    assert (len(first.requests), len(second.requests)) == (4, 1)
    assert_event_grammar(run.events)


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
