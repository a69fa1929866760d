"""Shortening tool results: which come first, what is left of them, and which stay."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.harness.summarization.test_trim import calls, result, user
from tinyagents import ImageBlock, JsonBlock, TextBlock, ToolMessage
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.message import Message
from tinyagents.harness.summarization import shortened_result, trim_results


def history(*texts: str, **facts: Any) -> list[Message]:
    messages: list[Message] = [user("go")]
    for number, text in enumerate(texts):
        messages += [calls(f"c{number}"), result(f"c{number}", text, **facts)]
    return messages


def test_the_largest_result_is_cut_and_a_small_older_one_is_not() -> None:
    messages = history("small", "x" * 200_000)
    trimmed = trim_results(messages, 10_000)
    assert trimmed.cut == ("c1",)
    assert trimmed.messages[2] is messages[2]
    assert "200000" in trimmed.messages[4].text
    assert trimmed.tokens <= 10_000


def test_no_more_is_cut_than_is_needed() -> None:
    trimmed = trim_results(history("a" * 40_000, "b" * 80_000, "c" * 20_000), 16_500)
    assert trimmed.cut == ("c1",)


def test_results_outside_the_kept_window_come_first() -> None:
    trimmed = trim_results(history("a" * 40_000, "b" * 80_000), 21_000, keep_last=1)
    assert trimmed.cut == ("c0",)
    assert trim_results(history("a" * 40_000, "b" * 80_000), 9_000, keep_last=1).cut == ("c0", "c1")


def test_the_ends_of_a_result_stay() -> None:
    message = result("c", f"begin {'x' * 9_000} end")
    text = shortened_result(message, 100).text
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert len(text) < 200


def test_cutting_twice_changes_nothing_and_trusted_or_short_results_stay() -> None:
    once = shortened_result(result("c", "x" * 9_000), 100)
    assert shortened_result(once, 100) is once
    short = result("c", "x" * 100)
    assert shortened_result(short, 90) is short
    trusted = history("x" * 90_000, trusted_verbatim=True)
    assert trim_results(trusted, 10).messages == trusted


def test_cutting_more_of_what_was_cut_tells_how_long_it_was_at_first() -> None:
    once = shortened_result(result("c", f"begin {'x' * 9_000} end"), 501)
    twice = shortened_result(once, 11)
    assert twice.text == "begin [… cut: 8999 of 9010 characters …]x end"
    assert shortened_result(twice, 11) is twice


@pytest.mark.parametrize("quoted", ["[… cut: ", "[… cut: 7 of 9 characters …]"])
def test_a_text_that_quotes_a_marker_is_cut_like_any_other(quoted: str) -> None:
    for text in (quoted + "x" * 9_000, "x" * 4_500 + quoted + "x" * 4_500):
        cut = shortened_result(result("c", text), 100).text
        assert f"of {len(text)} characters" in cut
        assert len(cut) < 200


@given(st.text(max_size=300), st.integers(0, 120))
def test_a_cut_saves_and_done_again_changes_nothing(text: str, keep: int) -> None:
    message = result("c", text)
    once = shortened_result(message, keep)
    assert once is message or len(once.text) < len(text)
    assert shortened_result(once, keep) is once


def test_json_is_cut_as_text_and_pictures_stay() -> None:
    picture = ImageBlock(url="https://x.test/a.png")
    message = ToolMessage(
        tool_call_id="c",
        content=[JsonBlock(value=["x" * 3_000]), picture, TextBlock(text="y" * 3_000)],
    )
    cut = shortened_result(message, 100)
    assert [block.type for block in cut.content] == ["text", "image"]
    assert cut.text.startswith('["xxx')
    assert (cut.tool_call_id, cut.content[1]) == ("c", picture)


def test_what_fits_is_returned_as_it_is() -> None:
    messages = history("x")
    trimmed = trim_results(messages, 10_000)
    assert (trimmed.messages, trimmed.cut) == (messages, ())


@pytest.mark.parametrize("option", ["keep_last", "keep_characters"])
def test_negative_numbers_are_refused(option: str) -> None:
    options: dict[str, Any] = {option: -1}
    with pytest.raises(ConfigurationError, match="0 or more"):
        trim_results([], 10, **options)
