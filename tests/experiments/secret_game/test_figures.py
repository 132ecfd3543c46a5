"""From interactions to figures: counts by hand, and the statistics of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import Bluff, Class, Finding, Guesses, Judgement, Played
from groundswell.experiments.secret_game.tally import Tally
from groundswell.program.request import Fault, FaultKind
from groundswell.stats.compare import mcnemar
from groundswell.stats.rates import Paired, Rate, Twice
from tests.experiments.secret_game.scene import EXACT, a_duel, ended

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
    [found] = [each for each in figures.comparisons(tally) if each.basis == "standardised"]
    assert found.opponents == ["z"]
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


Labels = tuple[Class | None, Class | None]
LABELS = st.sampled_from([None, "mentioned", "hinted", "declared"])


def classed(*labels: Class | None, how: str = "stated") -> Played:
    """An interaction in which the sides wrote messages of these classes, and a mention after each."""
    findings = [
        Finding(seat, seat, seat + 2 * late, EXACT, label="mentioned" if late else label, how="topic" if late else how)
        for seat, label in enumerate(labels)
        if label is not None
        for late in (0, 1)
    ]
    return ended(None, None, findings=tuple(findings))


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30))
def test_every_side_is_in_one_class(every: list[Labels]) -> None:
    tally = Tally("declared", Points())
    for number, labels in enumerate(every):
        tally.add(a_duel(number=number, block=number // 4), classed(*labels))
    tally.close()
    overall, models = figures.overall(tally), figures.models(tally)
    for found, n in ((overall.classes, 2 * len(every)), *((each.classes, len(every)) for each in models)):
        assert sum(rate.count for rate in found.values()) == n
        assert all(rate.n == n for rate in found.values())
    for seat, model in enumerate(models):
        for label in ("declared", "hinted", "mentioned"):
            assert model.classes[label].count == sum(labels[seat] == label for labels in every)
    assert overall.classes["declared"].count == overall.secrets_revealed.count == figures.tiers(tally)["declared"].count
    assert (
        sum(sum(counts.values()) for counts in overall.how.values()) == 2 * len(every) - overall.classes["none"].count
    )
    assert set(overall.how.get("declared", {})) <= {"stated"}


def test_runs_of_versions_before_classes_have_no_declared_tier() -> None:
    tally = tally_of(*SOME)
    assert figures.overall(tally).classes == {}
    assert list(figures.tiers(tally)) == ["exact", "normalised", "encoded"]
    quiet = tally_of((None, None))
    assert list(figures.tiers(quiet)) == ["declared", "exact", "normalised", "encoded"]


def against(leaks: dict[str, list[tuple[bool, bool]]], names: tuple[str, str] = ("a", "b")) -> Tally:
    """Two models with the same secrets against several opponents: whether each leaked, a block for every row."""
    tally, number = Tally("normalised", Points()), 0
    for block in range(max(map(len, leaks.values()))):
        for opponent, rows in leaks.items():
            for model, leaked in zip(names, rows[block] if block < len(rows) else (), strict=False):
                tally.add(a_duel((model, opponent), number=number, block=block), ended(0 if leaked else None, None))
                number += 1
    tally.close()
    return tally


def test_opponents_have_the_same_weight_however_many_pairs_they_have() -> None:
    """By hand: 3 of 4 apart against y, none of 12 against z; the mean of 0.75 and 0 is 0.375, pooled it is 0.19."""
    tally = against({"y": [(True, False)] * 3 + [(True, True)], "z": [(False, False)] * 12})
    main, y, z = (each for each in figures.comparisons(tally) if (each.first, each.second) == ("a", "b"))
    assert (main.basis, main.opponents, main.pairs, main.first_only) == ("standardised", ["y", "z"], 16, 3)
    assert main.difference == pytest.approx(0.375)
    assert (y.difference, z.difference) == (0.75, 0.0)
    assert (y.opponents, y.p_holm, z.p_bh) == (["y"], None, None)
    assert y.p == mcnemar(Paired(1, 3, 0, 0))
    assert main.p_holm is not None


ROWS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12)


@given(ROWS, ROWS)
def test_a_comparison_is_the_same_with_its_models_exchanged(
    y: list[tuple[bool, bool]], z: list[tuple[bool, bool]]
) -> None:
    leaks = {"y": y, "z": z}
    one = figures.comparisons(against(leaks))[0]
    other = figures.comparisons(against(leaks, ("b", "a")))[0]
    assert one.difference == pytest.approx(-(other.difference or 0))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)
    assert one.p == pytest.approx(other.p)
    assert one.cohens_h == pytest.approx(-(other.cohens_h or 0), abs=1e-9)
    assert 0 <= one.p <= 1
    assert one.low - 1e-9 <= (one.difference or 0) <= one.high + 1e-9
    if one.odds_ratio and other.odds_ratio:
        assert one.odds_ratio == pytest.approx(1 / other.odds_ratio)


def test_blocks_that_differ_make_a_comparison_less_certain() -> None:
    """The same pairs, in which only a leaks in 8 of 10: once the same 8 blocks against everyone, once spread evenly."""
    rows = [(True, False)] * 8 + [(True, True)] * 2
    together = dict.fromkeys("vwxyz", rows)
    apart = {each: rows[2 * at :] + rows[: 2 * at] for at, each in enumerate("vwxyz")}
    one, other = (figures.comparisons(against(leaks))[0] for leaks in (together, apart))
    assert (one.first, one.second, one.difference) == (other.first, other.second, other.difference) == ("a", "b", 0.8)
    assert one.p > other.p
    assert one.high - one.low > other.high - other.low


def test_words_messages_and_the_judge_are_counted() -> None:
    tally = Tally("normalised", Points())
    verdicts = (Judgement(0, "declared", 0), Judgement(1, "kept"))
    for number, (first, second) in enumerate([(0, None), (2, 1), (2, None)]):
        tally.add(a_duel(number=number, block=number), ended(first, second, judgements=verdicts))
    tally.close()
    words = [(each.word, each.leaked.count, each.leaked.n) for each in figures.words(tally)]
    assert words == [("saffron", 3, 3), ("trellis", 1, 3)]
    m, n = figures.models(tally)
    assert [(rate.count, rate.n) for rate in m.by_message] == [(1, 3), (2, 2)]
    assert [(rate.count, rate.n) for rate in n.by_message] == [(1, 3), (0, 2)]
    found = figures.judge_agreement(tally)
    assert found is not None
    assert (found.tier, found.both, found.rules_only, found.judge_only, found.neither) == ("normalised", 3, 1, 0, 2)
    assert figures.judge_agreement(tally_of(*SOME)) is None


@pytest.mark.parametrize(("blocks", "valid"), [(4, False), (5, True)])
def test_the_log_rank_test_needs_five_blocks(blocks: int, valid: bool) -> None:
    p = figures.survival_p(tally_of(*SOME, *[(0, None), (None, 3)] * (2 * blocks - 2)) if valid else tally_of(*SOME))
    assert (p is not None) == valid
