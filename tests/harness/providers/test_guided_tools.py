"""Tools at servers that take none: they are told in the prompt, once the server has refused them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.harness.providers.server import Reply, Seen, serve
from tinyagents import AgentHarness, tool
from tinyagents.harness.errors import BadRequestError
from tinyagents.harness.events import ModelAdapted
from tinyagents.harness.message import (
    AssistantMessage,
    Message,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
from tinyagents.harness.model import ModelRequest, ModelResponse, StreamCompleted, ToolSchema, drain
from tinyagents.harness.providers import (
    PROVIDERS,
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from tinyagents.testkit import assert_event_grammar

Model = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel | GeminiModel | OllamaModel
Json = dict[str, Any]

LOOK = ToolSchema(
    name="look",
    description="Looks at a place.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}},
)
HI = UserMessage(content="What is there?")
REQUEST = ModelRequest([HI], [LOOK])
CALL = '<tool_call>\n{"name":"look","arguments":{"place":"here"}}\n</tool_call>'


def chat_answer(text: str, seen: Seen) -> Reply:
    choice: Json = {"message": {"content": text}, "finish_reason": "stop"}
    if not seen.document.get("stream"):
        return Reply.json({"choices": [choice]})
    return Reply.events(
        *({"choices": [{"index": 0, "delta": {"content": part}}]} for part in (text[:7], text[7:])),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    )


def responses_answer(text: str, seen: Seen) -> Reply:
    part = {"type": "output_text", "text": text, "annotations": list[str]()}
    output = [{"type": "message", "id": "m1", "content": [part]}]
    whole = {"id": "r1", "status": "completed", "output": output}
    if not seen.document.get("stream"):
        return Reply.json(whole)
    return Reply.events({"type": "response.completed", "response": whole}, done=False)


def ollama_answer(text: str, seen: Seen) -> Reply:
    return Reply.json({"message": {"content": text}, "done": True, "done_reason": "stop"})


def anthropic_answer(text: str, seen: Seen) -> Reply:
    if not seen.document.get("stream"):
        content = [{"type": "text", "text": text}]
        return Reply.json({"type": "message", "content": content, "stop_reason": "end_turn"})
    return Reply.events(
        {"type": "message_start", "message": {"id": "m1", "content": list[str]()}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
        done=False,
    )


def gemini_answer(text: str, seen: Seen) -> Reply:
    content = {"role": "model", "parts": [{"text": text}]}
    answer = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    return Reply.events(answer, done=False) if "stream" in seen.path else Reply.json(answer)


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server without tools: how it is called, refuses and answers."""

    model: Callable[[str], Model]
    refusal: Reply
    answer: Callable[[str, Seen], Reply]

    def script(self, *texts: str) -> Callable[[Seen], Reply]:
        said = iter(texts)

        def reply(seen: Seen) -> Reply:
            return self.refusal if "tools" in seen.document else self.answer(next(said), seen)

        return reply


def chat(url: str) -> OpenAIChatModel:
    return OpenAIChatModel("m", provider="compatible", base_url=f"{url}/v1")


def told(message: str, *, status: int = 400, **more: Any) -> Reply:
    return Reply.json({"error": {"message": message, **more}}, status=status)


SERVERS = {
    "ollama": Server(
        model=lambda url: OllamaModel("gemma3:4b", base_url=url),
        refusal=Reply.json(
            {"error": "registry.ollama.ai/library/gemma3:4b does not support tools"}, status=400
        ),
        answer=ollama_answer,
    ),
    "ollama's surface": Server(
        model=lambda url: OpenAIChatModel("gemma3:4b", provider="ollama", base_url=url),
        refusal=told("registry.ollama.ai/library/gemma3:4b does not support tools", param=None),
        answer=chat_answer,
    ),
    "vllm": Server(
        model=lambda url: OpenAIChatModel("m", provider="vllm", base_url=url),
        refusal=Reply.json(
            {
                "object": "error",
                "message": '"auto" tool choice requires --enable-auto-tool-choice and '
                "--tool-call-parser to be set",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
            status=400,
        ),
        answer=chat_answer,
    ),
    "llama.cpp": Server(
        model=lambda url: OpenAIChatModel("m", provider="llama_cpp", base_url=url),
        refusal=told("tools param requires --jinja flag", status=500, type="server_error"),
        answer=chat_answer,
    ),
    "groq": Server(
        model=chat,
        refusal=told("`tool calling` is not supported with this model", code="invalid_request"),
        answer=chat_answer,
    ),
    "openrouter": Server(
        model=chat,
        refusal=told("No endpoints found that support tool use. See …", status=404, code=404),
        answer=chat_answer,
    ),
    "a gateway": Server(
        model=chat,
        refusal=told("Unrecognized request argument supplied: tools", param="tools"),
        answer=chat_answer,
    ),
    "a responses gateway": Server(
        model=lambda url: OpenAIResponsesModel("m", provider="compatible", base_url=url),
        refusal=told("Unknown parameter: 'tools'.", param="tools"),
        answer=responses_answer,
    ),
    "a messages gateway": Server(
        model=lambda url: AnthropicModel("m", provider="compatible", base_url=url, api_key=""),
        refusal=told("tools: Extra inputs are not permitted", type="invalid_request_error"),
        answer=anthropic_answer,
    ),
    "gemini": Server(
        model=lambda url: GeminiModel("gemma-3-27b-it", base_url=url, api_key="k"),
        refusal=told(
            "Function calling is not enabled for models/gemma-3-27b-it",
            code=400,
            status_="INVALID_ARGUMENT",
        ),
        answer=gemini_answer,
    ),
}


async def ask(model: Model, request: ModelRequest, *, stream: bool) -> ModelResponse:
    return await (drain(model.stream(request)) if stream else model.invoke(request))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", SERVERS)
async def test_a_server_without_tools_is_told_of_them_in_the_prompt(
    name: str, stream: bool
) -> None:
    case = SERVERS[name]
    async with serve(case.script(CALL, "nothing", CALL)) as server, case.model(server.url) as model:
        first = await ask(model, REQUEST, stream=stream)
        second = await ask(model, REQUEST, stream=stream)
        third = await ask(model, REQUEST, stream=stream)
    assert ["tools" in seen.document for seen in server.requests] == [True, False, False, False]
    assert b"Looks at a place." in server.requests[1].body
    (known,) = model.adaptations
    assert known.shape == "native_tools"
    for response in (first, third):
        (call,) = response.message.tool_calls
        assert (call.name, call.arguments) == ("look", {"place": "here"})
        assert call.id
        assert response.text == ""
        assert response.finish_reason == "tool_calls"
    assert second.text == "nothing"
    for response in (first, second, third):
        assert response.notices == (known.notice,)


async def test_the_text_of_a_call_is_not_streamed() -> None:
    case = SERVERS["groq"]
    async with serve(case.script(f"I look.\n{CALL}")) as server, chat(server.url) as model:
        items = [item async for item in model.stream(REQUEST)]
    shown = "".join(getattr(item, "text", "") for item in items[:-1])
    assert shown.strip() == "I look."
    assert isinstance(items[-1], StreamCompleted)
    assert len([item for item in items if isinstance(item, StreamCompleted)]) == 1


async def test_a_history_with_calls_is_told_as_text_from_then_on() -> None:
    call = ToolCallBlock(id="c1", name="look", arguments={"place": "here"})
    history: list[Message] = [
        HI,
        AssistantMessage(content=[call]),
        ToolMessage(tool_call_id="c1", name="look", content="a cat"),
    ]
    case = SERVERS["groq"]
    async with serve(case.script(CALL, "A cat.", "A cat.")) as server, chat(server.url) as model:
        await model.invoke(REQUEST)
        await model.invoke(ModelRequest(history, [LOOK]))
        await model.invoke(ModelRequest(history))
    for seen in server.requests[-2:]:
        assert {message["role"] for message in seen.document["messages"]} <= {
            "system",
            "user",
            "assistant",
        }
        assert b"a cat" in seen.body


@pytest.mark.parametrize(
    "words",
    [
        "`m` does not support tools",
        "`m` does not support function calling",
        "tools are not supported by this model",
        "tool use is unsupported",
        "unknown parameter: 'tools'",
        "unrecognized request argument supplied: functions",
        "invalid parameter: tools",
        "`m` has no tool support",
        "tools: Extra inputs are not permitted",
    ],
)
async def test_each_way_of_refusing_tools_is_known(words: str) -> None:
    def reply(seen: Seen) -> Reply:
        return told(words) if "tools" in seen.document else chat_answer("ok", seen)

    async with serve(reply) as server, chat(server.url) as model:
        await model.invoke(ModelRequest([HI], [LOOK]))
    assert [one.shape for one in model.adaptations] == ["native_tools"]


@pytest.mark.parametrize(
    "refusal",
    [
        told("Unsupported parameter: 'parallel_tool_calls'", param="parallel_tool_calls"),
        told("tool_choice is not supported"),
        told("Invalid schema for function 'look': 'pattern' is not supported"),
        told("Invalid 'tools[0].function.name': not supported", param="tools[0].function.name"),
        told("the model is not supported"),
        told("The model `m` does not support tools", status=403),
    ],
)
async def test_a_refusal_that_is_not_of_tools_keeps_them(refusal: Reply) -> None:
    async with serve(refusal) as server, chat(server.url) as model:
        with pytest.raises(Exception, match=r"support|schema|Invalid"):
            await model.invoke(REQUEST)
    assert len(server.requests) == 1


async def test_a_second_refusal_raises_the_first() -> None:
    replies = iter([SERVERS["groq"].refusal, told("no")])
    async with serve(lambda _: next(replies)) as server, chat(server.url) as model:
        with pytest.raises(BadRequestError, match="tool calling"):
            await model.invoke(REQUEST)
        assert model.adaptations == ()


async def test_a_preset_tells_tools_in_the_prompt_from_the_start() -> None:
    preset = replace(PROVIDERS["compatible"], native_tools=False)
    case = SERVERS["groq"]
    async with (
        serve(case.script(CALL)) as server,
        OpenAIChatModel("m", provider=preset, base_url=f"{server.url}/v1") as model,
    ):
        response = await model.invoke(REQUEST)
    assert len(server.requests) == 1
    assert [call.name for call in response.message.tool_calls] == ["look"]
    assert response.notices == ()
    assert model.profile.tool_calling
    assert model.profile.forced_tool_choice is False


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_agent_uses_tools_at_a_server_that_has_none(streamed: bool) -> None:
    @tool
    def look(place: str) -> str:
        """Look at a place."""
        return f"a cat, {place}"

    case = SERVERS["ollama's surface"]
    async with serve(case.script(CALL, "A cat.")) as server, case.model(server.url) as model:
        harness = AgentHarness(model=model, tools=[look])
        if streamed:
            run = await harness.stream(None, "What is there?").result()
        else:
            run = await harness.invoke(None, "What is there?")
    assert run.text == "A cat."
    assert run.tool_calls == 1
    assert len(server.requests) == 3
    assert b"a cat, here" in server.requests[-1].body
    told = [event for event in run.events if isinstance(event, ModelAdapted)]
    assert len(told) == run.model_calls == 2
    assert_event_grammar(run.events)
