"""Templates of one message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
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
        (date(2026, 1, 31), '"2026-01-31"'),
        (2**70, str(2**70)),
    ],
)
def test_strings_go_in_as_they_are_and_other_values_as_json(value: object, text: str) -> None:
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
