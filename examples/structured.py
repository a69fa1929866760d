"""Typed answers: a class, a choice, a list; an answer that does not fit is asked for again."""

from typing import Literal

from pydantic import BaseModel, Field

from tinyagents import AgentHarness, AgentRun
from tinyagents.harness.errors import StructuredOutputError
from tinyagents.testkit import ScriptedModel, say, say_json


class Forecast(BaseModel):
    """The weather of one day."""

    city: str
    celsius: float = Field(description="degrees at noon")
    rain: bool


def main() -> None:
    # The first answer has no number for the degrees: the model is told so and tries again.
    model = ScriptedModel(
        [
            say('{"city": "Oslo", "celsius": "cold", "rain": true}'),
            say_json(Forecast(city="Oslo", celsius=7.5, rain=True)),
        ]
    )
    agent = AgentHarness(model=model)
    run = agent.invoke_sync(None, "Weather in Oslo?", output=Forecast)
    print(f"{run.output!r}, after {run.model_calls} model calls")

    # What is no object is wrapped for the model as {"value": …}, and taken out again.
    agent = AgentHarness(model=ScriptedModel([say_json({"value": "umbrella"})]))
    choice: AgentRun[None, Literal["umbrella", "sunglasses"]] = agent.invoke_sync(
        None, "What do I take along?", output=Literal["umbrella", "sunglasses"]
    )
    print(choice.output)

    agent = AgentHarness(model=ScriptedModel([say_json({"value": ["Rome", "Lisbon"]})]))
    cities = agent.invoke_sync(None, "Where is it warm?", output=list[str])
    print(", ".join(cities.output))

    # A model that never gets it right ends in an error that says what is wrong, with the run so far.
    agent = AgentHarness(model=ScriptedModel([say("Nice weather!")] * 3))
    try:
        agent.invoke_sync(None, "Weather in Oslo?", output=Forecast)
    except StructuredOutputError as error:
        calls = error.run.model_calls if error.run is not None else 0
        print(f"{error.kind} after {calls} model calls: {error.errors}")


if __name__ == "__main__":
    main()
