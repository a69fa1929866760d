"""Texts that come in pieces."""

import pytest
from hypothesis import given, settings, strategies as st

from tinyagents.harness.redaction import (
    Redactor,
    TextStream,
    all_detectors,
    detect_pattern,
    phone,
)

SECRETS = (
    "box77@example.test", "4111 1111 1111 1111", "5500000000000004", "192.168.0.1", "2001:db8::1:2",
    "00:1A:2B:3C:4D:5E", "https://u:p@w@h/x", "?token=abc&x", "sk-abcdefghijklmnopqrstuvwx", "hunter2",
    "GB82 WEST 1234 5698 7654 32", "eyJhbGciOi.eyJzdWI.abc", "+44 20 7946 0958", "(415) 555-2671",
    "-----BEGIN PRIVATE KEY-----\nabc-def\n-----END PRIVATE KEY-----", "[REDACTED]", "ACME-123",
    "[EMAIL:****", "[SECRET:0011223344556677]",
)  # fmt: skip

REDACTORS = {
    "all": Redactor([*all_detectors(), phone("US"), "hunter2", "unter", "[R"]),
    "masks": Redactor(
        [*all_detectors(), detect_pattern(r"ACME-\d{1,6}", longest=11), "hunter2", "SECRET"],
        strategy="mask",
        strategies={"SECRET": "hash", "IP": "redact"},
        hash_key="k",
        mask="<{label}>",
    ),
}


def pieces_of(text: str, sizes: list[int]) -> list[str]:
    pieces: list[str] = []
    at = 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


texts = st.lists(
    st.sampled_from(SECRETS)
    | st.sampled_from([" ", ", ", "-", "@", ".", ":", "a", "1", "://", "\n", "é", "漢字"])
    | st.sampled_from(SECRETS).flatmap(lambda s: st.integers(1, len(s)).map(lambda n: s[:n])),
    max_size=8,
).map("".join)


@pytest.mark.parametrize("redactor", REDACTORS.values(), ids=REDACTORS)
@settings(max_examples=1000, deadline=None)
@given(text=texts, sizes=st.lists(st.integers(1, 12), max_size=60))
def test_a_stream_shows_what_the_whole_text_becomes_however_it_is_split(
    redactor: Redactor, text: str, sizes: list[int]
) -> None:
    stream = TextStream(redactor)
    whole = redactor.text(text)
    shown = ""
    for piece in pieces_of(text, sizes):
        shown += stream.push(piece)
        assert whole.startswith(shown)
    assert shown + stream.flush() == whole


def test_nothing_is_held_where_nothing_can_begin() -> None:
    stream = TextStream(Redactor())
    assert stream.push("Well, then. ") == "Well, then. "
    assert stream.held == 0


@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_what_is_held_is_no_longer_than_the_longest_match_can_be(text: str) -> None:
    stream = TextStream(Redactor(["hunter2"]))
    for piece in (*text, *"word " * 4):
        stream.push(piece)
    stream.push(" ! ")
    if "PRIVATE KEY" not in text:
        assert stream.held <= 600


def test_a_long_run_is_not_held_for_ever_and_costs_no_more_than_it_is_long() -> None:
    stream = TextStream(Redactor())
    for _ in range(8_000):
        stream.push("abcd")
    assert stream.held < 600


def test_a_text_that_was_broken_off_shows_nothing_more() -> None:
    stream = TextStream(Redactor())
    assert stream.push("mail box77@exam") == "mail "
    stream.drop()
    assert stream.flush() == ""
