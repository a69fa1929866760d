"""Open cases about what must not be seen."""

from itertools import combinations

import pytest

from tinyagents import AgentHarness
from tinyagents.harness.middleware import RedactionMiddleware
from tinyagents.harness.redaction import email
from tinyagents.harness.stream import MessageCompleted, TextDelta
from tinyagents.testkit import ScriptedModel, assert_never_shown, say

WORDS = "mail box77@example.test today"
ADDRESS = "box77@example.test"


async def shown(pieces: list[str]) -> tuple[list[str], str]:
    agent = AgentHarness(
        model=ScriptedModel([say(*pieces)]), middleware=[RedactionMiddleware([email()])]
    )
    texts: list[str] = []
    whole = ""
    async for chunk in agent.stream(None, "go"):
        if isinstance(chunk, TextDelta):
            texts.append(chunk.text)
        elif isinstance(chunk, MessageCompleted):
            whole = chunk.message.text
    return texts, whole


# C50: an address that is split over the pieces of a stream.
async def test_an_address_is_never_shown_in_parts() -> None:
    texts, whole = await shown(["mail box", "77@exam", "ple.test to", "day"])
    assert "".join(texts) == whole == "mail [REDACTED] today"
    assert texts[0] == "mail "
    assert_never_shown(texts, ADDRESS)


@pytest.mark.parametrize("cuts", [1, 2, len(WORDS) - 1])
async def test_an_address_is_never_shown_however_the_stream_is_split(cuts: int) -> None:
    for places in combinations(range(1, len(WORDS)), cuts):
        edges = [0, *places, len(WORDS)]
        pieces = [WORDS[a:b] for a, b in zip(edges, edges[1:], strict=False)]
        texts, whole = await shown(pieces)
        assert "".join(texts) == whole == "mail [REDACTED] today"
        assert_never_shown(texts, ADDRESS)


async def test_text_far_from_an_address_is_not_held_to_the_end() -> None:
    words = ["a", "walk", "in", "the", "park", "and", "a", "cup", "of", "tea", ""]
    texts, _ = await shown([f"{word} " for word in words])
    assert len(texts) >= len(words) - 1
