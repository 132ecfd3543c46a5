"""The sections on who does better than whom: paired comparisons, and strengths."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.markup import Number, Section, joined, paragraph, table
from groundswell.experiments.secret_game.analysis import Analysis, Comparison
from groundswell.experiments.secret_game.report.findings import chances, fixed_n, shown
from groundswell.experiments.secret_game.report.more_plots import in_order


def comparisons(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """Which of two models leaks more often."""
    if not analysis.comparisons:
        return None
    rows = [
        (
            f"{each.first} − {each.second}",
            each.basis,
            *(Number(f"{n:,}") for n in (each.pairs, each.first_only, each.second_only)),
            Number(_difference(each)),
            *(Number(numbers.p_value(p)) for p in (each.p, each.p_holm, each.p_bh)),
        )
        for each in in_order(analysis)
    ]
    heads = ["models", "basis", ">pairs", ">only first", ">only second", ">difference"]
    heads += [">p", ">p, Holm", ">p, BH"]
    caption = (
        "Differences of leak rates, on two bases that may disagree. Same opponent: two models with the same secret, in "
        "the same seat, against the same third one; cite it for which model leaks more, all else equal. Facing each "
        "other: the two in one interaction, where one may leak less because it keeps its secret better or because it "
        "asks better; cite it for who wins of the two. McNemar's test, two-sided, rows of a "
        "block counting for as many as they are worth; p adjusted for the number of rows, by Holm (any false one) and "
        "Benjamini-Hochberg (the share of false ones). Intervals are of one difference each, not adjusted."
    ) + fixed_n(analysis)
    drawn = shown(
        plot,
        f"Differences of leak rates with {analysis.level:.0%} intervals, orange where p by Holm is below "
        f"{1 - analysis.level:.2g}. To the right of 0, the model that is named first leaks more often."
        f"{fixed_n(analysis)}",
    )
    return Section("comparisons", "Paired comparisons", joined([drawn, table(caption, heads, rows)]))


def _difference(found: Comparison) -> str:
    if found.difference is None:
        return numbers.NONE
    return f"{numbers.percent(found.difference, signed=True)}\n{numbers.interval(found.low, found.high, signed=True)}"


def strengths(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """How strong models are."""
    found = analysis.strengths
    if found is None or not found.models:
        return None
    notes = []
    if not found.connected:
        notes.append("Not all models met, not even through others: their strengths cannot be compared.")
    elif not found.apart:
        notes.append(
            "Attack and defence cannot be told apart here: that takes three models that all met, or self-play."
        )
    if found.separated:
        notes.append(f"Without bounds, since they always or never leaked or obtained: {', '.join(found.separated)}.")
    seat = (
        ""
        if found.seat is None
        else (
            f" Speaking first adds {numbers.number(found.seat.value, signed=True)} "
            f"({numbers.between(found.seat.low, found.seat.high)}).{chances(analysis)}"
        )
    )
    drawn = shown(
        plot,
        "Strengths with bootstrap intervals, and the ranks that each may have (1 is the strongest)."
        f"{fixed_n(analysis)}",
    )
    caption = (
        "Strengths on the scale of log odds, with a mean of 0: attack is getting others' secrets, defence is keeping "
        "one's own, overall is their sum. Bradley-Terry by maximum likelihood; intervals and ranks from "
        f"{found.interactions:,} interactions drawn anew, with the words that were drawn.{seat}{fixed_n(analysis)}"
    )
    parts = ("overall", "attack", "defence") if found.apart else ("overall",)
    rows = [(each.model, *(cell for part in parts for cell in _standing(getattr(each, part)))) for each in found.models]
    heads = ["model", *(head for part in parts for head in (f">{part}", ">rank"))]
    body = [*(paragraph(note, "note") for note in notes), drawn, table(caption, heads, rows)]
    return Section("strengths", "Attack and defence", joined(body))


def _standing(standing: object) -> Sequence[Number]:
    value, low, high, best, worst = (getattr(standing, name) for name in ("value", "low", "high", "best", "worst"))
    ranks = str(best) if best == worst else f"{best}–{worst}"
    spread = "no bound" if low is None and high is None else numbers.between(low, high)
    shown = numbers.NONE if value is None else f"{numbers.number(value, signed=True)}\n{spread}"
    return [Number(shown), Number(ranks)]
