"""What tests need beyond fixtures: import it as ``tests.support``."""

import os
from pathlib import Path

IN_CI = bool(os.environ.get("CI"))
"""Whether what is missing fails a test instead of skipping it."""

PATIENCE = 30.0
"""Seconds after which a test that hangs fails; far more than any needs on a busy machine."""


def shared_folder() -> Path | None:
    """The folder of recorded traffic and other shared material, if this machine has it.

    It is ``$TINYAGENTS_SHARED``, or ``shared`` beside the repository. A test takes the fixture
    ``shared``; this is for parametrising over what the folder holds.
    """
    named = os.environ.get("TINYAGENTS_SHARED")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared"
    return folder if folder.is_dir() else None


def tables(page: Path) -> list[list[list[str]]]:
    """The tables of a page: rows of cells, the heading first."""
    found: list[list[list[str]]] = []
    inside = False
    for line in page.read_text("utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not inside:
            found.append([])
        inside = True
        if not set(line) <= set("|- "):
            found[-1].append(cells)
    return found
