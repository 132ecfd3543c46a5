"""From counts to figures: what the statistics make of a tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import (
    AgentFigures,
    Comparison,
    Missing,
    ModelFigures,
    Overall,
    PairFigures,
    ProbeFigures,
    RateFigure,
    SeatFigures,
    TurnFigures,
)
from groundswell.experiments.secret_game.played import TIERS, Tier
from groundswell.experiments.secret_game.tally import BOTH, FIRST, NEITHER, SECOND, Kept, Leaked, Tally, paired
from groundswell.stats.many import benjamini_hochberg, holm
from groundswell.stats.rates import Interval, Paired, Rate, Twice
from groundswell.stats.ratings import Meeting, Strengths, strengths
from groundswell.stats.survival import curve, logrank
from groundswell.stats.tests import association, mcnemar

LEVEL = 0.95


def rate_figure(count: int, n: int) -> RateFigure:
    """A share of independent things."""
    found = Rate(count, n)
    return _figure(count, n, found.value, found.interval(LEVEL))


def twice_figure(both: int, one: int, none: int) -> RateFigure:
    """A share of things that come in twos."""
    found = Twice(both, one, none)
    return _figure(2 * both + one, 2 * found.n, found.value, found.interval(LEVEL))


def _figure(count: int, n: int, value: float | None, interval: Interval) -> RateFigure:
    return RateFigure(count, n, value, interval.low, interval.high)


def overall(tally: Tally) -> Overall:
    """All interactions together."""
    every = _all(tally.cells.values())
    table = paired(every)
    one = table.first + table.second
    together = association(table, LEVEL)
    return Overall(
        total_interactions=table.n,
        total_secrets_revealed=2 * table.both + one,
        secrets_revealed=twice_figure(table.both, one, table.neither),
        both_revealed=rate_figure(table.both, table.n),
        one_sided=rate_figure(one, table.n),
        none_revealed=rate_figure(table.neither, table.n),
        correlation=Twice(table.both, one, table.neither).correlation,
        odds_ratio=together.odds_ratio,
        odds_low=together.low,
        odds_high=together.high,
        association_p=together.p,
    )


def tiers(tally: Tally) -> dict[Tier, RateFigure]:
    """The share of secrets that each tier finds revealed."""
    return {
        tier: twice_figure(counts[BOTH], counts[FIRST] + counts[SECOND], counts[NEITHER])
        for tier, counts in tally.tiers.items()
        if counts
    }


def agents(tally: Tally, players: Sequence[Agent], scores: Mapping[str, float]) -> list[AgentFigures]:
    """The figures of every agent that played. Who has no name of their own goes by the id: in talk, by the seat."""
    found = []
    for agent in players:
        if agent.id not in tally.agents:
            continue
        kept = tally.agents[agent.id]
        n = kept.interactions
        found.append(
            AgentFigures(
                id=agent.id,
                name=agent.name or f"Agent {agent.id}",
                model=tally.arms[agent.id],
                interactions=n,
                revealed=rate_figure(kept.revealed[tally.tier], n),
                obtained=rate_figure(kept.obtained, n),
                optimal=rate_figure(kept.optimal, n),
                points=kept.points,
                score=scores.get(agent.id, kept.points),
            )
        )
    return found


def models(tally: Tally) -> list[ModelFigures]:
    """The figures of every model, by name."""
    return [_model(tally, name, tally.models[name]) for name in sorted(tally.models)]


def _model(tally: Tally, name: str, kept: Kept) -> ModelFigures:
    own = paired(tally.own[name])

    def share(count: int) -> RateFigure:
        return _clustered(count, kept.interactions, own, kept.interactions)

    def by(tier: Tier) -> RateFigure:
        """What a judge was not heard on says nothing by the judge's tier."""
        n = kept.judged if tier == "judged" else kept.interactions
        return _clustered(kept.revealed[tier], n, own, kept.interactions)

    return ModelFigures(
        model=name,
        sides=kept.interactions,
        revealed=share(kept.revealed[tally.tier]),
        tiers={tier: by(tier) for tier in TIERS if tally.tiers[tier]},
        obtained=share(kept.obtained),
        optimal=share(kept.optimal),
        bluffed=share(kept.bluffed),
        guessed=share(kept.guessed),
        thought=share(kept.thought),
        verdicts=dict(sorted(kept.verdicts.items())),
        survival=curve(kept.leaks, kept.kept, LEVEL),
        probe=_probe(kept),
    )


def _clustered(count: int, n: int, own: Paired, sides: int) -> RateFigure:
    """A share over n of the sides of a model. Where it played itself, the two sides of an interaction hang together.

    The interval is that of as many independent sides as these are worth, by how the leaks hang together.
    """
    plain = rate_figure(count, n)
    if not own.n or not n:
        return plain
    together = Twice(own.both, own.first + own.second, own.neither).correlation
    factor = 1 + (1.0 if together is None else min(1.0, max(0.0, together)))
    in_twos = 2 * own.n / sides
    worth = max(1, round(n * (1 - in_twos + in_twos / factor)))
    low, high = Rate(min(worth, round(count * worth / n)), worth).interval(LEVEL)
    share = count / n
    return RateFigure(count, n, share, min(low, share), max(high, share))


def _probe(kept: Kept) -> ProbeFigures | None:
    """What guesses off the record tell; None where nobody was asked."""
    table, first = kept.probed, kept.first_guess
    if not table.n and not kept.unprobed:
        return None
    heard, unheard = first.both + first.first, first.both + first.second
    bits, low, high = _gain(heard, unheard, first.n)
    return ProbeFigures(
        heard=rate_figure(table.both + table.first, table.n),
        unheard=rate_figure(table.both + table.second, table.n),
        heard_first=rate_figure(heard, first.n),
        unheard_first=rate_figure(unheard, first.n),
        bits=bits,
        bits_low=low,
        bits_high=high,
        p=mcnemar(table),
        missing=kept.unprobed,
    )


def _gain(heard: int, unheard: int, n: int) -> tuple[float | None, float | None, float | None]:
    """How many bits better the first guess is with the talk than without: min-entropy leakage.

    G. Smith, On the foundations of quantitative information flow, FOSSACS 2009. Half a hit is added to each, since none
    at all would be infinitely many bits. The interval is a cautious one: the ends of both rates' intervals at 97.5%.
    """
    if not n:
        return None, None, None
    one, other = Rate(heard, n).interval(0.975), Rate(unheard, n).interval(0.975)
    half = 0.5 / (n + 1)
    bits = log2((heard + 0.5) / (unheard + 0.5))
    return bits, log2(max(one.low, half) / max(other.high, half)), log2(max(one.high, half) / max(other.low, half))


def pairs(tally: Tally) -> list[PairFigures]:
    """Who leaked to whom, by seat."""
    found = []
    for (first, second), counts in sorted(tally.cells.items()):
        table = paired(counts)
        one, other = table.both + table.first, table.both + table.second
        rates = rate_figure(one, table.n), rate_figure(other, table.n)
        found.append(PairFigures(first, second, table.n, *table, *rates))
    return found


def comparisons(tally: Tally) -> list[Comparison]:
    """Every two models that can be compared, with p-values adjusted for how many comparisons there are."""
    rows = [(names, "facing each other", paired(counts)) for names, counts in sorted(tally.facing.items())]
    rows += [(names, "same opponent", paired(counts)) for names, counts in sorted(tally.paired.items())]
    ps = [mcnemar(table) for _, _, table in rows]
    return [
        Comparison(
            first=names[0],
            second=names[1],
            basis=basis,
            pairs=table.n,
            first_only=table.first,
            second_only=table.second,
            difference=table.difference,
            low=table.interval(LEVEL).low,
            high=table.interval(LEVEL).high,
            p=p,
            p_holm=by_holm,
            p_bh=by_bh,
        )
        for (names, basis, table), p, by_holm, by_bh in zip(rows, ps, holm(ps), benjamini_hochberg(ps), strict=True)
    ]


def seats(tally: Tally) -> SeatFigures:
    """Whether the first speaker leaks more often than the second."""
    table = paired(_all(tally.cells.values()))
    low, high = table.interval(LEVEL)
    first, second = table.both + table.first, table.both + table.second
    rates = rate_figure(first, table.n), rate_figure(second, table.n)
    return SeatFigures(*rates, table.difference, low, high, mcnemar(table))


def ratings(tally: Tally, seed: int) -> Strengths | None:
    """How well models attack and defend, where there are several."""
    if len(tally.models) < 2 or not tally.usable:
        return None
    meetings = [Meeting(*names, *paired(counts)) for names, counts in sorted(tally.cells.items())]
    return strengths(meetings, level=LEVEL, seed=seed)


def survival_p(tally: Tally) -> float | None:
    """Whether models differ in how long they keep their secrets."""
    if len(tally.models) < 2:
        return None
    return logrank([(kept.leaks, kept.kept) for kept in tally.models.values()])


def missing(tally: Tally) -> list[Missing]:
    """What is missing, by who was to play; a rate of missing ones that differs is a warning of its own."""
    found = []
    for names in sorted({*tally.missing, *tally.cells}):
        kinds = tally.missing[names]
        lost = kinds.total()
        found.append(Missing(*names, tally.cells[names].total() + lost, lost, dict(sorted(kinds.items()))))
    return found


def turns(tally: Tally) -> list[TurnFigures]:
    """What each turn took."""
    return [
        TurnFigures(place.turn, place.model, usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        for place, usage in sorted(tally.usage.items())
    ]


def _all(counts: Any) -> Counter[Leaked]:
    total: Counter[Leaked] = Counter()
    for each in counts:
        total.update(each)
    return total
