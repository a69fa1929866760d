"""How answers look on the wire of Ollama's ``/api/chat``."""

from typing import Any

from tinyagents.harness.message import ToolCallBlock
from tinyagents.harness.model import ModelResponse
from tinyagents.testkit.conformance import WireAnswer, WireRequest, cut

REASONS = {"stop": "stop", "tool_calls": "stop", "length": "length"}


def encode(answer: ModelResponse, *, stream: bool) -> WireAnswer:
    if answer.refusal is not None:
        raise NotImplementedError("Ollama's models do not tell a refusal from an answer")
    message = answer.message
    calls = [called(index, block) for index, block in enumerate(message.tool_calls)]
    thought = "".join(block.text for block in message.content if block.type == "reasoning")
    ended = {"done": True, "done_reason": REASONS[answer.finish_reason or "stop"], **usage(answer)}
    if not stream:
        said: dict[str, Any] = {"content": message.text}
        said |= {"thinking": thought} if thought else {}
        said |= {"tool_calls": calls} if calls else {}
        return WireAnswer.json({**chunk(said), **ended})
    lines = [chunk({"content": "", "thinking": piece}) for piece in cut(thought)]
    lines += [chunk({"content": piece}) for piece in cut(message.text)]
    lines += [chunk({"content": "", "tool_calls": [call]}) for call in calls]
    return WireAnswer.lines([*lines, {**chunk({"content": ""}), **ended}])


def chunk(said: dict[str, Any]) -> dict[str, Any]:
    return {"model": "served", "message": {"role": "assistant", **said}, "done": False}


def called(index: int, block: ToolCallBlock) -> dict[str, Any]:
    if block.invalid:
        raise NotImplementedError("the arguments of Ollama's calls are JSON values")
    function = {"index": index, "name": block.name, "arguments": block.arguments}
    return {"id": block.id, "function": function}


def usage(answer: ModelResponse) -> dict[str, Any]:
    used = answer.usage
    assert used is not None
    return {"prompt_eval_count": used.input_tokens, "eval_count": used.output_tokens}


def is_stream(request: WireRequest) -> bool:
    return request.document.get("stream") is not False


def sent_ids(body: Any) -> tuple[list[str], list[str]]:
    calls = [call["id"] for said in body["messages"] for call in said.get("tool_calls", ())]
    return calls, [said["tool_call_id"] for said in body["messages"] if said["role"] == "tool"]
