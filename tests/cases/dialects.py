"""The five wire formats: how each says the same answer, counts the same tokens and fails alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import pytest

from tests.harness.providers.server import Reply
from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)

Json = dict[str, Any]
Adapter = OpenAIChatModel | OpenAIResponsesModel | AnthropicModel | GeminiModel | OllamaModel
KEY = "the-key-of-a-test"


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Tokens of a call, in parts that do not overlap."""

    fresh: int = 0
    read: int = 0
    written: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """All that was sent."""
        return self.fresh + self.read + self.written


@dataclass(frozen=True, kw_only=True)
class Called:
    """A call of a tool: its arguments as the text that the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Said:
    """An answer."""

    text: str = ""
    calls: tuple[Called, ...] = ()
    cut: bool = False
    """Whether the limit of the output ended it."""
    first: Counted | None = None
    """What a stream counts at its beginning, where it counts anything there."""
    usage: Counted | None = None
    """What is counted at the end; a stream tells it last of all, beside no part of the answer."""


class Dialect(ABC):
    """A wire format."""

    name: str
    overload_event: ClassVar[Json]
    """An overload, as a stream of status 200 tells it."""
    limited: ClassVar[Json]
    """The body of a 429."""
    end: bytes = b""
    kind: str = "text/event-stream"

    @property
    def overload(self) -> Json:
        """An overload, as a document of status 200 tells it: most say it the same way."""
        return self.overload_event

    @abstractmethod
    def model(self, url: str, **options: Any) -> Adapter:
        """A model at the address."""

    @abstractmethod
    def events(self, said: Said) -> list[Json]:
        """What a stream says, text in one piece."""

    @abstractmethod
    def document(self, said: Said) -> Json:
        """The answer in one piece."""

    def frame(self, event: Json) -> bytes:
        """An event as it is on the wire."""
        return b"data: " + orjson.dumps(event) + b"\n\n"

    def bytes_of(self, events: Sequence[Json]) -> bytes:
        """A stream that ends as it should."""
        return b"".join(map(self.frame, events)) + self.end

    def streamed(self, *events: Json) -> Reply:
        """A stream, each event in a piece of its own."""
        pieces = (*map(self.frame, events), self.end)
        return Reply(pieces=tuple(filter(None, pieces)), headers={"content-type": self.kind})

    def answer(self, said: Said, *, stream: bool) -> Reply:
        """The answer in either form."""
        if stream:
            return self.streamed(*self.events(said))
        return Reply.json(self.document(said))


class Chat(Dialect):
    """Chat Completions."""

    name = "chat"
    overload_event: ClassVar[Json] = {"error": {"message": "overloaded", "code": 503}}
    limited: ClassVar[Json] = {"error": {"message": "slow down", "type": "rate_limit"}}
    end = b"data: [DONE]\n\n"

    def model(self, url: str, **options: Any) -> OpenAIChatModel:
        return OpenAIChatModel("m", **{"api_key": KEY, "base_url": f"{url}/v1", **options})

    def chunk(self, delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
        choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
        choices = [] if delta is None and finish is None else [choice]
        return {"id": "c1", "object": "chat.completion.chunk", "choices": choices, **more}

    def events(self, said: Said) -> list[Json]:
        first: Json = {"usage": self._usage(said.first)} if said.first else {}
        events = [self.chunk({"role": "assistant", "content": said.text}, **first)]
        for index, call in enumerate(self._calls(said)):
            events.append(self.chunk({"tool_calls": [{"index": index, **call}]}))
        events.append(self.chunk({}, self._finish(said)))
        return events + ([self.chunk(usage=self._usage(said.usage))] if said.usage else [])

    def document(self, said: Said) -> Json:
        message: Json = {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = self._calls(said)
        choice = {"index": 0, "message": message, "finish_reason": self._finish(said)}
        counted = {"usage": self._usage(said.usage)} if said.usage else {}
        return {"id": "c1", "object": "chat.completion", "choices": [choice], **counted}

    def _calls(self, said: Said) -> list[Json]:
        functions = ({"name": c.name, "arguments": c.arguments} for c in said.calls)
        return [
            {"id": call.id, "type": "function", "function": function}
            for call, function in zip(said.calls, functions, strict=True)
        ]

    def _finish(self, said: Said) -> str:
        return "length" if said.cut else "tool_calls" if said.calls else "stop"

    def _usage(self, counted: Counted) -> Json:
        details = {"cached_tokens": counted.read, "cache_write_tokens": counted.written}
        return {
            "prompt_tokens": counted.prompt,
            "completion_tokens": counted.output,
            "total_tokens": counted.prompt + counted.output,
            "prompt_tokens_details": details,
        }


class Responses(Dialect):
    """The Responses API."""

    name = "responses"
    overload_event: ClassVar[Json] = {
        "type": "error",
        "code": "server_error",
        "message": "overloaded",
    }
    limited: ClassVar[Json] = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}

    @property
    def overload(self) -> Json:
        failure = {"code": "server_error", "message": "overloaded"}
        return {"id": "resp_1", "status": "failed", "error": failure, "output": []}

    def model(self, url: str, **options: Any) -> OpenAIResponsesModel:
        return OpenAIResponsesModel("m", **{"api_key": KEY, "base_url": f"{url}/v1", **options})

    def frame(self, event: Json) -> bytes:
        return b"event: %s\n%s" % (event["type"].encode(), super().frame(event))

    def events(self, said: Said) -> list[Json]:
        whole = self.document(said)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        if said.first:
            begun["usage"] = self._usage(said.first)
        events: list[Json] = [{"type": "response.created", "response": begun}]
        for index, item in enumerate(whole["output"]):
            place = {"output_index": index, "item_id": item["id"]}
            empty = {**item, "status": "in_progress"}
            kind, piece = "output_text", said.text
            if item["type"] == "function_call":
                empty["arguments"] = ""
                kind, piece = "function_call_arguments", item["arguments"]
            else:
                empty["content"] = []
                place["content_index"] = 0
            events += [
                {"type": "response.output_item.added", "output_index": index, "item": empty},
                {"type": f"response.{kind}.delta", "delta": piece, **place},
                {"type": "response.output_item.done", "output_index": index, "item": item},
            ]
        return [*events, {"type": f"response.{whole['status']}", "response": whole}]

    def document(self, said: Said) -> Json:
        output: list[Json] = []
        if said.text:
            part = {"type": "output_text", "text": said.text, "annotations": []}
            told = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
            output.append({**told, "content": [part]})
        for call in said.calls:
            item = {"type": "function_call", "id": f"fc_{call.id}", "status": "completed"}
            output.append(
                {**item, "call_id": call.id, "name": call.name, "arguments": call.arguments}
            )
        made: Json = {"id": "resp_1", "model": "m", "status": "completed", "output": output}
        if said.cut:
            made |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        return {**made, "usage": self._usage(said.usage) if said.usage else None}

    def _usage(self, counted: Counted) -> Json:
        details = {"cached_tokens": counted.read, "cache_write_tokens": counted.written}
        return {
            "input_tokens": counted.prompt,
            "input_tokens_details": details,
            "output_tokens": counted.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": counted.prompt + counted.output,
        }


class Messages(Dialect):
    """Anthropic's Messages API."""

    name = "anthropic"
    overload_event: ClassVar[Json] = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    }
    limited: ClassVar[Json] = {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "slow down"},
    }

    def model(self, url: str, **options: Any) -> AnthropicModel:
        return AnthropicModel("m", **{"api_key": KEY, "base_url": url, **options})

    def frame(self, event: Json) -> bytes:
        return b"event: %s\n%s" % (event["type"].encode(), super().frame(event))

    def events(self, said: Said) -> list[Json]:
        begun = {**self.document(said), "content": [], "stop_reason": None}
        begun["usage"] = self._usage(said.first) if said.first else None
        events: list[Json] = [{"type": "message_start", "message": begun}]
        if said.text:
            delta = {"type": "text_delta", "text": said.text}
            events += self.block(0, {"type": "text", "text": ""}, delta)
        for index, call in enumerate(said.calls, start=1):
            empty = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            events += self.block(index, empty, delta)
        events.append({"type": "message_delta", "delta": {"stop_reason": self._reason(said)}})
        if said.usage:
            counted = self._usage(said.usage)
            events.append({"type": "message_delta", "delta": {}, "usage": counted})
        return [*events, {"type": "message_stop"}]

    def block(self, index: int, begun: Json, *deltas: Json) -> list[Json]:
        return [
            {"type": "content_block_start", "index": index, "content_block": begun},
            *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    def document(self, said: Said) -> Json:
        content: list[Json] = [{"type": "text", "text": said.text}] if said.text else []
        content += [
            {"type": "tool_use", "id": c.id, "name": c.name, "input": as_json(c.arguments)}
            for c in said.calls
        ]
        made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        counted = {"usage": self._usage(said.usage)} if said.usage else {}
        return {**made, "content": content, "stop_reason": self._reason(said), **counted}

    def _reason(self, said: Said) -> str:
        return "max_tokens" if said.cut else "tool_use" if said.calls else "end_turn"

    def _usage(self, counted: Counted) -> Json:
        return {
            "input_tokens": counted.fresh,
            "cache_read_input_tokens": counted.read,
            "cache_creation_input_tokens": counted.written,
            "output_tokens": counted.output,
        }


class Gemini(Dialect):
    """Google's Gemini API. It does not count what was written to its cache."""

    name = "gemini"
    overload_event: ClassVar[Json] = {
        "error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}
    }
    limited: ClassVar[Json] = {
        "error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}
    }

    def model(self, url: str, **options: Any) -> GeminiModel:
        options = {"api_key": KEY, "base_url": f"{url}/v1beta", **options}
        return GeminiModel("gemini-2.5-flash", **options)

    def chunk(self, *parts: Json, finish: str | None = None, **more: Any) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": [*parts]}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "modelVersion": "m", "responseId": "r1", **more}

    def events(self, said: Said) -> list[Json]:
        first: Json = {"usageMetadata": self._usage(said.first)} if said.first else {}
        events = [self.chunk({"text": said.text}, **first)]
        events += [self.chunk(part) for part in self._calls(said)]
        events.append(self.chunk(finish=self._reason(said)))
        return events + ([{"usageMetadata": self._usage(said.usage)}] if said.usage else [])

    def document(self, said: Said) -> Json:
        parts = [{"text": said.text}] if said.text else []
        counted: Json = {"usageMetadata": self._usage(said.usage)} if said.usage else {}
        return self.chunk(*parts, *self._calls(said), finish=self._reason(said), **counted)

    def _calls(self, said: Said) -> list[Json]:
        return [
            {"functionCall": {"id": c.id, "name": c.name, "args": as_json(c.arguments)}}
            for c in said.calls
        ]

    def _reason(self, said: Said) -> str:
        return "MAX_TOKENS" if said.cut else "STOP"

    def _usage(self, counted: Counted) -> Json:
        return {
            "promptTokenCount": counted.prompt,
            "cachedContentTokenCount": counted.read,
            "candidatesTokenCount": counted.output,
            "totalTokenCount": counted.prompt + counted.output,
        }


class Ollama(Dialect):
    """Ollama's own API, in lines of JSON. It does not count what came from its cache."""

    name = "ollama"
    overload_event: ClassVar[Json] = {"error": "overloaded"}
    limited: ClassVar[Json] = {"error": "slow down"}
    kind = "application/x-ndjson"

    def model(self, url: str, **options: Any) -> OllamaModel:
        return OllamaModel("m", **{"base_url": url, **options})

    def frame(self, event: Json) -> bytes:
        return orjson.dumps(event) + b"\n"

    def line(self, *, done: bool = False, **message: Any) -> Json:
        said = {"role": "assistant", "content": "", **message}
        return {"model": "m", "message": said, "done": done}

    def events(self, said: Said) -> list[Json]:
        first = self._usage(said.first) if said.first else {}
        events = [{**self.line(content=said.text), **first}]
        events += [self.line(tool_calls=[call]) for call in self._calls(said)]
        return [*events, {**self.line(done=True), **self._end(said)}]

    def document(self, said: Said) -> Json:
        calls = {"tool_calls": self._calls(said)} if said.calls else {}
        return {**self.line(done=True, content=said.text, **calls), **self._end(said)}

    def _calls(self, said: Said) -> list[Json]:
        return [
            {"id": c.id, "function": {"name": c.name, "arguments": as_json(c.arguments)}}
            for c in said.calls
        ]

    def _end(self, said: Said) -> Json:
        counted = self._usage(said.usage) if said.usage else {}
        return {"done_reason": "length" if said.cut else "stop", **counted}

    def _usage(self, counted: Counted) -> Json:
        return {"prompt_eval_count": counted.prompt, "eval_count": counted.output}


def as_json(text: str) -> Any:
    """What a text says; the APIs that send values send a text that says nothing as it is."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


CHAT, RESPONSES, ANTHROPIC = Chat(), Responses(), Messages()
GEMINI, OLLAMA = Gemini(), Ollama()
DIALECTS: tuple[Dialect, ...] = (CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA)

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
