"""How answers look on the wire of Gemini's ``generateContent``."""

from typing import Any

from tinyagents.harness.message import Block
from tinyagents.harness.model import ModelResponse
from tinyagents.testkit.conformance import WireAnswer, WireRequest, cut

REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}


def encode(answer: ModelResponse, *, stream: bool) -> WireAnswer:
    if answer.refusal is not None:
        raise NotImplementedError("Gemini has no words for a refusal, only a reason")
    head = {
        "responseId": answer.response_id,
        "modelVersion": "served",
        "usageMetadata": usage(answer),
    }
    reason = REASONS[answer.finish_reason or "stop"]
    blocks = answer.message.content
    sealed = (block.signature for block in blocks if block.type == "reasoning")
    seal = next(filter(None, sealed), "c2VhbA==")
    parts = [part for block in blocks for part in parts_of(block, seal, stream=stream)]
    if not stream:
        return WireAnswer.json({**head, "candidates": [candidate(parts, finishReason=reason)]})
    chunks = [{"candidates": [candidate([part])]} for part in parts]
    ended = {"candidates": [candidate([{"text": ""}], finishReason=reason)]}
    return WireAnswer.events([{**head, **chunk} for chunk in (*chunks, ended)])


def candidate(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, "index": 0, **more}


def parts_of(block: Block, seal: str, *, stream: bool) -> list[dict[str, Any]]:
    match block.type:
        case "text":
            return [{"text": piece} for piece in (cut(block.text) if stream else [block.text])]
        case "reasoning":
            pieces = cut(block.text) if stream else [block.text]
            return [{"text": piece, "thought": True} for piece in pieces]
        case "tool_call":
            if block.invalid:
                raise NotImplementedError("the arguments of Gemini's calls are JSON values")
            called = {"id": block.id, "name": block.name, "args": block.arguments}
            return [{"functionCall": called, "thoughtSignature": seal}]
        case _:
            raise NotImplementedError(f"no form for {block.type}")


def usage(answer: ModelResponse) -> dict[str, Any]:
    used = answer.usage
    assert used is not None
    return {
        "promptTokenCount": used.input_tokens,
        "cachedContentTokenCount": used.cache_read_tokens,
        "candidatesTokenCount": used.output_tokens - used.reasoning_tokens,
        "thoughtsTokenCount": used.reasoning_tokens,
        "totalTokenCount": used.total_tokens,
    }


def is_stream(request: WireRequest) -> bool:
    return ":streamGenerateContent" in request.target


def sent_ids(body: Any) -> tuple[list[str], list[str]]:
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    return calls, [p["functionResponse"]["id"] for p in parts if "functionResponse" in p]
