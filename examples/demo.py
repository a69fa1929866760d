"""A tour without a network: a run with a tool, its events, and a stream."""

import anyio

from tinyagents import AgentHarness, tool
from tinyagents.harness.stream import Final, TextDelta
from tinyagents.testkit import ScriptedModel, call, say


@tool
async def get_weather(city: str) -> str:
    """Current weather for a city.

    Args:
        city: City name, in English.
    """
    return f"{city}: sunny, 21 degrees"


def weather_agent() -> AgentHarness:
    """An agent whose model asks for one tool call, then answers."""
    model = ScriptedModel([call("get_weather", city="Paris"), say("Sunny, at 21 degrees.")])
    return AgentHarness(model=model, tools=[get_weather])


async def show_run() -> None:
    """Print what a run leaves behind."""
    run = await weather_agent().invoke(None, "Weather in Paris?")
    print(f"answer:  {run.text}")
    print(f"status:  {run.status}")
    print(f"usage:   {run.usage}")
    for message in run.messages:
        print(f"message: {message.role}")
    for event in run.events:
        print(f"event:   {event.kind}")


async def show_stream() -> None:
    """Print the answer as it arrives."""
    print("stream:  ", end="")
    async for chunk in weather_agent().stream(None, "Weather in Paris?"):
        match chunk:
            case TextDelta(text=text):
                print(text, end="|")
            case Final(run=run):
                print(f" ({run.status})")
            case _:
                pass


async def main() -> None:
    await show_run()
    await show_stream()


anyio.run(main)
