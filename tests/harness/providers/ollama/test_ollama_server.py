"""Ollama servers: where they are, what they tell of a model, and how connections to them end."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import orjson
import pytest

from tests.harness.providers.server import Reply, Seen, eventually, serve
from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    MalformedResponseError,
    NetworkError,
)
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import (
    ChatModel,
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelSettings,
    drain,
)
from tinyagents.harness.providers import OllamaModel, OpenAIChatModel, resolve_model

REQUEST = ModelRequest(messages=[UserMessage(content="hi")])
LINES = {"content-type": "application/x-ndjson"}
PIECE = b'{"message":{"role":"assistant","content":"a"},"done":false}\n'
LAST = b'{"message":{"role":"assistant","content":"b"},"done":true,"done_reason":"stop"}\n'
ANSWER = Reply(pieces=(PIECE, LAST), headers=LINES)
MISSING = Reply.json({"error": "model 'qwen3' not found"}, status=404)


# Where a server is


ADDRESSES = [
    ("", "http://localhost:11434"),
    ("myhost", "http://myhost:11434"),
    ("myhost:8080", "http://myhost:8080"),
    (":8080", "http://localhost:8080"),
    ("0.0.0.0", "http://127.0.0.1:11434"),
    ("0.0.0.0:99", "http://127.0.0.1:99"),
    ("myhost:", "http://myhost:11434"),
    ("::1", "http://[::1]:11434"),
    ("fe80::1:22", "http://[fe80::1:22]:11434"),
    ("[::]:99", "http://[::1]:99"),
    ("http://myhost", "http://myhost"),
    ("https://myhost/", "https://myhost"),
    ("https://myhost/ollama/", "https://myhost/ollama"),
    ("localhost:11434/api/chat", "http://localhost:11434"),
    ("http://localhost:11434/api", "http://localhost:11434"),
    ("http://localhost:11434/api/tags", "http://localhost:11434"),
    ("http://localhost:11434/v1", "http://localhost:11434"),
    ("http://localhost:11434/v1/chat/completions", "http://localhost:11434"),
    ("http://localhost:11434/v1/models", "http://localhost:11434"),
    ("https://ollama.com/api/chat", "https://ollama.com"),
]


@pytest.mark.parametrize(("given", "url"), ADDRESSES)
def test_an_address_is_completed_and_means_the_server(given: str, url: str) -> None:
    assert OllamaModel("m", base_url=given).base_url == url


@pytest.mark.parametrize(("given", "url"), ADDRESSES)
def test_the_variable_of_ollama_itself_tells_the_address_too(
    given: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", given)
    assert OllamaModel("m").base_url == url
    assert OllamaModel("m", base_url="other").base_url == "http://other:11434"


def test_the_hosted_server_is_known_by_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "'ollama_cloud'" in repr(OllamaModel("m", base_url="https://ollama.com/api"))
    monkeypatch.setenv("OLLAMA_HOST", "https://ollama.com")
    assert "'ollama_cloud'" in repr(OllamaModel("m"))
    assert "provider='ollama'" in repr(OllamaModel("m", base_url=""))


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is no base URL"):
        OllamaModel("m", base_url="ftp://myhost")


def test_a_provider_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="known are ollama, ollama_cloud"):
        OllamaModel("m", provider="openai")


def test_the_chat_preset_of_the_same_server_is_as_it_was() -> None:
    made = resolve_model("ollama:qwen3")
    assert isinstance(made, OpenAIChatModel)
    assert made.base_url == "http://localhost:11434/v1"
    assert OpenAIChatModel("m", provider="ollama", base_url="h").base_url == "http://h/v1"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ollama_native:qwen3:8b", "'qwen3:8b', provider='ollama'"),
        ("Ollama-Native:", "'llama3.2', provider='ollama'"),
        ("ollama_cloud:gpt-oss:20b", "'gpt-oss:20b', provider='ollama_cloud'"),
        ("ollama-cloud", "'gpt-oss:120b', provider='ollama_cloud'"),
    ],
)
def test_names_of_its_own_mean_ollamas_own_api(name: str, shown: str) -> None:
    made = resolve_model(name)
    assert isinstance(made, OllamaModel)
    assert isinstance(made, ChatModel)
    assert shown in repr(made)


# Keys


async def test_a_key_is_sent_where_one_is_given() -> None:
    async with serve(ANSWER) as server, OllamaModel("m", base_url=server.url, api_key="k1") as made:
        await drain(made.stream(REQUEST))
    assert server.requests[0].headers["authorization"] == "Bearer k1"


async def test_the_hosted_servers_key_goes_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "the-key-of-a-test")
    async with serve(ANSWER) as server, OllamaModel("m", base_url=server.url) as made:
        await drain(made.stream(REQUEST))
    assert "authorization" not in server.requests[0].headers


def test_the_hosted_server_needs_a_key_and_says_which() -> None:
    with pytest.raises(ConfigurationError, match="`OLLAMA_API_KEY`"):
        OllamaModel("m", provider="ollama_cloud").check()
    OllamaModel("m").check()


async def test_a_key_that_the_server_repeats_is_blotted_out() -> None:
    key = "the-key-of-a-test"
    said = Reply(pieces=(PIECE, orjson.dumps({"error": f"bad {key}"})), headers=LINES)
    async with serve(said) as server, OllamaModel("m", base_url=server.url, api_key=key) as made:
        with pytest.raises(Exception, match="bad") as caught:
            await drain(made.stream(REQUEST))
    assert key not in f"{caught.value}{caught.value!r}{made!r}{vars(caught.value)}"


def test_whatever_shapes_an_answer_is_in_the_identity() -> None:
    made = [
        OllamaModel("m"),
        OllamaModel("n"),
        OllamaModel("m", api_key="k"),
        OllamaModel("m", base_url="other"),
        OllamaModel("m", num_ctx=9),
        OllamaModel("m", settings=ModelSettings(seed=1)),
        OpenAIChatModel("m", provider="ollama"),
    ]
    assert len({each.cache_identity for each in made}) == len(made)
    assert OllamaModel("m").cache_identity == made[0].cache_identity


# What a model can do


def test_what_holds_for_every_model_is_known_without_asking() -> None:
    made = OllamaModel("m").profile
    assert (made.provider, made.model) == ("ollama", "m")
    assert made.tool_calling
    assert made.forced_tool_choice is False
    assert made.json_schema
    assert made.native_structured_output is False
    assert made.input_modalities == {"text"}
    assert made.max_input_tokens is None
    assert OllamaModel("m", num_ctx=4096).profile.max_input_tokens == 4096


def shown(*capabilities: str, parameters: str = "", **info: Any) -> dict[str, Any]:
    return {
        "capabilities": ["completion", *capabilities],
        "parameters": parameters,
        "model_info": {"general.architecture": "x", **info},
    }


async def probed(document: Any, **options: Any) -> tuple[ModelProfile, Seen]:
    async with serve(Reply.json(document)) as server:
        profile = await OllamaModel.probe("qwen3", base_url=server.url, **options)
    (seen,) = server.requests
    return profile, seen


async def test_a_probe_asks_once_and_gives_a_profile_for_the_model() -> None:
    info: dict[str, Any] = {"qwen3.context_length": 40_960}
    profile, seen = await probed(shown("tools", "thinking", "vision", **info))
    assert (seen.path, seen.document) == ("/api/show", {"model": "qwen3"})
    assert profile == OllamaModel("qwen3").profile.model_copy(
        update={
            "tool_calling": True,
            "reasoning": True,
            "reasoning_effort": True,
            "known": True,
            "input_modalities": frozenset({"text", "image"}),
            "uncertain_inputs": frozenset(),
            "max_input_tokens": 40_960,
        }
    )
    assert OllamaModel("qwen3", profile=profile).profile is profile


async def test_a_probe_says_what_a_model_cannot_do() -> None:
    profile, _ = await probed(shown())
    assert profile.tool_calling is False
    assert profile.reasoning is False
    assert profile.input_modalities == {"text"}
    assert profile.max_input_tokens is None


async def test_an_older_server_that_tells_no_capabilities_changes_none() -> None:
    profile, _ = await probed({"model_info": {"llama.context_length": 8192}})
    assert profile.tool_calling
    assert profile.reasoning is None
    assert profile.max_input_tokens == 8192


@pytest.mark.parametrize(
    ("info", "parameters", "num_ctx", "tokens"),
    [
        ({"a.context_length": 900, "b.context_length": 500, "c.context_length": 0}, "", None, 500),
        ({"a.context_length": 900, "a.rope.original_context_length": 5}, "", None, 900),
        ({"a.context_length": 900}, 'stop  "x y"\nnum_ctx                400\n', None, 400),
        ({"a.context_length": 900}, "num_ctx 400", 200, 200),
        ({"a.context_length": 900}, "", 5000, 900),
        ({"a.context_length": "900"}, "", 5000, 5000),
    ],
)
async def test_the_context_is_what_is_loaded_and_never_more_than_was_trained(
    info: dict[str, Any], parameters: str, num_ctx: int | None, tokens: int
) -> None:
    profile, _ = await probed(shown(parameters=parameters, **info), num_ctx=num_ctx)
    assert profile.max_input_tokens == tokens


async def test_a_probe_leaves_a_callers_client_open() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=shown("tools")))
    async with httpx.AsyncClient(transport=transport) as client:
        await OllamaModel.probe("m", http_client=client)
        assert not client.is_closed


async def test_a_probe_of_what_is_no_ollama_server_fails() -> None:
    async with serve(Reply(pieces=(b"<html></html>",))) as server:
        with pytest.raises(MalformedResponseError, match="is no JSON"):
            await OllamaModel.probe("m", base_url=server.url)


async def test_constructing_a_model_and_calling_it_asks_nothing_else() -> None:
    async with serve(ANSWER) as server, OllamaModel("m", base_url=server.url) as made:
        await drain(made.stream(REQUEST))
    assert [seen.path for seen in server.requests] == ["/api/chat"]


# What goes wrong


CALLS: dict[str, Callable[[str], Awaitable[Any]]] = {
    "invoke": lambda url: OllamaModel("qwen3", base_url=url).invoke(REQUEST),
    "stream": lambda url: drain(OllamaModel("qwen3", base_url=url).stream(REQUEST)),
    "probe": lambda url: OllamaModel.probe("qwen3", base_url=url),
    "chat": lambda url: OpenAIChatModel("qwen3", provider="ollama", base_url=url).invoke(REQUEST),
}


@pytest.mark.parametrize("how", CALLS)
async def test_a_model_that_is_not_there_is_told_with_the_command_that_fetches_it(how: str) -> None:
    async with serve(MISSING) as server:
        with pytest.raises(BadRequestError) as caught:
            await CALLS[how](server.url)
    error = caught.value
    assert error.message == "model 'qwen3' not found: `ollama pull qwen3` fetches it"
    assert (error.status, error.retryable) == (404, False)
    assert error.raw == {"error": "model 'qwen3' not found"}


async def test_a_path_that_is_not_there_is_told_without_it() -> None:
    missing = Reply(pieces=(b"404 page not found",), status=404)
    async with serve(missing) as server, OllamaModel("m", base_url=server.url) as made:
        with pytest.raises(BadRequestError) as caught:
            await made.invoke(REQUEST)
    assert caught.value.message == "404 page not found"


async def test_a_hosted_model_is_not_to_be_pulled() -> None:
    missing = httpx.Response(404, json={"error": "model 'm' not found"})
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: missing)) as client:
        made = OllamaModel("m", provider="ollama_cloud", api_key="k", http_client=client)
        with pytest.raises(BadRequestError) as caught:
            await made.invoke(REQUEST)
    assert "pull" not in caught.value.message


async def test_a_hosted_server_that_refuses_the_key_is_told() -> None:
    refused = httpx.Response(401, json={"error": "unauthorized"})
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: refused)) as client:
        made = OllamaModel("m", provider="ollama_cloud", api_key="k", http_client=client)
        with pytest.raises(AuthenticationError):
            await made.invoke(REQUEST)


async def test_a_connection_that_breaks_in_an_answer_is_told() -> None:
    broken = Reply(pieces=(PIECE,), headers=LINES, then="break")
    async with serve(broken) as server, OllamaModel("m", base_url=server.url) as made:
        with pytest.raises(NetworkError) as caught:
            await drain(made.stream(REQUEST))
    assert caught.value.retryable


async def test_a_line_that_is_larger_than_the_bound_is_given_up() -> None:
    async with serve(Reply(pieces=(b"x" * 1024 * 1024,) * 17, headers=LINES)) as server:
        async with OllamaModel("m", base_url=server.url) as made:
            with pytest.raises(MalformedResponseError, match="`max_event_bytes`"):
                await drain(made.stream(REQUEST))
        await eventually(lambda: server.connections == 1)


# Connections


async def test_a_reader_that_stops_early_closes_the_answer() -> None:
    silent = Reply(pieces=(PIECE,), headers=LINES, then="hang")
    async with serve(silent) as server, OllamaModel("m", base_url=server.url) as made:
        stream = made.stream(REQUEST)
        async for item in stream:
            if isinstance(item, MessageDelta):
                break
        await stream.aclose()  # type: ignore[attr-defined]
        await eventually(lambda: server.gone == [1])


async def test_a_finished_answer_gives_its_connection_back() -> None:
    async with serve(ANSWER) as server, OllamaModel("m", base_url=server.url) as made:
        for _ in range(3):
            assert (await drain(made.stream(REQUEST))).text == "ab"
    assert server.connections == 1


async def test_cancelled_calls_close_their_connections() -> None:
    silent = Reply(pieces=(PIECE,), headers=LINES, then="hang")
    async with serve(silent) as server, OllamaModel("m", base_url=server.url) as made:
        async with anyio.create_task_group() as group:
            group.start_soon(drain, made.stream(REQUEST))
            group.start_soon(made.invoke, REQUEST)
            await eventually(lambda: len(server.requests) == 2)
            group.cancel_scope.cancel()
        await eventually(lambda: len(server.gone) == 2)
