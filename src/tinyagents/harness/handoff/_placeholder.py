"""What stands in the place of an oversized result."""

import re
from typing import Final

from ..html_text import html_to_text, looks_like_html
from ..text import defused

HANDOFF_MARKER: Final = "[handoff]"
"""How the line of a placeholder begins; no other result has this text in it."""

_SPACES = re.compile(r"[ \t\f\v\xa0]{2,}")
_EMPTY_LINES = re.compile(r"\n{3,}")
_BYTES_PER_TOKEN = 4


def token_estimate(text: str) -> int:
    """Return how many tokens a text has at most likely: its bytes by 4, rounded up."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def cleaned(text: str) -> str:
    """Return what a page of HTML says, without runs of spaces and of empty lines.

    Any other text stays as it is: to take out what stands between angle brackets, or spaces, would damage
    code, comparisons and tables.
    """
    if not looks_like_html(text):
        return text
    words = _SPACES.sub(" ", html_to_text(text).text)
    return _EMPTY_LINES.sub("\n\n", words).strip()


def placeholder(text: str, result_id: str, *, tool: str, preview_characters: int) -> str:
    """Return what the model gets in the place of a text that is kept under an id.

    Args:
        text: The text.
        result_id: Its id.
        tool: The name of the tool that extracts from it.
        preview_characters: How much of its beginning is shown.
    """
    size = len(text.encode())
    preview = defused(text[:preview_characters], HANDOFF_MARKER)
    return (
        f"{HANDOFF_MARKER} id={result_id} tokens={token_estimate(text)} bytes={size}\n"
        f'The result is too long to be shown. Call {tool}(result_id="{result_id}", query="…") for '
        f"the parts that you need; its first {min(len(text), preview_characters)} characters are:\n"
        f"{preview}"
    )
