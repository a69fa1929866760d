"""Runtimes on the user's machine: what they have, what a model can do, and their refusals."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.harness.providers.server import Reply, Seen, Server, serve
from tinyagents.harness.errors import (
    BadRequestError,
    ConfigurationError,
    ModelError,
    NetworkError,
    ServerError,
)
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import ModelProfile, ModelRequest, ModelSettings, drain
from tinyagents.harness.providers import (
    LocalRuntime,
    OllamaModel,
    OpenAIChatModel,
    resolve_model,
)

Json = dict[str, Any]
REQUEST = ModelRequest([UserMessage(content="hi")])
GONE = Reply.json({"error": "no such path"}, status=404)


@pytest.fixture(autouse=True)
def _no_server_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)


def paths(answers: dict[str, Any]) -> Callable[[Seen], Reply]:
    """A server that has these documents, or replies, under these paths."""

    def script(seen: Seen) -> Reply:
        found = answers.get(seen.path, GONE)
        return found if isinstance(found, Reply) else Reply.json(found)

    return script


async def probed(name: str, answers: dict[str, Any]) -> tuple[ModelProfile, Server]:
    async with serve(paths(answers)) as server, LocalRuntime(name, base_url=server.url) as runtime:
        profile = await runtime.probe_model()
    return profile, server


def seen_paths(server: Server) -> list[str]:
    return [seen.path for seen in server.requests]


# What a model can do

V0 = {
    "data": [
        {"id": "qwen-vl", "type": "vlm", "max_context_length": 32_768, "state": "not-loaded"},
        {
            "id": "qwen",
            "type": "llm",
            "max_context_length": 131_072,
            "loaded_context_length": 4_096,
            "state": "loaded",
        },
    ]
}
V1 = {
    "models": [
        {
            "key": "qwen-vl",
            "type": "llm",
            "max_context_length": 32_768,
            "loaded_instances": [],
            "capabilities": {"vision": True, "trained_for_tool_use": True},
        },
        {
            "key": "qwen",
            "type": "llm",
            "max_context_length": 131_072,
            "loaded_instances": [{"id": "qwen", "config": {"context_length": 4_096}}],
            "capabilities": {"vision": False, "trained_for_tool_use": True},
        },
    ]
}


@pytest.mark.parametrize("listing", [{"/api/v0/models": V0}, {"/api/v1/models": V1}])
async def test_lm_studio_tells_images_and_the_context_that_is_loaded(listing: Json) -> None:
    seeing, _ = await probed("lmstudio:qwen-vl", listing)
    assert seeing.input_modalities == {"text", "image"}
    assert seeing.max_input_tokens == 32_768
    blind, _ = await probed("lmstudio:qwen", listing)
    assert blind.input_modalities == {"text"}
    assert blind.max_input_tokens == 4_096


async def test_vllm_tells_the_longest_context() -> None:
    profile, server = await probed(
        "vllm:org/qwen", {"/v1/models": {"data": [{"id": "org/qwen", "max_model_len": 8_192}]}}
    )
    assert profile.max_input_tokens == 8_192
    assert seen_paths(server) == ["/v1/models"]


LLAMA = {"data": [{"id": "/models/qwen.gguf", "meta": {"n_ctx_train": 32_768}}]}


async def test_llama_cpp_tells_what_its_one_model_is_loaded_with() -> None:
    props = {
        "default_generation_settings": {"n_ctx": 4_096},
        "modalities": {"vision": True, "audio": False},
    }
    profile, _ = await probed("llama_cpp:whatever", {"/v1/models": LLAMA, "/props": props})
    assert profile.max_input_tokens == 4_096
    assert profile.input_modalities == {"text", "image"}


async def test_llama_cpp_without_its_properties_tells_what_it_was_trained_for() -> None:
    profile, _ = await probed("llama_cpp:whatever", {"/v1/models": LLAMA})
    assert profile.max_input_tokens == 32_768


async def test_ollama_is_asked_by_its_own_api_for_the_surface_too() -> None:
    shown = {"capabilities": ["vision"], "model_info": {"llama.context_length": 8_192}}
    profile, server = await probed("ollama:llava", {"/api/show": shown})
    assert (profile.provider, profile.model) == ("ollama", "llava")
    assert profile.max_input_tokens == 8_192
    assert profile.tool_calling is False
    assert profile.input_modalities == {"text", "image"}
    assert server.requests[0].document == {"model": "llava"}


@pytest.mark.parametrize("name", ["ollama:m", "lmstudio:m", "llama_cpp:m", "vllm:m"])
async def test_what_a_runtime_does_not_tell_stays_as_it_was(name: str) -> None:
    for reply in (GONE, Reply.json({"data": "odd", "models": 3}), Reply(pieces=(b"<html>",))):
        answers = dict.fromkeys(
            ("/api/show", "/api/v0/models", "/api/v1/models", "/v1/models", "/props"), reply
        )
        profile, _ = await probed(name, answers)
        assert profile.max_input_tokens is None
        assert profile == resolve_model(name).profile


async def test_a_runtime_that_does_not_run_is_told() -> None:
    async with serve(GONE) as server:
        url = server.url
    async with LocalRuntime("lmstudio:m", base_url=url) as runtime:
        with pytest.raises(NetworkError):
            await runtime.probe_model()


# Which models there are


async def test_the_models_are_listed_by_name() -> None:
    async with (
        serve(paths({"/api/tags": {"models": [{"name": "b:1b"}, {"name": "a:latest"}]}})) as s,
        LocalRuntime("ollama:a", base_url=s.url) as runtime,
    ):
        assert await runtime.list_models() == ["a:latest", "b:1b"]
        await runtime.validate_model()


async def test_a_model_that_is_not_there_is_told_with_those_that_are() -> None:
    listed = {"models": [{"name": "qwen3:8b"}, {"name": "llama3.2:latest"}]}
    async with (
        serve(paths({"/api/tags": listed})) as server,
        LocalRuntime("ollama:qwen3", base_url=server.url) as runtime,
    ):
        with pytest.raises(ConfigurationError) as caught:
            await runtime.validate_model()
    assert caught.value.message == (
        f"ollama at {server.url} has no model `qwen3`, but `llama3.2:latest`, `qwen3:8b`: "
        "`ollama pull qwen3` fetches it"
    )


async def test_of_very_many_models_the_first_are_told() -> None:
    many = {"data": [{"id": f"m{number:03}"} for number in range(60)]}
    async with (
        serve(paths({"/v1/models": many})) as server,
        LocalRuntime("vllm:x", base_url=server.url) as runtime,
    ):
        with pytest.raises(ConfigurationError, match="`m049` and 10 more: `vllm serve x`"):
            await runtime.validate_model()


@pytest.mark.parametrize("name", ["ollama:m", "lmstudio:m", "llama_cpp:m", "vllm:m"])
async def test_a_runtime_that_lists_nothing_passes(name: str) -> None:
    empty: Json = {"/api/tags": {"models": []}, "/v1/models": {"data": []}}
    async with serve(paths(empty)) as server, LocalRuntime(name, base_url=server.url) as runtime:
        await runtime.validate_model()
        assert await runtime.list_models() == []


async def test_a_runtime_that_cannot_list_is_an_error() -> None:
    async with (
        serve(Reply.json({"error": "broken"}, status=500)) as server,
        LocalRuntime("vllm:m", base_url=server.url) as runtime,
    ):
        with pytest.raises(ServerError):
            await runtime.validate_model()


@pytest.mark.parametrize("name", ["openai:gpt-5", "ollama_cloud:gpt-oss", "nobody:m"])
def test_what_is_no_local_runtime_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        LocalRuntime(name)


async def test_questions_carry_the_key_and_no_body_and_hide_the_key() -> None:
    async with (
        serve(paths({"/v1/models": {"data": []}})) as server,
        LocalRuntime(
            "vllm:m", base_url=f"{server.url}/v1/models", api_key="sk-very-secret"
        ) as runtime,
    ):
        await runtime.list_models()
        assert "secret" not in repr(runtime)
    (seen,) = server.requests
    assert (seen.path, seen.body) == ("/v1/models", b"")
    assert seen.headers["authorization"] == "Bearer sk-very-secret"


async def test_a_callers_client_asks_and_stays_open() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"data": [{"id": "m"}]}))
    async with httpx.AsyncClient(transport=transport) as client:
        async with LocalRuntime("vllm:m", http_client=client) as runtime:
            assert await runtime.list_models() == ["m"]
        assert not client.is_closed


# Loading


async def test_ollama_loads_a_model_before_its_first_call() -> None:
    async with (
        serve(paths({"/api/generate": {"done": True}})) as server,
        LocalRuntime("ollama:m", base_url=server.url) as runtime,
    ):
        assert await runtime.warm_up()
        assert await runtime.warm_up(num_ctx=8_192, keep_alive="10m")
    assert [seen.document for seen in server.requests] == [
        {"model": "m", "stream": False},
        {"model": "m", "stream": False, "options": {"num_ctx": 8_192}, "keep_alive": "10m"},
    ]


async def test_a_model_warms_up_with_what_its_calls_will_want() -> None:
    settings = ModelSettings(provider_options={"num_gpu": 1, "think": False, "options": {"a": 2}})
    async with (
        serve(paths({"/api/generate": {"done": True}})) as server,
        OllamaModel(
            "m", base_url=server.url, num_ctx=4_096, keep_alive=-1, settings=settings
        ) as model,
    ):
        assert await model.warm_up()
    assert server.requests[0].document == {
        "model": "m",
        "stream": False,
        "options": {"a": 2, "num_gpu": 1, "num_ctx": 4_096},
        "keep_alive": -1,
    }


async def test_warming_up_never_fails_on_a_servers_error() -> None:
    async with (
        serve(Reply.json({"error": "model 'm' not found"}, status=404)) as server,
        LocalRuntime("ollama:m", base_url=server.url) as runtime,
    ):
        assert not await runtime.warm_up()


@pytest.mark.parametrize("name", ["lmstudio:m", "llama_cpp:m", "vllm:m"])
async def test_other_runtimes_are_not_asked_to_load(name: str) -> None:
    async with serve(GONE) as server, LocalRuntime(name, base_url=server.url) as runtime:
        assert not await runtime.warm_up()
    assert server.requests == []


# Refusals of calls


@pytest.mark.parametrize(
    ("provider", "advice"),
    [
        ("ollama", "`ollama pull m` fetches it"),
        ("lmstudio", "`lms get m` fetches it"),
        ("llama_cpp", "`llama-server --model FILE --alias m` serves it"),
        ("vllm", "`vllm serve m` serves it"),
    ],
)
async def test_a_missing_model_is_told_with_what_helps(provider: str, advice: str) -> None:
    missing = {"object": "error", "message": "The model `m` does not exist.", "code": 404}
    async with (
        serve(Reply.json(missing, status=404)) as server,
        OpenAIChatModel("m", provider=provider, base_url=server.url) as model,
    ):
        with pytest.raises(BadRequestError) as caught:
            await model.invoke(REQUEST)
    assert caught.value.message.startswith("The model `m` does not exist.: ")
    assert advice in caught.value.message


TEMPLATES = {
    "LM Studio": (
        400,
        'Error rendering prompt with jinja template: "No user query found in messages."',
    ),
    "llama.cpp": (
        500,
        "While executing CallExpression at line 47\nError: Jinja Exception: conversation roles "
        "must alternate user and assistant roles except for tool calls and results.",
    ),
    "vLLM": (
        400,
        "As of transformers v4.44, default chat template is no longer allowed, so you must provide "
        "a chat template if the tokenizer does not define one.",
    ),
    "a template": (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
}


@pytest.mark.parametrize("name", TEMPLATES)
async def test_a_chat_template_that_cannot_render_is_no_failure_to_retry(name: str) -> None:
    status, message = TEMPLATES[name]
    refusal = Reply.json({"error": {"message": message, "type": "server_error"}}, status=status)
    async with (
        serve(refusal) as server,
        OpenAIChatModel("m", provider="llama_cpp", base_url=server.url) as model,
    ):
        with pytest.raises(BadRequestError) as caught:
            await model.invoke(REQUEST)
    error = caught.value
    assert (error.code, error.status, error.retryable) == ("chat_template", status, False)
    assert "`fold_system=True`" in error.message
    assert len(server.requests) == 1


async def test_a_template_that_fails_within_a_stream_is_told_alike() -> None:
    failed = Reply.events({"error": {"message": TEMPLATES["LM Studio"][1]}}, done=False)
    async with (
        serve(failed) as server,
        OpenAIChatModel("m", provider="lmstudio", base_url=server.url) as model,
    ):
        with pytest.raises(BadRequestError) as caught:
            await drain(model.stream(REQUEST))
    assert (caught.value.code, caught.value.retryable) == ("chat_template", False)


async def test_another_error_of_the_server_may_be_tried_again() -> None:
    broken = Reply.json({"error": {"message": "out of memory", "type": "server_error"}}, status=500)
    async with (
        serve(broken) as server,
        OpenAIChatModel("m", provider="llama_cpp", base_url=server.url) as model,
    ):
        with pytest.raises(ModelError) as caught:
            await model.invoke(REQUEST)
    assert caught.value.retryable
