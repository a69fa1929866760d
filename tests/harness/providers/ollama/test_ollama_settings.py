"""How settings and the form of an answer are asked for in Ollama's own API."""

from typing import Any

import pytest
import respx

from tests.harness.providers.ollama.asking import WEATHER, body_of, refused
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelSettings,
    ReasoningConfig,
)
from tinyagents.harness.providers import OllamaModel

# The form of the answer


async def test_a_schema_is_the_format_itself(router: respx.MockRouter) -> None:
    wanted = JsonSchemaFormat(name="city", schema=WEATHER.parameters, description="A city.")
    assert (await body_of(router, response_format=wanted))["format"] == WEATHER.parameters


async def test_any_json_object_is_the_format_json(router: respx.MockRouter) -> None:
    assert (await body_of(router, response_format=JsonObjectFormat()))["format"] == "json"


# Settings


async def test_settings_become_options_of_the_runtime(router: respx.MockRouter) -> None:
    settings = ModelSettings(
        temperature=0.0,
        top_p=0.9,
        max_tokens=50,
        stop=("END", "\n\n"),
        seed=7,
        frequency_penalty=0.1,
        presence_penalty=0.2,
    )
    assert await body_of(router, settings=settings) == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": False,
        "options": {
            "num_predict": 50,
            "temperature": 0.0,
            "top_p": 0.9,
            "seed": 7,
            "frequency_penalty": 0.1,
            "presence_penalty": 0.2,
            "stop": ["END", "\n\n"],
        },
    }


async def test_options_of_the_runtime_are_taken_by_themselves_or_within_options(
    router: respx.MockRouter,
) -> None:
    given = {"top_k": 40, "num_ctx": 8192, "options": {"min_p": 0.1, "top_k": 1}, "truncate": False}
    settings = ModelSettings(seed=1, provider_options=given)
    body = await body_of(router, settings=settings)
    assert body["options"] == {"min_p": 0.1, "top_k": 40, "num_ctx": 8192, "seed": 1}
    assert body["truncate"] is False
    assert "top_k" not in body


async def test_the_models_own_context_and_time_in_memory_lie_beneath_those_of_a_request(
    router: respx.MockRouter,
) -> None:
    own = ModelSettings(temperature=1.0, provider_options={"top_k": 3})
    asked = OllamaModel("qwen3", num_ctx=4096, keep_alive="10m", settings=own)
    body = await body_of(router, asked=asked)
    assert body["options"] == {"num_ctx": 4096, "top_k": 3, "temperature": 1.0}
    assert body["keep_alive"] == "10m"
    over = ModelSettings(temperature=0.0, provider_options={"num_ctx": 9, "keep_alive": -1})
    body = await body_of(router, asked=asked, settings=over)
    assert body["options"] == {"num_ctx": 9, "top_k": 3, "temperature": 0.0}
    assert body["keep_alive"] == -1


@pytest.mark.parametrize(
    ("effort", "think"),
    [("none", False), ("minimal", "low"), ("low", "low"), ("medium", "medium"), ("high", "high")],
)
async def test_an_effort_is_how_much_to_think(
    effort: Any, think: bool | str, router: respx.MockRouter
) -> None:
    settings = ModelSettings(reasoning=ReasoningConfig(effort=effort))
    assert (await body_of(router, settings=settings))["think"] == think


async def test_thinking_that_is_not_mentioned_is_left_to_the_server(
    router: respx.MockRouter,
) -> None:
    assert "think" not in await body_of(router, settings=ModelSettings(reasoning=ReasoningConfig()))


async def test_the_callers_own_think_wins_over_an_effort(router: respx.MockRouter) -> None:
    settings = ModelSettings(
        reasoning=ReasoningConfig(effort="high"), provider_options={"think": True}
    )
    assert (await body_of(router, settings=settings))["think"] is True


@pytest.mark.parametrize(("asked", "top"), [(0, None), (3, 3)])
async def test_log_probabilities_are_asked_for(
    asked: int, top: int | None, router: respx.MockRouter
) -> None:
    body = await body_of(router, settings=ModelSettings(logprobs=asked))
    assert body["logprobs"] is True
    assert body.get("top_logprobs") == top


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ModelSettings(user="ann"), "the setting `user`"),
        (ModelSettings(reasoning=ReasoningConfig(budget_tokens=9)), "`budget_tokens`"),
        (ModelSettings(reasoning=ReasoningConfig(summary="auto")), "summaries of reasoning"),
        (ModelSettings(provider_options={"options": [1]}), "`options` that are no object"),
        (ModelSettings(provider_options={"stream": True, "format": ""}), "own: format, stream"),
        (ModelSettings(provider_options={"temperature": 1}), "of their own: temperature"),
        (ModelSettings(provider_options={"options": {"stop": []}}), "of their own: stop"),
    ],
)
async def test_settings_that_cannot_work_are_refused(settings: ModelSettings, words: str) -> None:
    await refused(words, settings=settings)


async def test_a_conversation_that_the_server_should_remember_is_refused() -> None:
    await refused("`continuation_id`", continuation_id="r-1")


async def test_numbers_and_texts_that_no_encoder_takes_are_sent(router: respx.MockRouter) -> None:
    settings = ModelSettings(seed=2**70, stop=("\ud800",))
    options = (await body_of(router, settings=settings))["options"]
    assert options["seed"] == pytest.approx(2**70)
    assert len(options["stop"]) == 1
