"""What a run is doing at one moment, as data for a status page or a store."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from ..cost import CostTotals
from ..usage import Usage
from ._run_status import RunStatus


class HarnessRunStatus(BaseModel):
    """What a run is doing at one moment. Times are in milliseconds since the epoch."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    run_id: str
    root_run_id: str
    parent_run_id: str | None = None
    thread_id: str | None = None
    component: str = "agent"
    """What events call the agent."""
    status: RunStatus | Literal["pending"]
    """``pending``: nothing has happened yet."""
    phase: str
    """The loop's phase; of a run that waits, the one that it goes on with."""
    model_calls: int = 0
    tool_calls: int = 0
    active_model_call: str | None = None
    """The id of the model call under way."""
    active_tool_calls: tuple[str, ...] = ()
    """The ids of the tool calls under way, in call order."""
    resolved_model: Mapping[str, JsonValue] | None = None
    """Which model gave the last answer, and why that one: a stored ``ResolvedModel``."""
    last_event_id: str | None = None
    """The run's last event that was kept: no ``model.delta``."""
    usage: Usage
    cost: CostTotals
    started_at_ms: int | None = None
    """When the run began, or went on in this process; ``None`` while it is pending."""
    updated_at_ms: int | None = None
    """When the last event happened."""
    ended_at_ms: int | None = None
    """When the run ended for good; ``None`` for one that waits."""
    error: str | None = None
    """Why the run failed or was cancelled."""
    metadata: Mapping[str, JsonValue] = {}
