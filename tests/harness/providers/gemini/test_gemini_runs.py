"""Whole runs with a Gemini model: what the loop makes of it arrives on the wire."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.harness.providers.server import Reply, Seen, serve
from tinyagents.harness.providers import GeminiModel
from tinyagents.harness.runtime import AgentHarness


class Weather(BaseModel):
    sky: str


async def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"Sunny in {city}."


def answer(*parts: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [*parts]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


def called(city: str) -> dict[str, Any]:
    return {"functionCall": {"name": "get_weather", "args": {"city": city}}}


ANSWERS = [
    answer({**called("Rome"), "thoughtSignature": "s+/="}, called("Oslo")),
    answer({"text": '{"sky": "blue"}'}),
]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_calls_are_answered_with_their_signature_and_the_answer_is_typed(
    stream: bool,
) -> None:
    def script(seen: Seen) -> Reply:
        document = ANSWERS[len(server.requests) - 1]
        return (
            Reply.events(document, done=False) if "alt=sse" in seen.path else Reply.json(document)
        )

    async with serve(script) as server:
        model = GeminiModel("gemini-3-pro-preview", api_key="k", base_url=server.url)
        async with model:
            harness = AgentHarness(model=model, tools=[get_weather])
            if stream:
                async with harness.stream(None, "hi", output=Weather) as events:
                    run = await events.result()
            else:
                run = await harness.invoke(None, "hi", output=Weather)
    assert run.output == Weather(sky="blue")
    first, second = (seen.document for seen in server.requests)
    assert first["generationConfig"]["responseJsonSchema"]["required"] == ["sky"]
    calls, results = (content["parts"] for content in second["contents"][1:])
    ids = [part["functionCall"]["id"] for part in calls]
    assert calls[0]["thoughtSignature"] == "s+/="
    assert [part["functionCall"]["args"] for part in calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    assert [part["functionResponse"] for part in results] == [
        {"id": ids[0], "name": "get_weather", "response": {"output": "Sunny in Rome."}},
        {"id": ids[1], "name": "get_weather", "response": {"output": "Sunny in Oslo."}},
    ]
