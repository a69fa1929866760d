"""Tools with a model that cannot call them: its calls are text, which nobody sees."""

import anyio

from tinyagents import AgentHarness, tool
from tinyagents.harness.model import ModelProfile
from tinyagents.harness.stream import TextDelta, ToolCompleted, ToolStarted
from tinyagents.harness.tool_calling import PFormatDialect, PromptGuidedModel
from tinyagents.testkit import ScriptedModel, say


@tool
async def get_weather(city: str, units: str = "metric") -> str:
    """Current weather for a city."""
    return f"{city}: sunny, 20 degrees ({units})"


async def main() -> None:
    # Stands for a model behind any API: OllamaModel, OpenAIChatModel with a local server, …
    plain = ScriptedModel(
        [
            say(
                "Let me look.\n"
                "<tool_call>get_weather[Paris]</tool_call>\n"
                "<tool_call>get_weather[Oslo|imperial]</tool_call>"
            ),
            say("It is sunny in both."),
        ],
        profile=ModelProfile(tool_calling=False),
    )
    agent = AgentHarness(model=PromptGuidedModel(plain, PFormatDialect()), tools=[get_weather])
    async for chunk in agent.stream(None, "Weather in Paris and Oslo?"):
        match chunk:
            case TextDelta(text=text):
                print(text, end="")
            case ToolStarted(name=name, arguments=arguments):
                print(f"-> {name} {arguments}")
            case ToolCompleted(message=message):
                print(f"<- {message.text}")
            case _:
                pass
    print()
    print("\nWhat the model was sent the second time:\n")
    for sent in plain.requests[1].messages:
        print(f"{sent.role}: {sent.text}\n")


if __name__ == "__main__":
    anyio.run(main)
