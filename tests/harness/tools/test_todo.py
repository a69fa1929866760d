"""The list of steps that a model keeps."""

from typing import Any, get_args

import pytest

from tests.harness.tools.runs import result_of, results, run_calls
from tinyagents import AgentHarness, RunConfig
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.tools import InMemoryTodoStore, Todo, TodoStatus, todo_tools
from tinyagents.testkit import ScriptedModel, call, say

PLAN = [
    {"content": "look", "status": "completed"},
    {"content": "think\n  hard", "status": "in_progress"},
    {"content": "act"},
]


async def test_a_list_is_kept_shown_and_read_again() -> None:
    run = await run_calls(
        todo_tools(), ("read_todos", {}), ("write_todos", {"todos": PLAN}), ("read_todos", {})
    )
    empty, written, read = results(run)
    assert empty.text == "The list is empty."
    assert written.text == "1 of 3 done:\n1. [x] look\n2. [>] think hard\n3. [ ] act"
    assert read.text == written.text
    assert written.artifact == [
        {"content": "look", "status": "completed"},
        {"content": "think hard", "status": "in_progress"},
        {"content": "act", "status": "pending"},
    ]


@pytest.mark.parametrize(
    "todos",
    [
        [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}],
        [{"content": "a"}, {"content": " a "}],
        [{"content": ""}],
        [{"content": " \n "}],
        [{"content": "a" * 501}],
        [{"content": "a", "status": "approved"}],
        [{"content": "a", "owner": "me"}],
        [{"content": str(n)} for n in range(51)],
        "a",
    ],
)
async def test_a_list_that_cannot_be_changes_nothing(todos: Any) -> None:
    good = {"todos": [{"content": "first"}]}
    calls: list[tuple[str, dict[str, Any]]]
    calls = [("write_todos", good), ("write_todos", {"todos": todos}), ("read_todos", {})]
    _, refused, kept = results(await run_calls(todo_tools(), *calls))
    assert refused.is_error
    assert kept.text == "0 of 1 done:\n1. [ ] first"


def test_no_status_says_that_somebody_agreed() -> None:
    assert set(get_args(TodoStatus)) == {"pending", "in_progress", "completed", "cancelled"}


async def test_runs_share_a_list_only_within_a_thread() -> None:
    tools = todo_tools()

    async def read(config: RunConfig | None) -> str:
        run = await run_calls(tools, ("read_todos", {}), config=config)
        return results(run)[-1].text

    write = ("write_todos", {"todos": [{"content": "mine"}]})
    await run_calls(tools, write, config=RunConfig(thread_id="t1"))
    await run_calls(tools, write, config=RunConfig(run_id="t2"))
    assert "mine" in await read(RunConfig(thread_id="t1"))
    for other in (None, RunConfig(thread_id="t2"), RunConfig(run_id="t1"), RunConfig(run_id="r3")):
        assert await read(other) == "The list is empty."


async def test_an_application_brings_its_own_store() -> None:
    store = InMemoryTodoStore()
    await store.save("thread:t1", [Todo(content="from before")])
    tools = todo_tools(store=store)
    model = ScriptedModel([call("read_todos"), say("ok")])
    run = await AgentHarness(model=model, tools=tools).invoke(
        None, "go", config=RunConfig(thread_id="t1")
    )
    assert "from before" in results(run)[0].text
    await result_of(tools, "write_todos", todos=PLAN)
    assert await store.load("thread:t1") == (Todo(content="from before"),)


async def test_memory_keeps_the_lists_that_were_used_last() -> None:
    store = InMemoryTodoStore(max_lists=2)
    for key in ("a", "b"):
        await store.save(key, [Todo(content=key)])
    await store.load("a")
    await store.save("c", [Todo(content="c")])
    assert [bool(await store.load(key)) for key in ("a", "b", "c")] == [True, False, True]
    with pytest.raises(ConfigurationError):
        InMemoryTodoStore(max_lists=0)
