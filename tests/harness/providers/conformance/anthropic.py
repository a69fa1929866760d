"""How answers look on the wire of Anthropic's Messages API."""

from typing import Any

from tinyagents.harness.message import Block
from tinyagents.harness.model import ModelResponse
from tinyagents.harness.text import dump_json
from tinyagents.testkit.conformance import WireAnswer, cut

REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def encode(answer: ModelResponse, *, stream: bool) -> WireAnswer:
    if answer.refusal is not None:
        raise NotImplementedError("the Messages API has no words for a refusal, only a reason")
    said = {"id": answer.response_id, "type": "message", "role": "assistant", "model": "served"}
    reason = REASONS[answer.finish_reason or "stop"]
    blocks = answer.message.content
    if not stream:
        content = [whole(block) for block in blocks]
        return WireAnswer.json(
            {**said, "content": content, "stop_reason": reason, "usage": usage(answer)}
        )
    begun: dict[str, Any] = {
        **said,
        "content": [],
        "stop_reason": None,
        "usage": {**usage(answer), "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        events += streamed(index, block)
    delta = {"stop_reason": reason, "stop_sequence": None}
    used = {"output_tokens": usage(answer)["output_tokens"]}
    events.append({"type": "message_delta", "delta": delta, "usage": used})
    return WireAnswer.events([*events, {"type": "message_stop"}], named_by="type")


def whole(block: Block) -> dict[str, Any]:
    match block.type:
        case "text":
            return {"type": "text", "text": block.text}
        case "reasoning":
            return {
                "type": "thinking",
                "thinking": block.text,
                "signature": block.signature or "seal",
            }
        case "tool_call":
            if block.invalid:
                raise NotImplementedError("the arguments of a whole answer are JSON values")
            return {
                "type": "tool_use",
                "id": block.id,
                "name": block.name,
                "input": block.arguments,
            }
        case _:
            raise NotImplementedError(f"no form for {block.type}")


def streamed(index: int, block: Block) -> list[dict[str, Any]]:
    match block.type:
        case "text":
            begun: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in cut(block.text)]
        case "reasoning":
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in cut(block.text)]
            deltas.append({"type": "signature_delta", "signature": block.signature or "seal"})
        case "tool_call":
            begun = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            written = block.invalid.raw if block.invalid else dump_json(block.arguments)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in cut(written)]
        case _:
            raise NotImplementedError(f"no form for {block.type}")
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def usage(answer: ModelResponse) -> dict[str, Any]:
    used = answer.usage
    assert used is not None
    return {
        "input_tokens": used.fresh_input_tokens,
        "cache_read_input_tokens": used.cache_read_tokens,
        "cache_creation_input_tokens": used.cache_write_tokens,
        "output_tokens": used.output_tokens,
    }


def sent_ids(body: Any) -> tuple[list[str], list[str]]:
    parts = [part for said in body["messages"] for part in said["content"]]
    calls = [part["id"] for part in parts if part["type"] == "tool_use"]
    return calls, [part["tool_use_id"] for part in parts if part["type"] == "tool_result"]
