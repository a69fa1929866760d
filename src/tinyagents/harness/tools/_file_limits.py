"""How much the file tools read, write, search and show, and what their policies say."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from ..tool import ToolAccess, ToolPolicy, ToolRuntime, ToolSideEffects


class FileToolLimits(BaseModel):
    """The bounds of the file tools. What is left out because of one is said in the result."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    max_file_bytes: PositiveInt = 10_000_000
    """How much of a file is read or searched, and how large one may be to be edited or written."""
    max_output_chars: PositiveInt = 50_000
    """How much text one result shows."""
    max_lines: PositiveInt = 2_000
    """How many lines one reading shows."""
    max_line_chars: PositiveInt = 2_000
    """Where a line is cut."""
    max_entries: PositiveInt = 1_000
    """How many names a list shows."""
    max_matches: PositiveInt = 200
    """How many lines a search shows."""
    max_walked_entries: PositiveInt = 200_000
    """How many names a search looks at."""
    max_searched_bytes: PositiveInt = 200_000_000
    """How much a search reads."""
    max_seconds: Annotated[float, Field(gt=0)] = 10.0
    """How long a search looks, in seconds."""
    skip_folders: tuple[str, ...] = (
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "__pycache__",
        "node_modules",
    )
    """Names of folders that searches leave out; listed and read they can be."""


READS = ToolPolicy(
    side_effects=ToolSideEffects(read_only=True),
    runtime=ToolRuntime(idempotent=True, cancelable=True),
    access=ToolAccess(workspace="scoped", background_safe=True),
)

# Two edits of one file in a turn must not meet, so each waits for the other.
WRITES = ToolPolicy(
    side_effects=ToolSideEffects(writes_files=True),
    runtime=ToolRuntime(exclusive=True, cancelable=True),
    access=ToolAccess(workspace="scoped"),
)
