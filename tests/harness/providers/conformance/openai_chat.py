"""How answers look on the wire of Chat Completions."""

from typing import Any

from tinyagents.harness.message import AssistantMessage, ToolCallBlock
from tinyagents.harness.model import ModelResponse
from tinyagents.harness.text import dump_json
from tinyagents.testkit.conformance import WireAnswer, cut

REASONS = {"refusal": "stop", None: "stop"}


def encode(answer: ModelResponse, *, stream: bool) -> WireAnswer:
    head = {"id": answer.response_id, "model": answer.model, "usage": usage(answer)}
    finish = REASONS.get(answer.finish_reason, answer.finish_reason)
    if not stream:
        choice = {"index": 0, "message": whole(answer.message), "finish_reason": finish}
        return WireAnswer.json({**head, "object": "chat.completion", "choices": [choice]})
    head["object"] = "chat.completion.chunk"
    choices = [{"index": 0, "delta": delta} for delta in deltas(answer.message)]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    chunks = [{**head, "usage": None, "choices": [choice]} for choice in choices]
    return WireAnswer.events([*chunks, {**head, "choices": []}], done="[DONE]")


def whole(message: AssistantMessage) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if reasoning(message):
        sent["reasoning_content"] = reasoning(message)
    if message.refusal:
        sent["refusal"] = message.refusal
    if message.tool_calls:
        sent["tool_calls"] = [
            called(block.id, block.name, arguments(block)) for block in message.tool_calls
        ]
    return sent


def deltas(message: AssistantMessage) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    sent += [{"reasoning_content": piece} for piece in cut(reasoning(message))]
    sent += [{"content": piece} for piece in cut(message.text)]
    sent += [{"refusal": piece} for piece in cut(message.refusal or "")]
    for index, block in enumerate(message.tool_calls):
        sent.append({"tool_calls": [{"index": index, **called(block.id, block.name, "")}]})
        sent += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in cut(arguments(block))
        ]
    return sent


def called(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def arguments(block: ToolCallBlock) -> str:
    return block.invalid.raw if block.invalid else dump_json(block.arguments)


def reasoning(message: AssistantMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "reasoning")


def usage(answer: ModelResponse) -> dict[str, Any] | None:
    used = answer.usage
    if used is None:
        return None
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.total_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }


def sent_ids(body: Any) -> tuple[list[str], list[str]]:
    calls = [call["id"] for said in body["messages"] for call in said.get("tool_calls", ())]
    return calls, [said["tool_call_id"] for said in body["messages"] if said["role"] == "tool"]
