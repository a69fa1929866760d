"""How far a run has come. It stands alone, because every run needs it and few need the report."""

from typing import Literal, TypeAlias

RunStatus: TypeAlias = Literal[
    "running", "interrupted", "paused", "completed", "stopped", "failed", "cancelled"
]
"""How far a run has come. ``interrupted`` and ``paused`` ones can go on; the last four have ended."""
