import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from tinyagents.harness.usage import Usage, UsageTotals, estimate_tokens

USAGES = st.builds(
    Usage,
    input_tokens=st.integers(0, 10**6),
    output_tokens=st.integers(0, 10**6),
    cache_read_tokens=st.integers(0, 10**6),
    cache_write_tokens=st.integers(0, 10**6),
    reasoning_tokens=st.integers(0, 10**6),
    source=st.sampled_from(["reported", "estimated"]),
)


def test_the_total_is_input_and_output_since_details_are_parts_of_them() -> None:
    usage = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=90, reasoning_tokens=15)
    assert usage.total_tokens == 120


def test_fresh_input_is_what_the_cache_had_no_part_in() -> None:
    usage = Usage(input_tokens=1000, cache_read_tokens=800, cache_write_tokens=100)
    assert usage.fresh_input_tokens == 100


def test_fresh_input_is_never_negative() -> None:
    assert Usage(input_tokens=10, cache_read_tokens=90).fresh_input_tokens == 0


def test_a_later_report_replaces_figures_and_does_not_add_to_them() -> None:
    # C28: the provider repeats cumulative usage in its first and its last event.
    first = Usage(input_tokens=100, cache_read_tokens=90)
    last = Usage(input_tokens=100, cache_read_tokens=90, output_tokens=7)
    usage = first.updated(last)
    assert usage == last
    assert (usage.fresh_input_tokens, usage.cache_read_tokens, usage.output_tokens) == (10, 90, 7)


def test_a_figure_that_a_later_report_does_not_set_stays_known() -> None:
    first = Usage(input_tokens=100, cache_read_tokens=90)
    usage = first.updated(Usage(output_tokens=7))
    assert usage == Usage(input_tokens=100, cache_read_tokens=90, output_tokens=7)


def test_a_figure_that_a_later_report_sets_to_zero_is_zero() -> None:
    assert Usage(input_tokens=5).updated(Usage(input_tokens=0)).input_tokens == 0


@given(st.lists(USAGES, max_size=5))
def test_adding_up_gives_the_same_however_it_is_done(usages: list[Usage]) -> None:
    totals = UsageTotals()
    added = Usage()
    for usage in usages:
        totals.add(usage)
        added += usage
    assert totals.usage == added
    assert totals.calls == len(usages)
    assert added.total_tokens == sum(usage.total_tokens for usage in usages)


def test_a_sum_is_estimated_as_soon_as_one_part_is() -> None:
    assert (Usage() + Usage(source="estimated")).source == "estimated"
    assert (Usage(source="estimated") + Usage()).source == "estimated"
    assert (Usage() + Usage()).source == "reported"


def test_a_call_without_usage_counts_as_a_call_and_the_sum_is_no_longer_exact() -> None:
    totals = UsageTotals()
    totals.add(None)
    assert (totals.calls, totals.usage) == (1, Usage(source="estimated"))


def test_details_that_are_zero_are_left_out_of_the_json() -> None:
    usage = Usage(input_tokens=3, reasoning_tokens=2, output_tokens=2)
    assert usage.model_dump_json() == (
        '{"input_tokens":3,"output_tokens":2,"reasoning_tokens":2,"source":"reported"}'
    )


@given(USAGES)
def test_usage_round_trips_through_json(usage: Usage) -> None:
    assert Usage.model_validate_json(usage.model_dump_json()) == usage


def test_negative_counts_and_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError):
        Usage(input_tokens=-1)
    with pytest.raises(ValidationError):
        Usage.model_validate({"prompt_tokens": 3})


def test_tokens_are_estimated_at_four_characters_each_and_begun_ones_are_whole() -> None:
    assert [estimate_tokens(characters) for characters in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]
