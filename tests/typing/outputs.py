"""What a user's type checker infers of typed answers: checked by mypy and pyright, never run."""

from dataclasses import dataclass
from typing import Any, assert_type

from pydantic import BaseModel

from tinyagents import (
    AgentHarness,
    AgentRun,
    AgentStream,
    NativeOutput,
    Output,
    PartialOutput,
    PromptedOutput,
    RunContext,
    ToolOutput,
)
from tinyagents.harness.model import ModelResponse
from tinyagents.harness.structured import StructuredExtractor, StructuredOutput


class City(BaseModel):
    name: str


@dataclass
class River:
    length: int


async def save(name: str, ctx: RunContext[str]) -> River:
    """An output function."""
    return River(len(name))


def count(name: str) -> int:
    """A plain one."""
    return len(name)


def upper(city: City) -> City:
    return City(name=city.name.upper())


harness = AgentHarness(model="openai:gpt-5-mini", output_validators=[upper])


async def wrapped() -> None:
    assert_type(await harness.invoke(None, "hi", output=NativeOutput(City)), AgentRun[None, City])
    by_tool = ToolOutput(City, name="city", description="A city.", validators=[upper])
    assert_type(by_tool, ToolOutput[City])
    assert_type((await harness.invoke(None, "hi", output=by_tool)).output, City)
    prompted = PromptedOutput(list[City], template="{schema}")
    assert_type((await harness.invoke(None, "hi", output=prompted)).output, list[City])
    assert_type((await harness.invoke(None, "hi", output=Output(City))).output, City)
    by_schema = ToolOutput[Any]({"type": "object"})
    assert_type((await harness.invoke(None, "hi", output=by_schema)).output, Any)


async def functions() -> None:
    assert_type((await harness.invoke(None, "hi", output=save)).output, River)
    assert_type((await harness.invoke(None, "hi", output=count)).output, int)
    assert_type(ToolOutput(save), ToolOutput[River])
    assert_type(NativeOutput(count), NativeOutput[int])
    assert_type(harness.stream(None, "hi", output=save), AgentStream[None, River])


async def unions() -> None:
    # A checker sees no type in `City | River` as a value: say it, or use a list.
    said: AgentRun[None, City | River] = await harness.invoke(None, "hi", output=City | River)
    assert_type(said.output, City | River)
    listed: AgentRun[None, City | River] = await harness.invoke(None, "hi", output=[City, River])
    assert_type(listed.output, City | River)
    either: Output[City | River] = Output([City, River])
    assert_type((await harness.invoke(None, "hi", output=either)).output, City | River)


async def partly() -> None:
    async for chunk in harness.stream(None, "hi", output=City, modes="output"):
        if isinstance(chunk, PartialOutput):
            assert_type(chunk.value, City | None)


def extracted(response: ModelResponse) -> None:
    found = StructuredExtractor(City).extract(response)
    assert_type(found, StructuredOutput[City])
    assert_type(found.as_value(), City)
    assert_type(found.parse(River), River)
