"""Counting calls across runs."""

import anyio

from tinyagents.harness.call_counter import InMemoryCallCounter


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
