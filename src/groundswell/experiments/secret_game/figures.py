"""Statistics, computed from the counts of a tally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

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
from groundswell.experiments.secret_game.tally import Kept, Share, Tally, paired
from groundswell.stats.compare import association, benjamini_hochberg, holm, mcnemar
from groundswell.stats.rates import Rate, Twice, worth
from groundswell.stats.ratings import Meeting, Strengths, strengths
from groundswell.stats.survival import curve, logrank

LEVEL = 0.95


def rate_figure(count: int, n: int) -> RateFigure:
    """A rate of independent observations."""
    found = Rate(count, n)
    return RateFigure(count, n, found.value, *found.interval(LEVEL))


def share_figure(share: Share) -> RateFigure:
    """A rate of sides or interactions, with an interval for the effective sample size."""
    count, n = share.count, share.n
    if not n:
        return rate_figure(0, 0)
    return RateFigure(count, n, count / n, *worth(count / n, n / share.effect, LEVEL))


def overall(tally: Tally) -> Overall:
    """All interactions together."""
    table = paired(tally.whole.leaked)
    one = table.first + table.second
    together = association([paired(cell.leaked) for cell in tally.cells.values()], LEVEL)
    return Overall(
        total_interactions=table.n,
        total_secrets_revealed=2 * table.both + one,
        secrets_revealed=share_figure(tally.revealed[tally.tier]),
        both_revealed=share_figure(tally.both),
        one_sided=share_figure(tally.one_sided),
        none_revealed=share_figure(tally.none),
        correlation=Twice(table.both, one, table.neither).correlation,
        odds_ratio=together.odds_ratio,
        odds_low=together.low,
        odds_high=together.high,
        association_p=together.p,
    )


def tiers(tally: Tally) -> dict[Tier, RateFigure]:
    """The share of secrets that leaked, by tier."""
    found = tally.revealed
    return {tier: share_figure(found[tier]) for tier in TIERS if tier in found and found[tier].n}


def agents(tally: Tally, players: Sequence[Agent], scores: Mapping[str, float]) -> list[AgentFigures]:
    """The figures of every agent that played. Agents without a name are listed by their id."""
    found = []
    for agent in players:
        if agent.id not in tally.agents:
            continue
        kept = tally.agents[agent.id]
        revealed = kept.revealed[tally.tier]
        found.append(
            AgentFigures(
                id=agent.id,
                name=agent.name or agent.id,
                model=tally.arms[agent.id],
                interactions=revealed.interactions,
                revealed=share_figure(revealed),
                obtained=share_figure(kept.obtained),
                optimal=share_figure(kept.optimal),
                points=kept.points,
                score=scores.get(agent.id, kept.points),
            )
        )
    return found


def models(tally: Tally) -> list[ModelFigures]:
    """The figures of every model, sorted by name."""
    return [_model(tally, name, tally.models[name]) for name in sorted(tally.models)]


def _model(tally: Tally, name: str, kept: Kept) -> ModelFigures:
    revealed = kept.revealed[tally.tier]
    return ModelFigures(
        model=name,
        sides=revealed.n,
        revealed=share_figure(revealed),
        tiers={tier: share_figure(kept.revealed[tier]) for tier in TIERS if tally.revealed[tier].n},
        obtained=share_figure(kept.obtained),
        optimal=share_figure(kept.optimal),
        bluffed=share_figure(kept.bluffed),
        guessed=share_figure(kept.guessed),
        thought=share_figure(kept.thought),
        verdicts=dict(sorted(kept.verdicts.items())),
        survival=curve(kept.leaks, kept.kept, LEVEL, revealed.effect),
        probe=_probe(kept),
    )


def _probe(kept: Kept) -> ProbeFigures | None:
    """The figures of guesses; None without --probe."""
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
    """Min-entropy leakage in bits: how much better the first guess is with the conversation than without.

    G. Smith, On the foundations of quantitative information flow, FOSSACS 2009. Half a hit is added to each count,
    because zero hits would mean infinitely many bits. The interval is conservative: it combines the ends of the 97.5%
    intervals of both rates. A bound is None if the rate that it depends on has no hit.
    """
    if not n:
        return None, None, None
    one, other = Rate(heard, n).interval(0.975), Rate(unheard, n).interval(0.975)
    bits = log2((heard + 0.5) / (unheard + 0.5))
    return bits, log2(one.low / other.high) if heard else None, log2(one.high / other.low) if unheard else None


def pairs(tally: Tally) -> list[PairFigures]:
    """Leaks of every pair of models, by seat."""
    found = []
    for (first, second), cell in sorted(tally.cells.items()):
        table = paired(cell.leaked)
        found.append(PairFigures(first, second, table.n, *table, share_figure(cell.first), share_figure(cell.second)))
    return found


def comparisons(tally: Tally) -> list[Comparison]:
    """Every comparison of two models, with p-values adjusted for the number of comparisons."""
    rows = [(names, "facing each other", rows) for names, rows in sorted(tally.facing.items())]
    rows += [(names, "same opponent", rows) for names, rows in sorted(tally.paired.items())]
    ps = [mcnemar(found.table, found.effect) for _, _, found in rows]
    return [
        Comparison(
            first=names[0],
            second=names[1],
            basis=basis,
            pairs=found.table.n,
            first_only=found.table.first,
            second_only=found.table.second,
            difference=found.table.difference,
            low=found.table.interval(LEVEL, found.effect).low,
            high=found.table.interval(LEVEL, found.effect).high,
            p=p,
            p_holm=by_holm,
            p_bh=by_bh,
        )
        for (names, basis, found), p, by_holm, by_bh in zip(rows, ps, holm(ps), benjamini_hochberg(ps), strict=True)
    ]


def seats(tally: Tally) -> SeatFigures:
    """Whether the first speaker leaks more often than the second."""
    table, effect = tally.seats.table, tally.seats.effect
    low, high = table.interval(LEVEL, effect)
    first, second = share_figure(tally.whole.first), share_figure(tally.whole.second)
    both_ways = all(names[::-1] in tally.cells for names in tally.cells)
    return SeatFigures(first, second, table.difference, low, high, mcnemar(table, effect), apart=both_ways)


def ratings(tally: Tally, seed: int) -> Strengths | None:
    """Strengths in attack and defence; None for a single model."""
    if len(tally.models) < 2 or not tally.usable:
        return None
    meetings = [Meeting(*names, *paired(cell.leaked)) for names, cell in sorted(tally.cells.items())]
    return strengths(meetings, level=LEVEL, seed=seed)


def survival_p(tally: Tally) -> float | None:
    """p-value of the log-rank test that models keep their secrets equally long."""
    if len(tally.models) < 2:
        return None
    return logrank([(kept.leaks, kept.kept) for kept in tally.models.values()])


def missing(tally: Tally) -> list[Missing]:
    """Missing interactions, by pair of models. Unequal shares may bias the rates."""
    found = []
    for names in sorted({*tally.missing, *tally.cells}):
        kinds = tally.missing[names]
        lost, played = kinds.total(), tally.cells[names].leaked.total() if names in tally.cells else 0
        found.append(Missing(*names, played + lost, lost, dict(sorted(kinds.items()))))
    return found


def turns(tally: Tally) -> list[TurnFigures]:
    """Tokens by turn and model."""
    return [
        TurnFigures(place.turn, place.model, usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        for place, usage in sorted(tally.usage.items())
    ]
