"""An agent on a real local server, and the pieces of Chat Completions that it is sent."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.harness.providers.server import Reply, Seen, Server, serve
from tinyagents import AgentHarness, AgentRun, ToolMessage
from tinyagents.harness.message import repair_messages

from .dialects import CHAT, Adapter, Dialect


def piece(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a streamed answer; without a delta and a reason it has no choices."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    choices = [choice] if delta is not None or finish is not None else []
    return {"id": "c1", "object": "chat.completion.chunk", "choices": choices, **more}


def text(words: str) -> dict[str, Any]:
    """A chunk of text."""
    return piece({"content": words})


def fragment(
    arguments: str | None, *, index: int = 0, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """A chunk with a piece of a tool call."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    call: dict[str, Any] = {"index": index, "function": function}
    if id is not None:
        call |= {"id": id, "type": "function"}
    return piece({"tool_calls": [call]})


END = piece({}, "stop")
END_CALLS = piece({}, "tool_calls")


def streamed(*chunks: Any, **options: Any) -> Reply:
    """A stream that ends as it should."""
    return Reply.events(*chunks, **options)


def whole(message: Any, finish: str = "stop", **more: Any) -> Reply:
    """An answer in one document."""
    said = {"role": "assistant", **message}
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return Reply.json({"id": "c1", "object": "chat.completion", "choices": [choice], **more})


def in_turn(*replies: Reply) -> Callable[[Seen], Reply]:
    """Give these replies one after the other, the last one for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def model_at(server: Server, dialect: Dialect = CHAT, **options: Any) -> Adapter:
    """A model on the server."""
    return dialect.model(server.url, **options)


@asynccontextmanager
async def agent_on(
    *replies: Reply, tools: Sequence[Any] = (), dialect: Dialect = CHAT, **options: Any
) -> AsyncIterator[tuple[AgentHarness, Server]]:
    """An agent whose model is a server with these replies."""
    async with serve(in_turn(*replies)) as server, model_at(server, dialect) as model:
        yield AgentHarness(model=model, tools=tools, **options), server


def results(run: AgentRun[Any, Any] | None) -> list[ToolMessage]:
    """The results in the transcript, in order."""
    assert run is not None
    return [message for message in run.messages if isinstance(message, ToolMessage)]


def kinds(run: AgentRun[Any, Any] | None) -> list[str]:
    """The kinds of the run's events."""
    assert run is not None
    return [event.kind for event in run.events]


def is_valid(run: AgentRun[Any, Any] | None) -> bool:
    """Whether the transcript needs no repair."""
    assert run is not None
    return not repair_messages(run.messages).changed
