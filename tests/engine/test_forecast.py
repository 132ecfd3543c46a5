"""The forecast holds what a run costs in the end, and is not misled by replies that cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.engine.spending import FEWEST, Tally, forecast

COSTS: dict[str, Callable[[Random], float]] = {
    "all alike": lambda rng: 0.01,
    "even": lambda rng: rng.uniform(0.0, 0.02),
    "some end early": lambda rng: 0.0 if rng.random() < 0.3 else 0.01,
    "bell": lambda rng: max(0.0, rng.gauss(0.01, 0.003)),
    "long tail": lambda rng: rng.expovariate(100),
}


def tallied(costs: list[float], reused: int = 0) -> Tally:
    tally = Tally()
    for cost in costs:
        tally.add(cost, reused=False)
    for _ in range(reused):
        tally.add(0.0, reused=True)
    return tally


@pytest.mark.sampled
@pytest.mark.parametrize("total", [60, 400, 3000])
@pytest.mark.parametrize("draw", COSTS.values(), ids=COSTS.keys())
def test_the_range_holds_the_truth_nineteen_times_of_twenty(draw: Callable[[Random], float], total: int) -> None:
    held, runs, rng = 0, 300, Random(f"{total}")
    for _ in range(runs):
        costs = [draw(rng) for _ in range(total)]
        ended = rng.randint(max(FEWEST, total // 20), total)
        found = forecast(sum(costs[:ended]), 0.0, total - ended, tallied(costs[:ended]))
        assert found is not None
        held += found.low - 1e-9 <= sum(costs) <= found.high + 1e-9
    assert held / runs >= 0.92


@given(st.lists(st.floats(0, 10), min_size=FEWEST, max_size=60), st.integers(0, 10**6), st.floats(0, 100))
def test_nothing_that_was_spent_is_taken_back(costs: list[float], left: int, begun: float) -> None:
    spent = sum(costs) + begun
    found = forecast(spent, begun, left, tallied(costs))
    assert found is not None
    assert spent <= found.low <= found.high


def test_a_run_that_is_over_costs_what_it_cost() -> None:
    costs = [number / 100 for number in range(50)]
    found = forecast(sum(costs), 0.0, 0, tallied(costs))
    assert found is not None
    assert [found.low, found.high] == pytest.approx([sum(costs)] * 2)


def test_too_few_trials_say_nothing() -> None:
    assert forecast(1.0, 0.0, 100, tallied([0.1] * (FEWEST - 1))) is None
    assert forecast(1.0, 0.0, 100, tallied([0.1] * (FEWEST - 1), reused=1000)) is None


def test_cached_trials_do_not_make_the_others_cheaper() -> None:
    """A hundred trials came from the cache; a hundred of three hundred new ones have ended."""
    found = forecast(1.0, 0.0, 200, tallied([0.01] * 100, reused=100))
    assert found is not None
    assert found.high == pytest.approx(3.0)
    assert found.low == pytest.approx(2.0), "or half of them go on coming from the cache"


def test_what_open_trials_have_cost_is_not_counted_twice() -> None:
    found = forecast(1.05, 0.05, 100, tallied([0.01] * 100))
    assert found is not None
    assert [found.low, found.high] == pytest.approx([2.0, 2.0])
