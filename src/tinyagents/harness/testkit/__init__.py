"""Fakes, recorders and assertions for tests: of the harness, and of the applications on it.

A name is loaded when it is first used, so that a test which needs a clock does not load the models.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._fake_models import FakeChatModel, FakeStreamingModel, SlowModel
    from ._fake_tool import FakeTool
    from ._grammar import assert_event_grammar
    from ._network import NetworkBlocked, block_network
    from ._recorder import EventRecorder
    from ._script import Reply, Step, call, calls, delay, fail, hang, refuse, say, say_json, think
    from ._scripted_model import ScriptedModel, ScriptedModel as ScriptedChatModel, ScriptExhausted
    from ._time import DeterministicClock, DeterministicIds, FakeSleep
    from ._trajectory import Trajectory, assert_trajectory

_HOMES = {
    "_fake_models": ("FakeChatModel", "FakeStreamingModel", "SlowModel"),
    "_fake_tool": ("FakeTool",),
    "_grammar": ("assert_event_grammar",),
    "_network": ("NetworkBlocked", "block_network"),
    "_recorder": ("EventRecorder",),
    "_script": (
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
    "_scripted_model": ("ScriptExhausted", "ScriptedModel"),
    "_time": ("DeterministicClock", "DeterministicIds", "FakeSleep"),
    "_trajectory": ("Trajectory", "assert_trajectory"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = (
    "DeterministicClock",
    "DeterministicIds",
    "EventRecorder",
    "FakeChatModel",
    "FakeSleep",
    "FakeStreamingModel",
    "FakeTool",
    "NetworkBlocked",
    "Reply",
    "ScriptExhausted",
    "ScriptedChatModel",
    "ScriptedModel",
    "SlowModel",
    "Step",
    "Trajectory",
    "assert_event_grammar",
    "assert_trajectory",
    "block_network",
    "call",
    "calls",
    "delay",
    "fail",
    "hang",
    "refuse",
    "say",
    "say_json",
    "think",
)


def __getattr__(name: str) -> object:
    if name == "ScriptedChatModel":
        return __getattr__("ScriptedModel")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
