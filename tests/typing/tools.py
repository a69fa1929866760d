"""What a user's type checker infers of tools: checked by mypy and pyright, never run."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

from pydantic import BaseModel, Field

from tinyagents.harness.tool import (
    FunctionTool,
    Injected,
    Tool,
    ToolContext,
    ToolError,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
    tool,
)


@dataclass
class Deps:
    token: str


class Booking(BaseModel):
    room: int


def token_of(ctx: ToolContext[Deps]) -> str:
    return ctx.data.token


@tool
async def get_weather(
    city: Annotated[str, Field(description="In English")], *, ctx: ToolContext[Deps]
) -> str:
    """Current weather for a city."""
    assert_type(ctx.data, Deps)
    if not city:
        raise ToolError("which city?")
    return f"{city} {ctx.data.token}"


@tool(timeout=5, retries=2, idempotent=True, policy=ToolPolicy.read_only())
async def search(query: str, token: Annotated[str, Injected(token_of)] = "") -> list[str]:
    return [query, token]


@tool(timeout=None, thread=False)
def double(n: int) -> int:
    return n * 2


class Shop:
    @tool
    async def buy(self, thing: str, count: int = 1) -> ToolResult:
        return ToolResult.text(f"{count} {thing}")

    @tool(exclusive=True)
    def close(self) -> None: ...


def plain(n: int) -> int:
    return n


async def book(booking: Booking, ctx: ToolContext[Deps]) -> str:
    return f"{booking.room} {ctx.call_id}"


async def handle(arguments: dict[str, Any]) -> str:
    return str(arguments)


def run_async(made: FunctionTool[..., Coroutine[Any, Any, object]]) -> None: ...


async def use(ctx: ToolContext[Deps], shop: Shop) -> None:
    assert_type(await get_weather("Paris", ctx=ctx), str)
    assert_type(await search("tea"), list[str])
    assert_type(double(2), int)
    assert_type(await shop.buy("tea", count=2), ToolResult)
    assert_type(await Shop.buy(shop, "tea"), ToolResult)
    assert_type(shop.close(), None)
    assert_type(tool(plain, name="other", timeout=3)(2), int)

    run_async(get_weather)
    run_async(double)  # type: ignore[arg-type]

    await get_weather("Paris")  # type: ignore[call-arg]
    await search(5)  # type: ignore[arg-type]
    await shop.buy()  # type: ignore[call-arg]

    registry = ToolRegistry([get_weather, search, double, shop.buy, shop.close, plain])
    assert_type(registry.get("double"), Tool)
    assert_type(registry.find("double"), Tool | None)
    assert_type(list(registry), list[Tool])

    Tool.from_model(Booking, book)
    Tool.from_model(Booking, plain)  # type: ignore[misc]
    Tool.from_schema(handle, name="handle", parameters={"type": "object"})
    Tool.from_schema(name="handle", description="Handle.", parameters={}, handler=handle)
    tool(timeout="soon")  # type: ignore[call-overload]
    Injected("stat")  # type: ignore[arg-type]

    bound = double.validate({"n": 2})
    assert_type(bound.arguments, dict[str, Any])
    assert_type(await double.execute(bound, ctx, timeout=3), ToolResult)
