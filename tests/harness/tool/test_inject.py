"""Parameters that the application fills."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from typing_extensions import TypeAliasType

from tinyagents.harness.context import RunContext
from tinyagents.harness.errors import ConfigurationError, ToolSchemaError
from tinyagents.harness.tool import Injected, Tool, ToolContext, tool

from .calls import context, execute, only_text


@dataclass
class Deps:
    token: str


class Connection:
    """Nothing that JSON has a form for."""

    def __init__(self, token: str) -> None:
        self.token = token


def connect(ctx: ToolContext[Deps]) -> Connection:
    return Connection(ctx.data.token)


@tool
async def search(
    query: str,
    ctx: ToolContext[Deps],
    run: RunContext[Deps],
    deps: Annotated[Deps, Injected("data")],
    seen: Annotated[list[str], Injected("state")],
    connection: Annotated[Connection, Injected(connect)],
    tenant: Annotated[str, Injected(configurable="tenant")],
    region: Annotated[str, Injected(configurable="region")] = "eu",
) -> list[str]:
    """Search.

    Args:
        query: What for.
        tenant: Never shown.
    """
    seen.append(query)
    return [query, ctx.call_id, run.run_id, deps.token, connection.token, tenant, region]


def shown(made: Tool) -> list[str]:
    return list(made.schema.parameters["properties"])  # type: ignore[arg-type]


async def test_injected_parameters_are_filled_for_each_call() -> None:
    seen: list[str] = []
    ctx = context(data=Deps("t0"), state=seen, configurable={"tenant": "acme"})
    result = await execute(search, {"query": "tea"}, ctx)
    assert only_text(result.content) == '["tea","k1","run-1","t0","t0","acme","eu"]'
    assert seen == ["tea"]


def test_models_never_see_injected_parameters() -> None:
    assert shown(search) == ["query"]
    assert search.schema.parameters["required"] == ["query"]
    assert search.injected == {
        "ctx", "run", "deps", "seen", "connection", "tenant", "region",
    }  # fmt: skip


def test_the_declared_parameters_keep_those_that_json_has_a_form_for() -> None:
    declared: Any = search.declared_parameters["properties"]
    assert list(declared) == ["query", "deps", "seen", "tenant", "region"]
    assert declared["deps"]["properties"] == {"token": {"type": "string"}}
    assert shown(search) == ["query"]


async def test_what_a_model_supplies_for_an_injected_parameter_is_dropped() -> None:
    bound = search.validate({"query": "tea", "tenant": "evil", "ctx": {}})
    assert bound.arguments == {"query": "tea"}
    assert bound.dropped == ("tenant", "ctx")
    ctx = context(data=Deps("t0"), state=[], configurable={"tenant": "acme"})
    assert "acme" in only_text((await search.execute(bound, ctx)).content)


def test_nothing_is_dropped_from_a_call_that_supplies_nothing() -> None:
    assert search.validate({"query": "tea"}).dropped == ()


async def test_the_same_call_can_be_made_in_a_test_without_any_run() -> None:
    ctx: ToolContext[Deps] = context()
    found = await search("tea", ctx, ctx.run, Deps("t1"), [], Connection("t2"), "acme")
    assert found == ["tea", "k1", "run-1", "t1", "t2", "acme", "eu"]


async def test_a_missing_configurable_value_is_named() -> None:
    ctx = context(data=Deps("t0"), state=[])
    with pytest.raises(ConfigurationError, match="`a_tool` needs `tenant`"):
        await execute(search, {"query": "tea"}, ctx)


async def test_a_plain_tool_gets_its_context_too() -> None:
    @tool
    def f(ctx: ToolContext[Deps], /) -> str:
        return ctx.data.token

    assert only_text((await execute(f, ctx=context(data=Deps("t0")))).content) == "t0"


async def test_a_context_that_may_be_missing_is_filled() -> None:
    @tool
    async def f(ctx: ToolContext[Any] | None = None) -> bool:
        return ctx is not None

    assert await f() is False
    assert only_text((await execute(f)).content) == "true"


Ctx = TypeAliasType("Ctx", ToolContext[Deps])


async def test_a_context_can_go_by_another_name() -> None:
    @tool
    async def f(ctx: Ctx) -> str:
        return ctx.call_id

    assert shown(f) == []
    assert only_text((await execute(f)).content) == "k1"


@pytest.mark.parametrize("mark", [lambda: Injected(), lambda: Injected("data", configurable="a")])
def test_a_mark_needs_exactly_one_source(mark: Any) -> None:
    with pytest.raises(ConfigurationError, match="either a source"):
        mark()


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'stat'"):
        Injected("stat")  # type: ignore[arg-type]


def test_a_mark_without_its_source_is_refused_with_the_parameters_name() -> None:
    def f(session: Annotated[str, Injected]) -> None: ...

    with pytest.raises(ToolSchemaError, match="`session` of `f`"):
        tool(f)
