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
