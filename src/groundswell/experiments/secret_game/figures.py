"""Statistics, computed from the counts of a tally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, sqrt
from typing import Any, NamedTuple

from msgspec.structs import replace

from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import (
    AgentFigures,
    Basis,
    Comparison,
    JudgeAgreement,
    Missing,
    ModelFigures,
    Overall,
    PairFigures,
    ProbeFigures,
    RateFigure,
    SeatFigures,
    TurnFigures,
    WordFigures,
)
from groundswell.experiments.secret_game.played import HEADLINE, TIERS, Tier
from groundswell.experiments.secret_game.tally import Contrast, Kept, Share, Tally, paired
from groundswell.stats.clusters import student, student_p
from groundswell.stats.compare import association, benjamini_hochberg, cohens_h, holm, matched_odds, mcnemar
from groundswell.stats.rates import Rate, Twice, worth
from groundswell.stats.ratings import Meeting, Strengths, strengths
from groundswell.stats.survival import curve

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


def of_all(tally: Tally, seed: int) -> dict[str, Any]:
    """The fields of `Analysis` that follow from the counts."""
    return {
        "overall": overall(tally),
        "models": models(tally),
        "pairs": pairs(tally),
        "tiers": tiers(tally),
        "comparisons": comparisons(tally),
        "seats": seats(tally),
        "strengths": ratings(tally, seed),
        "survival_p": survival_p(tally),
        "forms": dict(sorted(tally.forms.items(), key=lambda each: (-each[1], each[0]))),
        "unread": tally.unread,
        "missing": missing(tally),
        "blocks": tally.lives.clusters,
        "words": words(tally),
        "judge_agreement": judge_agreement(tally),
    }


def overall(tally: Tally) -> Overall:
    """All interactions together."""
    table = paired(tally.whole.leaked)
    one = table.first + table.second
    together = association([paired(cell.leaked) for cell in tally.cells.values()], LEVEL)
    return Overall(
        total_interactions=tally.usable,
        total_secrets_revealed=tally.revealed[tally.tier].count,
        secrets_revealed=share_figure(tally.revealed[tally.tier]),
        both_revealed=share_figure(tally.both),
        one_sided=share_figure(tally.one_sided),
        none_revealed=share_figure(tally.none),
        correlation=Twice(table.both, one, table.neither).correlation,
        odds_ratio=together.odds_ratio,
        odds_low=together.low,
        odds_high=together.high,
        association_p=together.p,
        classes=_classes(tally, tally.everybody),
        how=_how(tally.everybody),
    )


def tiers(tally: Tally) -> dict[Tier, RateFigure]:
    """The share of secrets that leaked, by tier."""
    return _tiers(tally, tally.revealed)


def _tiers(tally: Tally, shares: Mapping[Tier, Share]) -> dict[Tier, RateFigure]:
    """Leaks by every tier with data. Without classes there is no declared tier, unless it is the headline tier."""
    known = [tier for tier in TIERS if tier in tally.revealed and tally.revealed[tier].n]
    if not tally.classed and tally.tier != HEADLINE:
        known = [tier for tier in known if tier != HEADLINE]
    return {tier: share_figure(shares[tier]) for tier in known}


def _classes(tally: Tally, kept: Kept) -> dict[str, RateFigure]:
    """Sides by class: every side is in one of them."""
    return {label: share_figure(share) for label, share in kept.classes.items()} if tally.classed else {}


def _how(kept: Kept) -> dict[str, dict[str, int]]:
    return {label: dict(counts.most_common()) for label, counts in sorted(kept.how.items())}


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
        tiers=_tiers(tally, kept.revealed),
        obtained=share_figure(kept.obtained),
        optimal=share_figure(kept.optimal),
        bluffed=share_figure(kept.bluffed),
        guessed=share_figure(kept.guessed),
        thought=share_figure(kept.thought),
        verdicts=dict(sorted(kept.verdicts.items())),
        survival=curve(kept.leaks, kept.kept, LEVEL, revealed.effect),
        probe=_probe(kept),
        classes=_classes(tally, kept),
        how=_how(kept),
        by_message=_by_message(kept, revealed.effect),
    )


def _by_message(kept: Kept, effect: float) -> list[RateFigure]:
    """Of the sides that wrote a message and had not leaked before, those that leaked in it."""
    last = max([*kept.leaks, *kept.kept], default=0)
    found = []
    for time in range(1, last + 1):
        n = sum(many for counts in (kept.leaks, kept.kept) for at, many in counts.items() if at >= time)
        leaked = kept.leaks.get(time, 0)
        found.append(RateFigure(leaked, n, leaked / n, *worth(leaked / n, n / effect, LEVEL)))
    return found


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
    """Every comparison of two models.

    Each two models have one headline comparison: standardised over the opponents that they share, or facing each other
    if they share none. P-values are adjusted for the number of these. All other rows are details of them.
    """
    headline: list[Comparison] = []
    details: list[Comparison] = []
    for names in sorted({*tally.facing, *tally.paired}):
        if names in tally.paired:
            found = tally.paired[names]
            headline.append(_comparison(names, "standardised", found))
            if len(found.opponents) > 1:
                each = [tally.against[*names, opponent] for opponent in found.opponents]
                details += [_comparison(names, "same opponent", one) for one in each]
        if names in tally.facing:
            (details if names in tally.paired else headline).append(
                _comparison(names, "facing each other", tally.facing[names])
            )
    ps = [each.p for each in headline]
    adjusted = zip(headline, holm(ps), benjamini_hochberg(ps), strict=True)
    return [*(replace(each, p_holm=by_holm, p_bh=by_bh) for each, by_holm, by_bh in adjusted), *details]


class Difference(NamedTuple):
    """A difference of two rates with its interval and p-value."""

    value: float | None
    low: float
    high: float
    p: float


def compared_by(found: Contrast) -> Difference:
    """The more cautious of two intervals and tests.

    Student's, from the differences between blocks; and Newcombe's interval and McNemar's test with the effective number
    of pairs, which is at most their number: few blocks may be more alike than pairs would be by chance.
    """
    table, variance, df = found.table, found.variance, found.blocks - 1
    value, (low, high), p = table.difference, table.interval(LEVEL, found.effect), mcnemar(table, found.effect)
    if value is None or variance is None:
        return Difference(value, low, high, p)
    off = student(df, LEVEL) * sqrt(variance)
    low, high = max(-1.0, min(low, value - off)), min(1.0, max(high, value + off))
    return Difference(value, low, high, max(p, student_p(value, variance, df)))


def _comparison(names: tuple[str, str], basis: Basis, found: Contrast) -> Comparison:
    counts, table, effect, difference = found.counts, found.table, found.effect, compared_by(found)
    odds = matched_odds(table, LEVEL, effect)
    one, other = (table.both + table.first) / table.n, (table.both + table.second) / table.n
    return Comparison(
        first=names[0],
        second=names[1],
        basis=basis,
        pairs=counts.n,
        first_only=counts.first,
        second_only=counts.second,
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        p_holm=None,
        p_bh=None,
        opponents=[] if basis == "facing each other" else found.opponents,
        odds_ratio=odds.value,
        odds_low=odds.low,
        odds_high=odds.high,
        cohens_h=cohens_h(min(1.0, one), min(1.0, other)),
    )


def seats(tally: Tally) -> SeatFigures:
    """Whether the first speaker leaks more often than the second."""
    table, effect = tally.seats.counts, tally.seats.effect
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
    """p-value of the log-rank test that models keep their secrets equally long; None with too few blocks."""
    return tally.lives.p() if len(tally.models) > 1 else None


def words(tally: Tally) -> list[WordFigures]:
    """How often each secret leaked, most often first."""
    found = [WordFigures(word, share_figure(share)) for word, share in tally.words.items()]
    return sorted(found, key=lambda each: (-(each.leaked.rate or 0), -each.leaked.n, each.word))


def judge_agreement(tally: Tally) -> JudgeAgreement | None:
    """Whether the rules and the judge find the same leaks; None without a judge."""
    if not tally.agreement:
        return None
    return JudgeAgreement(HEADLINE if tally.tier == "judged" else tally.tier, *paired(tally.agreement))


def missing(tally: Tally) -> list[Missing]:
    """Missing interactions, by pair of models. Unequal shares may bias the rates."""
    found = []
    for names in sorted({*tally.missing, *tally.played}):
        kinds = tally.missing[names]
        lost, played = kinds.total(), tally.played[names]
        found.append(Missing(*names, played + lost, lost, dict(sorted(kinds.items()))))
    return found


def turns(tally: Tally) -> list[TurnFigures]:
    """Tokens by turn and model."""
    return [
        TurnFigures(place.turn, place.model, usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        for place, usage in sorted(tally.usage.items())
    ]
