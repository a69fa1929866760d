"""Requests laid out in segments, and the fingerprint of their stable part."""

import json
import pickle
import subprocess
import sys
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import pytest

from tinyagents import AssistantMessage, ImageBlock, Message, SystemMessage, UserMessage, tool
from tinyagents.harness.errors import DuplicateNameError, InvalidRequestError
from tinyagents.harness.model import JsonObjectFormat, PromptSegment, ToolSchema
from tinyagents.harness.prompt import PromptBuilder, PromptTemplate, prompt_fingerprint

SEARCH = ToolSchema(
    name="search",
    description="Search.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}, "n": {"minimum": 1}}},
)
HISTORY: list[Message] = [UserMessage(content="hi"), AssistantMessage(content="hello")]

PNG = ImageBlock(data="aWRzYQ==", media_type="image/png")

STABLE = (
    PromptBuilder()
    .push_system("You help.")
    .push_tools_segment([SEARCH])
    .push_instructions("Cite sources.", id="rules")
)
FULL = STABLE.push_history(HISTORY).push_volatile("Today is Monday.")


def test_segments_stand_in_the_order_of_pushing_and_say_what_may_be_cached() -> None:
    request = FULL.build("And now?")
    assert [(message.role, message.text) for message in request.messages] == [
        ("system", "You help."),
        ("system", "Cite sources."),
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "Today is Monday."),
        ("user", "And now?"),
    ]
    assert request.tools == (SEARCH,)
    assert list(request.segments) == [
        PromptSegment(id="system", role="system", cacheable=True, messages=1),
        PromptSegment(id="tools", role="tools", cacheable=True),
        PromptSegment(id="rules", role="instructions", cacheable=True, messages=1),
        PromptSegment(id="history", role="history", cacheable=False, messages=2),
        PromptSegment(id="volatile", role="volatile", cacheable=False, messages=1),
    ]


def test_a_builder_can_be_continued_in_several_ways() -> None:
    one, other = STABLE.push_volatile("one"), STABLE.push_volatile("other")
    assert len(STABLE.segments) == 3
    assert one.build().messages[-1].text == "one"
    assert other.build().messages[-1].text == "other"
    assert one.build().messages[0] is other.build().messages[0]


def test_content_may_be_messages_and_empty_text_is_none() -> None:
    messages = [SystemMessage(content="a"), UserMessage(content="b")]
    builder = PromptBuilder().push_system(messages[0]).push_instructions(messages)
    assert builder.build("").messages == [messages[0], *messages]
    assert PromptBuilder().push_volatile("").segments[0].messages == 0


def test_ids_are_numbered_where_a_role_repeats_and_given_ones_must_differ() -> None:
    builder = PromptBuilder().push_system("a").push_system("b").push_system("c", id="system-4")
    assert [segment.id for segment in builder.push_system("d").segments] == [
        *("system", "system-2", "system-4", "system-3"),
    ]
    with pytest.raises(DuplicateNameError, match="`system-4`"):
        builder.push_history(HISTORY, id="system-4")


def test_tools_of_several_pushes_are_joined_and_must_differ_in_name() -> None:
    other = replace(SEARCH, name="fetch")
    assert STABLE.push_tools_segment([other]).build().tools == (SEARCH, other)
    with pytest.raises(DuplicateNameError, match="`search`"):
        STABLE.push_tools_segment([SEARCH])


def test_the_request_carries_the_response_format_and_the_fingerprint() -> None:
    request = FULL.build("x", response_format=JsonObjectFormat())
    assert request.response_format == JsonObjectFormat()
    assert request.prompt_fingerprint == FULL.fingerprint == prompt_fingerprint(request)


@pytest.mark.parametrize("content", [None, 42, ["text"], [None], {"a": 1}, PNG, b"text"])
def test_what_is_neither_text_nor_messages_is_refused_at_once(content: Any) -> None:
    for push in (
        STABLE.push_system,
        STABLE.push_instructions,
        STABLE.push_history,
        STABLE.push_volatile,
        STABLE.build,
    ):
        with pytest.raises(InvalidRequestError, match="is built of text and messages"):
            push(content)


def test_a_template_is_rendered_before_it_is_pushed() -> None:
    template: Any = PromptTemplate("hi")
    with pytest.raises(InvalidRequestError, match="render a template first"):
        STABLE.push_system(template)
    assert STABLE.push_system(template.render()).build().messages[-1].text == "hi"


def test_tools_are_pushed_as_models_see_them() -> None:
    @tool
    async def look() -> str:
        """Look around."""
        return ""

    given: Any = [look]
    with pytest.raises(InvalidRequestError, match="the `schema` of each"):
        PromptBuilder().push_tools_segment(given)
    assert PromptBuilder().push_tools_segment([look.schema]).build().tools == (look.schema,)


def test_messages_of_a_caller_that_grow_later_are_not_part_of_it() -> None:
    history = list(HISTORY)
    builder = STABLE.push_history(history)
    history.append(UserMessage(content="more"))
    assert builder.build().messages[2:] == HISTORY
    builder.build().messages.clear()
    assert len(builder.build().messages) == 4


def test_segments_may_be_pushed_in_any_order_and_stand_so() -> None:
    builder = PromptBuilder().push_history(HISTORY).push_volatile("v").push_system("s")
    assert [segment.id for segment in builder.segments] == ["history", "volatile", "system"]
    assert [message.text for message in builder.build().messages] == ["hi", "hello", "v", "s"]
    assert builder.fingerprint == PromptBuilder().push_system("s").fingerprint


# Fingerprints

PINNED = "eada390013c8d2fe03b413c805a5f4f74f385fdfee0323fd16ac7e6ce5b4b626"


def test_the_fingerprint_never_changes_from_release_to_release() -> None:
    assert STABLE.fingerprint == PINNED


def test_it_can_be_computed_from_its_description() -> None:
    def said(text: str) -> dict[str, object]:
        return {"role": "system", "content": [{"type": "text", "text": text}]}

    stable = {
        "segments": [
            {"id": "system", "role": "system", "messages": [said("You help.")]},
            {"id": "tools", "role": "tools", "messages": []},
            {"id": "rules", "role": "instructions", "messages": [said("Cite sources.")]},
        ],
        "tools": [asdict(SEARCH)],
    }
    text = json.dumps(stable, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert sha256(text.encode()).hexdigest() == PINNED


def test_another_process_has_the_same_fingerprint() -> None:
    program = (
        "from tests.harness.prompt.test_builder import STABLE, PINNED\n"
        "assert STABLE.fingerprint == PINNED, STABLE.fingerprint"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "builder",
    [
        FULL,
        STABLE.push_history([UserMessage(content="other")]),
        STABLE.push_volatile("Tuesday"),
    ],
)
def test_history_volatile_parts_and_tail_do_not_change_it(builder: PromptBuilder) -> None:
    assert builder.build("tail").prompt_fingerprint == PINNED


def test_ids_and_usage_of_messages_do_not_change_it() -> None:
    named = PromptBuilder().push_system(SystemMessage(content="a", id="m1"))
    assert named.fingerprint == PromptBuilder().push_system("a").fingerprint


def with_tool(**changes: Any) -> PromptBuilder:
    return PromptBuilder().push_tools_segment([replace(SEARCH, **changes)])


def with_system(content: Any, id: str = "system") -> PromptBuilder:
    return PromptBuilder().push_system(content, id=id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (with_system("a"), with_system("b")),
        (with_system("a"), with_system("a", id="b")),
        (with_system("a"), PromptBuilder().push_instructions("a", id="system")),
        (with_system("a"), with_system(UserMessage(content="a"))),
        (with_system("ab"), with_system("a").push_system("b")),
        (
            with_system(UserMessage(content=[PNG])),
            with_system(UserMessage(content=[PNG.model_copy(update={"data": "b3RoZXI="})])),
        ),
        (
            with_system(UserMessage(content=[PNG])),
            with_system(UserMessage(content=[PNG.model_copy(update={"media_type": "image/webp"})])),
        ),
        (with_tool(), with_tool(name="find")),
        (with_tool(), with_tool(description="Find.")),
        (with_tool(), with_tool(strict=True)),
        (
            with_tool(),
            with_tool(
                parameters={
                    "type": "object",
                    "properties": {"q": {"type": "string"}, "n": {"minimum": 2}},
                }
            ),
        ),
        (with_tool(), PromptBuilder()),
    ],
)
def test_whatever_is_stable_changes_it(one: PromptBuilder, other: PromptBuilder) -> None:
    assert one.fingerprint != other.fingerprint


def test_the_order_of_keys_in_a_schema_does_not_change_it() -> None:
    turned = {"properties": {"n": {"minimum": 1}, "q": {"type": "string"}}, "type": "object"}
    assert with_tool(parameters=turned).fingerprint == with_tool().fingerprint


def test_a_copy_has_the_same_fingerprint() -> None:
    assert pickle.loads(pickle.dumps(FULL)).fingerprint == PINNED
