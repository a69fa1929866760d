"""The suite for anything that keeps responses of models."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import fields, replace
from typing import Any, ClassVar

import anyio
import pytest

from ...cache import UNKEYED, ResponseCache, cache_key
from ...message import AssistantMessage, ReasoningBlock, TextBlock, ToolCallBlock, UserMessage
from ...model import (
    CapabilitySet,
    JsonObjectFormat,
    ModelHint,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    PromptSegment,
    ToolSchema,
)
from ...retry import RetryPolicy
from ...runtime import AgentHarness
from ...usage import Usage
from .._fake_models import FakeChatModel
from .._script import Reply, say
from .._time import DeterministicClock

_ASKED = ModelRequest([UserMessage(content="which blue?")])
_OTHERWISE: Mapping[str, Any] = {
    "messages": [UserMessage(content="which red?")],
    "tools": (ToolSchema(name="f", description="d", parameters={"type": "object"}),),
    "tool_choice": "required",
    "response_format": JsonObjectFormat(),
    "settings": ModelSettings(temperature=0.0),
    "model": "another",
    "model_hints": (ModelHint(model="another"),),
    "reuse_previous_model": True,
    "required_capabilities": CapabilitySet(tool_calling=True),
    "metadata": {"page": 1},
    "tags": ("t",),
    "segments": (PromptSegment(id="system", role="system", cacheable=True),),
    "prompt_fingerprint": "abc",
    "cache": True,
    "continuation_id": "r1",
    "retry": RetryPolicy(max_attempts=1),
}
"""For each field of a request another value than its default."""


class ResponseCacheConformance:
    """Tests that every :class:`~tinyagents.harness.cache.ResponseCache` passes.

    Inherit it in a class that pytest collects, and say how a cache is made::

        class TestMyCache(ResponseCacheConformance):
            @asynccontextmanager
            async def cache(self, clock):
                async with MyCache(clock=clock) as cache:
                    yield cache

    The tests are asynchronous and marked for anyio's plugin of pytest. What only some caches have
    is skipped until its method is overridden: :meth:`bounded`, :meth:`corrupt`, :meth:`neighbour`.
    """

    pytestmark: ClassVar[Any] = pytest.mark.anyio
    patience: float = 30.0
    """Seconds after which something that hangs fails."""

    def cache(self, clock: DeterministicClock) -> AbstractAsyncContextManager[ResponseCache]:
        """Return an empty cache that tells the time by ``clock``, open while the manager is."""
        raise NotImplementedError("a suite says how its cache is made: override `cache`")

    def bounded(
        self, clock: DeterministicClock, entries: int
    ) -> AbstractAsyncContextManager[ResponseCache]:
        """Return a cache that keeps so many entries, those that were used last."""
        pytest.skip("the cache has no bound of entries: override `bounded` where it has")

    async def corrupt(self, cache: ResponseCache, key: str) -> None:
        """Damage what is kept under a key."""
        pytest.skip("nothing can be damaged: override `corrupt` where it can")

    def neighbour(self, cache: ResponseCache) -> ResponseCache:
        """Return a cache of another namespace that shares its storage with ``cache``."""
        pytest.skip("the cache has no namespaces: override `neighbour` where it has")

    async def test_what_was_kept_comes_back_and_nothing_else_does(self) -> None:
        """A response comes back under its key alone, with all that lasts of it."""
        kept = _response("blue")
        async with self.cache(DeterministicClock()) as cache:
            assert await cache.get("a") is None, "an empty cache has given a response"
            await cache.put("a", kept)
            assert await cache.get("b") is None, "another key has given a response"
            found = await cache.get("a")
        assert found is not None, "a response that was kept is gone"
        for name in ("message", "finish_reason", "response_id", "model", "raw", "notices"):
            assert getattr(found, name) == getattr(kept, name), f"`{name}` is another than was kept"

    async def test_nobody_can_change_what_is_kept(self) -> None:
        """Neither whoever has put a response nor whoever got it changes what others get."""
        kept = _response("blue")
        async with self.cache(DeterministicClock()) as cache:
            await cache.put("a", kept)
            kept.message.content.clear()
            kept.notices = ("changed",)
            for _ in range(2):
                found = await cache.get("a")
                assert found is not None
                assert found.text == "blue", "a change of the application has got into the cache"
                assert found.notices == ("lowered",)
                found.message.content.append(TextBlock(text=" no, red"))
                found.notices = ()

    async def test_a_later_response_takes_the_place_of_an_earlier_one(self) -> None:
        """Of two responses under one key the later stands, and it is one entry."""
        async with self.cache(DeterministicClock()) as cache:
            await cache.put("a", _response("blue"))
            await cache.put("a", _response("red"))
            found = await cache.get("a")
            stats = await cache.stats()
        assert found is not None
        assert found.text == "red"
        assert (stats.entries, stats.writes) == (1, 2)

    async def test_a_response_expires_when_its_time_is_up(self) -> None:
        """A response with a time to live is there until then; one without stays."""
        clock = DeterministicClock(start=1_000)
        async with self.cache(clock) as cache:
            await cache.put("short", _response("blue"), ttl=10)
            await cache.put("long", _response("red"))
            clock.advance(9.5)
            assert await cache.get("short") is not None, "it has expired too early"
            clock.advance(0.5)
            assert await cache.get("short") is None, "it has outlived its time"
            assert await cache.get("long") is not None, "without a time to live it stays"
            stats = await cache.stats()
        assert stats.expirations == 1
        assert stats.entries == 1, "what has expired and was asked for is no entry any more"

    async def test_writing_again_sets_the_time_anew(self) -> None:
        """The time to live is that of the last write; without one there is none."""
        clock = DeterministicClock()
        async with self.cache(clock) as cache:
            await cache.put("a", _response("blue"), ttl=10)
            await cache.put("a", _response("blue"))
            clock.advance(11)
            assert await cache.get("a") is not None

    async def test_it_counts(self) -> None:
        """Hits, misses and writes are counted, and entries and bytes are what is there."""
        async with self.cache(DeterministicClock()) as cache:
            await cache.put("a", _response("blue"))
            await cache.get("a")
            await cache.get("a")
            await cache.get("b")
            stats = await cache.stats()
        assert (stats.hits, stats.misses, stats.writes, stats.entries) == (2, 1, 1, 1)
        assert stats.bytes > 0, "an entry takes room"

    async def test_clearing_forgets_the_entries_and_keeps_the_counts(self) -> None:
        """After `clear` nothing is kept, and what was counted stays."""
        async with self.cache(DeterministicClock()) as cache:
            await cache.put("a", _response("blue"))
            await cache.clear()
            assert await cache.get("a") is None
            stats = await cache.stats()
        assert (stats.writes, stats.entries, stats.bytes) == (1, 0, 0)

    async def test_the_entry_that_was_not_used_for_longest_makes_room(self) -> None:
        """A full cache gives up the entry whose last use is furthest back."""
        async with self.bounded(DeterministicClock(), 2) as cache:
            await cache.put("a", _response("a"))
            await cache.put("b", _response("b"))
            await cache.get("a")
            await cache.put("c", _response("c"))
            assert await cache.get("b") is None, "the one that was used last had to go"
            assert await cache.get("a") is not None
            assert (await cache.stats()).evictions == 1

    async def test_what_cannot_be_read_is_a_miss_and_goes(self) -> None:
        """A damaged entry is not given out and raises nothing; it is deleted and counted."""
        async with self.cache(DeterministicClock()) as cache:
            await cache.put("a", _response("blue"))
            await self.corrupt(cache, "a")
            assert await cache.get("a") is None
            stats = await cache.stats()
            assert (stats.misses, stats.evictions, stats.entries) == (1, 1, 0)
            await cache.put("a", _response("red"))
            found = await cache.get("a")
        assert found is not None
        assert found.text == "red"

    async def test_namespaces_do_not_see_each_other(self) -> None:
        """Entries of one namespace are neither found nor cleared in another one."""
        async with self.cache(DeterministicClock()) as cache:
            other = self.neighbour(cache)
            await cache.put("a", _response("blue"))
            assert await other.get("a") is None
            await other.put("a", _response("red"))
            await other.clear()
            found = await cache.get("a")
        assert found is not None
        assert found.text == "blue"

    async def test_requests_that_differ_in_any_field_do_not_share_an_answer(self) -> None:
        """Each field of a request either changes the key, or is listed as one that does not."""
        assert _OTHERWISE.keys() == {field.name for field in fields(ModelRequest)}
        async with self.cache(DeterministicClock()) as cache:
            await cache.put(cache_key(_ASKED), _response("blue"))
            for name, value in _OTHERWISE.items():
                found = await cache.get(cache_key(replace(_ASKED, **{name: value})))
                same = name in UNKEYED["request"]
                assert (found is not None) is same, f"requests that differ in `{name}`"

    async def test_a_stampede_calls_the_model_once(self) -> None:
        """Of many identical runs at once, one asks the model and all get its answer."""
        began, go = anyio.Event(), anyio.Event()
        texts: list[str] = []

        async def held(_request: ModelRequest) -> Reply:
            began.set()
            await go.wait()
            return say("blue")

        model = FakeChatModel(held)

        async def ask(harness: AgentHarness) -> None:
            texts.append((await harness.invoke(None, "which blue?")).text)

        async with self.cache(DeterministicClock()) as cache:
            harness = AgentHarness(model, cache=cache)
            with anyio.fail_after(self.patience):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(ask, harness)
                    await began.wait()
                    go.set()
            await ask(harness)
        assert texts == ["blue"] * 21
        assert model.calls == 1, "identical calls at the same time have each asked the model"


def _response(text: str) -> ModelResponse:
    content = [
        ReasoningBlock(text="hm", signature="s1"),
        TextBlock(text=text),
        ToolCallBlock(id="c1", name="f", arguments={"b": [1, 2.5, None], "a": "ü"}),
    ]
    return ModelResponse(
        AssistantMessage(content=content, usage=Usage(input_tokens=3, output_tokens=2)),
        "tool_calls",
        "tool_use",
        "r1",
        "m-2026",
        raw={"service_tier": "default"},
        notices=("lowered",),
    )
