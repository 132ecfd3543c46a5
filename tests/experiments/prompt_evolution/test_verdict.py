"""What the sealed test says: figures that can be worked out by hand, and nothing that is not shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from groundswell.experiments.prompt_evolution.analysis import Ahead, Analysis, Gain
from groundswell.experiments.prompt_evolution.verdict import gains


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
        ([-0.01] * 60 + [0.9] * 20, "open"),
        ([0.01] * 60 + [-0.9] * 20, "open"),
        ([0.02] * 20 + [-0.4], "open"),
        ([0.5] * 20, "ahead"),
    ],
    ids=["more and larger", "fewer", "many small losses", "many small gains", "one large loss", "always the same"],
)
def test_mean_and_signs_must_agree(differences: Sequence[float], found: Ahead) -> None:
    winner, other = [max(0.0, each) for each in differences], [max(0.0, -each) for each in differences]
    (gain,) = gains(winner, {"seed": other})
    assert gain.value == pytest.approx(sum(differences) / len(differences))
    assert standing(gain) == found


def test_nothing_in_common() -> None:
    (gain,) = gains([1.0, None], {"seed": [None, 0.0]})
    assert gain == Gain("seed", None, None, None, 1.0, 0)
    assert standing(gain) == "open"
