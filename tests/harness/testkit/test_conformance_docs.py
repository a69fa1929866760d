"""The adapter test that docs/testing.md shows is complete, and passes."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
(EXAMPLE,) = re.findall(
    r"^```python\n((?:(?!^```).)*?class TestMyAdapter.*?)^```",
    PAGE.read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
names: dict[str, Any] = {"__name__": __name__}
exec(EXAMPLE, names)
TestMyAdapter = names["TestMyAdapter"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
