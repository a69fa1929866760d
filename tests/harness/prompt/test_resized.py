"""The segments of a prompt whose messages were left out, or changed for others."""

from typing import Literal

import pytest
from hypothesis import given, strategies as st

from tinyagents import UserMessage
from tinyagents.harness.model import PromptSegment
from tinyagents.harness.prompt import resized

MESSAGES = {name: UserMessage(content=name) for name in "abcdefxy"}


def sizes(before: str, after: str) -> list[int]:
    """The sizes of segments, told by what is between bars."""
    roles: list[Literal["system", "history"]] = ["system", "history"]
    segments = [
        PromptSegment(id=str(n), role=roles[n > 0], cacheable=not n, messages=len(part))
        for n, part in enumerate(before.split("|"))
    ]
    told = [[MESSAGES[name] for name in text if name != "|"] for text in (before, after)]
    return [segment.messages for segment in resized(segments, *told)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("a|bcd", "abcd", [1, 3], id="the same"),
        pytest.param("a|bcd", "ad", [1, 1], id="left out"),
        pytest.param("a|bcd", "axcd", [1, 3], id="the first of a segment changed"),
        pytest.param("a|bcd", "axd", [1, 2], id="several made one"),
        pytest.param("ab|cd", "xcd", [1, 2], id="the first segment made one"),
        pytest.param("ab|cd", "xyxy", [2, 2], id="all changed"),
        pytest.param("a|bcd", "abxcd", [1, 4], id="put in"),
        pytest.param("a|bcd", "", [0, 0], id="nothing left"),
        pytest.param("", "xy", [0], id="out of nothing"),
    ],
)
def test_segments_have_what_is_left_of_them(before: str, after: str, expected: list[int]) -> None:
    assert sizes(before, after) == expected


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.integers(0, 6))
def test_messages_that_are_changed_one_by_one_leave_segments_as_they_are(
    changed: list[bool], cut: int
) -> None:
    before = "abcdef"
    after = "".join("x" if each else name for name, each in zip(before, changed, strict=True))
    assert sizes(f"{before[:cut]}|{before[cut:]}", after) == [cut, 6 - cut]
