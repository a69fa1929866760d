"""Cancelling a scenario, or failing it, at each point where it waits: see there for how."""

from ..harness.testkit.checkpoints import (
    CheckpointOutcome,
    cancel_at_checkpoint,
    for_every_checkpoint,
)

__all__ = ("CheckpointOutcome", "cancel_at_checkpoint", "for_every_checkpoint")
