"""Tools in a run on a real wire: what they return, what they are called, and how they block."""

import re
import sys
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import anyio
import orjson
import pytest
from pydantic import BaseModel

from tinyagents import AgentHarness, RunConfig, tool
from tinyagents.testkit import ScriptedModel, assert_event_grammar, call, say

from .wire import END, END_CALLS, agent_on, fragment, kinds, results, streamed, text, whole

# What tools return


@dataclass
class Sighting:
    at: datetime
    note: str | None = None


class City(BaseModel):
    name: str


class Color(Enum):
    RED = "red"


RETURNED: list[tuple[Any, str | None]] = [
    (None, "null"),
    (Sighting(datetime(2026, 1, 2, 12, tzinfo=UTC)), '{"at":"2026-01-02T12:00:00Z","note":null}'),
    (City(name="Oslo"), '{"name":"Oslo"}'),
    (Color.RED, "red"),
    ([City(name="Oslo"), City(name="Bergen")], '[{"name":"Oslo"},{"name":"Bergen"}]'),
    (Decimal("1.50"), "1.50"),
    (float("nan"), "null"),
    (b"\xff\x00", None),
]


@pytest.mark.parametrize("value", RETURNED, ids=lambda pair: type(pair[0]).__name__)
async def test_what_a_tool_returns_is_sent_as_strict_json_and_never_as_a_repr(
    value: tuple[Any, str | None],
) -> None:
    # C20
    returned, expected = value

    @tool
    async def give() -> Any:
        """Give."""
        return returned

    function = {"name": "give", "arguments": "{}"}
    asked = {"tool_calls": [{"id": "k1", "type": "function", "function": function}]}
    replies = whole(asked, "tool_calls"), whole({"content": "ok"})
    async with agent_on(*replies, tools=[give]) as (agent, server):
        run = await agent.invoke(None, "go")
        body = server.requests[1].body
    assert run.status == "completed"
    sent = orjson.loads(body)["messages"][2:]  # orjson takes strict JSON only
    assert sent[0]["role"] == "tool"
    if expected is not None:
        assert sent[0]["content"] == expected
        return
    # Bytes have no form as text: they follow as a document.
    assert sent[0]["content"]
    (document,) = (part for part in sent[1]["content"] if part["type"] == "file")
    assert document["file"]["file_data"] == "data:application/octet-stream;base64,/wA="


# What they are called

NAMES = ["files.read/v2", "a.b", "a_b", "n" * 90]


def read_names() -> list[Any]:
    def named(name: str) -> Any:
        async def run() -> str:
            """Run."""
            return name

        return tool(run, name=name, description=name)

    return [named(name) for name in NAMES]


async def test_tool_names_are_safe_on_the_wire_and_the_applications_own_elsewhere() -> None:
    # C25
    async with agent_on(whole({"content": "ok"}), tools=read_names()) as (agent, server):
        await agent.invoke(None, "go")
        offered = [offer["function"] for offer in server.requests[0].document["tools"]]
    sent = {function["description"]: function["name"] for function in offered}
    assert sent.keys() == set(NAMES)
    assert len(set(sent.values())) == len(NAMES)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in sent.values())

    script = (
        "import json; from tinyagents.harness.tool import wire_names\n"
        f"print(json.dumps(wire_names({NAMES!r})))"
    )
    elsewhere = await anyio.run_process([sys.executable, "-c", script])
    assert orjson.loads(elsewhere.stdout) == sent

    for name, wired in sent.items():
        replies = (
            streamed(fragment("{}", id="k1", name=wired), END_CALLS),
            streamed(text("ok"), END),
        )
        async with agent_on(*replies, tools=read_names()) as (agent, server):
            run = await agent.stream(None, "go").result()
            replayed = server.requests[1].document["messages"][1]["tool_calls"][0]
        assert [(result.text, result.name) for result in results(run)] == [(name, name)]
        assert {e.tool_name for e in run.events if e.kind.startswith("tool.")} == {name}  # type: ignore[attr-defined]
        assert replayed["function"]["name"] == wired


# How they block

who: ContextVar[str] = ContextVar("who")


async def test_blocking_tools_of_runs_at_once_time_out_and_never_stall_the_loop() -> None:
    # C26. A machine that is busy with other things gets another chance.
    for _ in range(5):
        gap, longest = await _five_runs()
        if gap < 0.06 and longest < 0.25:
            return
        print(f"the loop stood still for {gap:.3f} s; a call took {longest:.3f} s")
    pytest.fail("the event loop was blocked, or a call was not cut at its deadline")


async def _five_runs() -> tuple[float, float]:
    """Return the longest gap of a ticker, and how long the slowest tool call took."""
    seen: list[str] = []
    gaps: list[float] = []
    took: list[float] = []
    all_late = threading.Event()

    @tool(timeout=0.1)
    def slow() -> str:
        """Block."""
        time.sleep(0.3)
        seen.append(who.get())
        if len(seen) == 5:
            all_late.set()
        return "too late"

    async def run(name: str) -> None:
        who.set(name)
        model = ScriptedModel([call("slow"), say("ok")])
        harness = AgentHarness(model=model, tools=[slow])
        finished = await harness.invoke(None, "go", config=RunConfig(run_id=name))
        before = finished.snapshot.model_dump_json(), kinds(finished)
        (result,) = results(finished)
        assert result.is_error
        assert "100 ms" in result.text
        (ended,) = (e for e in finished.events if e.kind == "tool.completed")
        took.append(ended.duration_ms / 1000)  # type: ignore[attr-defined]
        await anyio.to_thread.run_sync(all_late.wait, 30)
        await anyio.wait_all_tasks_blocked()
        assert (finished.snapshot.model_dump_json(), kinds(finished)) == before
        assert_event_grammar(finished.events)

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await anyio.sleep(0.01)
            gaps.append((now := time.monotonic()) - last)
            last = now

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        async with anyio.create_task_group() as runs:
            for name in "abcde":
                runs.start_soon(run, name)
        tasks.cancel_scope.cancel()
    assert sorted(seen) == list("abcde")
    assert min(took) >= 0.09
    return max(gaps), max(took)
