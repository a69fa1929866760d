"""How answers look on the wire of OpenAI's Responses API."""

from collections.abc import Iterator
from typing import Any

from tinyagents.harness.message import Block
from tinyagents.harness.model import ModelResponse
from tinyagents.harness.text import dump_json
from tinyagents.testkit.conformance import WireAnswer, cut


def encode(answer: ModelResponse, *, stream: bool) -> WireAnswer:
    items = [item(index, block) for index, block in enumerate(answer.message.content)]
    cut_off = answer.finish_reason == "length"
    status = "incomplete" if cut_off else "completed"
    head = {"id": answer.response_id, "object": "response", "model": "served"}
    whole = {**head, "status": status, "output": items, "usage": usage(answer)}
    if cut_off:
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    if not stream:
        return WireAnswer.json(whole)
    begun: dict[str, Any] = {**head, "status": "in_progress", "output": [], "usage": None}
    events = [event("created", response=begun), event("in_progress", response=begun)]
    for index, each in enumerate(items):
        events += streamed(index, each)
    return WireAnswer.events([*events, event(status, response=whole)], named_by="type")


def item(index: int, block: Block) -> dict[str, Any]:
    said = {"type": "message", "id": f"msg_{index}", "role": "assistant", "status": "completed"}
    match block.type:
        case "text":
            part: dict[str, Any] = {"type": "output_text", "text": block.text, "annotations": []}
            return {**said, "content": [part]}
        case "refusal":
            return {**said, "content": [{"type": "refusal", "refusal": block.text}]}
        case "reasoning":
            summary = [{"type": "summary_text", "text": block.text}]
            sealed = {"encrypted_content": block.signature} if block.signature else {}
            return {"type": "reasoning", "id": f"rs_{index}", "summary": summary, **sealed}
        case "tool_call":
            written = block.invalid.raw if block.invalid else dump_json(block.arguments)
            return {
                "type": "function_call",
                "id": f"fc_{index}",
                "call_id": block.id,
                "name": block.name,
                "arguments": written,
                "status": "completed",
            }
        case _:
            raise NotImplementedError(f"no form for {block.type}")


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def streamed(index: int, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty = {
        name: "" if name == "arguments" else [] if name in ("content", "summary") else value
        for name, value in whole.items()
    }
    place = {"output_index": index, "item_id": whole["id"]}
    yield event("output_item.added", output_index=index, item=empty)
    for part in whole.get("summary", ()):
        yield from deltas("reasoning_summary_text", part["text"], summary_index=0, **place)
    for part in whole.get("content", ()):
        kind = part["type"]
        yield from deltas(kind, part.get("text") or part.get("refusal"), content_index=0, **place)
    if "arguments" in whole:
        yield from deltas("function_call_arguments", whole["arguments"], **place)
    yield event("output_item.done", output_index=index, item=whole)


def deltas(kind: str, text: str, **place: Any) -> Iterator[dict[str, Any]]:
    return (event(f"{kind}.delta", delta=piece, **place) for piece in cut(text))


def usage(answer: ModelResponse) -> dict[str, Any]:
    used = answer.usage
    assert used is not None
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": used.cache_read_tokens},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.total_tokens,
    }


def sent_ids(body: Any) -> tuple[list[str], list[str]]:
    calls = [each["call_id"] for each in body["input"] if each.get("type") == "function_call"]
    results = [each for each in body["input"] if each.get("type") == "function_call_output"]
    return calls, [each["call_id"] for each in results]
