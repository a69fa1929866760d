"""Where a request to Gemini goes, and how messages are sent."""

import gc
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
import respx

from tests.harness.providers.gemini.asking import (
    ANSWER,
    HI,
    SENT_HI,
    URL,
    body_of,
    model,
    parts_of,
    refused,
    sent,
)
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    CitationBlock,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    JsonBlock,
    Message,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResultBlock,
    UserMessage,
)
from tinyagents.harness.model import (
    ModelRequest,
    drain,
)
from tinyagents.harness.providers import GeminiModel, OpenAIChatModel, resolve_model


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(return_value=httpx.Response(200, json=ANSWER))
        yield router


# Where it goes


async def test_the_key_travels_in_its_header_and_the_model_in_the_path(
    router: respx.MockRouter,
) -> None:
    async with model() as asked:
        await asked.invoke(ModelRequest(messages=[HI]))
    request = router.calls.last.request
    assert str(request.url) == f"{URL}/models/gemini-2.5-flash:generateContent"
    assert request.headers["x-goog-api-key"] == "the-key-of-a-test"
    assert "authorization" not in request.headers


async def test_a_stream_is_asked_for_as_events(router: respx.MockRouter) -> None:
    async with model() as asked:
        assert (await drain(asked.stream(ModelRequest(messages=[HI])))).text == "ok"
    request = router.calls.last.request
    assert str(request.url) == f"{URL}/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert request.headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("name", "base_url", "url"),
    [
        ("models/m", None, f"{URL}/models/m"),
        ("tunedModels/t-1", None, f"{URL}/tunedModels/t-1"),
        ("m", "https://h.example", "https://h.example/v1beta/models/m"),
        ("m", "https://h.example/v1beta/models/", "https://h.example/v1beta/models/m"),
        ("m", "https://h/v1/projects/p/publishers/google",
         "https://h/v1/projects/p/publishers/google/models/m"),
    ],
)  # fmt: skip
async def test_the_address_follows_the_model_and_the_base_url(
    router: respx.MockRouter, name: str, base_url: str | None, url: str
) -> None:
    async with model(name, base_url=base_url) as asked:
        await asked.invoke(ModelRequest(messages=[HI]))
    assert str(router.calls.last.request.url) == f"{url}:generateContent"


async def test_a_missing_key_is_told_before_anything_is_sent(
    router: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="`GEMINI_API_KEY` or `GOOGLE_API_KEY`"):
        await GeminiModel("m").invoke(ModelRequest(messages=[HI]))
    monkeypatch.setenv("GOOGLE_API_KEY", "from-the-environment")
    async with GeminiModel("m") as asked:
        await asked.invoke(ModelRequest(messages=[HI]))
    assert router.calls.last.request.headers["x-goog-api-key"] == "from-the-environment"


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("gemini:gemini-3-pro-preview", "gemini-3-pro-preview"),
        ("google-gla:gemini-2.5-pro", "gemini-2.5-pro"),
        ("Gemini", "gemini-2.5-flash"),
        ("gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_gemini_name_resolves_to_its_own_api(name: str, made: str) -> None:
    found = resolve_model(name, api_key="k")
    assert repr(found) == f"GeminiModel('{made}', provider='gemini', base_url='{URL}')"


def test_googles_chat_surface_and_gateways_keep_chat_completions() -> None:
    assert isinstance(resolve_model("google:gemini-2.5-pro", api_key="k"), OpenAIChatModel)
    gateway = resolve_model("gemini-2.5-pro", api_key="k", base_url="https://gateway.example/v1")
    assert isinstance(gateway, OpenAIChatModel)


def test_neither_repr_nor_identity_hold_the_key() -> None:
    first, second = model(api_key="the-first-key"), model(api_key="the-second-key")
    assert "the-first-key" not in repr(first) + first.cache_identity
    assert first.cache_identity != second.cache_identity
    assert first.cache_identity == model(api_key="the-first-key").cache_identity


# Messages


async def test_a_plain_conversation_is_sent_as_contents(router: respx.MockRouter) -> None:
    assert await body_of(
        router,
        SystemMessage(content="Be brief."),
        HI,
        AssistantMessage(content="hello"),
        SystemMessage(content="Be kind."),
        UserMessage(content=[TextBlock(text="a"), JsonBlock(value={"b": 1})]),
    ) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "contents": [
            SENT_HI,
            {"role": "model", "parts": [{"text": "hello"}]},
            {"role": "user", "parts": [{"text": "a"}, {"text": '{"b":1}'}]},
        ],
    }


async def test_an_empty_user_message_keeps_its_turn_and_an_empty_answer_is_left_out(
    router: respx.MockRouter,
) -> None:
    contents = await sent(router, UserMessage(content=""), AssistantMessage(content=""), HI)
    assert contents == [{"role": "user", "parts": [{"text": ""}]}, SENT_HI]


async def test_the_results_of_parallel_calls_stand_in_one_content(
    router: respx.MockRouter,
) -> None:
    calls = [ToolCallBlock(id=f"c{n}", name=f"t{n}", arguments={"n": n}) for n in (1, 2)]
    assert await sent(
        router,
        HI,
        AssistantMessage(content=[TextBlock(text="I look."), *calls]),
        ToolMessage(tool_call_id="c2", name="t2", content="two"),
        ToolMessage(tool_call_id="c1", content=[JsonBlock(value={"a": [1]})]),
        UserMessage(content="thanks"),
    ) == [
        SENT_HI,
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "c1", "name": "t1", "args": {"n": 1}}},
                {"functionCall": {"id": "c2", "name": "t2", "args": {"n": 2}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c2", "name": "t2", "response": {"output": "two"}}},
                # The name is that of the call, since the result has none.
                {"functionResponse": {"id": "c1", "name": "t1", "response": {"output": {"a": [1]}}}},
            ],
        },
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]  # fmt: skip


async def test_a_failed_tool_is_told_as_an_error(router: respx.MockRouter) -> None:
    result = ToolMessage(tool_call_id="c1", name="t", content="no such city", is_error=True)
    told = (await sent(router, HI, result))[1]["parts"][0]["functionResponse"]
    assert told == {"id": "c1", "name": "t", "response": {"error": "no such city"}}


async def test_text_and_json_of_a_result_are_told_apart_by_a_line(
    router: respx.MockRouter,
) -> None:
    content = [TextBlock(text="found:"), JsonBlock(value=[1])]
    result = ToolMessage(tool_call_id="c1", name="t", content=content)
    told = (await sent(router, HI, result))[1]["parts"][0]["functionResponse"]
    assert told["response"] == {"output": "found:\n[1]"}


async def test_a_result_that_nobody_names_is_refused() -> None:
    message = await refused(HI, ToolMessage(tool_call_id="c9", content="x"))
    assert "the result `c9`" in message


async def test_arguments_that_are_no_object_are_sent_as_one(router: respx.MockRouter) -> None:
    invalid = InvalidArguments(raw="[1", reason="no JSON")
    call = ToolCallBlock(id="c1", name="t", invalid=invalid)
    contents = await sent(router, HI, AssistantMessage(content=[call]))
    assert contents[1]["parts"] == [
        {"functionCall": {"id": "c1", "name": "t", "args": {"invalid_arguments": "[1"}}}
    ]


async def test_what_only_gemini_understands_goes_back_on_the_part_that_had_it(
    router: respx.MockRouter,
) -> None:
    def own(**fields: Any) -> dict[str, Any]:
        return {"gemini": fields, "openai": {"id": "x"}}

    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s0"}
    message = AssistantMessage(
        content=[
            ReasoningBlock(text="hm", provider_data=own(thought=True, thoughtSignature="s1+/=")),
            TextBlock(text="", provider_data=own(thoughtSignature="s2")),
            TextBlock(text="I look."),
            ProviderExtensionBlock(provider="gemini", data=code),
            ToolCallBlock(
                id="c1",
                name="t",
                provider_data=own(thoughtSignature="s3", functionCall={"new": True}),
            ),
            ToolCallBlock(id="c2", name="t"),
            CitationBlock(url="https://a.example"),
        ]
    )
    for name in ("gemini-2.5-flash", "gemini-3-pro-preview"):
        assert (await sent(router, HI, message, name=name))[1]["parts"] == [
            {"text": "hm", "thought": True, "thoughtSignature": "s1+/="},
            {"text": "", "thoughtSignature": "s2"},
            {"text": "I look."},
            code,
            {
                "functionCall": {"id": "c1", "name": "t", "args": {}, "new": True},
                "thoughtSignature": "s3",
            },
            {"functionCall": {"id": "c2", "name": "t", "args": {}}},
        ]


FOREIGN = AssistantMessage(
    content=[
        ReasoningBlock(text="hm", signature="theirs", provider_data={"anthropic": {"a": 1}}),
        ProviderExtensionBlock(provider="anthropic", data={"type": "container"}),
        ToolCallBlock(id="s1", name="web_search", arguments={"query": "x"}),
        ToolResultBlock(tool_call_id="s1", content=[TextBlock(text="found")]),
        RefusalBlock(text="no"),
        AudioBlock(data="QUI=", media_type="audio/wav", transcript="spoken"),
        ToolCallBlock(id="c1", name="t", provider_data={"openai": {"id": "x"}}),
        ToolCallBlock(id="c2", name="t"),
    ]
)


async def test_a_history_of_another_provider_is_sent_without_what_only_that_one_reads(
    router: respx.MockRouter,
) -> None:
    plain: list[dict[str, Any]] = [
        {"text": "no"},
        {"text": "spoken"},
        {"functionCall": {"id": "c1", "name": "t", "args": {}}},
        {"functionCall": {"id": "c2", "name": "t", "args": {}}},
    ]
    assert (await sent(router, HI, FOREIGN))[1]["parts"] == plain
    # Gemini 3 wants the first call of a turn signed, or told to be of another model.
    first = {**plain[2], "thoughtSignature": "skip_thought_signature_validator"}
    third = await sent(router, HI, FOREIGN, name="gemini-3-flash-preview")
    assert third[1]["parts"] == [*plain[:2], first, plain[3]]


async def test_a_request_without_a_user_is_refused() -> None:
    assert "without a message of the user" in await refused(SystemMessage(content="x"))


async def test_a_message_is_encoded_anew_when_its_list_has_grown(
    router: respx.MockRouter,
) -> None:
    message = UserMessage(content=[TextBlock(text="a")])
    async with model() as asked:
        for texts in (["a"], ["a", "b"]):
            if len(texts) == 2:
                message.content.append(TextBlock(text="b"))
            await asked.invoke(ModelRequest(messages=[message]))
            body = orjson.loads(router.calls.last.request.content)
            assert body["contents"][0]["parts"] == [{"text": text} for text in texts]


async def test_a_result_whose_call_gets_another_name_is_encoded_anew(
    router: respx.MockRouter,
) -> None:
    result = ToolMessage(tool_call_id="c1", content="x")
    async with model() as asked:
        for name in ("t", "u"):
            call = AssistantMessage(content=[ToolCallBlock(id="c1", name=name)])
            await asked.invoke(ModelRequest(messages=[HI, call, result]))
            body = orjson.loads(router.calls.last.request.content)
            assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == name


async def test_what_was_encoded_is_forgotten_with_its_message(router: respx.MockRouter) -> None:
    async with model() as asked:
        for text in ("a", "b"):
            await asked.invoke(ModelRequest(messages=[UserMessage(content=text)]))
            gc.collect()
            body = orjson.loads(router.calls.last.request.content)
            assert body["contents"] == [{"role": "user", "parts": [{"text": text}]}]


# Media


async def test_media_are_sent_as_data_or_as_addresses(router: respx.MockRouter) -> None:
    assert await parts_of(
        router,
        ImageBlock(data="QUI=", media_type="image/png"),
        ImageBlock(url="data:image/webp;base64,QUJD"),
        ImageBlock(url="https://a.example/cat.jpg?x=1"),
        FileBlock(url="https://a.example/doc", media_type="application/pdf"),
        FileBlock(url="gs://bucket/unknown"),
        AudioBlock(data="QUI=", media_type="audio/wav"),
        FileBlock(file_id="files/abc", media_type="text/csv"),
        FileBlock(file_id="https://host.example/files/abc"),
    ) == [
        {"inlineData": {"mimeType": "image/png", "data": "QUI="}},
        {"inlineData": {"mimeType": "image/webp", "data": "QUJD"}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://a.example/cat.jpg?x=1"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/doc"}},
        {"fileData": {"fileUri": "gs://bucket/unknown"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "QUI="}},
        {"fileData": {"mimeType": "text/csv", "fileUri": f"{URL}/files/abc"}},
        {"fileData": {"fileUri": "https://host.example/files/abc"}},
    ]


@pytest.mark.parametrize("url", ["data:image/png,plain", "data:;base64,QUI=", "data:image/png"])
async def test_a_data_uri_without_base64_or_type_is_refused(url: str) -> None:
    message = await refused(UserMessage(content=[ImageBlock(url=url)]))
    assert "`image` block in a user message" in message


async def test_media_in_a_system_message_are_refused() -> None:
    picture = ImageBlock(data="QUI=", media_type="image/png")
    assert "in a system message" in await refused(SystemMessage(content=[picture]), HI)


async def test_pictures_of_tools_stand_in_the_result_where_the_model_takes_them(
    router: respx.MockRouter,
) -> None:
    picture = ImageBlock(data="QUI=", media_type="image/png")
    linked = ImageBlock(url="https://a.example/b.png")
    history: list[Message] = [
        HI,
        ToolMessage(tool_call_id="c1", name="t", content=[TextBlock(text="here"), picture]),
        ToolMessage(tool_call_id="c2", name="u", content=[linked]),
    ]
    inline = {"inlineData": {"mimeType": "image/png", "data": "QUI="}}
    address = {"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/b.png"}}
    first: dict[str, Any] = {"id": "c1", "name": "t", "response": {"output": "here"}}
    second = {"id": "c2", "name": "u", "response": {"output": "See what follows the results."}}
    assert (await sent(router, *history))[1]["parts"] == [
        {"functionResponse": first},
        {"functionResponse": second},
        {"text": "What `t` returned:"},
        inline,
        {"text": "What `u` returned:"},
        address,
    ]
    assert (await sent(router, *history, name="gemini-3-pro-preview"))[1]["parts"] == [
        {"functionResponse": {**first, "parts": [inline]}},
        {"functionResponse": second},
        {"text": "What `u` returned:"},
        address,
    ]
