"""The work that both sides do: what the model asks for, what the tool does, and the check of both."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

Run = Callable[[], Awaitable[tuple[str, int]]]
"""Runs an agent once: the final text, and how many pieces of it were seen arriving."""


@dataclass(slots=True, kw_only=True)
class Work:
    """A model's script without memory: the last tool result decides what it says next.

    The tool adds 1. In each of ``turns`` turns the model asks for ``width`` calls, which go on
    from the last result of the turn before, so a lost or wrong result derails the run. Then it
    answers, in ``deltas`` pieces. Every call of the model takes ``delay`` seconds.
    """

    turns: int = 0
    width: int = 1
    deltas: int = 1
    delay: float = 0.0
    padding: int = 0
    """How many characters of noise follow the number in each result."""
    window: int | None = None
    """The tokens that the model takes, where the agent is to keep inside them."""
    asked_at: list[float] = field(default_factory=list[float], init=False)
    """When the model was asked, where there is a window."""
    model_calls: int = field(default=0, init=False)
    tool_calls: int = field(default=0, init=False)

    @property
    def goal(self) -> int:
        """The number that the last tool call returns."""
        return self.turns * self.width

    @property
    def pieces(self) -> list[str]:
        """The answer, as it is streamed."""
        return [f"counted to {self.goal} "] * self.deltas

    async def ask(self, last: str | None) -> list[int]:
        """The numbers to call the tool with after the result ``last``; none means: answer now."""
        self.model_calls += 1
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.window is not None:
            self.asked_at.append(time.perf_counter())
        reached = int((last or "0").partition(" ")[0])
        return list(range(reached, reached + self.width)) if reached < self.goal else []

    def add_one(self, number: int) -> int | str:
        """The body of the tool."""
        self.tool_calls += 1
        return f"{number + 1} {'x ' * (self.padding // 2)}" if self.padding else number + 1


async def checked(run: Run, work: Work, *, times: int = 1) -> None:
    """Run so many times, at once if more than once, and refuse anything but the whole work.

    Raises:
        AssertionError: An answer, or a number of pieces, model calls or tool calls, was wrong.
    """
    work.model_calls = work.tool_calls = 0
    results = [await run()] if times == 1 else await asyncio.gather(*(run() for _ in range(times)))
    expected = "".join(work.pieces)
    for text, seen in results:
        assert text == expected, f"wrong answer {text[:80]!r}"
        assert work.deltas == 1 or seen == work.deltas, f"saw {seen} deltas"
    assert work.tool_calls == times * work.goal, f"{work.tool_calls} tool calls"
    assert work.model_calls == times * (work.turns + 1), f"{work.model_calls} model calls"
