"""Templates of conversations."""

import copy
import pickle
from typing import Any

import pytest

from tinyagents import (
    AssistantMessage,
    ImageBlock,
    SystemMessage,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
)
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
    with pytest.raises(PromptError, match="not of a `str`"):
        MessagesTemplate([part])
    with pytest.raises(PromptError, match="give one of them another name"):
        MessagesTemplate([MessagesPlaceholder("text"), QUESTION])
    for name in ("two words", "", "_x", None, 3):
        given: Any = name
        with pytest.raises(PromptError, match="no name of a placeholder"):
            MessagesPlaceholder(given)


@pytest.mark.parametrize("parts", [None, QUESTION, "text", 42])
def test_parts_stand_in_a_list(parts: Any) -> None:
    with pytest.raises(PromptError, match="is made of templates, placeholders"):
        MessagesTemplate(parts)


@pytest.mark.parametrize("examples", [None, {"text": "x"}, "text", ["text"]])
def test_examples_are_mappings_in_a_list(examples: Any) -> None:
    with pytest.raises(PromptError, match="mapping"):
        FewShot([QUESTION], examples)


def test_an_example_may_show_a_call_of_a_tool() -> None:
    tool_call = ToolCallBlock(id="c1", name="add", arguments={"a": 1, "b": 2})
    shots = FewShot(
        [
            QUESTION,
            PromptTemplate("{{call}}", role="assistant"),
            MessagesPlaceholder("results"),
            PromptTemplate("{{answer}}", role="assistant"),
        ],
        [
            {
                "text": "1 + 2?",
                "call": tool_call,
                "results": [ToolMessage(tool_call_id="c1", name="add", content="3")],
                "answer": 3,
            }
        ],
    )
    assert MessagesTemplate([shots]).render() == [
        UserMessage(content="1 + 2?"),
        AssistantMessage(content=[tool_call]),
        ToolMessage(tool_call_id="c1", name="add", content="3"),
        AssistantMessage(content="3"),
    ]


def test_conversations_are_made_of_conversations() -> None:
    head = MessagesTemplate(
        [SYSTEM, MessagesPlaceholder("history", optional=True)], defaults={"language": "French"}
    )
    both = MessagesTemplate([head, QUESTION])
    assert both.variables == ("language", "history", "text")
    assert (both.required, both.placeholders) == (("text",), ("history",))
    messages = both.render({"text": "hi", "history": [AssistantMessage(content="a")]})
    assert [each.text for each in messages] == ["You translate to French.", "a", "hi"]
    assert both.render({"text": "hi", "language": "Dutch"})[0].text == "You translate to Dutch."
    with pytest.raises(PromptError, match="`history` is a placeholder for messages and"):
        MessagesTemplate([PromptTemplate("{{history}}"), head])


def test_a_partial_conversation_needs_fewer_values_and_leaves_the_first_one_alone() -> None:
    history = [AssistantMessage(content="a")]
    partial = CHAT.partial({"language": "French", "history": history})
    history.append(AssistantMessage(content="b"))
    assert (partial.required, CHAT.required) == (("text",), ("language", "text"))
    messages = partial.render({"text": "hi"})
    assert [messages[0].text, *(each.text for each in messages[5:])] == [
        *("You translate to French.", "a", "hi"),
    ]
    assert partial.render({"text": "hi", "history": []})[5].text == "hi"
    for values in ({"tone": "kind"}, {"history": "text"}, {"language": object()}):
        with pytest.raises(PromptError, match="`chat`"):
            CHAT.partial(values)


def test_a_variable_of_several_roles_has_one_value() -> None:
    image = ImageBlock(url="https://example.org/a.png")
    roles = MessagesTemplate([PromptTemplate("{{x}}", role=r) for r in ("system", "user")])
    for value, text in ((3, "3"), ("{{x}}", "{{x}}"), (image, "")):
        first, second = roles.render({"x": value})
        assert (first.role, second.role) == ("system", "user")
        assert first.text == second.text == text
        assert first.content == second.content


def test_a_copied_conversation_renders_the_same() -> None:
    values = {"language": "French", "text": "hi"}
    for copied in (copy.deepcopy(CHAT), pickle.loads(pickle.dumps(CHAT))):
        assert copied.render(values) == CHAT.render(values)
