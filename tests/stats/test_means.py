"""Means of values given in company: the variance that allows for who was there, and intervals that hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from groundswell.stats import clusters
from groundswell.stats.clusters import Figure, Rows, difference, difference_of_shares, mean, rows, share, spread_of
from groundswell.stats.rates import Interval, exact, wilson
from tests.properties import examples

Floats = NDArray[np.float64]


class Talks(NamedTuple):
    """Values as a list of (value, who, company), and who was in each company."""

    values: list[tuple[float, int, int]]
    members: list[tuple[int, ...]]

    @property
    def rows(self) -> Rows:
        value, who, company = zip(*self.values, strict=True)
        return rows(value, who, company, self.members)


NUMBERS = st.integers(-3, 3).map(float)


@st.composite
def talks(draw: st.DrawFn, values: st.SearchStrategy[float] = NUMBERS) -> Talks:
    """Combinations of two or three out of eight; some say nothing, some speak twice."""
    size, random = draw(st.integers(2, 3)), Random(draw(st.integers(0, 10**6)))
    members = [tuple(sorted(random.sample(range(8), size))) for _ in range(draw(st.integers(9, 20)))]
    members = sorted(set(members))
    given = [
        (draw(values), who, company)
        for company, everybody in enumerate(members)
        for who in everybody
        for _ in range(random.choice((0, 1, 1, 1, 2)))
    ]
    given += [(1.0, 0, 0)] * (not given)
    return Talks(given, members)


def scores(found: Rows) -> Floats:
    each: Floats = (found.values - found.values.mean()) / len(found.values)
    return each


def robust(found: Rows, groups: NDArray[np.int64]) -> float:
    """The variance of statsmodels, with its correction for few clusters."""
    fitted = sm.OLS(found.values, np.ones(len(found.values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    return float(fitted.cov_params()[0, 0])


@settings(deadline=None, max_examples=examples(60))
@given(talks())
def test_clusters_are_those_of_statsmodels(given: Talks) -> None:
    found = given.rows
    if len(set(found.who.tolist())) < 2 or np.ptp(found.values) == 0:
        return
    assert clusters._by(scores(found), found.who) == pytest.approx(robust(found, found.who), abs=1e-12)


def left_out(given: Talks, entity: int) -> float:
    """The mean without all that was said where an entity was."""
    return float(np.mean([value for value, _, company in given.values if entity not in given.members[company]]))


@settings(deadline=None, max_examples=examples(60))
@given(talks())
def test_the_jackknife_leaves_out_all_that_was_said_in_somebodys_presence(given: Talks) -> None:
    found, spoken = given.rows, {company for _, _, company in given.values}
    present = sorted({one for company in spoken for one in given.members[company]})
    if any(all(one in given.members[company] for company in spoken) for one in present) or len(spoken) < 2:
        assert clusters.jackknife([found], [scores(found)]) is None or len(spoken) < 2
        return
    own = {who for _, who, _ in given.values}
    total = 0.0
    for stratum in (own, set(present) - own):
        moved = np.array([left_out(given, one) for one in sorted(stratum)])
        total += (len(moved) - 1) / len(moved) * float(((moved - moved.mean()) ** 2).sum()) if len(moved) else 0
    sums = dict.fromkeys(spoken, 0.0)
    for (_, _, company), score in zip(given.values, scores(found), strict=True):
        sums[company] += score
    again = sum((len(given.members[company]) - 1) * each**2 for company, each in sums.items())
    expected = total - again * len(spoken) / (len(spoken) - 1)
    assert clusters.jackknife([found], [scores(found)]) == pytest.approx(expected, abs=1e-12)


def alone(values: Sequence[float]) -> Rows:
    """Everybody alone, once."""
    return rows(values, range(len(values)), range(len(values)), [(at,) for at in range(len(values))])


def test_values_of_people_on_their_own_have_the_usual_interval() -> None:
    """1 to 5: the mean is 3, its error the root of a half, and 2.776 of these are 95% at four degrees of freedom."""
    found = mean(alone([1, 2, 3, 4, 5]))
    assert (found.value, found.n, found.entities, found.reason) == (3, 5, 5, "")
    assert ends(found) == pytest.approx((3 - 2.7764451 * sqrt(0.5), 3 + 2.7764451 * sqrt(0.5)))
    assert mean(alone([1, 2, 3, 4, 5]), bounds=Interval(1.5, 4)).low == 1.5
    assert mean(alone([1, 2, 3, 4, 5]), bounds=Interval(1.5, 4)).high == 4


def test_a_share_is_worth_as_many_as_differ() -> None:
    """Twenty entities that say the same ten times over are worth twenty: Wilson's by hand, with t in place of z."""
    yes = [float(at < 8) for at in range(20)]
    repeated = rows(yes * 10, [*range(20)] * 10, [*range(20)] * 10, [(at,) for at in range(20)])
    p, t = 0.4, 2.0930240544
    n = p * (1 - p) / (p * (1 - p) / 19)
    middle, off = (
        (p + t * t / (2 * n)) / (1 + t * t / n),
        t * sqrt(p * (1 - p) / n + t * t / (4 * n * n)) / (1 + t * t / n),
    )
    assert ends(share(repeated)) == pytest.approx((middle - off, middle + off))
    assert ends(share(alone(yes))) == pytest.approx(wilson(8, 20))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_that_all_have_counts_everybody_once(value: float) -> None:
    found = share(rows([value] * 60, [*range(12)] * 5, [*range(12)] * 5, [(at,) for at in range(12)]))
    assert (found.low, found.high) == pytest.approx(exact(12 * int(value), 12))
    assert mean(alone([value] * 9)).reason == clusters.ALL_SAME


PAIRS = [(one, (one + step) % 8) for one in range(8) for step in (1, 2)]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (rows([], [], [], []), clusters.NOTHING),
        (alone([1, 2, 3, 4]), clusters.FEW_PEOPLE),
        (rows([1.0, 2, 3, 4, 5, 6], range(6), [0, 0, 1, 1, 2, 2], [(0, 1), (2, 3), (4, 5)]), clusters.FEW_COMPANIES),
        (rows([1.0, 2, 3, 4, 5], range(1, 6), range(5), [(0, at + 1) for at in range(5)]), clusters.ALWAYS_THERE),
        (rows([2.0] * 16, [pair[0] for pair in PAIRS], range(16), PAIRS), clusters.ALL_SAME),
    ],
    ids=["nothing", "people", "companies", "always there", "all the same"],
)
def test_what_cannot_be_told_has_a_reason_and_no_interval(found: Rows, reason: str) -> None:
    figure = mean(found)
    assert (figure.low, figure.high, figure.reason) == (None, None, reason)
    assert (figure.value is None) == (reason == clusters.NOTHING)


def ends(figure: Figure) -> tuple[float, float]:
    if figure.low is None or figure.high is None:
        return (0.0, 0.0)
    return (figure.low, figure.high)


@settings(deadline=None, max_examples=examples(40))
@given(talks(), st.randoms(use_true_random=False), st.floats(-50, 50))
def test_neither_order_nor_names_matter_and_a_constant_moves_everything(
    given: Talks, random: Random, more: float
) -> None:
    expected = mean(given.rows)
    names, order = list(range(8)), list(range(len(given.members)))
    random.shuffle(names)
    random.shuffle(order)
    renamed = [(value + more, names[who], order.index(company)) for value, who, company in given.values]
    random.shuffle(renamed)
    found = mean(Talks(renamed, [tuple(names[one] for one in given.members[at]) for at in order]).rows)
    assert (found.n, found.entities, found.reason) == (expected.n, expected.entities, expected.reason)
    if expected.low is not None:
        assert ends(found) == pytest.approx(tuple(end + more for end in ends(expected)), abs=1e-7)


@settings(deadline=None, max_examples=examples(40))
@given(talks(st.sampled_from([0.0, 1.0])))
def test_saying_everything_twice_tells_no_more(given: Talks) -> None:
    twice = Talks(given.values * 2, given.members)
    assert ends(mean(twice.rows)) == pytest.approx(ends(mean(given.rows)), abs=1e-9)
    single, double = share(given.rows), share(twice.rows)
    assert double.n == 2 * single.n
    if single.low is not None:
        assert ends(double)[0] >= ends(single)[0] - 1e-9
        assert 0 <= ends(single)[0] <= (single.value or 0) <= ends(single)[1] <= 1


@settings(deadline=None, max_examples=examples(40))
@given(talks(st.sampled_from([0.0, 1.0])))
def test_a_difference_is_the_other_way_round_from_the_other_side(given: Talks) -> None:
    some = given.rows.who < 4
    one, other = given.rows.among(some), given.rows.among(~some)
    for of in (difference, difference_of_shares):
        there, back = of(one, other), of(other, one)
        assert (there.reason == "") == (back.reason == "")
        assert ends(there) == pytest.approx(tuple(-end for end in ends(back)[::-1]), abs=1e-9)


def test_a_difference_of_people_on_their_own_is_welchs() -> None:
    """Two samples by hand: variances 2.5 and 10 over five each."""
    everybody = alone([1, 2, 3, 4, 5, 2, 4, 6, 8, 10])
    found = difference(everybody.among(everybody.who < 5), everybody.among(everybody.who >= 5))
    df = 2.5**2 / ((0.5**2 + 2**2) / 4)
    off = clusters.student(df, 0.95) * sqrt(2.5)
    assert found.value == -3
    assert ends(found) == pytest.approx((-3 - off, -3 + off))


def test_groups_of_which_all_and_none_say_yes_differ_by_less_than_surely_all() -> None:
    everybody = alone([1.0] * 9 + [0.0] * 7)
    found = difference_of_shares(everybody.among(everybody.who < 9), everybody.among(everybody.who >= 9))
    assert found.value == 1
    assert 0.3 < ends(found)[0] < 0.7
    assert ends(found)[1] == 1


def opinions(random: np.random.Generator) -> Rows:
    """Twelve who meet in forty pairs, and answer with the mean of what the two think, give or take 0.5."""
    every = np.array([(one, other) for other in range(12) for one in range(other)])
    pairs = every[random.choice(len(every), 40, replace=False)]
    said = random.normal(size=12)[pairs].mean(axis=1, keepdims=True) + 0.5 * random.normal(size=(40, 2))
    return rows(said.ravel(), pairs.ravel(), np.repeat(np.arange(40), 2), pairs.tolist())


def test_intervals_hold_although_people_talk_each_other_round_and_two_way_ones_do_not() -> None:
    random, runs = np.random.default_rng(5), 300
    held = usual = 0
    for _ in range(runs):
        found = opinions(random)
        low, high = ends(mean(found))
        held += low <= 0 <= high
        two_way = robust(found, np.stack([found.who, found.company], axis=1))
        off = clusters.student(11, 0.95) * sqrt(max(two_way, robust(found, found.who), robust(found, found.company)))
        usual += abs(float(found.values.mean())) <= off
    assert held / runs >= 0.92
    assert usual / runs < 0.85


def test_the_spread_is_no_less_than_what_clusters_say() -> None:
    found = opinions(np.random.default_rng(6))
    spread = spread_of([found])
    assert spread.variance >= robust(found, found.who)
    assert spread.df == 11
