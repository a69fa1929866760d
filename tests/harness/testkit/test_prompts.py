"""The assertion that an edit keeps a prompt's prefix."""

import re
from dataclasses import replace

import pytest

from tinyagents import AssistantMessage, UserMessage
from tinyagents.harness.model import ModelRequest, ToolSchema
from tinyagents.harness.prompt import PromptBuilder
from tinyagents.testkit import assert_prompt_prefix_preserved

SEARCH = ToolSchema(name="search", description="Search.", parameters={"type": "object"})
HI, HELLO = UserMessage(content="hi"), AssistantMessage(content="hello")
STABLE = PromptBuilder().push_system("You help.").push_tools_segment([SEARCH])
BEFORE = STABLE.push_history([HI]).build("one?")


def test_what_keeps_the_prefix_passes() -> None:
    for after in (
        STABLE.push_history([HI]).build("two?"),
        STABLE.push_history([HI, HELLO]).push_volatile("Monday").build("two?"),
        STABLE.push_history([]).build(),
    ):
        assert_prompt_prefix_preserved(BEFORE, after)
    assert_prompt_prefix_preserved(ModelRequest([HI]), ModelRequest([HI, HELLO]))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            BEFORE,
            PromptBuilder().push_system("You guess.").push_tools_segment([SEARCH]).build(),
            "in the segment `system`, message 0 was system 'You help.' and is system 'You guess.'",
        ),
        (
            BEFORE,
            STABLE.push_history([HELLO]).build(),
            "in the segment `history`, message 1 was user 'hi' and is assistant 'hello'",
        ),
        (
            BEFORE,
            PromptBuilder()
            .push_system("You help.")
            .push_tools_segment([replace(SEARCH, strict=True)]),
            "the tools: ['search'] have another description or schema",
        ),
        (
            BEFORE,
            STABLE.push_tools_segment([replace(SEARCH, name="fetch")]),
            "the tools: they were ['search'] and are ['search', 'fetch']",
        ),
        (
            BEFORE,
            STABLE.push_instructions("Cite.").push_history([HI]),
            "the cacheable segments were ['system', 'tools'] and are ['system', 'tools', "
            "'instructions']",
        ),
        (ModelRequest([HI]), ModelRequest([HELLO]), "message 0 was user 'hi' and is assistant"),
    ],
)
def test_what_breaks_it_is_told(
    before: ModelRequest, after: ModelRequest | PromptBuilder, message: str
) -> None:
    changed = after.build() if isinstance(after, PromptBuilder) else after
    with pytest.raises(AssertionError, match=re.escape(message)):
        assert_prompt_prefix_preserved(before, changed)
