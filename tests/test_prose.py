"""The examples in the README and the documentation run as they stand there."""

import ast
import re
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A block of the language ``py`` is shown and not run."""


def pages() -> list[str]:
    files = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [str(f.relative_to(ROOT)) for f in files if PYTHON.search(f.read_text("utf-8"))]


@pytest.mark.parametrize("page", pages())
async def test_the_examples_of_a_page_run_in_their_order(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    names: dict[str, Any] = {"__name__": "__example__"}
    for block in PYTHON.finditer(text):
        # Blank lines in front, so that a traceback names the line of the page.
        lines_before = text.count("\n", 0, block.start(1))
        source = "\n" * lines_before + block[1]
        code = compile(source, page, "exec", flags=FLAGS, dont_inherit=True)
        result: object = eval(code, names)
        if isawaitable(result):
            await result
