"""What the sealed test says: figures that can be worked out by hand, and nothing that is not shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from groundswell.experiments.prompt_evolution.analysis import Ahead, Analysis, Gain
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.verdict import Gap, by_signs, gains, gap
from groundswell.experiments.prompt_evolution.verdict import tested as sealed


def standing(*found: Gain) -> Ahead:
    return Analysis((), (), found, ()).standing(found[0].over)


def test_right_or_wrong_goes_by_mcnemar() -> None:
    (gain,) = gains([1.0] * 10 + [0.0] * 2 + [None], {"seed": [0.0] * 10 + [1.0, 0.0, 1.0]})
    assert (gain.value, gain.n) == (9 / 12, 12)
    assert gain.p == pytest.approx(2 * (1 + 11) / 2**11)
    assert standing(gain) == "ahead"


def test_holm_allows_for_all_comparisons() -> None:
    winner, zeros = [1.0] * 8, [0.0] * 8
    alone = gains(winner, {"seed": zeros})
    three = gains(winner, {"seed": zeros, "random": [0.0] * 6 + [1.0] * 2, "best_of_n": winner})
    assert alone[0].p == pytest.approx(2 / 2**8)
    assert [each.p for each in three] == pytest.approx([3 * 2 / 2**8, 2 * 2 / 2**6, 1.0])


@pytest.mark.parametrize(
    ("differences", "found"),
    [
        ([0.5] * 15 + [-0.25] * 2, "ahead"),
        ([-0.5] * 15 + [0.25] * 2, "behind"),
        ([-0.01] * 60 + [0.9] * 20, "ahead"),
        ([0.01] * 60 + [-0.9] * 20, "behind"),
        ([0.02] * 20 + [-0.4], "open"),
        ([0.5] * 20, "ahead"),
    ],
    ids=["more and larger", "fewer", "many small losses", "many small gains", "one large loss", "always the same"],
)
def test_p_goes_with_the_mean(differences: Sequence[float], found: Ahead) -> None:
    winner, other = [max(0.0, each) for each in differences], [max(0.0, -each) for each in differences]
    (gain,) = gains(winner, {"seed": other})
    assert gain.value == pytest.approx(sum(differences) / len(differences))
    assert standing(gain) == found


def test_nothing_in_common() -> None:
    (gain,) = gains([1.0, None], {"seed": [None, 0.0]})
    assert gain == Gain("seed", None, None, None, 1.0, 0)
    assert standing(gain) == "open"


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


@pytest.mark.parametrize(
    ("validated", "scores", "value", "bounded"),
    [
        ([1.0, 1.0, 0.0, None], [1.0, 0.0], 2 / 3 - 1 / 2, True),
        ([0.5, 1.0, 0.25, 0.5, 1.0, 0.75], [0.0, 0.5, 1.0, 0.5, 0.25, 0.75], 4 / 6 - 3 / 6, True),
        ([], [1.0, 0.0], 0.3, False),
        ([1.0], [None], None, False),
    ],
    ids=["right or wrong", "in between", "not stored", "no test"],
)
def test_the_gap(validated: list[float | None], scores: list[float | None], value: float | None, bounded: bool) -> None:
    found = gap(validated, sealed("evolution", Genome("Solve it."), scores, 0.8, {}))
    assert found.value == (None if value is None else pytest.approx(value))
    if bounded:
        assert found.low is not None
        assert found.high is not None
        assert found.low < (value or 0.0) < found.high
    else:
        assert found == Gap(found.value)
