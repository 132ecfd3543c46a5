"""What the sealed test says of scores between 0 and 1: p and mean are about the same thing."""

from __future__ import annotations

import pytest

from groundswell.experiments.prompt_evolution.verdict import by_signs, gains


def test_many_small_losses_and_some_large_gains_are_no_proof_of_either() -> None:
    (gain,) = gains([0.49] * 25 + [1.0] * 3, {"seed": [0.5] * 25 + [0.1] * 3})
    assert gain.value == pytest.approx((2.7 - 0.25) / 28)
    assert gain.p > 0.2


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1.0),
        ([0.0, 0.0], 1.0),
        ([0.5], 1.0),
        ([0.5, 0.25], 0.5),
        ([0.5] * 5, 2 / 32),
        ([0.3, 0.2, -0.1], 4 / 8),
    ],
)
def test_of_few_all_signs_are_gone_through(differences: list[float], p: float) -> None:
    assert by_signs(differences) == pytest.approx(p)
    assert by_signs([-each for each in differences]) == pytest.approx(p)


def test_of_many_they_are_drawn_and_p_is_never_0() -> None:
    assert by_signs([0.5, -0.5] * 50) == 1.0
    assert 0 < by_signs([0.5] * 100) < 0.001
    assert by_signs([0.1] * 12 + [-0.1] * 4) == pytest.approx(0.0768, abs=0.01)  # McNemar's, exact
