"""Templates of one message."""

import copy
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from tinyagents import AssistantMessage, ImageBlock, SystemMessage, TextBlock, UserMessage
from tinyagents.harness.errors import InvalidRequestError, PromptError
from tinyagents.harness.prompt import PromptTemplate

IMAGE = ImageBlock(url="https://example.org/a.png")
TEXTS = st.text(alphabet=st.sampled_from("a{}\\ x"), max_size=20)


def rendered(template: str, values: Mapping[str, object] | None = None) -> str:
    return PromptTemplate(template).render(values or {}).text


# Reading


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hello {{name}}!", "Hello Ada!"),
        ("{{ name }}{{name}}", "AdaAda"),
        ("{{{name}}}", "{Ada}"),
        ('{"name": {"first": "{{name}}"}}', '{"name": {"first": "Ada"}}'),
        (r"\{{name}} is {{name}}", "{{name}} is Ada"),
        (r"\\{{name}}", r"\Ada"),
        (r"\\\{{name}}", r"\{{name}}"),
        (r"C:\dir\{x} {{name}}", r"C:\dir\{x} Ada"),
        ("} }} {", "} }} {"),
    ],
)
def test_a_template_reads_as_documented(template: str, text: str) -> None:
    values = {"name": "Ada"} if "name" in PromptTemplate(template).variables else {}
    assert rendered(template, values) == text


def test_the_variables_are_known_once_a_template_is_made() -> None:
    template = PromptTemplate("{{b}} {{a}} {{b}}", defaults={"a": 1})
    assert template.variables == ("b", "a")
    assert template.required == ("b",)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("Hi {{name", "`{{` at character 3 is not closed"),
        ("Hi {{name}", "is not closed"),
        ("{{}}", "'' at character 0 is no name"),
        ("{{a.b}}", "'a.b' at character 0 is no name"),
        ("{{__class__}}", "'__class__'"),
        ("{{a {{b}}", "'a {{b'"),
        ("{{1 + 1}}", "'1 + 1'"),
        ("{{größe}}", "a letter from A to Z"),
    ],
)
def test_what_is_no_variable_is_refused_when_the_template_is_made(
    template: str, message: str
) -> None:
    with pytest.raises(PromptError, match=re.escape(message)) as caught:
        PromptTemplate(template, name="greeting")
    assert caught.value.template == "greeting"
    assert caught.value.reason == "syntax"
    assert "greeting" in str(caught.value)
    assert isinstance(caught.value, InvalidRequestError)


def test_a_default_for_no_variable_and_an_unknown_role_are_refused() -> None:
    with pytest.raises(PromptError, match="has no variable `nmae`: is `name` meant"):
        PromptTemplate("{{name}}", defaults={"nmae": "x"})
    role: Any = "tool"
    with pytest.raises(PromptError, match="`role` is 'tool'") as caught:
        PromptTemplate("x", role=role)
    assert caught.value.reason == "setting"


# Values


@dataclass
class Point:
    x: int
    y: int


class City(BaseModel):
    name: str


class Color(str, Enum):  # noqa: UP042 - the older way, whose `str` is the member's name
    RED = "red"


class Size(Enum):
    BIG = "big"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"raw" {{x}}\n', '"raw" {{x}}\n'),
        (3, "3"),
        (True, "true"),
        (None, "null"),
        ([1, "é"], '[1,"é"]'),
        ({"a": {"b": 2}}, '{"a":{"b":2}}'),
        (Point(1, 2), '{"x":1,"y":2}'),
        (City(name="Rome"), '{"name":"Rome"}'),
        (date(2026, 1, 31), "2026-01-31"),
        ([date(2026, 1, 31)], '["2026-01-31"]'),
        (Color.RED, "red"),
        (Size.BIG, "big"),
        ({"c", "a", "b"}, '["a","b","c"]'),
        ({"tags": {3, 1, 2}}, '{"tags":[1,2,3]}'),
        ([], "[]"),
        (2**70, str(2**70)),
    ],
)
def test_what_json_writes_as_a_string_goes_in_as_it_is_and_other_values_as_json(
    value: object, text: str
) -> None:
    assert rendered("<{{x}}>", {"x": value}) == f"<{text}>"


def test_a_value_without_a_form_is_refused_and_not_shown() -> None:
    class Secret:
        def __repr__(self) -> str:
            return "hunter2"

    with pytest.raises(PromptError, match="the value of `key`") as caught:
        rendered("{{key}}", {"key": [Secret()]})
    assert (caught.value.variable, caught.value.reason) == ("key", "value")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(PromptError):
        rendered("{{key}}", {"key": circle})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (UserMessage(content="hi"), "holds a message: use a `MessagesPlaceholder`"),
        ([UserMessage(content="hi")], "holds a message"),
        ([IMAGE, "caption"], "holds a block among other things"),
        ({"photo": IMAGE}, "holds a block among other things"),
        (iter(["a"]), "can be read only once"),
        (PromptTemplate("{{x}}"), "has no form as text"),
    ],
)
def test_what_would_be_no_text_to_read_is_refused(value: object, why: str) -> None:
    with pytest.raises(PromptError, match=re.escape(why)) as caught:
        rendered("{{x}}", {"x": value})
    assert (caught.value.variable, caught.value.reason) == ("x", "value")


@pytest.mark.parametrize("values", ["x", None, ["x"], [("x", "y")]])
def test_values_that_are_no_mapping_are_refused(values: Any) -> None:
    with pytest.raises(PromptError, match="values are a mapping"):
        PromptTemplate("{{x}}").render(values)
    with pytest.raises(PromptError, match="values are a mapping"):
        PromptTemplate("{{x}}").partial(values)


def test_a_name_that_is_no_text_is_as_unknown_as_another() -> None:
    values: Any = {1: "x"}
    with pytest.raises(PromptError, match="has no variable `1`"):
        PromptTemplate("{{x}}").render(values)


def test_a_set_is_the_same_text_in_every_process() -> None:
    program = (
        "from tinyagents.harness.prompt import PromptTemplate\n"
        "values = {'x': {'a': {'one', 'two', 'three', 'four'}}}\n"
        "print(PromptTemplate('{{x}}').render(values).text)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_a_missing_and_an_unknown_value_are_told_with_template_and_variable() -> None:
    template = PromptTemplate("Translate {{text}} to {{language}}", name="translate")
    with pytest.raises(PromptError, match="`translate`.*`language` has neither") as caught:
        template.render({"text": "hi"})
    assert (caught.value.variable, caught.value.reason) == ("language", "missing")
    with pytest.raises(PromptError, match="no variable `lang`: is `language` meant") as caught:
        template.render({"text": "hi", "lang": "fr"})
    assert (caught.value.variable, caught.value.reason) == ("lang", "unknown")


def test_a_default_stands_in_and_a_value_replaces_it() -> None:
    template = PromptTemplate("{{n}} words", defaults={"n": 50})
    assert template.render().text == "50 words"
    assert template.render({"n": 9}).text == "9 words"


def test_a_default_is_checked_when_the_template_is_made_and_fixed_from_then_on() -> None:
    with pytest.raises(PromptError, match="the value of `x` has no form as text"):
        PromptTemplate("{{x}}", defaults={"x": object()})
    words = ["a"]
    template = PromptTemplate("{{x}}", defaults={"x": words})
    words.append("b")
    assert template.render().text == '["a"]'
    assert PromptTemplate("{{x}}", defaults={"x": [IMAGE]}).render().content == [IMAGE]


def test_a_partial_template_needs_fewer_values_and_leaves_the_first_one_alone() -> None:
    template = PromptTemplate("{{a}} {{b}} {{c}}", role="system", defaults={"c": 3}, name="abc")
    partial = template.partial({"a": 1, "c": 4})
    assert (partial.required, template.required) == (("b",), ("a", "b"))
    assert partial.variables == template.variables
    assert partial.render({"b": 2}) == SystemMessage(content="1 2 4")
    assert partial.partial({"b": 5}).render({"a": 0}).text == "0 5 4"
    assert template.render({"a": 0, "b": 0}).text == "0 0 3"
    with pytest.raises(PromptError, match="`abc` has no variable `d`"):
        template.partial({"d": 1})


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_a_copy_renders_the_same(copied: Callable[[PromptTemplate], PromptTemplate]) -> None:
    template = PromptTemplate(["{{a}} {{b}}", IMAGE], role="system", defaults={"a": 1})
    assert copied(template).render({"b": 2}) == template.render({"b": 2})


def test_a_template_may_be_large() -> None:
    template = PromptTemplate("{{x}} {" * 20_000)
    assert template.variables == ("x",)
    assert template.render({"x": "{{x}}"}).text == "{{x}} {" * 20_000


@given(st.text(max_size=30), st.text(max_size=30))
def test_what_a_value_brings_along_is_never_read_as_a_template(first: str, second: str) -> None:
    clean = UserMessage(content=f"{first}|{second}").text
    assert rendered("{{a}}|{{b}}", {"a": first, "b": second}) == clean


@given(TEXTS, TEXTS)
def test_an_escaped_text_renders_to_itself(before: str, after: str) -> None:
    assert rendered(PromptTemplate.escape(before)) == before
    # A variable right behind it is still one, unless a backslash there escapes its braces.
    between = " " if before.endswith(("\\", "\\{")) else ""
    template = f"{PromptTemplate.escape(before)}{between}{{{{v}}}}{PromptTemplate.escape(after)}"
    assert rendered(template, {"v": "{{v}}"}) == f"{before}{between}{{{{v}}}}{after}"


@given(TEXTS)
def test_any_text_is_a_template_or_refused_with_a_typed_error(text: str) -> None:
    try:
        template = PromptTemplate(text)
    except PromptError:
        return
    template.render(dict.fromkeys(template.variables, "v"))


# Messages


@pytest.mark.parametrize(
    ("role", "kind"),
    [("system", SystemMessage), ("user", UserMessage), ("assistant", AssistantMessage)],
)
def test_a_role_makes_its_message(role: Any, kind: type) -> None:
    assert type(PromptTemplate("hi", role=role).render()) is kind


def test_blocks_stand_where_their_variables_do() -> None:
    template = PromptTemplate("Compare {{a}} with {{others}}.")
    other = ImageBlock(url="https://example.org/b.png")
    message = template.render({"a": IMAGE, "others": [other, IMAGE]})
    assert message.content == [
        TextBlock(text="Compare "),
        IMAGE,
        TextBlock(text=" with "),
        other,
        IMAGE,
        TextBlock(text="."),
    ]


def test_parts_are_texts_with_variables_and_blocks() -> None:
    template = PromptTemplate([IMAGE, "What is {{what}}?", " Briefly."])
    assert template.render({"what": "this"}).content == [
        IMAGE,
        TextBlock(text="What is this? Briefly."),
    ]
    with pytest.raises(PromptError, match="no text"):
        template.render_text({"what": "this"})


def test_a_template_without_variables_is_the_same_message_each_time() -> None:
    template = PromptTemplate("Be brief.", role="system")
    assert template.render() is template.render()


def test_a_block_may_be_all_there_is() -> None:
    assert PromptTemplate(IMAGE).render() == UserMessage(content=[IMAGE])


@pytest.mark.parametrize("content", [None, 42, [42], UserMessage(content="x"), [None], {"a": "b"}])
def test_what_is_neither_text_nor_block_makes_no_template(content: Any) -> None:
    with pytest.raises(PromptError, match="`greeting` is made of texts and blocks") as caught:
        PromptTemplate(content, name="greeting")
    assert caught.value.reason == "setting"


def test_an_error_names_a_template_that_has_no_words_too() -> None:
    with pytest.raises(PromptError, match="the template `template` has parts that are no text"):
        PromptTemplate([IMAGE]).render_text()


@given(TEXTS)
def test_an_escaped_text_that_is_a_part_of_its_own_leaves_the_next_one_alone(text: str) -> None:
    template = PromptTemplate([PromptTemplate.escape(text), "{{v}}"])
    assert template.render({"v": "!"}).text == f"{text}!"
