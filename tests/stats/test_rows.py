"""Rows of data: rates, means and differences with the trial as cluster."""

from __future__ import annotations

from collections.abc import Callable
from math import isclose

import numpy as np
import pytest

from groundswell.errors import SettingsError
from groundswell.stats.rates import exact, wilson
from groundswell.stats.rows import Row, RowDifference, RowFigure, Rows


def games(rng: np.random.Generator, trials: int, rounds: int, rate: float, alike: float) -> list[Row]:
    """Trials of some rounds, which are true at a rate of the trial's own; `alike` says how much trials differ."""
    shares = np.full(trials, rate)
    if alike:
        spread = (1 - alike) / alike
        shares = rng.beta(rate * spread, (1 - rate) * spread, trials)
    return [
        {"trial": f"t{at}", "row": n, "won": bool(rng.random() < share), "side": "ab"[at % 2]}
        for at, share in enumerate(shares)
        for n in range(rounds)
    ]


def covered(make: Callable[[np.random.Generator], list[Row]], truth: float, times: int = 600) -> float:
    rng = np.random.default_rng(1)
    figures = [Rows(make(rng)).rate("won")[0] for _ in range(times)]
    return sum(one.low is not None and one.high is not None and one.low <= truth <= one.high for one in figures) / times


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("alike", [0.3, 0.0, 0.8])
@pytest.mark.parametrize("rate", [0.5, 0.15])
def test_an_interval_holds_the_truth_however_much_rows_of_a_trial_hang_together(alike: float, rate: float) -> None:
    assert covered(lambda rng: games(rng, 40, 5, rate, alike), rate) >= 0.93


def test_rows_that_are_taken_for_independent_would_not_hold_it() -> None:
    rng, inside = np.random.default_rng(1), 0
    for _ in range(300):
        rows = games(rng, 40, 5, 0.5, 0.8)
        low, high = wilson(sum(bool(row["won"]) for row in rows), len(rows))
        inside += low <= 0.5 <= high
    assert inside / 300 < 0.8


def test_rows_of_one_each_are_worth_what_they_are() -> None:
    rows = Rows({"trial": str(at), "row": 1, "won": at < 12} for at in range(60))
    (figure,) = rows.rate("won")
    low, high = wilson(12, 60)
    assert (figure.value, figure.n, figure.trials) == (0.2, 60, 60)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low == pytest.approx(low, abs=0.005)
    assert figure.high == pytest.approx(high, abs=0.005)


def test_where_all_are_the_same_each_trial_counts_once() -> None:
    (figure,) = Rows({"trial": str(at % 10), "row": at, "won": True} for at in range(50)).rate("won")
    assert (figure.low, figure.high) == pytest.approx(exact(10, 10))


def test_groups_come_in_order_and_values_that_are_missing_are_left_out() -> None:
    rows = Rows(
        {"trial": str(at), "row": 1, "offer": offer, "won": None if at == 0 else at % 2 == 0}
        for at, offer in enumerate([30, 5, 5, 30, 10, 5])
    )
    figures = rows.rate("won", by="offer")
    assert [(one.group, one.n) for one in figures] == [({"offer": 5}, 3), ({"offer": 10}, 1), ({"offer": 30}, 1)]
    assert all(one.low is None and one.reason == "fewer than 5 trials" for one in figures)


def test_a_mean_is_that_of_the_rows_and_as_sure_as_the_trials() -> None:
    rows: list[Row] = [
        {"trial": str(trial), "row": n, "points": float(trial)} for trial in range(10) for n in range(100)
    ]
    (figure,) = Rows(rows).mean("points")
    alone: list[Row] = [{"trial": str(trial), "row": 1, "points": float(trial)} for trial in range(10)]
    assert figure.value == 4.5
    assert _interval(figure) == pytest.approx(_interval(Rows(alone).mean("points")[0]))


def _interval(figure: RowFigure | RowDifference) -> tuple[float, float]:
    assert figure.low is not None
    assert figure.high is not None
    return figure.low, figure.high


def test_a_difference_between_trials_is_welchs() -> None:
    from scipy.stats import ttest_ind  # type: ignore[import-untyped]

    rng = np.random.default_rng(3)
    one, other = rng.normal(0, 1, 30), rng.normal(1, 1, 30)
    rows = [{"trial": f"a{at}", "row": 1, "who": "a", "x": x} for at, x in enumerate(one)]
    rows += [{"trial": f"b{at}", "row": 1, "who": "b", "x": x} for at, x in enumerate(other)]
    (found,) = Rows(rows).difference("x", between="who")
    expected = ttest_ind(one, other, equal_var=False)
    assert found.value == pytest.approx(one.mean() - other.mean())
    assert found.p is not None
    assert isclose(found.p, expected.pvalue, rel_tol=0.7)
    assert found.p >= expected.pvalue * 0.9


def test_a_difference_within_trials_knows_that_they_are_pairs() -> None:
    rng = np.random.default_rng(4)
    rows: list[Row] = []
    for trial, level in enumerate(rng.normal(0, 10, 30)):
        rows.append({"trial": str(trial), "row": 1, "who": "a", "x": level})
        rows.append({"trial": str(trial), "row": 2, "who": "b", "x": level + 1 + rng.normal(0, 0.1)})
    (found,) = Rows(rows).difference("x", between="who")
    low, high = _interval(found)
    assert low < -1 < high
    assert high - low < 0.2


def test_several_differences_are_adjusted_for() -> None:
    rng = np.random.default_rng(5)
    rows: list[Row] = [
        {"trial": f"{who}{at}", "row": 1, "who": who, "x": float(rng.normal(shift, 1))}
        for who, shift in (("a", 0), ("b", 0.6), ("c", 1.2))
        for at in range(30)
    ]
    found = Rows(rows).difference("x", between="who", adjust="holm")
    assert [(one.first, one.second) for one in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(one.p is not None and one.p_adjusted is not None and one.p_adjusted >= one.p for one in found)
    plain = Rows(rows).difference("x", between="who", adjust="none")
    assert [one.p_adjusted for one in plain] == [one.p for one in found]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda rows: rows.rate("wn"), "rows have no column 'wn'; there are trial, row, won, who"),
        (lambda rows: rows.rate("who"), "is not true or false"),
        (lambda rows: rows.mean("who"), "is not a number"),
        (lambda rows: rows.difference("won", between="whom"), "no column 'whom'"),
    ],
)
def test_a_wrong_column_is_named(ask: Callable[[Rows], object], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("(", r"\(")):
        ask(Rows([{"trial": "t", "row": 1, "won": True, "who": "a"}]))


def test_rows_are_a_sequence_and_a_frame() -> None:
    rows = Rows({"trial": str(at), "row": 1, "x": at, "who": "ab"[at % 2]} for at in range(4))
    assert (len(rows), rows[1]["x"], len(rows[1:3]), len(rows.where(who="a"))) == (4, 1, 2, 2)
    assert rows.columns == ["trial", "row", "x", "who"]
    assert rows.frame().shape == (4, 4)
    assert list(rows.frame(pandas=True).columns) == rows.columns
    assert Rows([]).rate("anything") == []


def test_groups_that_could_not_differ_more_have_a_p_too() -> None:
    rows = Rows({"trial": str(at), "row": 1, "x": at < 6, "who": "ab"[at >= 6]} for at in range(12))
    (found,) = rows.difference("x", between="who")
    assert found.value == 1.0
    assert found.p == pytest.approx(2 / 924)
    low, high = _interval(found)
    assert 0.3 < low < high == 1.0
    same = Rows({"trial": str(at), "row": 1, "x": 2.5, "who": "ab"[at % 2]} for at in range(12))
    assert same.difference("x", between="who")[0].reason == "all values are the same"
    apart = Rows({"trial": str(at), "row": 1, "x": 2.5 + at % 2, "who": "ab"[at % 2]} for at in range(12))
    assert apart.difference("x", between="who")[0].reason == "no variation within either group"


def test_a_difference_of_rates_stays_within_one() -> None:
    rows = Rows({"trial": str(at), "row": 1, "x": at < 6, "who": "ab"[at >= 7]} for at in range(13))
    assert _interval(rows.difference("x", between="who")[0])[1] == 1.0


def test_columns_of_mixed_values_are_a_frame_too() -> None:
    mixed: list[Row] = [{"x": 5, "y": "a"}, {"x": 5.5, "y": 3}, {"x": None, "y": None}]
    rows = Rows({"trial": str(at), "row": 1, **row} for at, row in enumerate(mixed))
    assert rows.frame()["x"].to_list() == [5.0, 5.5, None]
    assert rows.frame()["y"].to_list() == ["a", "3", None]


@pytest.mark.parametrize("level", [95, 0.0])
def test_a_level_is_a_share(level: float) -> None:
    rows = Rows({"trial": str(at), "row": 1, "x": True, "who": "a"} for at in range(6))
    with pytest.raises(SettingsError, match=r"must be between 0 and 1, such as 0\.95"):
        rows.rate("x", level=level)
    with pytest.raises(SettingsError, match=r"must be between 0 and 1, such as 0\.95"):
        rows.mean("x", level=level)
    with pytest.raises(SettingsError, match="adjust 'bonferoni': must be one of holm, benjamini-hochberg, none"):
        rows.difference("x", between="who", adjust="bonferoni")  # type: ignore[arg-type]
