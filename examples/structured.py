"""Typed answers: a class, a choice, one of several types, a function; and what is asked for again."""

from dataclasses import dataclass
from typing import Literal

import anyio
from pydantic import BaseModel, Field

from tinyagents import AgentHarness, AgentRun, PartialOutput, ToolError, ToolOutput
from tinyagents.harness.errors import OutputTruncatedError, StructuredOutputError
from tinyagents.testkit import ScriptedModel, call, say, say_json


class Forecast(BaseModel):
    """The weather of one day."""

    city: str
    celsius: float = Field(description="degrees at noon")
    rain: bool


@dataclass
class Question:
    """What the user must answer first."""

    text: str


async def book(city: str, nights: int) -> str:
    """Book a hotel."""
    if nights > 30:
        raise ToolError("at most 30 nights can be booked at once")
    return f"booked {nights} nights in {city}"


async def main() -> None:
    # The first answer has no number for the degrees: the model is told so and tries again.
    model = ScriptedModel(
        [
            say('{"city": "Oslo", "celsius": "cold", "rain": true}'),
            say_json(Forecast(city="Oslo", celsius=7.5, rain=True)),
        ]
    )
    agent = AgentHarness(model=model)
    run = await agent.invoke(None, "Weather in Oslo?", output=Forecast)
    print(f"{run.output!r}, after {run.model_calls} model calls")

    # What is no object is wrapped for the model as {"value": …}, and taken out again.
    agent = AgentHarness(model=ScriptedModel([say_json({"value": "umbrella"})]))
    choice: AgentRun[None, Literal["umbrella", "sunglasses"]] = await agent.invoke(
        None, "What do I take along?", output=Literal["umbrella", "sunglasses"]
    )
    print(choice.output)

    # Of several types the model chooses one, here by the tool that it calls.
    agent = AgentHarness(model=ScriptedModel([call("Question", text="Which Paris?")]))
    wanted: ToolOutput[Forecast | Question] = ToolOutput([Forecast, Question])
    either = await agent.invoke(None, "Weather in Paris?", output=wanted)
    print(either.output)

    # A function gets the answer as its arguments; it may say what is wrong with them.
    steps = [say_json({"city": "Oslo", "nights": 90}), say_json({"city": "Oslo", "nights": 30})]
    agent = AgentHarness(model=ScriptedModel(steps))
    booked = await agent.invoke(None, "Book Oslo for a season.", output=book)
    print(booked.output)

    # The answer can be shown while it is written.
    agent = AgentHarness(model=ScriptedModel([say_json({"value": ["Rome", "Lisbon", "Seville"]})]))
    async with agent.stream(None, "Where is it warm?", output=list[str], modes="output") as stream:
        async for chunk in stream:
            if isinstance(chunk, PartialOutput):
                print(chunk.value)

    # A model that never gets it right ends in an error that says what is wrong, with the run so far.
    agent = AgentHarness(model=ScriptedModel([say("Nice weather!")] * 3))
    try:
        await agent.invoke(None, "Weather in Oslo?", output=Forecast)
    except StructuredOutputError as error:
        calls = error.run.model_calls if error.run is not None else 0
        print(f"{error.kind} after {calls} model calls: {error.errors}")

    # An answer that was cut is never taken for one, even where it parses.
    cut = say('{"city": "Oslo", "celsius": 7, "rain": true}', finish_reason="length")
    try:
        await AgentHarness(model=ScriptedModel([cut])).invoke(None, "Oslo?", output=Forecast)
    except OutputTruncatedError as error:
        print(f"{error.kind}: {error.text}")


if __name__ == "__main__":
    anyio.run(main)
