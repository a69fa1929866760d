"""Templates of conversations."""

from typing import Any

import pytest

from tinyagents import AssistantMessage, SystemMessage, UserMessage
from tinyagents.harness.errors import PromptError
from tinyagents.harness.prompt import (
    FewShot,
    MessagesPlaceholder,
    MessagesTemplate,
    PromptTemplate,
)

SYSTEM = PromptTemplate("You translate to {{language}}.", role="system")
QUESTION = PromptTemplate("{{text}}")
SHOTS = FewShot(
    [QUESTION, PromptTemplate("{{translation}}", role="assistant")],
    [
        {"text": "yes", "translation": "oui"},
        {"text": "no", "translation": "non"},
    ],
)
CHAT = MessagesTemplate(
    [SYSTEM, SHOTS, MessagesPlaceholder("history", optional=True), QUESTION], name="chat"
)


def test_everything_stands_in_its_order() -> None:
    history = [UserMessage(content="a"), AssistantMessage(content="b")]
    messages = CHAT.render({"language": "French", "history": history, "text": "hi"})
    assert [(message.role, message.text) for message in messages] == [
        ("system", "You translate to French."),
        ("user", "yes"),
        ("assistant", "oui"),
        ("user", "no"),
        ("assistant", "non"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", "hi"),
    ]
    assert messages[5:7] == history
    assert messages[5] is history[0]


def test_the_variables_of_all_parts_are_known() -> None:
    assert CHAT.variables == ("language", "history", "text")
    assert CHAT.required == ("language", "text")


def test_an_optional_placeholder_may_stay_empty_and_another_one_not() -> None:
    assert len(CHAT.render({"language": "French", "text": "hi"})) == 6
    needed = MessagesTemplate([MessagesPlaceholder("history")], name="needed")
    with pytest.raises(PromptError, match="`needed`.*`history`") as caught:
        needed.render()
    assert (caught.value.template, caught.value.variable) == ("needed", "history")


def test_a_variable_that_one_template_needs_is_required_although_another_has_a_default() -> None:
    with_default = PromptTemplate("{{text}}", defaults={"text": "x"})
    both = MessagesTemplate([with_default, QUESTION])
    assert both.required == ("text",)
    assert [message.text for message in both.render({"text": "y"})] == ["y", "y"]
    assert MessagesTemplate([with_default]).render()[0].text == "x"


def test_a_value_for_nothing_is_refused() -> None:
    with pytest.raises(PromptError, match="`chat` has no variable `tone`") as caught:
        CHAT.render({"language": "French", "text": "hi", "tone": "kind"})
    assert caught.value.reason == "unknown"


@pytest.mark.parametrize("value", ["text", [], ["text"], UserMessage(content="x"), None])
def test_a_placeholder_takes_messages_only(value: object) -> None:
    if value == []:
        assert MessagesTemplate([MessagesPlaceholder("m")]).render({"m": value}) == []
        return
    with pytest.raises(PromptError, match="is no list of messages"):
        MessagesTemplate([MessagesPlaceholder("m")]).render({"m": value})


def test_examples_are_checked_when_they_are_made_and_rendered_once() -> None:
    with pytest.raises(PromptError, match="translation"):
        FewShot([QUESTION, PromptTemplate("{{translation}}", role="assistant")], [{"text": "yes"}])
    with pytest.raises(PromptError, match="no variable `extra`"):
        FewShot([QUESTION], [{"text": "yes", "extra": 1}])
    values = {"language": "French", "text": "hi"}
    assert CHAT.render(values)[1] is CHAT.render(values)[1]


def test_messages_stand_for_themselves() -> None:
    rules = SystemMessage(content="{{not a variable}}")
    assert MessagesTemplate([rules]).render() == [rules]


def test_what_is_no_part_and_a_name_with_two_meanings_are_refused() -> None:
    part: Any = "text"
    with pytest.raises(PromptError, match="not a `str`"):
        MessagesTemplate([part])
    with pytest.raises(PromptError, match="give one of them another name"):
        MessagesTemplate([MessagesPlaceholder("text"), QUESTION])
    with pytest.raises(PromptError, match="no name of a placeholder"):
        MessagesPlaceholder("two words")
