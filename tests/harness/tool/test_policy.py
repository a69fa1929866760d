"""What a tool does and needs, as data."""

import pytest
from pydantic import ValidationError

from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.tool import (
    SIDE_EFFECTS,
    SideEffect,
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


def test_every_flag_but_read_only_is_a_side_effect() -> None:
    assert {*SIDE_EFFECTS, "read_only"} == ToolSideEffects.model_fields.keys()


@pytest.mark.parametrize("name", SIDE_EFFECTS)
def test_a_policy_is_made_of_the_names_of_side_effects(name: SideEffect) -> None:
    policy = ToolPolicy.affecting(name, approval_required=True)
    assert policy.has_side_effects
    assert policy.side_effects.named == (name,)
    assert policy == ToolPolicy(
        classified=True,
        side_effects=ToolSideEffects.model_validate({name: True}),
        access=ToolAccess(approval_required=True),
    )


def test_a_side_effect_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'paymnet'; there are writes_files, .*payment"):
        ToolPolicy.affecting("paymnet")  # type: ignore[arg-type]


def test_a_record_that_lacks_newer_fields_gets_their_defaults() -> None:
    policy = ToolPolicy.model_validate({"classified": True, "runtime": {"idempotent": True}})
    assert policy == ToolPolicy(classified=True, runtime=ToolRuntime(idempotent=True))
    assert ToolPolicy.model_validate({}) == ToolPolicy()


def test_a_policy_survives_storing() -> None:
    policy = ToolPolicy(
        side_effects=ToolSideEffects(payment=True),
        runtime=ToolRuntime(timeout=None, max_result_chars=10, max_result_bytes=20),
    )
    assert ToolPolicy.model_validate_json(policy.model_dump_json()) == policy
    assert ToolPolicy.model_validate_json(ToolPolicy().model_dump_json()) == ToolPolicy()


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        ToolPolicy().classified = True  # type: ignore[misc]
