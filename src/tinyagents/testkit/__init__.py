"""Everything for tests: what :mod:`tinyagents.harness.testkit` has, under a shorter name."""

from typing import TYPE_CHECKING

from ..harness import testkit as _harness

if TYPE_CHECKING:
    from ..harness.testkit import (
        ESSENTIAL_FACTS,
        Delay,
        DeterministicClock,
        DeterministicIds,
        EventRecorder,
        Fact,
        Failure,
        FakeChatModel,
        FakeSleep,
        FakeStreamingModel,
        FakeTool,
        Hang,
        NetworkBlocked,
        Reply,
        RetentionCheck,
        ScriptedChatModel,
        ScriptedModel,
        ScriptExhausted,
        SlowModel,
        Step,
        Trajectory,
        assert_event_grammar,
        assert_never_shown,
        assert_prompt_prefix_preserved,
        assert_trajectory,
        block_network,
        call,
        calls,
        check_retention,
        delay,
        fail,
        hang,
        refuse,
        say,
        say_json,
        think,
    )

__all__ = (
    "ESSENTIAL_FACTS",
    "Delay",
    "DeterministicClock",
    "DeterministicIds",
    "EventRecorder",
    "Fact",
    "Failure",
    "FakeChatModel",
    "FakeSleep",
    "FakeStreamingModel",
    "FakeTool",
    "Hang",
    "NetworkBlocked",
    "Reply",
    "RetentionCheck",
    "ScriptExhausted",
    "ScriptedChatModel",
    "ScriptedModel",
    "SlowModel",
    "Step",
    "Trajectory",
    "assert_event_grammar",
    "assert_never_shown",
    "assert_prompt_prefix_preserved",
    "assert_trajectory",
    "block_network",
    "call",
    "calls",
    "check_retention",
    "delay",
    "fail",
    "hang",
    "refuse",
    "say",
    "say_json",
    "think",
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    value: object = getattr(_harness, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
