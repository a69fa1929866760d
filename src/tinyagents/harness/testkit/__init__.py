"""Fakes, recorders and assertions for tests: of the harness, and of the applications on it.

A name is loaded when it is first used, so that a test which needs a clock does not load the models.
"""

from typing import TYPE_CHECKING

from .. import _lazy

if TYPE_CHECKING:
    from ._fake_models import FakeChatModel, FakeStreamingModel, SlowModel
    from ._fake_tool import FakeTool
    from ._grammar import assert_event_grammar
    from ._network import NetworkBlocked, block_network
    from ._prompts import assert_prompt_prefix_preserved
    from ._recorder import EventRecorder
    from ._retention import ESSENTIAL_FACTS, Fact, RetentionCheck, check_retention
    from ._script import (
        Delay,
        Failure,
        Hang,
        Reply,
        Step,
        call,
        calls,
        delay,
        fail,
        hang,
        refuse,
        say,
        say_json,
        think,
    )
    from ._scripted_model import ScriptedChatModel, ScriptedModel, ScriptExhausted
    from ._shown import assert_never_shown
    from ._time import DeterministicClock, DeterministicIds, FakeSleep
    from ._trajectory import Trajectory, assert_trajectory

_HOMES = {
    "_fake_models": ("FakeChatModel", "FakeStreamingModel", "SlowModel"),
    "_fake_tool": ("FakeTool",),
    "_grammar": ("assert_event_grammar",),
    "_network": ("NetworkBlocked", "block_network"),
    "_prompts": ("assert_prompt_prefix_preserved",),
    "_recorder": ("EventRecorder",),
    "_retention": ("ESSENTIAL_FACTS", "Fact", "RetentionCheck", "check_retention"),
    "_script": (
        "Delay",
        "Failure",
        "Hang",
        "Reply",
        "Step",
        "call",
        "calls",
        "delay",
        "fail",
        "hang",
        "refuse",
        "say",
        "say_json",
        "think",
    ),
    "_scripted_model": ("ScriptExhausted", "ScriptedChatModel", "ScriptedModel"),
    "_shown": ("assert_never_shown",),
    "_time": ("DeterministicClock", "DeterministicIds", "FakeSleep"),
    "_trajectory": ("Trajectory", "assert_trajectory"),
}

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
