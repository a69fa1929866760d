"""What a tool does and needs, as data."""

import pytest
from pydantic import ValidationError

from tinyagents.harness.tool import (
    ToolAccess,
    ToolDisplay,
    ToolPolicy,
    ToolRuntime,
    ToolSideEffects,
)


def test_nothing_is_known_by_default() -> None:
    policy = ToolPolicy()
    assert not policy.classified
    assert not policy.has_side_effects
    assert policy.runtime == ToolRuntime(timeout="inherit", max_retries=0, sandbox="inherit")
    assert policy.access == ToolAccess(workspace="none", trusted_roots=(), credentials=())


@pytest.mark.parametrize(
    "policy",
    [
        ToolPolicy(side_effects=ToolSideEffects(network=True)),
        ToolPolicy(runtime=ToolRuntime(timeout=5)),
        ToolPolicy(access=ToolAccess(approval_required=True)),
    ],
)
def test_saying_what_a_tool_does_classifies_it(policy: ToolPolicy) -> None:
    assert policy.classified


def test_saying_how_a_tool_is_shown_does_not_classify_it() -> None:
    assert not ToolPolicy(display=ToolDisplay(label="Search")).classified


def test_the_word_of_the_author_stands() -> None:
    assert not ToolPolicy(runtime=ToolRuntime(), classified=False).classified


def test_a_tool_that_only_looks_may_be_repeated_cut_and_run_unwatched() -> None:
    policy = ToolPolicy.read_only()
    assert policy.classified
    assert policy.side_effects.read_only
    assert policy.runtime.idempotent
    assert policy.runtime.cancelable
    assert policy.access.background_safe
    assert not policy.has_side_effects


@pytest.mark.parametrize("name", sorted(ToolSideEffects.model_fields.keys() - {"read_only"}))
def test_any_other_flag_is_a_side_effect(name: str) -> None:
    assert ToolPolicy(side_effects=ToolSideEffects.model_validate({name: True})).has_side_effects


def test_a_record_that_lacks_newer_fields_gets_their_defaults() -> None:
    policy = ToolPolicy.model_validate({"classified": True, "runtime": {"idempotent": True}})
    assert policy == ToolPolicy(classified=True, runtime=ToolRuntime(idempotent=True))
    assert ToolPolicy.model_validate({}) == ToolPolicy()


def test_a_policy_survives_storing() -> None:
    policy = ToolPolicy(
        side_effects=ToolSideEffects(payment=True),
        runtime=ToolRuntime(timeout=None, max_result_chars=10),
    )
    assert ToolPolicy.model_validate_json(policy.model_dump_json()) == policy
    assert ToolPolicy.model_validate_json(ToolPolicy().model_dump_json()) == ToolPolicy()


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        ToolPolicy().classified = True  # type: ignore[misc]
