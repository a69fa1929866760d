"""What a counter of calls must do, as tests."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

import anyio
import pytest

from ...call_counter import CallCounter
from ._chat_suite import entered


class CallCounterConformance:
    """The tests of a counter of calls. Inherit, and say in :meth:`counter` how one is made."""

    pytestmark: ClassVar[Any] = pytest.mark.anyio

    patience: float = 30.0
    """Seconds after which a test that hangs fails."""

    def counter(self) -> CallCounter | AbstractAsyncContextManager[CallCounter]:
        """Return a new counter that has counted nothing.

        If it is an asynchronous context manager too, the test enters it and uses what that gives.
        """
        raise TypeError(f"`{type(self).__name__}` has no `counter`: say how one is made")

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[CallCounter]:
        """Open a counter. A test that takes too long in there fails."""
        with anyio.fail_after(self.patience):
            async with entered(self.counter()) as counter:
                yield counter

    async def test_no_more_than_the_maximum_is_ever_allowed(self) -> None:
        """What is over the maximum is not counted either."""
        async with self.opened() as counter:
            allowed = [await counter.take("a", wanted, 5) for wanted in (2, 4, 1)]
            assert allowed == [2, 3, 0], f"of 5 calls, taken 2, 4 and 1 at a time, {allowed} passed"
            assert await counter.take("a", 3, 6) == 1, "calls that were refused have been counted"

    async def test_keys_are_counted_apart(self) -> None:
        """One thread does not use up what another has."""
        async with self.opened() as counter:
            await counter.take("a", 5, 5)
            assert await counter.take("A", 1, 5) == 1, "two keys share a count"

    async def test_a_maximum_that_was_lowered_allows_nothing(self) -> None:
        """What was counted before stays counted."""
        async with self.opened() as counter:
            await counter.take("a", 5, 5)
            assert await counter.take("a", 1, 3) == 0

    async def test_what_is_given_back_may_be_taken_again(self) -> None:
        """A call that was not made uses up nothing."""
        async with self.opened() as counter:
            await counter.take("a", 3, 3)
            await counter.give_back("a", 2)
            assert await counter.take("a", 3, 3) == 2, "what was given back is lost"

    async def test_the_count_never_falls_below_nothing(self) -> None:
        """More given back than was taken allows no more than the maximum."""
        async with self.opened() as counter:
            await counter.give_back("new", 1)
            await counter.take("a", 1, 3)
            await counter.give_back("a", 9)
            for key in ("a", "new"):
                assert await counter.take(key, 9, 3) == 3, "more is allowed than the maximum"

    async def test_calls_at_once_share_what_is_left(self) -> None:
        """Looking and counting is one step."""
        async with self.opened() as counter:
            allowed: list[int] = []

            async def take() -> None:
                allowed.append(await counter.take("a", 1, 3))

            async with anyio.create_task_group() as group:
                for _ in range(9):
                    group.start_soon(take)
            assert sum(allowed) == 3, f"{sum(allowed)} calls were let pass, and 3 were allowed"
