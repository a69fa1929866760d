"""Every middleware of the library has a page, and the page says what is so."""

import inspect
import re
from pathlib import Path

import pytest

from tests.support import tables
from tinyagents.harness import middleware
from tinyagents.harness.events import event_kinds
from tinyagents.harness.middleware import Middleware

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "middleware"
INDEX = PAGES / "index.md"

BUILT_IN: list[type[Middleware]] = [
    getattr(middleware, name)
    for name in middleware.__all__
    if name.endswith("Middleware") and name != "Middleware"
]
HOOKS = [name for name, _ in inspect.getmembers(Middleware, inspect.isfunction) if name[0] != "_"]
ROWS = [
    "Hooks",
    "Changes",
    "Events",
    "When it fails",
    "Streaming",
    "Prompt cache",
    "Retry and fallback",
]
CODE = re.compile(r"`([^`]+)`")
EVENT = re.compile(r"`([a-z_]+\.[a-z_]+)`")

of_each = pytest.mark.parametrize("built_in", BUILT_IN, ids=lambda cls: cls.__name__)


def page_of(built_in: type[Middleware]) -> Path:
    """``ToolPolicyMiddleware`` is on the page ``tool-policy.md``."""
    name = built_in.__name__.removesuffix("Middleware")
    return PAGES / (re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() + ".md")


def behaviour(built_in: type[Middleware]) -> dict[str, str]:
    (table,) = [rows for rows in tables(page_of(built_in)) if rows[0][0] == "Hooks"]
    assert [row[0] for row in table] == ROWS
    return dict(table)


def overridden(built_in: type[Middleware]) -> list[str]:
    return [hook for hook in HOOKS if getattr(built_in, hook) is not getattr(Middleware, hook)]


@of_each
def test_a_page_begins_with_the_name_one_sentence_and_an_example(
    built_in: type[Middleware],
) -> None:
    title, sentence, example = page_of(built_in).read_text("utf-8").split("\n\n")[:3]
    assert title == f"# {built_in.__name__}"
    assert sentence.endswith(".")
    assert example.startswith("```python\n")


@of_each
def test_a_page_says_how_it_behaves_in_the_rows_that_all_pages_have(
    built_in: type[Middleware],
) -> None:
    assert all(behaviour(built_in).values())
    text = page_of(built_in).read_text("utf-8")
    assert text.count("\n## How it behaves\n") == 1


@of_each
def test_a_page_names_the_hooks_that_the_class_overrides(built_in: type[Middleware]) -> None:
    assert sorted(CODE.findall(behaviour(built_in)["Hooks"])) == overridden(built_in)


@of_each
def test_the_docstring_names_the_hooks_too(built_in: type[Middleware]) -> None:
    named = [hook for hook in HOOKS if f"``{hook}``" in (built_in.__doc__ or "")]
    assert set(overridden(built_in)) <= set(named)


@of_each
def test_a_page_names_only_events_that_there_are(built_in: type[Middleware]) -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    for name in EVENT.findall(behaviour(built_in)["Events"]):
        custom = any(f'"{name}"' in source for source in sources)
        assert name in event_kinds() or custom, f"nothing emits `{name}`"


@of_each
def test_a_page_is_in_the_navigation_and_in_the_table_of_the_index(
    built_in: type[Middleware],
) -> None:
    page = page_of(built_in).name
    assert f": middleware/{page}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    (listed,) = [rows for rows in tables(INDEX) if rows[0] == ["middleware", "what it does"]]
    assert f"[`{built_in.__name__}`]({page})" in [row[0] for row in listed]


def test_there_is_no_page_of_a_middleware_that_does_not_exist() -> None:
    assert {page_of(each) for each in BUILT_IN} | {INDEX} == set(PAGES.glob("*.md"))


def test_the_index_tells_of_every_hook() -> None:
    (called,) = [rows for rows in tables(INDEX) if rows[0][:2] == ["hook", "called"]]
    named = [name for row in called[1:] for name in re.findall(r"`(\w+)", row[0])]
    assert sorted(named) == HOOKS
