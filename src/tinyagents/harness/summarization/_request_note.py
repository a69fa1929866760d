"""The note by which a compaction is asked for; it is part of the snapshot until it is done."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from ..context import RunContext

_NOTE: Final = "context.compaction_asked"


def ask_for_compaction(ctx: RunContext[Any], focus: str = "") -> None:
    """Have the run's conversation made shorter before its next model call.

    Args:
        ctx: The run.
        focus: What is still needed, for whoever summarises.
    """
    ctx.notes[_NOTE] = focus


@contextmanager
def compaction_request(ctx: RunContext[Any]) -> Generator[str | None]:
    """Give the focus of a compaction that was asked for, and ``None`` where none was.

    It is forgotten once the block has ended; where that fails or is cancelled it is still asked for.
    """
    focus = ctx.notes.get(_NOTE)
    yield focus if isinstance(focus, str) else None
    ctx.notes.pop(_NOTE, None)
