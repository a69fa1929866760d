"""How a call is shown to people."""

import pytest
from pydantic import JsonValue

from tinyagents.harness.tool import (
    ToolDisplay,
    ToolPolicy,
    call_detail,
    call_display,
    tool_label,
)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("send_email", "Send Email"),
        ("composio_gmail_send-email", "Gmail Send Email"),
        ("mcp_files_read", "Files Read"),
        ("mcp__files__read", "Files Read"),
        ("getURL", "GetURL"),
        ("états_unis", "États Unis"),
        ("mcp_", "mcp_"),
        ("__", "__"),
    ],
)
def test_a_tool_is_called_by_the_words_of_its_name(name: str, label: str) -> None:
    assert tool_label(name) == label


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ({"name": "n", "id": "i", "to": "ann@example.org"}, "ann@example.org"),
        ({"q": "later", "query": "first"}, "first"),
        ({"to": "", "subject": "  a\n\tb  "}, "a b"),
        ({"to": ["ann", 1, "bob"]}, "ann, bob"),
        ({"to": [1, 2], "path": "/tmp/x"}, "/tmp/x"),
        ({"to": {"name": "ann"}, "title": "hello"}, "hello"),
        ({"to": None, "name": True, "id": 17}, "17"),
        ({"path": "x" * 80}, "x" * 80),
        ({"path": "x" * 81}, "x" * 77 + "..."),
        ({"body": "unlisted"}, None),
        ({}, None),
    ],
)
def test_the_most_telling_argument_is_shown(
    arguments: dict[str, JsonValue], detail: str | None
) -> None:
    assert call_detail(arguments) == detail


def test_an_argument_of_any_size_is_shown_shortly() -> None:
    for value in ("word " * 1_000_000, ["word"] * 1_000_000, 10**200):
        detail = call_detail({"query": value})  # type: ignore[dict-item]
        assert detail is not None
        assert len(detail) == 80
        assert detail.endswith("...")


def test_a_number_that_python_does_not_write_out_is_passed_over() -> None:
    assert call_detail({"query": 10**5000, "id": 7}) == "7"


def test_what_the_policy_says_comes_first() -> None:
    policy = ToolPolicy(display=ToolDisplay(label="Post"))
    shown = call_display("send_email", {"to": "ann"}, policy)
    assert shown == ToolDisplay(label="Post", detail="ann")
    assert call_display("send_email", {}) == ToolDisplay(label="Send Email", detail=None)
