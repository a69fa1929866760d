"""A function's signature as the schema on the wire, with postponed annotations."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import pytest

from tinyagents import RunContext, tool
from tinyagents.harness.errors import ToolSchemaError

from .wire import agent_on, whole


async def modern(
    ctx: RunContext[Any],
    a: int,
    b: str | None,
    c: Literal["x", "y"] = "x",
    d: Annotated[float, "metres"] = 1.0,
) -> None:
    """Do."""


async def older(
    ctx: RunContext[Any],
    a: int,
    b: Optional[str],  # noqa: UP045 - this is what is tested
    c: Literal["x", "y"] = "x",
    d: Annotated[float, "metres"] = 1.0,
) -> None:
    """Do."""


async def test_every_form_of_signature_is_the_same_schema_on_the_wire() -> None:
    # C22
    sent: list[dict[str, Any]] = []
    for function in (modern, older):
        async with agent_on(whole({"content": "ok"}), tools=[function]) as (agent, server):
            await agent.invoke(None, "go")
            sent.append(server.requests[0].document["tools"][0]["function"]["parameters"])
    schema = sent[0]
    assert sent[1] == schema
    assert list(schema["properties"]) == ["a", "b", "c", "d"]
    assert schema["required"] == ["a", "b"]
    assert {"type": "null"} in schema["properties"]["b"]["anyOf"]
    assert (schema["properties"]["c"]["enum"], schema["properties"]["c"]["default"]) == (
        ["x", "y"],
        "x",
    )
    assert schema["properties"]["d"]["description"] == "metres"


def test_a_keyword_bag_is_refused_by_its_name() -> None:
    # C23
    def g(x: int, **opts: Any) -> None:
        """Do."""

    with pytest.raises(ToolSchemaError, match=r"\*\*opts"):
        tool(g)
