"""Handing items from one task to another."""

import anyio
import pytest

from tinyagents.harness.concurrency import Channel, ChannelClosed


async def test_a_channel_hands_on_what_was_put_and_then_ends() -> None:
    channel: Channel[int] = Channel()
    for n in range(3):
        channel.put(n)
    channel.close()
    assert not channel.put(9)
    assert [await channel.get() for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(ChannelClosed):
            await channel.get()


async def test_a_channel_raises_its_error_once_after_what_waits() -> None:
    channel: Channel[int] = Channel()
    channel.put(1)
    channel.close(ValueError("broken"))
    assert await channel.get() == 1
    with pytest.raises(ValueError, match="broken"):
        await channel.get()
    with pytest.raises(ChannelClosed):
        await channel.get()


async def test_a_full_channel_holds_its_producer_until_it_is_drained() -> None:
    channel: Channel[int] = Channel(size=2)
    sent: list[int] = []

    async def produce() -> None:
        for n in range(5):
            if channel.put(n):
                await channel.room()
            sent.append(n)
        channel.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        await anyio.wait_all_tasks_blocked()
        assert sent == [0]
        assert await channel.get() == 0
        await anyio.wait_all_tasks_blocked()
        assert sent == [0]
        assert await channel.get() == 1
        await anyio.wait_all_tasks_blocked()
        assert sent == [0, 1, 2]
        assert [await channel.get() for _ in range(3)] == [2, 3, 4]


async def test_a_consumer_that_drops_the_channel_lets_its_producer_go() -> None:
    channel: Channel[int] = Channel(size=1)
    channel.put(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.room)
        await anyio.wait_all_tasks_blocked()
        channel.drop()
    assert not channel.waiting
    with pytest.raises(ChannelClosed):
        await channel.get()


async def test_a_consumer_that_is_cancelled_while_it_waits_loses_nothing() -> None:
    channel: Channel[int] = Channel()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.get)
            await anyio.wait_all_tasks_blocked()
            channel.put(1)  # wakes it
            scope.cancel()  # and is too late for it
    if channel.waiting:
        assert await channel.get() == 1
    channel.put(2)
    assert await channel.get() == 2
