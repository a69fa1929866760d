"""Which test pins which case of cases/open.md in the shared folder."""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CANCEL = "harness/agent_loop/test_cancellation.py"
LOOP = "harness/agent_loop/test_loop.py"
MERGE = "harness/model/test_stream.py"
TOOL = "harness/tool"
WIRE = "harness/providers"

CASES: dict[str, list[str]] = {
    "C01": [f"{CANCEL}::test_a_token_cancels_a_running_tool_and_the_history_goes_on"],
    "C02": [f"{CANCEL}::test_a_sibling_that_had_ended_keeps_its_result"],
    "C04": [
        f"{LOOP}::test_a_batch_over_the_tool_limit_runs_only_what_the_limit_allows",
        "cases/test_limits.py::test_a_batch_over_the_tool_limit_stops_with_what_was_run",
    ],
    "C05": [
        "cases/test_limits.py::"
        "test_the_turn_limit_keeps_the_messages_and_the_usage_of_both_calls",
        "cases/test_limits.py::test_the_turn_limit_may_buy_one_last_answer_without_tools",
        "cases/test_limits.py::"
        "test_a_model_that_calls_a_tool_in_its_last_answer_is_not_asked_again",
    ],
    "C07": [
        f"{LOOP}::test_under_the_resilient_policy_the_model_is_told_of_an_unknown_tool",
        f"{LOOP}::test_a_model_that_never_finds_the_tool_is_ended_by_the_turn_limit",
    ],
    "C08": [
        f"{LOOP}::test_ids_that_repeat_from_turn_to_turn_pair_with_their_own_turn",
        "harness/message/test_repair.py::"
        "test_ids_that_repeat_from_turn_to_turn_pair_with_their_own_turn",
    ],
    "C10": [
        "cases/test_arguments.py::test_blank_arguments_call_a_tool_that_needs_none",
        "cases/test_arguments.py::"
        "test_blank_arguments_of_a_tool_that_needs_some_name_what_is_missing",
        f"{MERGE}::test_blank_null_and_an_empty_object_are_no_arguments",
    ],
    "C11": [
        "cases/test_arguments.py::"
        "test_arguments_that_are_no_object_are_answered_and_replayed_as_an_object",
        f"{MERGE}::test_json_that_is_no_object_is_kept_as_invalid_with_the_reason",
    ],
    "C13": [
        "cases/test_stream_assembly.py::test_a_call_whose_index_starts_at_one_is_the_only_call",
        f"{MERGE}::test_a_call_may_begin_at_any_index",
    ],
    "C14": [
        "cases/test_stream_assembly.py::test_two_ids_at_one_index_are_two_calls_that_both_run",
        f"{MERGE}::test_another_id_at_the_same_index_is_another_call",
    ],
    "C16": [
        "cases/test_stream_assembly.py::"
        "test_an_id_on_every_piece_and_a_summary_of_them_are_one_call",
        "cases/test_stream_assembly.py::"
        "test_a_call_that_is_said_again_under_its_id_is_one_call_in_every_api",
        f"{MERGE}::test_arguments_that_are_sent_once_more_after_the_pieces_count_once",
    ],
    "C17": [
        "cases/test_stream_assembly.py::"
        "test_calls_cut_by_the_token_limit_never_run_and_end_as_truncation",
        f"{LOOP}::test_calls_of_an_answer_that_was_cut_never_run_and_the_model_is_told",
    ],
    "C19": [f"{LOOP}::test_one_failing_call_does_not_lose_the_results_of_its_siblings"],
    "C20": [
        "cases/test_tools.py::"
        "test_what_a_tool_returns_is_sent_as_strict_json_and_never_as_a_repr",
        f"{TOOL}/test_result.py::test_a_value_has_one_documented_text",
        f"{TOOL}/test_result.py::test_bytes_are_a_file",
    ],
    "C22": [
        "cases/test_signatures.py::test_every_form_of_signature_is_the_same_schema_on_the_wire"
    ],
    "C23": ["cases/test_signatures.py::test_a_keyword_bag_is_refused_by_its_name"],
    "C25": [
        "cases/test_tools.py::"
        "test_tool_names_are_safe_on_the_wire_and_the_applications_own_elsewhere",
        f"{TOOL}/test_names.py::test_wire_names_are_the_same_in_another_process_and_in_another_order",
    ],
    "C26": [
        "cases/test_tools.py::"
        "test_blocking_tools_of_runs_at_once_time_out_and_never_stall_the_loop",
        f"{TOOL}/test_execute.py::test_a_thread_that_was_left_behind_changes_nothing",
    ],
    "C28": [
        "cases/test_usage.py::test_cumulative_usage_is_one_request_and_is_not_added_up",
        f"{MERGE}::test_cumulative_usage_is_replaced_and_never_added_up",
    ],
    "C29": ["cases/test_usage.py::test_a_last_chunk_of_usage_alone_is_recorded_and_is_no_delta"],
    "C31": [
        "harness/test_cost.py::test_two_ways_of_reporting_one_call_cost_the_same",
        "cases/test_usage.py::test_a_call_costs_the_same_however_its_provider_counts",
    ],
    "C32": [
        "cases/test_usage.py::"
        "test_a_cancelled_stream_keeps_its_text_and_the_usage_that_is_known",
        "cases/test_usage.py::"
        "test_a_call_that_is_cancelled_before_its_first_piece_is_not_a_plain_zero",
        "harness/agent_loop/test_accounts.py::"
        "test_a_call_that_was_cancelled_before_it_said_anything_is_no_reported_zero",
        f"{MERGE}::test_a_partial_message_keeps_text_and_usage_and_leaves_out_its_calls",
    ],
    "C34": [
        "cases/test_stream_faults.py::test_a_stream_split_at_any_byte_gives_the_same_events",
        "cases/test_stream_faults.py::"
        "test_a_run_tells_the_same_however_its_stream_is_split",
    ],
    "C35": [
        "cases/test_stream_faults.py::"
        "test_a_model_that_fails_before_its_first_piece_is_followed_by_the_next",
        f"{LOOP}::test_the_fallback_model_answers_when_the_first_has_failed",
        "harness/middleware/test_resilience.py::"
        "test_another_model_takes_over_where_the_failure_may_pass",
    ],
    "C37": [
        "cases/test_stream_faults.py::"
        "test_a_stream_that_falls_silent_ends_the_run_once_and_lets_the_connection_go",
    ],
    "C38": [
        "cases/test_stream_faults.py::"
        "test_statuses_that_may_pass_are_asked_again_after_growing_waits",
        "cases/test_stream_faults.py::test_statuses_that_no_retry_helps_fail_at_once",
        "cases/test_stream_faults.py::"
        "test_a_connection_that_is_reset_is_opened_again_after_growing_waits",
        "cases/test_stream_faults.py::"
        "test_a_read_that_times_out_is_tried_again_after_growing_waits",
        "cases/test_stream_faults.py::test_an_error_in_the_code_is_never_retried",
        "cases/test_stream_faults.py::"
        "test_a_tool_without_the_mark_runs_once_whatever_it_raises",
        "harness/middleware/test_resilience.py::"
        "test_what_may_pass_is_retried_with_growing_waits",
        "harness/middleware/test_tool_resilience.py::"
        "test_a_tool_without_the_mark_is_never_called_twice_unless_it_is_named",
    ],
    "C40": [
        "cases/test_structured.py::"
        "test_every_strategy_leaves_the_same_value_and_the_same_history",
    ],
    "C41": [
        "cases/test_structured.py::test_a_cut_answer_is_truncated_and_never_a_value",
        "cases/test_structured.py::test_a_cut_call_of_the_output_is_truncated_too",
        "cases/test_structured.py::test_a_refusal_is_an_outcome_of_its_own",
    ],
    "C43": [
        f"{WIRE}/test_strict_schemas.py::"
        "test_a_type_that_strict_mode_refuses_is_caught_locally_on_every_adapter",
        f"{WIRE}/test_strict_schemas.py::"
        "test_a_format_that_cannot_be_strict_is_relaxed_with_the_path",
        f"{WIRE}/test_strict_schemas.py::"
        "test_a_schema_that_contains_itself_stays_strict_with_its_references",
        f"{WIRE}/test_strict_schemas.py::test_a_tool_is_strict_unasked_where_its_schema_can_be",
        "cases/test_schemas.py::"
        "test_an_open_and_recursive_type_is_an_answer_and_a_bad_one_is_caught",
        "cases/test_schemas.py::"
        "test_an_open_and_recursive_type_is_an_answer_by_a_tool_too",
        "cases/test_schemas.py::"
        "test_an_open_and_recursive_argument_is_taken_and_a_bad_one_is_caught",
    ],
    "C44": [
        "cases/test_reasoning_replay.py::"
        "test_reasoning_parts_and_extras_of_calls_survive_saving_and_go_back_as_they_came",
        "cases/test_reasoning_replay.py::"
        "test_reasoning_of_every_api_survives_saving_and_goes_back_as_it_came",
        "harness/message/test_messages.py::"
        "test_the_order_and_values_of_reasoning_parts_survive_saving",
    ],
    "C46": [
        "cases/test_context.py::test_a_cut_inside_an_exchange_takes_none_of_it_apart",
        "cases/test_context.py::test_no_cut_of_random_histories_takes_an_exchange_apart",
    ],
    "C47": ["cases/test_context.py::test_one_giant_result_is_trimmed_and_a_small_one_is_not"],
    "C49": [
        "cases/test_context.py::"
        "test_estimates_leave_nothing_out_and_never_fall_below_what_was_used",
    ],
    "C50": [
        "cases/test_redaction.py::test_an_address_is_never_shown_in_parts",
        "cases/test_redaction.py::"
        "test_an_address_is_never_shown_however_the_stream_is_split",
        "cases/test_redaction.py::test_text_far_from_an_address_is_not_held_to_the_end",
        "harness/redaction/test_streams.py::"
        "test_a_stream_shows_what_the_whole_text_becomes_however_it_is_split",
    ],
    "C52": [
        "cases/test_approvals.py::"
        "test_a_batch_takes_a_decision_for_each_call_and_one_model_call_follows",
    ],
    "C53": [
        "cases/test_approvals.py::"
        "test_three_calls_that_wait_are_answered_two_now_and_one_later",
        "cases/test_approvals.py::"
        "test_one_bare_answer_while_three_wait_is_an_error_that_lists_them",
        "harness/agent_loop/test_interrupts.py::"
        "test_some_answers_leave_the_others_waiting_and_answered_calls_ask_no_more",
    ],
    "C55": [
        "cases/test_approvals.py::"
        "test_a_nested_approval_is_given_in_another_process",
        "cases/test_approvals.py::"
        "test_a_nested_approval_outlives_every_object_of_the_run",
    ],
    "C64": [
        "cases/test_leaving_streams.py::"
        "test_a_hundred_runs_that_are_left_give_all_connections_back",
        "cases/test_leaving_streams.py::"
        "test_a_stream_that_another_task_closes_ends_for_whoever_reads_it",
        f"{WIRE}/test_transport.py::test_a_hundred_streams_that_are_left_give_all_connections_back",
    ],
    "C68": [
        "harness/cache/test_keys.py::"
        "test_requests_that_differ_in_what_can_change_the_answer_differ_in_key",
        "harness/cache/test_keys.py::"
        "test_the_order_of_keys_does_not_matter_and_that_of_lists_does",
        "harness/cache/test_keys.py::test_an_answer_that_is_not_whole_is_not_for_others",
        "harness/cache/test_runs.py::test_an_answer_that_is_not_whole_is_asked_for_again",
    ],
    "C70": [
        "harness/testkit/test_determinism.py::"
        "test_the_same_parallel_script_twice_gives_the_same_log_to_the_byte",
        "cases/test_fresh_imports.py::test_importing_the_package_loads_nothing_but_itself",
        "cases/test_fresh_imports.py::"
        "test_an_agent_loads_no_client_no_validator_and_no_telemetry",
        "cases/test_fresh_imports.py::"
        "test_nothing_leaves_the_process_but_the_calls_that_were_configured",
        "typing/api.py::plain",
        "typing/api.py::streamed",
        "typing/tools.py::use",
    ],
}  # fmt: skip


@cache
def functions_of(path: str) -> frozenset[str]:
    """The functions at the top of a file of the tests."""
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(function.name for function in found)


@pytest.mark.parametrize("case", CASES)
def test_the_tests_of_a_case_exist(case: str) -> None:
    for test in CASES[case]:
        path, _, name = test.partition("::")
        assert name in functions_of(path), test


def test_a_case_that_a_test_names_is_in_the_index() -> None:
    here = Path(__file__).parent
    named = {
        word.strip(":,.")
        for path in here.glob("test_*.py")
        if path != Path(__file__)
        for line in path.read_text("utf-8").splitlines()
        if line.lstrip().startswith("# C")
        for word in line.split()
        if word[:1] == "C" and word[1:3].isdigit()
    }
    assert named <= set(CASES)
