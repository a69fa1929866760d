"""Markers and placeholders in texts."""

import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.errors import MediaInputError
from tinyagents.harness.multimodal import (
    Marker,
    image_placeholder,
    parse_markers,
    restore_images,
    stashed_images,
)


def test_references_come_in_their_order_and_leave_the_text() -> None:
    marked = parse_markers("Is [IMAGE:b.png] like [FILE: a b.csv ]\nand [IMAGE:a.png]?")
    assert marked.text == "Is  like \nand ?"
    assert marked.markers == (
        Marker(media="image", reference="b.png"),
        Marker(media="file", reference="a b.csv"),
        Marker(media="image", reference="a.png"),
    )
    assert (marked.images, marked.files) == (("b.png", "a.png"), ("a b.csv",))


def test_the_space_around_what_is_left_goes() -> None:
    assert parse_markers("look: [IMAGE:a.png]\n").text == "look:"
    assert parse_markers("[IMAGE:a.png]").text == ""


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "",
        "[IMAGE:]",
        "[FILE: \t]",
        "[IMAGE:a.png",
        "say [IMAGE:",
        "[image:a.png]",
        "[ IMAGE:a.png]",
        "[IMAGE a.png]",
        "[Image: image #att:7]",
    ],
)
def test_what_is_no_whole_marker_stays(text: str) -> None:
    marked = parse_markers(text)
    assert (marked.text, marked.markers) == (text.strip(), ())


def test_an_empty_marker_stays_beside_others() -> None:
    marked = parse_markers("[IMAGE:] [IMAGE:a.png] [FILE:")
    assert (marked.text, marked.images) == ("[IMAGE:]  [FILE:", ("a.png",))


def test_a_marker_ends_at_the_first_bracket() -> None:
    marked = parse_markers("[IMAGE:[IMAGE:a]]")
    assert (marked.text, marked.images) == ("]", ("[IMAGE:a",))


def test_many_openings_without_an_end_are_read_in_no_time() -> None:
    text = "[IMAGE:" * 200_000
    assert parse_markers(text).text == text


@given(st.text(alphabet="[]IMAGE:FLab \n", max_size=80))
def test_nothing_is_lost_but_markers(text: str) -> None:
    marked = parse_markers(text)
    for marker in marked.markers:
        assert marker.reference == marker.reference.strip() != ""
        assert "]" not in marker.reference
        assert marker.reference in text


def test_placeholders_are_listed_and_turned_back() -> None:
    text = f"a {image_placeholder('7')} b {image_placeholder('x-1')} c {image_placeholder('7')}"
    assert text.startswith("a [Image: image #att:7] b")
    assert stashed_images(text) == ("7", "x-1", "7")
    restored = restore_images(text, {"7": "up/7.png"})
    assert restored == "a [IMAGE:up/7.png] b [Image: image #att:x-1] c [IMAGE:up/7.png]"


@pytest.mark.parametrize("text", ["[Image: image #att:]", "[Image: image #att:a b]", "#att:7"])
def test_what_is_no_placeholder_stays(text: str) -> None:
    assert stashed_images(text) == ()
    assert restore_images(text, {"": "x", "7": "x", "a b": "x"}) == text


@pytest.mark.parametrize("attachment", ["", "a b", "a]", "a\n", "x" * 257])
def test_an_id_that_no_placeholder_can_hold_is_refused(attachment: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        image_placeholder(attachment)


def test_a_path_that_no_marker_can_hold_is_refused() -> None:
    with pytest.raises(MediaInputError) as caught:
        restore_images(image_placeholder("7"), {"7": "a].png"})
    assert caught.value.reason == "bad_reference"
