"""A conversation that was started on one adapter continues on any other: all pairs of them."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
import respx

from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    FileBlock,
    ImageBlock,
    Message,
    SystemMessage,
    TextBlock,
    ToolMessage,
    UserMessage,
    dump_messages,
    load_messages,
)
from tinyagents.harness.model import ModelProfile, ModelRequest, ToolSchema
from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)

Adapter = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel | GeminiModel | OllamaModel
Json = dict[str, Any]
Read = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]  # calls, results
KEY = "the-key-of-a-test"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
LOOK = ToolSchema(name="look", description="Looks.", parameters={"type": "object"})
FOUND = ["a cat", "a dog"]
OPENING: list[Message] = [
    SystemMessage(content="Be brief."),
    UserMessage(content=[TextBlock(text="What?"), ImageBlock(data=PNG, media_type="image/png")]),
]
QWEN = ModelProfile.permissive("ollama", "qwen3-vl")


class Case(NamedTuple):
    """A provider: its model, what it answers, and how its requests are read."""

    name: str
    model: Callable[[], Adapter]
    read: Callable[[Json], Read]
    private: tuple[str, ...]
    """What nobody else can read, as it stands in a request that gives it back."""
    answer: str
    ids: str = r".+"  # of the calls that it takes


def told(items: Iterable[Json], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(item[field] for field in fields) for item in items]


def read_chat(body: Json) -> Read:
    calls = [{**c, **c["function"]} for m in body["messages"] for c in m.get("tool_calls", ())]
    results = [m for m in body["messages"] if m["role"] == "tool"]
    return parsed(told(calls, "id", "name", "arguments")), told(results, "tool_call_id", "content")


def read_responses(body: Json) -> Read:
    calls = [item for item in body["input"] if item.get("type") == "function_call"]
    results = [item for item in body["input"] if item.get("type") == "function_call_output"]
    return parsed(told(calls, "call_id", "name", "arguments")), told(results, "call_id", "output")


def parsed(calls: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(given, name, orjson.loads(arguments)) for given, name, arguments in calls]


def read_anthropic(body: Json) -> Read:
    parts = [part for m in body["messages"] for part in m["content"]]
    calls = [part for part in parts if part["type"] == "tool_use"]
    results = [part for part in parts if part["type"] == "tool_result"]
    return told(calls, "id", "name", "input"), told(results, "tool_use_id", "content")


def read_gemini(body: Json) -> Read:
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert {result["name"] for result in results} == {"look"}
    found = [{**result, **result["response"]} for result in results]
    return told(calls, "id", "name", "args"), told(found, "id", "output")


def read_ollama(body: Json) -> Read:
    calls = [{**c, **c["function"]} for m in body["messages"] for c in m.get("tool_calls", ())]
    results = [m for m in body["messages"] if m["role"] == "tool"]
    assert {result["tool_name"] for result in results} == {"look"}
    return told(calls, "id", "name", "arguments"), told(results, "tool_call_id", "content")


CASES = (
    Case(
        "openrouter",
        lambda: OpenAIChatModel("anthropic/claude-sonnet-4.5", provider="openrouter", api_key=KEY),
        read_chat,
        ("routed thought", "routed-seal", "routed-secret", "routed-item", "functions.look:0"),
        """{"id": "answer-id", "choices": [{"finish_reason": "tool_calls", "message": {
          "role": "assistant", "content": "I look.", "reasoning": "routed thought",
          "reasoning_details": [
            {"type": "reasoning.text", "text": "routed thought", "signature": "routed-seal"},
            {"type": "reasoning.encrypted", "data": "routed-secret", "id": "routed-item"}],
          "tool_calls": [
            {"id": "functions.look:0", "function": {"name": "look", "arguments": "{\\"side\\":\\"left\\"}"}},
            {"id": "functions.look:1", "function": {"name": "look", "arguments": "{\\"side\\":\\"right\\"}"}}]}}]}""",
        ids=r"[\w.:+/=-]+",
    ),
    Case(
        "anthropic_chat",
        lambda: OpenAIChatModel("claude-sonnet-4-5", provider="anthropic", api_key=KEY),
        read_chat,
        ("chat.look:0", '"mark"'),
        """{"id": "answer-id", "choices": [{"finish_reason": "tool_calls", "message": {
          "role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "chat.look:0", "mark": 1,
             "function": {"name": "look", "arguments": "{\\"side\\":\\"left\\"}"}},
            {"id": "chat.look:1",
             "function": {"name": "look", "arguments": "{\\"side\\":\\"right\\"}"}}]}}]}""",
    ),
    Case(
        "mistral",
        lambda: OpenAIChatModel("magistral-medium-latest", provider="mistral", api_key=KEY),
        read_chat,
        ("windy thought", "windy-seal"),
        """{"id": "answer-id", "choices": [{"finish_reason": "tool_calls", "message": {
          "role": "assistant", "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "windy thought"}],
             "signature": "windy-seal"},
            {"type": "text", "text": "I look."}],
          "tool_calls": [
            {"id": "D681PevKs", "function": {"name": "look", "arguments": {"side": "left"}}},
            {"id": "q1W2e3R4t", "function": {"name": "look", "arguments": {"side": "right"}}}]}}]}""",
        ids=r"[A-Za-z0-9]{9}",
    ),
    Case(
        "openai_responses",
        lambda: OpenAIResponsesModel("gpt-5-mini", api_key=KEY),
        read_responses,
        ("open thought", "open-secret", "rs_1", "msg_1", "fc_1", "fc_2"),
        """{"id": "answer-id", "status": "completed", "output": [
          {"id": "rs_1", "type": "reasoning", "encrypted_content": "open-secret",
           "summary": [{"type": "summary_text", "text": "open thought"}]},
          {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
           "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
          {"id": "fc_1", "type": "function_call", "call_id": "call_left", "name": "look",
           "arguments": "{\\"side\\":\\"left\\"}", "status": "completed"},
          {"id": "fc_2", "type": "function_call", "call_id": "call_right", "name": "look",
           "arguments": "{\\"side\\":\\"right\\"}", "status": "completed"}]}""",
        ids=r".{1,64}",
    ),
    Case(
        "anthropic",
        lambda: AnthropicModel("claude-sonnet-4-5", api_key=KEY),
        read_anthropic,
        ("human thought", "human-seal", "human-secret", '"caller"'),
        """{"id": "answer-id", "type": "message", "role": "assistant", "stop_reason": "tool_use",
         "usage": {"input_tokens": 3, "output_tokens": 9}, "content": [
          {"type": "thinking", "thinking": "human thought", "signature": "human-seal"},
          {"type": "redacted_thinking", "data": "human-secret"},
          {"type": "text", "text": "I look."},
          {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"side": "left"},
           "caller": {"type": "direct"}},
          {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"side": "right"},
           "caller": {"type": "direct"}}]}""",
        ids=r"[A-Za-z0-9_-]+",
    ),
    Case(
        "gemini",
        lambda: GeminiModel("gemini-3-flash-preview", api_key=KEY),
        read_gemini,
        ("twin thought", "twin-text-seal", "twin-call-seal"),
        """{"responseId": "answer-id", "candidates": [{"finishReason": "STOP", "content": {
          "role": "model", "parts": [
            {"text": "twin thought", "thought": true},
            {"text": "I look.", "thoughtSignature": "twin-text-seal"},
            {"functionCall": {"name": "look", "args": {"side": "left"}},
             "thoughtSignature": "twin-call-seal"},
            {"functionCall": {"name": "look", "args": {"side": "right"}}}]}}]}""",
    ),
    Case(
        "ollama",
        lambda: OllamaModel("qwen3-vl", base_url="http://localhost:11434", profile=QWEN),
        read_ollama,
        ("woolly thought", '"index":0', '"index":1'),
        """{"done": true, "done_reason": "stop", "message": {
          "role": "assistant", "content": "I look.", "thinking": "woolly thought", "tool_calls": [
            {"id": "c0", "function": {"index": 0, "name": "look", "arguments": {"side": "left"}}},
            {"id": "c1", "function": {"index": 1, "name": "look", "arguments": {"side": "right"}}}]}}""",
    ),
)
ALL = [pytest.param(a, b, id=f"{a.name}-to-{b.name}") for a in CASES for b in CASES]
every_pair = pytest.mark.parametrize(("a", "b"), ALL)
every_two = pytest.mark.parametrize(("a", "b"), [p for p in ALL if p.values[0] != p.values[1]])


async def send(case: Case, messages: list[Message]) -> tuple[str, AssistantMessage]:
    """Send a conversation; return the body of the request, and the answer."""
    with respx.mock as router:
        router.post().mock(return_value=httpx.Response(200, text=case.answer))
        async with case.model() as model:
            response = await model.invoke(ModelRequest(messages=messages, tools=[LOOK]))
        return router.calls.last.request.content.decode(), response.message


async def answered(case: Case, messages: list[Message]) -> list[Message]:
    """Return the conversation with the provider's next answer and the results of its calls."""
    message = (await send(case, messages))[1]
    pairs = zip(message.tool_calls, FOUND, strict=True)
    results = [ToolMessage(tool_call_id=call.id, content=found) for call, found in pairs]
    conversation = [*messages, message, *results]
    loaded = load_messages(dump_messages(conversation))
    assert loaded == conversation
    return loaded


@every_pair
async def test_all_that_was_said_called_and_found_is_told_to_the_next(a: Case, b: Case) -> None:
    body, answer = await send(b, await answered(a, OPENING))
    assert [body.count(each) for each in ('"Be brief."', '"What?"', PNG, '"I look."')] == [1] * 4
    calls, results = b.read(orjson.loads(body))
    ids = [call[0] for call in calls]
    assert calls == [(ids[0], "look", {"side": "left"}), (ids[1], "look", {"side": "right"})]
    assert results == [*zip(ids, FOUND, strict=True)]
    assert ids[0] != ids[1]
    assert all(re.fullmatch(b.ids, each) for each in ids)
    assert '"Looks."' in body
    assert (answer.text, len(answer.tool_calls)) == ("I look.", 2)


@every_pair
async def test_what_only_one_provider_reads_is_sent_to_it_and_to_no_other(a: Case, b: Case) -> None:
    body = (await send(b, await answered(a, OPENING)))[0]
    assert [each for each in a.private if each in body] == ([*a.private] if a is b else [])
    assert "answer-id" not in body


@every_pair
async def test_sending_leaves_the_messages_as_they_were(a: Case, b: Case) -> None:
    messages = await answered(a, OPENING)
    before = dump_messages(messages)
    await send(b, messages)
    assert dump_messages(messages) == before


@every_two
async def test_who_is_returned_to_gets_its_own_private_data_alone(a: Case, b: Case) -> None:
    body = (await send(a, await answered(b, await answered(a, OPENING))))[0]
    calls, results = a.read(orjson.loads(body))
    assert [call[0] for call in calls] == [result[0] for result in results]
    assert len({call[0] for call in calls}) == 4
    assert [each for each in a.private if each not in body] == []
    assert [each for each in b.private if each in body] == []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_picture_and_a_file_that_another_model_made_do_not_end_the_conversation(
    case: Case,
) -> None:
    picture = ImageBlock(data=PNG, media_type="image/png", provider_data={"painter": {"a": "seal"}})
    file = FileBlock(data="eA==", media_type="application/zip", name="a.zip")
    sound = AudioBlock(data="eA==", media_type="audio/wav", transcript="Spoken.")
    painted = AssistantMessage(content=[TextBlock(text="Here."), picture, file, sound])
    again = UserMessage(content="Now brighter.")
    body = (await send(case, [*OPENING[:1], again, painted, again]))[0]
    assert "Here." in body
    assert PNG in body or "[An image (image/png) was left out" in body
    assert "eA==" in body or ("[A file (a.zip, application/zip) was left out" in body)
    assert "Spoken." in body or body.count("eA==") == 2
    assert "seal" not in body
