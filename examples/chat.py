"""A chat backend: turns that are stored in a database, streamed, and left by their client.

    python examples/chat.py                              offline; you type, where stdin is a terminal
    python examples/chat.py --model openai:gpt-5-mini    that model, with OPENAI_API_KEY set

Ctrl-C stops an answer, Ctrl-D ends the conversation.
"""

import argparse
import sqlite3
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TypeAlias

import anyio

from tinyagents import (
    AgentHarness,
    Final,
    Message,
    RefusalDelta,
    RunConfig,
    RunLimits,
    TextDelta,
    TinyAgentsError,
    ToolCompleted,
    ToolContext,
    ToolStarted,
    UserMessage,
    tool,
)
from tinyagents.harness.message import dump_messages, load_messages
from tinyagents.harness.model import ChatModel, ModelRequest
from tinyagents.harness.stream import MessageDiscarded, ToolProgress
from tinyagents.testkit import Reply, ScriptedModel, call, say

Piece: TypeAlias = dict[str, str]
"""What a client is sent, as JSON over a web socket or as a server-sent event."""

SAMPLE = [
    "Hello, I am Ada.",
    "What is the weather in Oslo?",
    "And the weather in Rome?",
    "What was my first message?",
]


class Conversations:
    """The histories of conversations, in a database."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE conversations (id TEXT PRIMARY KEY, messages TEXT)")

    def load(self, thread_id: str) -> list[Message]:
        """Return the history of a conversation; a new one has none."""
        query = "SELECT messages FROM conversations WHERE id = ?"
        row = self._db.execute(query, (thread_id,)).fetchone()
        return [] if row is None else load_messages(row[0])

    def save(self, thread_id: str, messages: list[Message]) -> None:
        """Replace the history of a conversation."""
        row = (thread_id, dump_messages(messages))
        self._db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?)", row)
        self._db.commit()


@tool
async def get_weather(city: str, ctx: ToolContext[None]) -> str:
    """Today's weather in a city."""
    ctx.progress("asking the weather service")
    await anyio.sleep(0.2)
    return f"{city}: sunny, 21 degrees"


def reply(request: ModelRequest) -> Reply:
    """Answer as a model would: the script of every turn."""
    last = request.messages[-1]
    if last.role == "tool":
        return say(f"I have looked it up. {last.text}.")
    said = [message.text for message in request.messages if message.role == "user"]
    if "weather" in last.text.lower():
        city = last.text.rstrip("?.! ").rpartition(" ")[2]
        return say("One moment. ") + call("get_weather", city=city)
    if "first" in last.text.lower():
        return say(f"Your first message was: {said[0]}")
    return say(f"This is your message number {len(said)}. Ask me for the weather in a city.")


async def turn(
    agent: AgentHarness, conversations: Conversations, thread_id: str, text: str
) -> AsyncGenerator[Piece, None]:
    """Run one turn and store what there is in the end, however it ends."""
    messages = [*conversations.load(thread_id), UserMessage(content=text)]
    stream = agent.stream(None, messages, config=RunConfig(thread_id=thread_id))
    try:
        async with stream:
            async for chunk in stream:
                match chunk:
                    case TextDelta(text=piece) | RefusalDelta(text=piece):
                        yield {"type": "text", "text": piece}
                    case MessageDiscarded():
                        yield {"type": "clear"}
                    case ToolStarted(name=name):
                        yield {"type": "tool", "text": name}
                    case ToolProgress(content=content):
                        yield {"type": "progress", "text": content}
                    case ToolCompleted(message=message):
                        yield {"type": "tool_done", "text": message.text}
                    case Final(run=run):
                        yield {"type": "end", "text": run.status}
                    case _:
                        pass
    except TinyAgentsError as error:
        # The client is told the kind; the message is for the log.
        yield {"type": "error", "text": error.kind}
    finally:
        reached = stream.partial
        conversations.save(thread_id, messages if reached is None else reached.messages)


async def client(pieces: AsyncGenerator[Piece, None], *, leave_at: str | None) -> None:
    """Show the pieces of a turn; go away at the first one of the type ``leave_at``."""
    speaking = False
    async with aclosing(pieces):
        async for piece in pieces:
            kind = piece["type"]
            if kind == "text":
                print("" if speaking else "Agent: ", piece["text"], sep="", end="", flush=True)
            else:
                print("\n" if speaking else "", end="")
                if kind != "end":
                    print(f"  [{kind}] {piece.get('text', '')}")
            speaking = kind == "text"
            if kind == leave_at:
                print("  (the client closes its window)")
                return


def typed() -> Iterator[str]:
    """Yield what the user types, up to the end of the input."""
    while True:
        try:
            text = input("You:   ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if text.strip():
            yield text


def sample() -> Iterator[str]:
    """Yield what a user might type."""
    for text in SAMPLE:
        print(f"You:   {text}")
        yield text


def main() -> None:
    parser = argparse.ArgumentParser(description="Chat with an agent.")
    parser.add_argument("--model", help="such as openai:gpt-5-mini")
    given = parser.parse_args()
    model: ChatModel | str = given.model or ScriptedModel.per_run([reply, reply])

    interactive = sys.stdin.isatty()
    conversations = Conversations()
    agent = AgentHarness(
        model=model,
        tools=[get_weather],
        system="You chat with the user, in short sentences.",
        limits=RunLimits(max_model_calls=8, wall_clock=120),
    )
    for text in typed() if interactive else sample():
        leave_at = "progress" if not interactive and "Rome" in text else None

        async def answer(text: str = text, leave_at: str | None = leave_at) -> None:
            pieces = turn(agent, conversations, "demo", text)
            await client(pieces, leave_at=leave_at)

        try:
            anyio.run(answer)
        except KeyboardInterrupt:
            print("\n  (stopped)")

    stored = conversations.load("demo")
    print(f"\n{len(stored)} messages are stored:")
    for message in stored:
        detail = f" ({message.outcome})" if message.role == "tool" else ""
        print(f"  {message.role}{detail}: {message.text}")


if __name__ == "__main__":
    main()
