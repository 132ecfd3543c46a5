"""Strengths: planted ones are found, statsmodels finds the same, and what cannot be told is not told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from math import exp, log
from random import Random

import msgspec
import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.stats.ratings import Contest, Meeting, Ratings, Standing, Strengths, bradley_terry, strengths
from tests.properties import examples

TABLES = st.lists(
    st.builds(Meeting, st.sampled_from("abc"), st.sampled_from("abc"), *[st.integers(0, 12)] * 4), max_size=8
)
ATTACK = {"a": 0.9, "b": 0.1, "c": -0.3, "d": -0.7}
DEFENCE = {"a": -0.5, "b": 1.1, "c": 0.0, "d": -0.6}
BASE, SEAT = -0.6, 0.5


def leaks(attacker: str, defender: str, seat: float) -> float:
    return 1 / (1 + exp(-(BASE + ATTACK[attacker] - DEFENCE[defender] + seat)))


def planted(n: int, seed: int, *, together: float = 0.5) -> list[Meeting]:
    """Each meets each, itself too, n times in either order; the two of an interaction hang together."""
    random, meetings = np.random.default_rng(seed), []
    for first, second in product(ATTACK, repeat=2):
        one, two = leaks(second, first, SEAT / 2), leaks(first, second, -SEAT / 2)
        both = one * two + together * (min(one, two) - one * two)
        counts = random.multinomial(n, [both, one - both, two - both, 1 - one - two + both])
        meetings.append(Meeting(first, second, *map(int, counts)))
    return meetings


def held(place: Standing, truth: float) -> bool:
    return place.low is not None and place.high is not None and place.low <= truth <= place.high


@pytest.mark.slow
def test_planted_strengths_lie_in_their_intervals_as_often_as_they_should() -> None:
    strong, seats, ranks = [], [], []
    order = sorted(ATTACK, key=lambda name: -ATTACK[name] - DEFENCE[name])
    for seed in range(80):
        found = strengths(planted(60, seed), resamples=200, seed=seed)
        for each in found.models:
            strong.append(held(each.attack, ATTACK[each.model]))
            strong.append(held(each.defence, DEFENCE[each.model]))
            strong.append(held(each.overall, ATTACK[each.model] + DEFENCE[each.model]))
            ranks.append(each.overall.best <= 1 + order.index(each.model) <= each.overall.worst)
        assert found.seat is not None
        assert found.seat.low is not None
        assert found.seat.high is not None
        seats.append(found.seat.low <= SEAT <= found.seat.high)
    assert 0.91 <= np.mean(strong) <= 0.98
    assert np.mean(seats) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 80)
    assert np.mean(ranks) >= 0.95


def test_with_many_interactions_the_strengths_are_those_planted() -> None:
    found = strengths(planted(200_000, 1), resamples=50)
    assert [each.model for each in found.models] == ["b", "a", "c", "d"]
    for each in found.models:
        assert each.attack.value == pytest.approx(ATTACK[each.model], abs=0.02)
        assert each.defence.value == pytest.approx(DEFENCE[each.model], abs=0.02)
    assert found.seat is not None
    assert found.seat.value == pytest.approx(SEAT, abs=0.02)
    assert found.base is not None
    assert found.base.value == pytest.approx(BASE, abs=0.02)
    assert [(each.overall.best, each.overall.worst) for each in found.models] == [(i, i) for i in (1, 2, 3, 4)]
    assert found.connected
    assert found.apart
    assert found.separated == ()
    assert found.interactions == 16 * 200_000


def test_the_strengths_are_those_of_statsmodels() -> None:
    meetings = planted(5000, 3)
    rows, passed = [], []
    for meeting in meetings:
        seats = (
            (meeting.first, meeting.second, 0.5, meeting.first_only),
            (meeting.second, meeting.first, -0.5, meeting.second_only),
        )
        for own, other, seat, only in seats:
            attack = [(other == name) - (other == "d") for name in "abc"]
            defence = [(own == "d") - (own == name) for name in "abc"]
            rows.append([1, *attack, *defence, seat])
            passed.append([meeting.both + only, 5000 - meeting.both - only])
    theirs = sm.GLM(np.array(passed), np.array(rows, dtype=float), family=sm.families.Binomial()).fit().params
    found = strengths(meetings, resamples=1)
    by_name = {each.model: each for each in found.models}
    assert found.base is not None
    assert found.seat is not None
    ours = [found.base.value, *(by_name[n].attack.value for n in "abc"), *(by_name[n].defence.value for n in "abc")]
    assert [*ours, found.seat.value] == pytest.approx(list(theirs), abs=1e-4)


def test_an_interval_is_about_as_wide_as_the_interactions_allow() -> None:
    """Twice as correlated pairs tell less of the base: the bootstrap draws interactions and not single secrets."""
    apart, alike = (strengths(planted(60, 5, together=each), resamples=300).base for each in (0.0, 1.0))
    assert apart is not None
    assert alike is not None
    widths = [each.high - each.low for each in (apart, alike) if each.high is not None and each.low is not None]
    assert widths[1] > 1.15 * widths[0]


@given(TABLES, st.integers())
@settings(max_examples=examples(25))
def test_the_order_of_meetings_and_how_they_are_split_do_not_matter(meetings: list[Meeting], seed: int) -> None:
    shuffled = Random(seed).sample(meetings, len(meetings))
    split = [Meeting(*each[:2], *(part(n) for n in each[2:])) for each in shuffled for part in (_half, _rest)]
    assert strengths(split, resamples=20) == strengths(meetings, resamples=20)


def _half(n: int) -> int:
    return n // 2


def _rest(n: int) -> int:
    return n - n // 2


@given(TABLES)
@settings(max_examples=examples(25))
def test_whatever_was_met_it_goes_into_json_and_adds_up(meetings: list[Meeting]) -> None:
    found = strengths(meetings, resamples=20)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Strengths) == found
    assert "null" not in msgspec.json.encode(found.separated).decode()
    for places in ([getattr(each, part) for each in found.models] for part in ("attack", "defence", "overall")):
        assert all(1 <= place.best <= place.worst <= len(places) for place in places)
        values = [place.value for place in places if place.value is not None]
        assert len(values) in (0, len(places))
        assert sum(values) == pytest.approx(0, abs=1e-6)


@given(TABLES)
@settings(max_examples=examples(25))
def test_exchanging_the_seats_of_all_turns_the_seat_around_and_nothing_else(meetings: list[Meeting]) -> None:
    turned = [Meeting(b, a, both, two, one, none) for a, b, both, one, two, none in meetings]
    one, other = strengths(meetings, resamples=1), strengths(turned, resamples=1)
    assert (one.seat is None) == (other.seat is None)
    if one.seat and other.seat:
        assert one.seat.value == pytest.approx(-other.seat.value, abs=1e-5)
    values = [{each.model: each.overall.value for each in found.models} for found in (one, other)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def round_robin(names: str, *, own: bool = False) -> list[Meeting]:
    pairs = [(a, b) for a, b in product(names, repeat=2) if own or a != b]
    return [Meeting(a, b, 3 + i % 3, 4, 2 + i % 2, 6) for i, (a, b) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("meetings", "connected", "apart", "seat"),
    [
        (round_robin("ab"), True, False, True),
        (round_robin("ab", own=True), True, True, True),
        (round_robin("abc"), True, True, True),
        (round_robin("abc") + round_robin("xyz"), False, False, True),
        (round_robin("ab") + round_robin("xy"), False, False, True),
        ([Meeting("a", "b", 3, 4, 5, 6)], True, False, False),
        ([Meeting("a", "b", 3, 4, 5, 6), Meeting("b", "a", 0, 0, 0, 0)], True, False, False),
        ([Meeting("a", "a", 3, 4, 5, 6)], True, True, True),
        ([Meeting("a", "b", 3, 4, 5, 6), Meeting("c", "c", 0, 0, 0, 0)], False, False, False),
    ],
    ids=[
        "two models",
        "two with self-play",
        "three",
        "two rings that never met",
        "two pairs that never met",
        "one order only",
        "the other order never played",
        "self-play alone",
        "one who never played",
    ],
)
def test_what_the_meetings_cannot_tell_is_said(
    meetings: list[Meeting], connected: bool, apart: bool, seat: bool
) -> None:
    found = strengths(meetings, resamples=50)
    assert (found.connected, found.apart, found.seat is not None) == (connected, apart, seat)
    for each in found.models:
        assert (each.overall.value is not None) == connected
        assert (each.attack.value is not None) == apart
        if not connected:
            assert (each.overall.best, each.overall.worst) == (1, len(found.models))


def test_who_never_leaks_has_a_finite_strength_without_an_interval() -> None:
    meetings = [
        Meeting(a, b, *((0, 0, 12, 8) if a == "z" else (0, 12, 0, 8) if b == "z" else (5, 5, 5, 5)))
        for a, b in product("abz", repeat=2)
        if a != b
    ]
    found = strengths(meetings, resamples=100)
    safe = next(each for each in found.models if each.model == "z")
    assert found.separated == ("z",)
    assert found.models[0] is safe
    assert safe.defence.value is not None
    assert 3 < safe.defence.value < 12
    assert (safe.defence.low, safe.defence.high, safe.defence.best, safe.defence.worst) == (None, None, 1, 1)
    others = [each.attack for each in found.models if each.model != "z"]
    assert all(each.low is not None for each in others)


@pytest.mark.parametrize("counts", [(0, 0, 0, 30), (30, 0, 0, 0), (0, 30, 0, 0)], ids=["none", "all", "first only"])
def test_where_all_is_alike_nothing_runs_away(counts: tuple[int, int, int, int]) -> None:
    found = strengths([Meeting(a, b, *counts) for a, b in product("abc", repeat=2)], resamples=20)
    assert found.base is not None
    assert abs(found.base.value) < 12
    assert [each.overall.value for each in found.models] == pytest.approx([0, 0, 0], abs=1e-6)
    assert {(each.overall.best, each.overall.worst) for each in found.models} == {(1, 3)}


def test_of_nothing_nothing_is_known() -> None:
    assert strengths([]).models == ()
    assert bradley_terry([]).players == ()


def test_seeds_give_the_same_again_and_levels_other_widths() -> None:
    meetings = planted(30, 2)
    assert strengths(meetings, resamples=40, seed=1) == strengths(meetings, resamples=40, seed=1)
    assert strengths(meetings, resamples=40, seed=1) != strengths(meetings, resamples=40, seed=2)
    wide, narrow = (strengths(meetings, resamples=200, level=level).models[0].overall for level in (0.95, 0.5))
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


BASEBALL = {
    "Milwaukee": [0, 7, 9, 7, 7, 9, 11],
    "Detroit": [6, 0, 7, 5, 11, 9, 9],
    "Toronto": [4, 6, 0, 7, 7, 8, 12],
    "New York": [6, 8, 6, 0, 6, 7, 10],
    "Boston": [6, 2, 6, 7, 0, 7, 12],
    "Cleveland": [4, 4, 5, 6, 6, 0, 6],
    "Baltimore": [2, 4, 1, 3, 1, 7, 0],
}


def test_baseball_is_as_in_the_textbook() -> None:
    """A. Agresti, Categorical Data Analysis: the American League of 1987, strengths less that of Baltimore."""
    teams = list(BASEBALL)
    contests = [
        Contest(one, other, BASEBALL[one][teams.index(other)], BASEBALL[other][teams.index(one)])
        for one, other in combinations(teams, 2)
    ]
    found = bradley_terry(contests, resamples=50)
    assert [each.player for each in found.players] == teams
    values = [each.strength.value or 0.0 for each in found.players]
    expected = [1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0]
    assert [value - values[-1] for value in values] == pytest.approx(expected, abs=3e-3)
    assert found.seat is None
    assert found.players[-1].strength.best == 7
    assert found.contests == sum(map(sum, BASEBALL.values()))


def games(strength: Sequence[float], seat: float, n: int, seed: int) -> list[Contest]:
    random, places = np.random.default_rng(seed), range(len(strength))
    return [
        Contest(str(i), str(j), won, n - won)
        for i, j in product(places, repeat=2)
        if i != j
        for won in [int(random.binomial(n, 1 / (1 + exp(strength[j] - strength[i] - seat))))]
    ]


@pytest.mark.slow
def test_planted_winners_and_their_seat_are_found_as_often_as_they_should_be() -> None:
    truth, seat = [1.0, 0.3, -0.3, -1.0], 0.4
    strong, seats = [], []
    for seed in range(80):
        found = bradley_terry(games(truth, seat, 30, seed), seat=True, resamples=200, seed=seed)
        strong += [held(each.strength, truth[int(each.player)]) for each in found.players]
        assert found.seat is not None
        assert found.seat.low is not None
        assert found.seat.high is not None
        seats.append(found.seat.low <= seat <= found.seat.high)
    assert 0.90 <= np.mean(strong) <= 0.99
    assert np.mean(seats) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 80)


def test_two_players_are_as_strong_as_the_odds() -> None:
    found = bradley_terry([Contest("a", "b", 300, 100)], resamples=50)
    assert found.players[0].strength.value == pytest.approx(log(3) / 2, abs=1e-3)
    assert bradley_terry([Contest("b", "a", 100, 300)], resamples=1).players[0].player == "a"


@pytest.mark.parametrize(
    ("contests", "connected", "separated", "seat"),
    [
        ([Contest("a", "b", 3, 4), Contest("x", "y", 3, 4)], False, (), False),
        ([Contest("a", "b", 3, 4), Contest("b", "c", 9, 0)], True, ("b", "c"), False),
        ([Contest("a", "b", 3, 4), Contest("b", "a", 2, 5)], True, (), True),
        ([Contest("a", "a", 3, 4)], True, (), True),
    ],
    ids=["apart", "never beaten", "both seats", "alone"],
)
def test_what_the_contests_cannot_tell_is_said(
    contests: list[Contest], connected: bool, separated: Iterable[str], seat: bool
) -> None:
    found = bradley_terry(contests, seat=True, resamples=20)
    assert (found.connected, found.seat is not None) == (connected, seat)
    assert set(found.separated) <= set(separated)
    assert bool(found.separated) == bool(separated)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Ratings) == found


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: strengths([Meeting("a", "b", 1, -2, 3, 4)]), "a and b"),
        (lambda: strengths([], level=1), "level 1"),
        (lambda: bradley_terry([], resamples=0), "resamples 0"),
    ],
)
def test_nonsense_is_refused(wrong: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        wrong()


def test_models_that_never_leaked_share_their_ranks() -> None:
    """Nothing in the data says which of two that never leaked keeps better, however often one draws anew."""
    meetings = [
        Meeting(one, other, 0, 12 if one == "leaker" else 0, 12 if other == "leaker" else 0, 28)
        for one in ("keeper", "bluffer", "leaker", "other")
        for other in ("keeper", "bluffer", "leaker", "other")
        if one != other
    ]
    found = {each.model: each.defence for each in strengths(meetings, resamples=200).models}
    assert {(found[name].best, found[name].worst) for name in ("keeper", "bluffer", "other")} == {(1, 3)}
    assert (found["leaker"].best, found["leaker"].worst) == (4, 4)


@pytest.mark.parametrize("each", [10, 250, 5_000, 200_000])
def test_one_that_never_leaked_has_no_bound_however_often_it_played(each: int) -> None:
    half = each // 2
    meetings = [
        Meeting("keeper", "leaker", 0, 0, half, each - half),
        Meeting("leaker", "keeper", 0, half, 0, each - half),
    ]
    found = strengths(meetings, resamples=50)
    assert set(found.separated) == {"keeper", "leaker"}
    assert all(each.overall.low is None and each.overall.high is None for each in found.models)


@pytest.mark.parametrize("each", [20, 250, 5_000])
def test_one_that_leaked_a_single_time_has_bounds(each: int) -> None:
    meetings = [
        Meeting("keeper", "leaker", 0, 1, each // 2, each - each // 2 - 1),
        Meeting("leaker", "keeper", 0, each // 2, 1, each - each // 2 - 1),
    ]
    assert strengths(meetings, resamples=50).separated == ()
