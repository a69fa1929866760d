from decimal import Decimal

from hypothesis import given, strategies as st

from tinyagents.harness.cost import CostTotals, ModelPricing, estimate_cost
from tinyagents.harness.usage import Usage

PRICES = ModelPricing(
    input=Decimal(2), output=Decimal(8), cache_read=Decimal("0.2"), cache_write=Decimal("2.5")
)


def test_two_ways_of_reporting_one_call_cost_the_same() -> None:
    # C31. A reports fresh input beside what was cached, B the whole prompt; adapters make both
    # into the one meaning of `Usage`.
    a = Usage(
        input_tokens=100 + 800 + 100,
        cache_read_tokens=800,
        cache_write_tokens=100,
        output_tokens=50,
    )
    b = Usage(input_tokens=1000, cache_read_tokens=800, cache_write_tokens=100, output_tokens=50)
    assert estimate_cost(PRICES, a).total == estimate_cost(PRICES, b).total == Decimal("0.00101")


def test_the_buckets_are_disjoint_and_their_sum_is_the_total() -> None:
    usage = Usage(
        input_tokens=1000, cache_read_tokens=800, cache_write_tokens=100,
        output_tokens=50, reasoning_tokens=20,
    )  # fmt: skip
    cost = estimate_cost(PRICES.model_copy(update={"reasoning": Decimal(10)}), usage)
    assert cost == CostTotals(
        input=Decimal("0.0002"),
        cache=Decimal("0.00041"),
        output=Decimal("0.00024"),
        reasoning=Decimal("0.0002"),
    )
    assert cost.total == Decimal("0.00105")


def test_reasoning_without_a_price_of_its_own_costs_what_output_does() -> None:
    thought = estimate_cost(PRICES, Usage(output_tokens=50, reasoning_tokens=20))
    said = estimate_cost(PRICES, Usage(output_tokens=50))
    assert thought.total == said.total
    assert thought.reasoning == Decimal("0.00016")


def test_the_cache_without_prices_of_its_own_costs_what_input_does() -> None:
    plain = ModelPricing(input=Decimal(2))
    cached = Usage(input_tokens=1000, cache_read_tokens=800, cache_write_tokens=100)
    assert estimate_cost(plain, cached).total == Decimal("0.002")


def test_a_price_of_zero_is_a_price() -> None:
    free = ModelPricing(input=Decimal(2), cache_read=Decimal(0))
    usage = Usage(input_tokens=1000, cache_read_tokens=1000)
    assert estimate_cost(free, usage).total == 0


def test_parts_that_exceed_their_whole_never_cost_less_than_nothing() -> None:
    usage = Usage(input_tokens=1, cache_read_tokens=5, output_tokens=1, reasoning_tokens=5)
    cost = estimate_cost(ModelPricing(input=Decimal(1), output=Decimal(1)), usage)
    assert cost.input == cost.output == 0
    assert cost.total == Decimal("0.00001")


def test_prices_given_as_floats_are_taken_as_they_are_written() -> None:
    assert ModelPricing.model_validate({"input": 0.1}).input == Decimal("0.1")


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=5))
def test_the_cost_of_a_sum_is_the_sum_of_the_costs(calls: list[tuple[int, int]]) -> None:
    usages = [Usage(input_tokens=sent, output_tokens=got) for sent, got in calls]
    added = sum((estimate_cost(PRICES, usage) for usage in usages), CostTotals.ZERO)
    assert added == estimate_cost(PRICES, sum(usages, Usage()))
