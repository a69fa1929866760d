"""What can be made a tool, and what a decorated function still is."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from tinyagents.harness.errors import ConfigurationError, ToolSchemaError
from tinyagents.harness.tool import (
    Tool,
    ToolDisplay,
    ToolPolicy,
    ToolRuntime,
    ToolSideEffects,
    as_tool,
    tool,
)

from .calls import context, execute, text_of

T = TypeVar("T")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Shop:
    """Sells things."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    async def buy(self, thing: str) -> str:
        """Buy a thing.

        Args:
            thing: What to buy.
        """
        return f"{thing} from {self.name}"

    @tool(name="ask")
    def question(self, thing: str) -> str:
        return f"{thing}? asks {self.name}"

    @staticmethod
    @tool
    def tax(price: int) -> int:
        return price // 5

    @tool
    @staticmethod
    def discount(price: int) -> int:
        return price // 10

    @classmethod
    @tool
    def kind(cls, suffix: str) -> str:
        return cls.__name__ + suffix

    @tool
    @classmethod
    def sort(cls, suffix: str) -> str:
        return cls.__name__ + suffix

    def plain(self, thing: str) -> str:
        return f"{thing} at {self.name}"


class Greeter:
    """Greets people."""

    async def __call__(self, name: str) -> str:
        return f"hello {name}"


async def test_a_decorated_function_is_still_the_function() -> None:
    assert await add(1, b=2) == 3
    assert [getattr(add, name) for name in ("__name__", "__doc__")] == ["add", "Add two numbers."]
    assert str(inspect.signature(add)) == "(a: int, b: int) -> int"
    assert repr(add) == "<FunctionTool add>"


async def test_a_plain_function_becomes_a_tool() -> None:
    @tool
    def double(n: int) -> int:
        return n * 2

    assert double(4) == 8
    assert await text_of(double, n=4) == "8"


async def test_a_method_is_bound_where_it_is_taken_from() -> None:
    north, south = Shop("north"), Shop("south")
    assert await north.buy("tea") == "tea from north"
    assert await text_of(north.buy, thing="tea") == "tea from north"
    assert await text_of(south.buy, thing="tea") == "tea from south"
    assert await text_of(south.question, thing="tea") == "tea? asks south"
    assert north.buy.schema is south.buy.schema
    assert list(north.buy.schema.parameters["properties"]) == ["thing"]  # type: ignore[arg-type]


async def test_a_method_without_its_instance_is_refused() -> None:
    assert await Shop.buy(Shop("west"), "tea") == "tea from west"
    with pytest.raises(ToolSchemaError, match=r"`thing\.buy`|thing.buy"):
        as_tool(Shop.buy)
    with pytest.raises(ToolSchemaError, match="method without its instance"):
        await execute(Shop.buy, {"thing": "tea"})


@pytest.mark.parametrize(
    ("made", "result"),
    [
        (as_tool(Shop.tax), "2"),
        (as_tool(Shop("a").tax), "2"),
        (as_tool(Shop.discount), "1"),
        (as_tool(Shop("a").discount), "1"),
    ],
)
async def test_a_static_method_needs_no_instance(made: Tool, result: str) -> None:
    assert await text_of(made, price=10) == result


@pytest.mark.parametrize(
    "made", [as_tool(Shop.kind), as_tool(Shop("a").kind), Shop.sort, Shop("a").sort]
)
async def test_a_class_method_is_bound_to_its_class(made: Tool) -> None:
    assert await text_of(made, suffix="!") == "Shop!"


async def test_a_bound_method_of_any_class_becomes_a_tool() -> None:
    made = tool(Shop("east").plain, name="buy", timeout=3)
    assert (made.name, made.timeout) == ("buy", 3)
    assert await text_of(made, thing="tea") == "tea at east"


async def test_an_object_that_can_be_called_becomes_a_tool() -> None:
    made = tool(Greeter())
    assert (made.name, made.description) == ("Greeter", "Greets people.")
    assert await text_of(made, name="Ada") == "hello Ada"


async def test_a_partial_hides_what_it_fills() -> None:
    def scale(n: int, factor: int) -> int:
        """Scale."""
        return n * factor

    made = tool(functools.partial(scale, factor=3))
    assert (made.name, made.description) == ("scale", "Scale.")
    assert list(made.schema.parameters["properties"]) == ["n"]  # type: ignore[arg-type]
    assert await text_of(made, n=2) == "6"


async def test_a_wrapper_is_looked_through() -> None:
    def logged(function: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Awaitable[T]:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @logged
    async def f(n: int) -> int:
        """Do it."""
        return n + 1

    assert (f.name, f.description) == ("f", "Do it.")
    assert await text_of(f, n=1) == "2"


async def test_positional_only_parameters_are_passed_by_position() -> None:
    @tool
    def f(a: int, b: int = 10, /, c: int = 0) -> int:
        return a * 100 + b + c

    assert await text_of(f, a=1) == "110"
    assert await text_of(f, b=2, a=1, c=3) == "105"


def test_a_class_is_refused() -> None:
    with pytest.raises(ToolSchemaError, match="`Shop` is a class"):
        tool(Shop)


def test_a_tool_is_not_made_a_tool_again() -> None:
    assert as_tool(add) is add
    with pytest.raises(ToolSchemaError, match="`add` is a tool already"):
        tool(add)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ToolSchemaError, match="got `int`"):
        tool(3)  # type: ignore[call-overload]


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ConfigurationError, match="needs a name"):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).name == "one"


@pytest.mark.parametrize("name", ["files.read/v2", "a.b", "a_b", "\u00fcber maps", "n" * 90])
def test_a_name_of_ones_own_is_kept(name: str) -> None:
    assert tool(name=name)(lambda: 1).name == name


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0b", "a\x7fb", "a\ud83d"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        replace(add, schema=replace(add.schema, name=name))


def test_settings_fill_the_policy() -> None:
    @tool(timeout=2.5, retries=3, idempotent=True, exclusive=True, max_result_chars=100)
    def f() -> None: ...

    assert f.policy == ToolPolicy(
        runtime=ToolRuntime(
            timeout=2.5, max_retries=3, idempotent=True, exclusive=True, max_result_chars=100
        )
    )
    settings = (f.timeout, f.retries, f.idempotent, f.exclusive, f.max_result_chars)
    assert settings == (2.5, 3, True, True, 100)


def test_settings_are_put_over_those_of_a_policy() -> None:
    policy = ToolPolicy(
        side_effects=ToolSideEffects(network=True), runtime=ToolRuntime(timeout=9, idempotent=True)
    )

    @tool(policy=policy, timeout=None)
    def f() -> None: ...

    assert f.policy == ToolPolicy(
        side_effects=ToolSideEffects(network=True),
        runtime=ToolRuntime(timeout=None, idempotent=True),
    )


def test_the_defaults_leave_a_tool_unclassified() -> None:
    @tool
    def f() -> None: ...

    assert f.policy == ToolPolicy()
    assert (f.timeout, f.retries, f.idempotent, f.exclusive, f.max_result_chars) == (
        "inherit", 0, False, False, None,
    )  # fmt: skip
    assert (f.tags, f.metadata, f.schema.strict) == (frozenset(), {}, None)


def test_tags_metadata_and_strict_are_kept() -> None:
    @tool(
        tags=["files"],
        metadata={"owner": "ops"},
        strict=True,
        policy=ToolPolicy(display=ToolDisplay(label="Read")),
    )
    def f() -> None: ...

    assert f.tags == {"files"}
    assert f.metadata == {"owner": "ops"}
    assert f.schema.strict is True
    assert f.policy.display.label == "Read"
    assert not f.policy.classified


def test_retries_need_a_tool_that_may_be_repeated() -> None:
    with pytest.raises(ConfigurationError, match="idempotent=True"):
        tool(retries=2)(lambda: 1)
    with pytest.raises(ConfigurationError, match="idempotent=True"):
        tool(name="f", retries=2)(lambda: 1)


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"timeout": 0}, "timeout"), ({"retries": -1}, "retries"), ({"max_result_chars": 0}, "max_")],
)
def test_a_setting_that_cannot_work_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        tool(name="f", **settings)(lambda: 1)


async def test_a_changed_copy_is_a_tool_of_its_own() -> None:
    renamed = replace(add, schema=replace(add.schema, name="plus"))
    assert (renamed.name, add.name) == ("plus", "add")
    assert await text_of(renamed, a=1, b=2) == "3"


async def test_a_schema_of_ones_own_replaces_the_annotations() -> None:
    schema = {"properties": {"q": {"type": "string", "minLength": 2}, "n": {"type": "integer"}}}

    @tool(parameters=schema)
    async def search(q: str = "all", **more: int) -> str:
        return f"{q} {more}"

    assert search.schema.parameters == {"type": "object", **schema}
    assert await text_of(search, q="tea", n=3) == "tea {'n': 3}"


def test_a_schema_of_ones_own_must_fit_the_function() -> None:
    schema = {"properties": {"q": {"type": "string"}}}

    def f(query: str) -> None: ...

    def g(q: str, n: int) -> None: ...

    def h(q: str, /) -> None: ...

    with pytest.raises(ToolSchemaError, match="`f` has no parameter `q`"):
        tool(parameters=schema)(f)
    with pytest.raises(ToolSchemaError, match="lacks its parameter `n`"):
        tool(parameters=schema)(g)
    with pytest.raises(ToolSchemaError, match="`q` of `h` can only be passed by position"):
        tool(parameters=schema)(h)


async def test_a_tool_is_immutable() -> None:
    with pytest.raises(AttributeError):
        add.tags = frozenset({"x"})  # type: ignore[misc]
    assert await execute(add, {"a": 1, "b": 1}, context()) == await execute(add, {"a": 1, "b": 1})
