"""Prompts: templates with variables, and requests laid out for prompt caches."""

import anyio

from tinyagents import AgentHarness
from tinyagents.harness.prompt import FewShot, MessagesTemplate, PromptBuilder, PromptTemplate
from tinyagents.testkit import ScriptedModel, say

QUESTION = PromptTemplate("{{text}}")
ANSWER = PromptTemplate("{{mood}}", role="assistant")
EXAMPLES = MessagesTemplate(
    [
        FewShot(
            [QUESTION, ANSWER], [{"text": "Great!", "mood": "glad"}, {"text": "Oh.", "mood": "sad"}]
        )
    ]
)
STABLE = (
    PromptBuilder()
    .push_system("Name the mood of a text in one word.")
    .push_instructions(EXAMPLES.render(), id="examples")
)


async def main() -> None:
    model = ScriptedModel([say("glad"), say("Hello, Ada.")])

    request = STABLE.push_volatile("It is Monday.").build("What a day!")
    response = await model.invoke(request)
    print(f"mood: {response.text}")
    print(f"segments: {[segment.id for segment in request.segments]}")
    print(f"fingerprint: {STABLE.fingerprint[:12]}…")

    agent = AgentHarness(model=model, system=PromptTemplate("You help {{user}}."))
    run = await agent.invoke(None, "Hi", data={"user": "Ada"})
    print(f"answer: {run.text}")


if __name__ == "__main__":
    anyio.run(main)
