"""Counting calls across runs."""

import anyio
import pytest

from tinyagents.harness.call_counter import InMemoryCallCounter
from tinyagents.harness.errors import ConfigurationError


async def test_no_more_than_the_maximum_is_ever_allowed_under_a_key() -> None:
    counter = InMemoryCallCounter()
    assert [await counter.take("a", wanted, 5) for wanted in (2, 4, 1)] == [2, 3, 0]
    assert await counter.take("b", 1, 5) == 1


async def test_calls_that_are_made_together_share_what_is_left() -> None:
    counter = InMemoryCallCounter()
    allowed: list[int] = []

    async def take() -> None:
        allowed.append(await counter.take("a", 1, 3))

    async with anyio.create_task_group() as group:
        for _ in range(9):
            group.start_soon(take)
    assert sum(allowed) == 3


async def test_the_key_that_was_used_longest_ago_is_forgotten() -> None:
    counter = InMemoryCallCounter(max_keys=2)
    for key in ("a", "b", "a", "c"):
        await counter.take(key, 1, 2)
    assert await counter.take("a", 1, 2) == 0
    assert await counter.take("b", 2, 2) == 2


async def test_what_is_given_back_makes_no_new_key() -> None:
    counter = InMemoryCallCounter(max_keys=1)
    await counter.take("a", 2, 2)
    await counter.give_back("b", 1)
    await counter.give_back("a", 1)
    assert await counter.take("a", 2, 2) == 1


@pytest.mark.parametrize("odd", [0, -1])
def test_a_counter_that_remembers_nothing_is_refused(odd: int) -> None:
    with pytest.raises(ConfigurationError, match="above 0"):
        InMemoryCallCounter(max_keys=odd)
