"""Decisions and requests as data."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tinyagents.harness.approval import (
    ApprovalNeed,
    ApprovalRequest,
    Approve,
    Decision,
    Edit,
    ExternalCallRequest,
    Reject,
    Respond,
    arguments_hash,
    check_decision,
    parse_decision,
    parse_request,
)
from tinyagents.harness.errors import ApprovalError, ConfigurationError
from tinyagents.harness.message import ImageBlock, TextBlock

DECISIONS: list[Decision] = [
    Approve(),
    Approve(remember="tool", by="ann"),
    Edit(arguments={"a": [1, None, {"b": "c"}]}),
    Reject(),
    Reject(reason="no"),
    Respond(content="text", value={"a": 1}),
    Respond(content=(TextBlock(text="a"), ImageBlock(url="https://x.test/a.png"))),
    Respond(value=3, is_error=True),
]


@pytest.mark.parametrize("decision", DECISIONS, ids=repr)
def test_a_decision_survives_json(decision: Decision) -> None:
    assert parse_decision(decision) is decision
    assert parse_decision(json.loads(decision.model_dump_json())) == decision
    assert parse_decision(decision.model_dump()) == decision


@pytest.mark.parametrize("answer", [True, 1, None, "approve", [], ["approve"], object()])
def test_nothing_else_stands_for_a_decision(answer: object) -> None:
    with pytest.raises(ApprovalError, match=type(answer).__name__):
        parse_decision(answer)


def test_what_is_wrong_with_a_decision_is_said_with_its_place() -> None:
    with pytest.raises(ApprovalError, match=r"edit\.arguments") as caught:
        parse_decision({"kind": "edit", "arguments": [1]})
    assert caught.value.errors
    with pytest.raises(ApprovalError, match="remember"):
        parse_decision({"kind": "approve", "remember": "for ever"})


def test_texts_that_no_store_takes_are_made_safe() -> None:
    edit = Edit(arguments={"a\ud800": ["b\0"]}, by="\ud800")
    assert (edit.arguments, edit.by) == ({"a\ufffd": ["b\ufffd"]}, "\ufffd")
    assert Reject(reason="\ud800").reason == "\ufffd"
    assert Respond(value={"\ud800": 1}).value == {"\ufffd": 1}


def test_the_hash_is_of_the_arguments_and_not_of_how_they_are_written() -> None:
    one: dict[str, Any] = {"a": 1, "b": {"c": [1, 2], "d": "é"}}
    other: dict[str, Any] = {"b": {"d": "é", "c": [1, 2]}, "a": 1}
    assert arguments_hash(one) == arguments_hash(other)
    assert arguments_hash(one) == arguments_hash(json.loads(json.dumps(one, indent=3)))
    assert len(arguments_hash(one)) == 64
    different: list[dict[str, Any]] = [
        {},
        {"a": "1"},
        {"a": 1},
        {"a": 1.5},
        {"a": True},
        {"a": None},
        {"a": [1, 2]},
        {"a": [2, 1]},
        {"a": 2**70},
        {"a": 2**70 + 1},
    ]
    assert len({arguments_hash(arguments) for arguments in different}) == len(different)


REQUESTS: list[ApprovalRequest | ExternalCallRequest] = [
    ApprovalRequest(
        call_id="c", tool_name="t", arguments={"a": 1}, arguments_hash="0f" * 32, expires_at_ms=9
    ),
    ExternalCallRequest(
        call_id="c",
        tool_name="t",
        arguments={},
        arguments_hash="0f" * 32,
        output_schema={"type": "string"},
        problem="it had changed",
        round=2,
    ),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.kind)
def test_a_request_survives_json_with_its_id(
    request_: ApprovalRequest | ExternalCallRequest,
) -> None:
    again = parse_request(json.loads(request_.model_dump_json()))
    assert again == request_
    assert again.id == request_.id
    with pytest.raises(ValidationError):
        request_.tool_name = "other"  # type: ignore[misc]


def test_the_id_of_a_request_is_another_for_each_call_purpose_hash_and_round() -> None:
    approval, _ = REQUESTS
    changes: list[dict[str, Any]] = [
        {},
        {"call_id": "d"},
        {"arguments_hash": "1f" * 32},
        {"round": 2},
    ]
    ids = {approval.model_copy(update=change).id for change in changes}
    assert len({*ids, REQUESTS[1].model_copy(update={"round": 1}).id}) == 5


@pytest.mark.parametrize("payload", [None, {}, {"kind": "approval"}, "x"])
def test_what_is_no_request_is_refused(payload: object) -> None:
    with pytest.raises(ApprovalError, match="no request"):
        parse_request(payload)


def test_a_request_says_which_decisions_it_takes() -> None:
    approval, external = REQUESTS
    check_decision(approval, Approve(remember="tool"))
    check_decision(external, Respond(content="x"))
    for decision in (Approve(), Edit(arguments={})):
        with pytest.raises(ApprovalError, match="takes `reject`, `respond`"):
            check_decision(external, decision)
    once = approval.model_copy(update={"may_remember": False})
    check_decision(once, Approve())
    with pytest.raises(ApprovalError, match="remembered"):
        check_decision(once, Approve(remember="same_arguments"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"allow": ("aprove",)}, "aprove"),
        ({"expires_in": 0}, "expires_in"),
        ({"expires_in": -1}, "expires_in"),
        ({"expires_in": float("nan")}, "expires_in"),
    ],
)
def test_a_need_that_cannot_work_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ApprovalNeed(**wrong)
