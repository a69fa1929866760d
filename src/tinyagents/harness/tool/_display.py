"""How a call is shown to people: what it does, and what it does it to."""

from collections.abc import Mapping

from pydantic import JsonValue

from ._policy import ToolDisplay, ToolPolicy

_PREFIXES = ("composio_", "mcp_")
"""What hubs of tools put before the names of theirs."""

_TELLING = (
    "to", "recipient", "recipient_email", "to_email", "email", "query", "q", "search",
    "search_query", "url", "file_path", "path", "command", "cmd", "subject", "title", "channel",
    "channel_id", "repo", "repository", "name", "id",
)  # fmt: skip
"""The parameters that say the most about a call, the best first."""

_MOST_CHARACTERS = 80
_MOST_BITS = 1000
_READ = 20 * _MOST_CHARACTERS
"""How much of an argument is looked at: it may be a whole file."""


def call_display(
    name: str, arguments: Mapping[str, JsonValue], policy: ToolPolicy | None = None
) -> ToolDisplay:
    """Return how a call is shown: what the tool's policy says of it, and the rest made up for it.

    The detail is an argument of the call, and so may be private.
    """
    own = policy.display if policy is not None else ToolDisplay()
    return ToolDisplay(
        label=own.label or tool_label(name), detail=own.detail or call_detail(arguments)
    )


def tool_label(name: str) -> str:
    """Return a tool's name as words: ``mcp_files_read-all`` is ``Files Read All``."""
    bare = name
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    words = bare.replace("_", " ").replace("-", " ").split()
    return " ".join(word[0].upper() + word[1:] for word in words) or name


def call_detail(arguments: Mapping[str, JsonValue]) -> str | None:
    """Return the most telling argument of a call in at most 80 characters; ``None`` without one."""
    for key in _TELLING:
        if text := _shown(arguments.get(key)):
            return text
    return None


def _shown(value: JsonValue) -> str:
    """Return a text, a number or a list of texts on one line; nothing for anything else."""
    match value:
        case bool():
            return ""
        case str():
            text = value[:_READ]
        case int() if value.bit_length() > _MOST_BITS:  # Python writes out no such number
            return ""
        case int() | float():
            text = str(value)
        case list():
            text = ", ".join(
                item[:_READ] for item in value[:_MOST_CHARACTERS] if isinstance(item, str)
            )
        case _:
            return ""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 3]}..."
