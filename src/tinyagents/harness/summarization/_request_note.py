"""The note by which a compaction is asked for; it is part of the snapshot until it is done."""

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


def take_compaction_request(ctx: RunContext[Any]) -> str | None:
    """Return the focus of a compaction that was asked for, and forget it; ``None`` for none."""
    focus = ctx.notes.pop(_NOTE, None)
    return focus if isinstance(focus, str) else None
