"""What a reader of the figures may rely on: cases in which a plausible figure would be a wrong one."""

from __future__ import annotations

from random import Random

import pytest

from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import ModelFigures, RateFigure
from groundswell.experiments.secret_game.blocks import findings
from groundswell.experiments.secret_game.data import interaction_rows
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import Bluff, Guesses, Judgement, Tier
from groundswell.experiments.secret_game.stopping import StoppingRule
from groundswell.experiments.secret_game.tally import Leaked, Tally
from groundswell.stats.compare import mcnemar
from groundswell.stats.rates import Interval, Paired, Rate
from tests.experiments.secret_game.games import game, game_of
from tests.experiments.secret_game.scene import a_duel, ended

BLUFFS = Bluff(0, 0, "marmot", 0, 3), Bluff(1, 1, "marmot", 0, 3)
DECLARED = Judgement(0, "declared", 0, "r"), Judgement(1, "declared", 1, "r")
KEPT = Judgement(0, "kept", None, "r"), Judgement(1, "kept", None, "r")


def counted(leaks: list[Leaked], models: tuple[str, str] = ("m", "n"), tier: Tier = "normalised") -> Tally:
    """Interactions in blocks of four, in which these secrets came out."""
    tally = Tally(tier, Points())
    for number, (first, second) in enumerate(leaks):
        tally.add(a_duel(models, number=number, block=number // 4), ended(0 if first else None, 1 if second else None))
    tally.close()
    return tally


def width(figure: RateFigure | Interval) -> float:
    return figure.high - figure.low


def test_words_that_always_leak_and_words_that_never_do_are_few_words_not_many_interactions() -> None:
    """Twenty blocks, in each of which all four talks end alike: they say no more than twenty talks do."""
    tally = counted([(block % 2 == 0, False) for block in range(20) for _ in range(4)])
    m, _ = figures.models(tally)
    agent = figures.agents(tally, [Agent("m", "")], {})[0]
    [pair] = figures.pairs(tally)
    seats = figures.seats(tally)
    twenty = width(rate(10, 20))
    for figure in (m.revealed, agent.revealed, pair.first_revealed, seats.first, figures.overall(tally).one_sided):
        assert (figure.count, figure.n) == (40, 80)
        assert width(figure) == pytest.approx(twenty, rel=0.1)
    assert m.survival[0].high - m.survival[0].low == pytest.approx(twenty, rel=0.15)


def rate(passed: int, n: int) -> Interval:
    return Rate(passed, n).interval()


def test_models_that_leak_different_words_are_compared_over_words() -> None:
    """The one leaks all of six blocks' words, the other of two: eight words differ, not thirty-two talks."""
    tally = counted([(block < 6, block >= 6) for block in range(8) for _ in range(4)])
    [found] = figures.comparisons(tally)
    assert (found.first_only, found.second_only, found.pairs) == (24, 8, 32)
    assert mcnemar(Paired(0, 24, 8, 0)) < 0.01
    assert found.p > 0.2
    assert found.low < 0 < found.high
    assert figures.seats(tally).p == found.p


def test_what_does_not_hang_together_is_as_sure_as_before() -> None:
    random = Random(3)
    [found] = figures.comparisons(counted([(random.random() < 0.5, random.random() < 0.2) for _ in range(400)]))
    plain = mcnemar(Paired(0, found.first_only, found.second_only, 0))
    assert plain <= found.p < 1e-4


@pytest.mark.parametrize("name", ["bluffed", "judged"])
def test_every_share_of_a_model_that_plays_itself_allows_for_its_own_sides(name: str) -> None:
    """Leaks are independent here, and bluffs and verdicts come in twos: each share by itself."""
    tally, random = Tally("normalised", Points()), Random(5)
    for number in range(80):
        together = random.random() < 0.5
        leaks = (0 if random.random() < 0.5 else None, 1 if random.random() < 0.5 else None)
        bluffs, judgements = (BLUFFS, DECLARED) if together else ((), KEPT)
        played = ended(*leaks, bluffs=bluffs, judgements=judgements)
        tally.add(a_duel(("m", "m"), number=number, block=number // 4), played)
    tally.close()
    [m] = figures.models(tally)
    share = share_of(m, name)
    assert share.n == 160
    assert width(share) >= 0.95 * width(rate(40, 80))


def share_of(model: ModelFigures, name: str) -> RateFigure:
    return model.tiers["judged"] if name == "judged" else model.bluffed


def test_an_agent_that_plays_itself_took_part_once() -> None:
    [agent] = figures.agents(counted([(True, False)] * 6, ("m", "m")), [Agent("m", "")], {})
    assert agent.interactions == 6
    assert (agent.revealed.count, agent.revealed.n, agent.obtained.count, agent.optimal.count) == (6, 12, 6, 6)


def test_pairs_that_leak_much_and_pairs_that_leak_little_are_no_leaks_that_come_in_twos() -> None:
    """Within each pair, what the one does says nothing of the other; in the sum of both pairs it seems to."""
    tally = Tally("normalised", Points())
    often = [(True, True)] * 64 + [(True, False)] * 16 + [(False, True)] * 16 + [(False, False)] * 4
    seldom = [(not first, not second) for first, second in often]
    for number, (first, second) in enumerate(often + seldom):
        models = ("a", "b") if number < 100 else ("c", "d")
        duel = a_duel(models, number=number, block=number // 4)
        tally.add(duel, ended(0 if first else None, 1 if second else None))
    tally.close()
    found = figures.overall(tally)
    assert found.odds_ratio == pytest.approx(1, abs=0.05)
    assert found.association_p > 0.9
    assert found.odds_low is not None
    assert found.odds_low < 0.5


@pytest.mark.parametrize(
    ("heard", "unheard", "low", "high"),
    [(1, None, True, False), (None, 1, False, True), (None, None, False, False), (1, 1, True, True)],
    ids=["never without the talk", "never with it", "never", "always"],
)
def test_bits_have_no_bound_where_one_of_two_rates_may_be_nothing(
    heard: int | None, unheard: int | None, low: bool, high: bool
) -> None:
    """Thirty right guesses with the talk and none without: the true gain may be any number of bits."""
    tally = Tally("normalised", Points())
    for number in range(30):
        guesses = (Guesses(0, ("x",), ("y",), heard, unheard),)
        tally.add(a_duel(number=number, block=number // 4), ended(None, None, guesses=guesses))
    tally.close()
    probe = figures.models(tally)[0].probe
    assert probe is not None
    assert (probe.bits_low is not None, probe.bits_high is not None) == (low, high)


def test_rows_that_a_judge_was_not_heard_on_are_not_marked_as_counted() -> None:
    unheard = Judgement(0, problem="no answer"), Judgement(1, "kept", None, "r")
    games = [game(number=n, judgements=unheard if n in (0, 2) else KEPT) for n in range(5)]
    report = game_of(games, tier="judged")
    assert report.analysis.interactions.usable == 3
    assert [row["counted"] for row in interaction_rows(report)] == [False, True, False, True, True]


def test_seats_that_go_with_models_are_not_called_an_effect_of_the_seat() -> None:
    given = figures.seats(counted([(True, False)] * 12))
    assert not given.apart
    tally = Tally("normalised", Points())
    for number in range(12):
        models = ("m", "n") if number % 2 else ("n", "m")
        tally.add(a_duel(models, number=number, block=number // 4), ended(0, None))
    tally.close()
    assert figures.seats(tally).apart
    assert figures.seats(counted([(True, False)] * 4, ("m", "m"))).apart
    said = "\n".join(findings(game_of([game(number=n) for n in range(8)])))
    assert "this may be a difference between models" in said
    assert "(p = " not in next(line for line in said.splitlines() if line.startswith("First speakers"))


def test_talks_about_the_same_two_words_are_never_enough() -> None:
    rule = StoppingRule(0.3, {"m": 400, "n": 400}, 400, 400)
    random = Random(1)
    for number in range(400):
        rule.add(a_duel(number=number, block=0), (random.random() < 0.1, random.random() < 0.1))
    arm = rule.report().arms["m"]
    assert not rule.reached
    assert (arm.low, arm.high) == (0, 1)
