"""Those who learn nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from groundswell.experiments.query_mutation.learning.choosing import Script, Uniform
from tests.experiments.query_mutation.learning.rollouts import seen_by


def test_each_action_is_as_likely_as_the_others() -> None:
    found = Counter(Uniform(7).choose(seen_by(0), at / 700).action for at in range(700))
    assert set(found) == set(range(7))
    assert all(abs(many - 100) <= 1 for many in found.values())


@pytest.mark.parametrize("chance", [0.0, 1.0 - 2**-53, 1.0])
def test_any_chance_falls_on_an_action(chance: float) -> None:
    assert 0 <= Uniform(7).choose(seen_by(0), chance).action < 7


def test_noop_does_what_changes_nothing() -> None:
    assert {Script((3,)).choose(seen_by(at), at / 9).action for at in range(9)} == {3}
