"""From interactions to figures: counts by hand, and the statistics of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import Bluff, Guesses, Judgement
from groundswell.experiments.secret_game.tally import Tally
from groundswell.program.request import Fault, FaultKind
from groundswell.stats.compare import mcnemar
from groundswell.stats.rates import Paired, Rate, Twice
from tests.experiments.secret_game.scene import a_duel, ended

Turns = tuple[int | None, int | None]
turns = st.tuples(st.sampled_from([None, 0, 2]), st.sampled_from([None, 1, 3]))


def tally_of(*each: Turns, models: tuple[str, str] = ("m", "n")) -> Tally:
    tally = Tally("normalised", Points())
    for number, (first, second) in enumerate(each):
        tally.add(a_duel(models, number=number, block=number // 4), ended(first, second))
    tally.close()
    return tally


PLAYERS = (Agent("m", ""), Agent("n", "Nan"))
SOME: list[Turns] = [(0, None), (2, 1), (None, None), (None, 3), (None, None)]


def test_the_figures_of_the_description() -> None:
    tally = tally_of(*SOME)
    overall = figures.overall(tally)
    assert (overall.total_interactions, overall.total_secrets_revealed) == (5, 4)
    assert (overall.secrets_revealed.count, overall.secrets_revealed.n) == (4, 10)
    assert (overall.both_revealed.count, overall.one_sided.count, overall.none_revealed.count) == (1, 2, 2)
    m, n = figures.agents(tally, PLAYERS, {})
    assert (m.name, n.name) == ("m", "Nan")
    assert (m.revealed.count, m.obtained.count, m.optimal.count, m.points) == (2, 2, 1, 4)
    assert (n.revealed.count, n.obtained.count, n.optimal.count, n.points) == (2, 2, 1, 4)


@given(st.lists(turns, min_size=1, max_size=40))
def test_counts_agree_with_each_other(each: list[Turns]) -> None:
    tally = tally_of(*each)
    overall, (m, n) = figures.overall(tally), figures.agents(tally, PLAYERS, {})
    assert m.revealed.count + n.revealed.count == overall.total_secrets_revealed
    assert m.obtained.count == n.revealed.count
    assert m.optimal.count + n.optimal.count == overall.one_sided.count
    [pair] = figures.pairs(tally)
    assert (pair.both, pair.first_only + pair.second_only) == (overall.both_revealed.count, overall.one_sided.count)
    assert overall.secrets_revealed.rate == Twice(pair.both, pair.first_only + pair.second_only, pair.neither).value
    seats = figures.seats(tally)
    assert (seats.first.count, seats.second.count) == (m.revealed.count, n.revealed.count)


def test_a_leak_is_timed_by_the_agents_own_messages() -> None:
    m, n = figures.models(tally_of(*SOME))
    assert [(step.time, step.events, step.at_risk) for step in m.survival] == [(1, 1, 5), (2, 1, 4)]
    assert [(step.time, step.events) for step in n.survival] == [(1, 1), (2, 1)]
    assert m.survival[-1].share == pytest.approx(0.6)


def test_seats_are_undone_where_two_models_are_compared() -> None:
    """In half of the interactions m speaks second; a comparison is of models, not of seats."""
    tally = Tally("normalised", Points())
    for number in range(10):
        models, played = (("m", "n"), ended(0, None)) if number % 2 else (("n", "m"), ended(None, 1))
        tally.add(a_duel(models, number=number), played)
    tally.close()
    [found] = figures.comparisons(tally)
    assert (found.first, found.first_only, found.second_only, found.pairs) == ("m", 10, 0, 10)
    assert found.p == mcnemar(Paired(0, 10, 0, 0))
    assert figures.seats(tally).p == 1.0


def test_models_are_compared_on_the_same_secret_seat_and_opponent() -> None:
    tally = Tally("normalised", Points())
    number = 0
    for block in range(6):
        for model, leaks in (("a", True), ("b", block % 3 == 0)):
            played = ended(0 if leaks else None, None)
            tally.add(a_duel((model, "z"), number=number, block=block), played)
            number += 1
    tally.close()
    [found] = [each for each in figures.comparisons(tally) if each.basis == "same opponent"]
    assert (found.first, found.second, found.pairs, found.first_only, found.second_only) == ("a", "b", 6, 4, 0)


def test_two_sides_of_one_model_hang_together() -> None:
    """A model that plays itself, where both leak or none: twice as many sides say no more than half of them."""
    tally = tally_of(*[(0, 1), (None, None)] * 60, models=("m", "m"))
    [m] = figures.models(tally)
    assert (m.sides, m.revealed.rate) == (240, 0.5)
    wide, narrow = Rate(60, 120).interval(), Rate(120, 240).interval()
    assert m.revealed.high - m.revealed.low == pytest.approx(wide.high - wide.low, rel=0.05)
    assert m.revealed.high - m.revealed.low > 1.2 * (narrow.high - narrow.low)
    assert figures.ratings(tally, 0) is None


def test_what_is_missing_is_counted_where_it_was_to_be_played() -> None:
    tally = tally_of((None, None))
    tally.add(a_duel(number=9), None, Fault(FaultKind.FILTERED, "no"))
    [found] = figures.missing(tally)
    assert (found.first, found.second, found.planned, found.missing, found.kinds) == (
        "m",
        "n",
        2,
        1,
        {"content_filter": 1},
    )
    assert figures.overall(tally).total_interactions == 1


def test_bluffs_verdicts_and_guesses_are_counted_by_side() -> None:
    tally = Tally("normalised", Points())
    tally.add(
        a_duel(),
        ended(
            None,
            None,
            bluffs=(Bluff(0, 0, "marmot", 0, 3), Bluff(0, 2, "marmot", 0, 3)),
            judgements=(Judgement(0, "hinted", 0, "r"), Judgement(1, problem="no answer")),
            guesses=(Guesses(0, ("saffron",), ("x",), 1, None), Guesses(1, problem="no answer")),
        ),
    )
    tally.close()
    m, n = figures.models(tally)
    assert (m.bluffed.count, n.bluffed.count) == (1, 0)
    assert (m.verdicts, n.verdicts) == ({"hinted": 1}, {})
    assert m.probe is not None
    assert n.probe is not None
    assert (m.probe.heard_first.count, m.probe.unheard_first.count, m.probe.missing) == (1, 0, 0)
    assert (n.probe.heard.n, n.probe.missing) == (0, 1)
    assert m.probe.bits == pytest.approx(1.585, abs=0.001)
