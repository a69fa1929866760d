import copy
import inspect
import pickle
from typing import Any

import pytest

from tinyagents.harness import errors
from tinyagents.harness.errors import (
    LimitExceededError,
    MissingDependencyError,
    ModelError,
    ProviderTimeoutError,
    RateLimitError,
    StructuredOutputError,
    TinyAgentsError,
    ToolTimeoutError,
)
from tinyagents.harness.message import AssistantMessage

CLASSES: list[type[TinyAgentsError]] = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, TinyAgentsError)
]

FACTS: dict[str, Any] = {
    "answer": AssistantMessage(content="{"),
    "capability": "tool_calling",
    "extra": "sqlite",
    "interrupt_id": "c1:approve:0f",
    "name": "a",
    "provider": "openai",
    "model": "m",
    "status": 429,
    "code": "busy",
    "request_id": "r1",
    "retry_after": 7.0,
    "raw": {"error": {"code": "busy"}},
    "schema_name": "Answer",
    "text": "{",
    "errors": ("$.city is missing",),
    "available": ("b", "c"),
    "tool": "f",
    "call_id": "k1",
    "seconds": 1.5,
    "limit": "model_calls",
    "maximum": 3,
    "counters": {"model_calls": 3},
    "reason": "stopped by the user",
    "depth": 5,
    "by": "Rules",
    "url": "https://example.com/a",
    "path": "a/b",
    "media": "image",
    "reference": "a/b.png",
    "paths": ("a", "b"),
    "program": "git",
    "template": "greeting",
    "variable": "name",
    "server": "files",
    "stderr": "no such folder",
    "source_tokens": 10,
    "summary_tokens": 12,
    "tokens": 200,
    "tried": ("Summarize",),
    "window": 100,
    "stage": "input",
    "labels": ("EMAIL",),
}


def example(kind: type[TinyAgentsError]) -> TinyAgentsError:
    """An error with every fact that its class takes."""
    names = list(inspect.signature(kind).parameters)[1:]
    facts = {name: FACTS[name] for name in names if name != "retryable"}
    return kind("what happened", **facts)


def test_every_class_is_exported_and_nothing_else_is() -> None:
    assert {kind.__name__ for kind in CLASSES} == set(errors.__all__)


def test_every_class_has_a_kind_of_its_own() -> None:
    kinds = {kind.__name__: kind.__dict__.get("kind") for kind in CLASSES}
    assert None not in kinds.values()
    assert len(set(kinds.values())) == len(kinds)


def test_the_kinds_are_those_that_stored_records_hold() -> None:
    # Changing one breaks logs, metrics and records that were written before.
    assert {kind.kind for kind in CLASSES} == {
        "approval", "approver", "authentication", "bad_request", "cache", "capability", "configuration",
        "content_blocked", "content_filter",
        "context_overflow", "context_window", "duplicate_name", "empty_response", "error", "fetch", "fetch_refused",
        "invalid_request", "limit_exceeded", "malformed_response", "media_input", "middleware",
        "missing_dependency", "model_error",
        "model_not_found", "model_refused", "network", "output_refused", "output_truncated", "process", "process_refused", "prompt", "provider_timeout", "rate_limit",
        "resume", "run_cancelled", "run_timeout", "sandbox_unavailable", "server",
        "structured_output", "subagent_depth", "summary",
        "tool_arguments", "tool_failed", "tool_not_found", "tool_refused", "tool_schema", "tool_server",
        "tool_timeout", "truncated_response", "unsafe_path", "workspace", "workspace_violation",
    }  # fmt: skip


def test_network_timeout_rate_limit_and_server_failures_are_retried_and_nothing_else() -> None:
    retried = {kind.__name__ for kind in CLASSES if kind.retryable}
    assert retried == {"NetworkError", "ProviderTimeoutError", "RateLimitError", "ServerError"}


def test_an_error_can_overrule_what_its_class_says_of_retrying() -> None:
    assert not RateLimitError("quota used up", retryable=False).retryable
    assert ModelError("odd", retryable=True).retryable
    assert RateLimitError.retryable


def test_the_tree_in_the_docstring_names_every_class() -> None:
    assert errors.__doc__ is not None
    tree = set(errors.__doc__.replace("│", " ").replace("├──", " ").replace("└──", " ").split())
    assert set(errors.__all__) <= tree


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
def test_an_error_keeps_all_it_knows_when_it_is_copied(
    kind: type[TinyAgentsError], way: str
) -> None:
    error = example(kind)
    error.retryable = True
    error.add_note("seen in the test")
    match way:
        case "pickle":
            again = pickle.loads(pickle.dumps(error))
        case "copy":
            again = copy.copy(error)
        case _:
            again = copy.deepcopy(error)
    assert type(again) is kind
    assert vars(again) == vars(error)
    assert again.args == error.args
    assert str(again) == str(error)


class TeapotError(errors.ServerError):
    def __init__(self, *, colour: str) -> None:
        super().__init__(f"a {colour} teapot", status=418)
        self.colour = colour


def test_an_error_class_of_an_application_survives_pickling_too() -> None:
    again = pickle.loads(pickle.dumps(TeapotError(colour="red")))
    assert (again.colour, again.status, str(again)) == ("red", 418, "a red teapot (HTTP 418)")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_message_is_shown(kind: type[TinyAgentsError]) -> None:
    error = example(kind)
    assert "what happened" in str(error)
    assert error.message in str(error)


def test_a_model_error_shows_the_facts_that_are_known() -> None:
    error = RateLimitError("slow down", provider="openai", status=429, request_id="r1")
    assert str(error) == "slow down (provider openai, HTTP 429, request r1)"
    assert str(RateLimitError("slow down")) == "slow down"


def test_the_raw_body_is_kept_but_not_shown() -> None:
    error = ModelError("no", raw={"secret": "sk-1"})
    assert error.raw == {"secret": "sk-1"}
    assert "sk-1" not in str(error) + repr(error)


def test_errors_are_caught_as_the_built_in_ones_that_they_are() -> None:
    for kind, builtin in (
        (ProviderTimeoutError, TimeoutError),
        (ToolTimeoutError, TimeoutError),
        (errors.RunTimeoutError, TimeoutError),
        (errors.InvalidRequestError, ValueError),
        (errors.ToolArgumentsError, ValueError),
        (errors.ModelNotFoundError, LookupError),
        (MissingDependencyError, ImportError),
    ):
        with pytest.raises(builtin, match="what happened"):
            raise example(kind)


def test_a_missing_package_says_how_to_install_it() -> None:
    error = MissingDependencyError("aiosqlite", extra="sqlite")
    assert str(error) == "`aiosqlite` is not installed: pip install 'tinyagents[sqlite]'"


def test_facts_are_snapshots_of_what_was_passed() -> None:
    counters = {"model_calls": 3.0}
    found = ["a"]
    limit = LimitExceededError("x", limit="model_calls", maximum=3, counters=counters)
    output = StructuredOutputError("x", schema_name="A", errors=found)
    counters["model_calls"] = 9
    found.append("b")
    assert limit.counters == {"model_calls": 3}
    assert output.errors == ("a",)


def test_an_error_raised_outside_a_run_has_none() -> None:
    assert TinyAgentsError("x").run is None
