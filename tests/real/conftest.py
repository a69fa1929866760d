"""A real small model on loopback: ``python -m nox -s real``."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def local_llm(shared: Path) -> Iterator[str]:
    """The base URL of a server that speaks Chat Completions, Responses and Anthropic Messages."""
    command = [sys.executable, str(shared / "real/local_llm.py"), "qwen", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            ready = server.stdout.readline().split()
            assert ready[:1] == ["ready"], "the server did not start"
            yield ready[1]
        finally:
            server.terminate()
