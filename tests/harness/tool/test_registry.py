"""The tools of one harness, by name."""

import random
import re
from dataclasses import replace

import pytest

from tinyagents.harness.errors import DuplicateNameError, ToolNotFoundError, ToolSchemaError
from tinyagents.harness.tool import ToolPolicy, ToolRegistry, tool, wire_names

from .calls import text_of


@tool
async def zebra() -> str:
    return "z"


@tool(policy=ToolPolicy.read_only())
async def apple() -> str:
    return "a"


def mango(n: int) -> int:
    """A plain function."""
    return n


def test_names_and_schemas_are_sorted_and_made_once() -> None:
    registry = ToolRegistry([zebra, mango, apple])
    assert registry.names == ("apple", "mango", "zebra")
    assert [schema.name for schema in registry.schemas] == ["apple", "mango", "zebra"]
    assert registry.schemas is registry.schemas
    assert [made.name for made in registry] == ["apple", "mango", "zebra"]
    assert (len(registry), "mango" in registry, "kiwi" in registry) == (3, True, False)


async def test_a_plain_function_is_made_a_tool() -> None:
    registry = ToolRegistry([mango])
    assert registry.get("mango").description == "A plain function."
    assert await text_of(registry.get("mango"), n=7) == "7"


def test_a_function_that_cannot_be_described_is_refused() -> None:
    def bag(**opts: int) -> None: ...

    with pytest.raises(ToolSchemaError, match=r"\*\*opts"):
        ToolRegistry([bag])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(DuplicateNameError, match="`zebra`") as caught:
        ToolRegistry([zebra, apple, tool(name="zebra")(mango)])
    assert caught.value.name == "zebra"


def test_a_missing_tool_is_named_with_those_there_are() -> None:
    registry = ToolRegistry([zebra, apple])
    assert registry.find("kiwi") is None
    with pytest.raises(ToolNotFoundError, match="`kiwi`.*`apple`, `zebra`") as caught:
        registry.get("kiwi")
    assert (caught.value.name, caught.value.available) == ("kiwi", ("apple", "zebra"))
    with pytest.raises(ToolNotFoundError, match="none"):
        ToolRegistry().get("kiwi")


def test_a_changed_copy_leaves_the_registry_as_it_was() -> None:
    registry = ToolRegistry([zebra])
    other = replace(zebra, schema=replace(zebra.schema, description="another"))
    assert registry.with_tools(apple, other).names == ("apple", "zebra")
    assert registry.with_tools(other).get("zebra") is other
    assert registry.get("zebra") is zebra
    assert registry.with_tools(apple).without_tools("zebra", "kiwi").names == ("apple",)
    with pytest.raises(DuplicateNameError):
        registry.with_tools(apple, apple)


def test_a_registry_can_be_made_of_another() -> None:
    registry = ToolRegistry([zebra, apple])
    assert ToolRegistry([*registry, mango]).names == ("apple", "mango", "zebra")


def test_the_policies_can_be_listed() -> None:
    assert ToolRegistry([zebra, apple]).policies == {
        "zebra": ToolPolicy(),
        "apple": ToolPolicy.read_only(),
    }


def test_names_that_providers_refuse_are_kept_and_have_distinct_wire_names() -> None:
    names = ["files.read/v2", "a.b", "a_b", "n" * 90]
    registry = ToolRegistry(tool(name=name)(lambda: 1) for name in names)
    assert sorted(registry.names) == sorted(names)
    wire = wire_names(registry.names)
    assert set(wire) == set(names)
    assert len(set(wire.values())) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in wire.values())
    assert wire["a_b"] == "a_b"
    assert wire["a.b"] == "a_b_b5a5cc1c" or wire["a.b"].startswith("a_b_")
    random.shuffle(names)
    assert wire_names(names) == wire
