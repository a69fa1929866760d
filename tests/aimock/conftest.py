"""aimock, a scripted server of the five wire formats: ``python -m nox -s aimock``."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("script.json")


@pytest.fixture(scope="session")
def aimock() -> Iterator[str]:
    """The address of a server that answers what its script says, and nothing else."""
    command = [os.environ["TINYAGENTS_AIMOCK"], "-p", "0", "-f", str(SCRIPT), "--strict"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            for line in server.stdout:
                if "listening on" in line:
                    yield line.split()[-1]
                    break
            else:
                pytest.fail("the server did not start")
        finally:
            server.terminate()
