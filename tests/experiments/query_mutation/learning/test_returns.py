"""Advantages beside a slow sum, as the paper writes it; and what a failed step may not do to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout
from groundswell.experiments.query_mutation.learning.returns import advantages
from tests.experiments.query_mutation.learning.rollouts import garbled, rollouts, seen_by

SHARES = st.floats(0, 1)


def error_at(rollout: Rollout, at: int, gamma: float) -> float:
    """How much better one step went than was expected, by itself."""
    values = [*rollout.values, rollout.last_value]
    after = 0.0 if rollout.ended[at] else values[at + 1]
    return rollout.rewards[at] + gamma * after - rollout.values[at]


def slowly(rollout: Rollout, gamma: float, share: float) -> list[float]:
    """For each step, the sum over those after it in its episode, up to where one failed."""
    found = []
    for at in range(len(rollout.rewards)):
        total = 0.0
        for later in range(at, len(rollout.rewards)):
            if not rollout.usable[later]:
                break
            total += (gamma * share) ** (later - at) * error_at(rollout, later, gamma)
            if rollout.ended[later]:
                break
        found.append(total)
    return found


@given(rollouts(), SHARES, SHARES)
def test_as_the_sum_over_what_came_later(rollout: Rollout, gamma: float, share: float) -> None:
    assert advantages(rollout, gamma, share) == pytest.approx(slowly(rollout, gamma, share), rel=1e-4, abs=1e-4)


@given(rollouts(), SHARES, SHARES)
def test_what_a_failed_step_holds_changes_nothing(rollout: Rollout, gamma: float, share: float) -> None:
    found = advantages(garbled(rollout), gamma, share)
    assert np.array_equal(found, advantages(rollout, gamma, share))
    assert not found[~np.asarray(rollout.usable)].any()


def test_before_a_failed_step_what_was_expected_of_where_it_failed_stands_in() -> None:
    rollout = Rollout(last_value=100.0)
    rollout.add(seen_by(0), Choice(0, 0.0, 1.0), 2.0, ended=False, usable=True)
    rollout.add(seen_by(1), Choice(0, 0.0, 4.0), -50.0, ended=True, usable=False)
    assert advantages(rollout, 0.5, 0.9) == pytest.approx([2.0 + 0.5 * 4.0 - 1.0, 0.0])


@pytest.mark.parametrize(
    ("ended", "last", "expected"),
    [(True, 100.0, 1.0), (False, 100.0, 1.0 + 0.9 * 100.0)],
    ids=["an end has nothing after it", "a cut has what is expected"],
)
def test_at_the_end_of_a_rollout(ended: bool, last: float, expected: float) -> None:
    rollout = Rollout(last_value=last)
    rollout.add(seen_by(0), Choice(0), 1.0, ended=ended, usable=True)
    assert advantages(rollout, 0.9, 0.95) == pytest.approx([expected])
