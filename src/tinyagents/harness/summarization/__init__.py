"""Keeping long conversations inside the window: cutting, shortening and summarising them."""

from ._apply import (
    SUMMARY_HOOK,
    StoredSummary,
    forget_summary,
    goal_of,
    store_summary,
    stored_summary,
    summarize_plan,
)
from ._archive import (
    ContextArchive,
    InMemoryContextArchive,
    Passage,
    conversation_key,
    put_away,
    search_messages,
)
from ._clearing import CLEARED, cleared_result, drop_retrieved, start_of_turns, without_blocks
from ._exchanges import Exchange, exchanges, is_well_paired
from ._file_archive import JsonlContextArchive
from ._model_summarizer import ModelSummarizer
from ._policy import SummarizationPolicy, SummaryPlan
from ._prompt import SUMMARY_INSTRUCTIONS, SUMMARY_PROMPT_VERSION
from ._records import (
    CompressionProvenance,
    SummaryRecord,
    is_summary,
    message_digest,
    message_ref,
    record_of,
    source_hash,
)
from ._render import render_message
from ._request_note import ask_for_compaction, compaction_request
from ._results import TrimmedResults, shortened_result, trim_results
from ._shorten import Shortened, apply_steps
from ._steps import (
    SUMMARY_FAULTS,
    ClearToolResults,
    CompactToolOutputs,
    ContextStep,
    DropRetrieved,
    ShorteningTask,
    Summarize,
    TrimOldest,
    default_steps,
    trim_oldest,
)
from ._summarizer import ConcatSummarizer, Summarizer
from ._tools import SEARCH_TAG, compact_context_tool, search_dropped_tool
from ._triggers import (
    AllOf,
    AnyOf,
    ContextSize,
    MessagesAbove,
    TokensAbove,
    Trigger,
    WindowFraction,
)
from ._trim import Role, TrimStrategy, trim_messages, trim_to_budget

__all__ = (
    "CLEARED",
    "SEARCH_TAG",
    "SUMMARY_FAULTS",
    "SUMMARY_HOOK",
    "SUMMARY_INSTRUCTIONS",
    "SUMMARY_PROMPT_VERSION",
    "AllOf",
    "AnyOf",
    "ClearToolResults",
    "CompactToolOutputs",
    "CompressionProvenance",
    "ConcatSummarizer",
    "ContextArchive",
    "ContextSize",
    "ContextStep",
    "DropRetrieved",
    "Exchange",
    "InMemoryContextArchive",
    "JsonlContextArchive",
    "MessagesAbove",
    "ModelSummarizer",
    "Passage",
    "Role",
    "Shortened",
    "ShorteningTask",
    "StoredSummary",
    "SummarizationPolicy",
    "Summarize",
    "Summarizer",
    "SummaryPlan",
    "SummaryRecord",
    "TokensAbove",
    "Trigger",
    "TrimOldest",
    "TrimStrategy",
    "TrimmedResults",
    "WindowFraction",
    "apply_steps",
    "ask_for_compaction",
    "cleared_result",
    "compact_context_tool",
    "compaction_request",
    "conversation_key",
    "default_steps",
    "drop_retrieved",
    "exchanges",
    "forget_summary",
    "goal_of",
    "is_summary",
    "is_well_paired",
    "message_digest",
    "message_ref",
    "put_away",
    "record_of",
    "render_message",
    "search_dropped_tool",
    "search_messages",
    "shortened_result",
    "source_hash",
    "start_of_turns",
    "store_summary",
    "stored_summary",
    "summarize_plan",
    "trim_messages",
    "trim_oldest",
    "trim_results",
    "trim_to_budget",
    "without_blocks",
)
