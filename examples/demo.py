"""A trip planner: several turns, tools called in parallel, an answer streamed as it is written.

    python examples/demo.py                                       offline, a scripted model
    python examples/demo.py --model openai:gpt-5-mini             that model, with OPENAI_API_KEY set
    python examples/demo.py --model llama3.2 --base-url http://127.0.0.1:11434/v1

With OPENAI_API_KEY or OPENAI_BASE_URL in the environment and no --model, it runs against those.
"""

import argparse
import os
import sys
from collections.abc import AsyncIterator
from decimal import Decimal

import anyio

from tinyagents import AgentHarness, Final, ReasoningDelta, RunPolicy, TextDelta, tool
from tinyagents.harness.cost import ModelPricing
from tinyagents.harness.model import ChatModel, MessageDelta, ModelRequest, ModelStreamItem
from tinyagents.harness.providers import OpenAIChatModel, resolve_model
from tinyagents.harness.stream import ToolCompleted, ToolProgress, ToolStarted
from tinyagents.testkit import ScriptedModel, call, say, think

QUESTION = (
    "I have one free day. Lisbon, Oslo or Rome? I like the sun, and I have 1,500 Norwegian kroner."
)
SYSTEM = "You plan day trips. Look up the weather of each place before you recommend one."

FORECASTS = {
    "Lisbon": "sunny, 24 degrees, light wind",
    "Oslo": "rain, 11 degrees",
    "Rome": "thunderstorms in the afternoon, 27 degrees",
}


@tool
async def get_weather(city: str) -> str:
    """Today's weather.

    Args:
        city: City name, in English.
    """
    await anyio.sleep(0.3)
    return FORECASTS.get(city, "no forecast for this place")


@tool
async def find_flights(
    destination: str, *, latest_hour: int = 10
) -> AsyncIterator[str | list[str]]:
    """Morning flights from Oslo.

    Args:
        destination: City name, in English.
        latest_hour: Leave no later than this hour, on a 24-hour clock.
    """
    for airline in ("Norwegian", "TAP"):
        yield f"asking {airline}"
        await anyio.sleep(0.2)
    yield [
        f"06:55 Oslo to {destination}, 89 EUR",
        f"09:{latest_hour} Oslo to {destination}, 74 EUR",
    ]


@tool
def convert(amount: float, currency: str, to: str = "EUR") -> float:
    """Convert money at today's rate.

    Args:
        amount: How much.
        currency: Three-letter code of what it is in.
        to: Three-letter code of what it should be in.
    """
    rates = {"NOK": 0.085, "USD": 0.92, "EUR": 1.0}
    return round(amount * rates[currency] / rates[to], 2)


class Unhurried:
    """Lets a scripted model take its time, so that its answer can be watched."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self.profile = model.profile.model_copy(
            update={"pricing": ModelPricing(input=Decimal("0.25"), output=Decimal("2.00"))}
        )
        self.invoke = model.invoke

    async def stream(
        self, request: ModelRequest, *, ctx: object = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Stream the script slowly."""
        async for item in self._model.stream(request):
            if isinstance(item, MessageDelta):
                await anyio.sleep(0.03)
            yield item


def scripted_model() -> ChatModel:
    return Unhurried(
        ScriptedModel(
            [
                think("Three places and some money: look everything up at once. ")
                + call("get_weather", city="Lisbon")
                + call("get_weather", city="Oslo")
                + call("get_weather", city="Rome")
                + call("convert", amount=1500, currency="NOK"),
                think("Lisbon it is. Is there a flight that leaves early enough? ")
                + call("find_flights", destination="Lisbon"),
                say(
                    "Go to Lisbon. It is sunny there today at 24 degrees, while Oslo has rain and "
                    "Rome expects thunderstorms. Take the 06:55 for 89 EUR: of your 1,500 kroner, "
                    "about 127 EUR, that leaves 38 EUR for grilled sardines by the river."
                ),
            ]
        )
    )


def choose_model(name: str | None, base_url: str | None) -> ChatModel:
    base_url = base_url or os.environ.get("OPENAI_BASE_URL")
    if name is None and base_url is None and "OPENAI_API_KEY" not in os.environ:
        return scripted_model()
    if base_url is not None:
        key = os.environ.get("OPENAI_API_KEY") or "none"
        name = name or os.environ.get("OPENAI_MODEL") or "gpt-5-mini"
        return OpenAIChatModel(name, base_url=base_url, api_key=key)
    return resolve_model(name or "openai:gpt-5-mini")


async def main() -> None:
    parser = argparse.ArgumentParser(description="Plan a day trip.")
    parser.add_argument("--model", help="such as openai:gpt-5-mini")
    parser.add_argument("--base-url", help="an OpenAI-compatible server")
    given = parser.parse_args()

    agent = AgentHarness(
        model=choose_model(given.model, given.base_url),
        tools=[get_weather, find_flights, convert],
        system=SYSTEM,
        policy=RunPolicy.resilient(),
    )
    print(f"You:   {QUESTION}\n")
    speaking = ""
    async with agent.stream(None, QUESTION) as stream:
        async for chunk in stream:
            match chunk:
                case TextDelta(text=text) | ReasoningDelta(text=text):
                    if speaking != chunk.type:
                        speaking = chunk.type
                        print("Agent: " if isinstance(chunk, TextDelta) else "  (thinks) ", end="")
                    print(text, end="", flush=True)
                case ToolStarted(name=name, arguments=arguments):
                    print("\n" if speaking else "", end="")
                    speaking = ""
                    print(f"  -> {name} {arguments}")
                case ToolProgress(name=name, content=content):
                    print(f"     {name}: {content}")
                case ToolCompleted(name=name, message=message):
                    print(f"  <- {name}: {message.text}")
                case Final(run=run):
                    usage, cost = run.usage, run.cost.total
                    print(
                        f"\n\n{run.status} after {run.model_calls} model calls and "
                        f"{run.tool_calls} tool calls; {usage.input_tokens} tokens in, "
                        f"{usage.output_tokens} out ({usage.source}); "
                        + (f"{cost:.6f} USD" if cost else "price not known")
                    )
                case _:
                    pass


if __name__ == "__main__":
    try:
        anyio.run(main)
    except KeyboardInterrupt:
        sys.exit("stopped")
