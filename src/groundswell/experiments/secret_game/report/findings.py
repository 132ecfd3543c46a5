"""The sections with what was found: overall, by agent, by model, by pair, by seat, and when secrets leak."""

from __future__ import annotations

from collections.abc import Mapping

from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing, on_page
from groundswell.experiments.reporting.markup import Html, Number, Section, drawing, joined, table, tag
from groundswell.experiments.secret_game.analysis import Analysis, RateFigure
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.played import TIERS, Tier

FOUND_BY = {
    "exact": "the secret letter by letter",
    "normalised": "also in other case, spelling of letters and punctuation",
    "encoded": "also spaced, reversed, as an acrostic, in base64, hex, ROT13 and the like, or misspelt",
    "judged": "a model read the conversation and calls the secret declared",
}


def rate_cells(rate: RateFigure) -> list[Number]:
    """A rate as two cells: the count, and the share with its interval."""
    return [Number(numbers.count(rate)), Number(numbers.stacked(rate))]


def by_tier(found: Mapping[Tier, RateFigure]) -> list[tuple[Tier, RateFigure]]:
    """Rates from the surest tier to the furthest, whatever order they come in."""
    return [(tier, found[tier]) for tier in TIERS if tier in found]


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """What there is most of comes first."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def shown(plot: Drawing | None, caption: str) -> Html:
    """A drawing, if there is one."""
    return Html("") if plot is None else drawing(on_page(plot), caption)


def fixed_n(analysis: Analysis) -> str:
    """What a caption says of intervals and p-values where a rule may have ended the run."""
    if analysis.stopping is None:
        return ""
    return " For a fixed number of interactions: not valid for a run that was stopped by looking."


def overall(analysis: Analysis) -> Section | None:
    """All interactions together, as the game's own description counts them."""
    found = analysis.overall
    if not found.total_interactions:
        return None
    rows = [
        ("total interactions", Number(f"{found.total_interactions:,}"), ""),
        ("secrets revealed", *rate_cells(found.secrets_revealed)),
        ("both agents revealed", *rate_cells(found.both_revealed)),
        ("one-sided reveals", *rate_cells(found.one_sided)),
        ("nobody revealed", *rate_cells(found.none_revealed)),
    ]
    caption = (
        "Secrets count two per usable interaction; the other rows count interactions. Two secrets of an interaction "
        "hang together, and so may interactions of a block, which share their words: intervals (Wilson's, exact ones "
        "for few or none) are those of as many independent ones as these are worth."
    )
    tiers = [(tier, FOUND_BY[tier], *rate_cells(rate)) for tier, rate in by_tier(analysis.tiers)]
    ladder = (
        "The ladder of tiers: the share of secrets that each finds leaked. Each of the first three finds all that "
        f"the ones before it find. The headline is by the {analysis.tier} tier."
    )
    share, note = f">share, {analysis.level:.0%} interval", fixed_n(analysis)
    body = [
        table(caption + note, ("", ">count", share), rows),
        table(ladder + note, ("tier", "what it finds", ">secrets", share), tiers),
    ]
    return Section("overall", "Overall", joined(body))


def agents(analysis: Analysis) -> Section | None:
    """Every agent, as the game's own description has it."""
    if not analysis.agents:
        return None
    scored = analysis.mode != GameMode.STANDARD
    heads = ["agent", "model", ">interactions", ">revealed", ">obtained", ">optimal", ">points"]
    rows = [
        (
            each.name if each.name in (each.id, f"Agent {each.id}") else f"{each.name} ({each.id})",
            each.model,
            Number(f"{each.interactions:,}"),
            *(Number(numbers.stacked(r, counted=True)) for r in (each.revealed, each.obtained, each.optimal)),
            Number(numbers.points(each.points)),
            *([Number(numbers.points(each.score))] if scored else []),
        )
        for each in analysis.agents
    ]
    caption = (
        f"By the {analysis.tier} tier. Revealed: its own secret leaked. Obtained: the other's did. Optimal: obtained "
        f"and not revealed. Each as a count, the share of its interactions and a {analysis.level:.0%} interval. An "
        "agent that plays itself has two sides in an interaction, and shares are of sides."
    )
    if not scored:
        caption += " In conversations they are named by their seat, unless they have a name: Agent 1 speaks first."
    whole = table(caption + fixed_n(analysis), [*heads, ">score"] if scored else heads, rows)
    return Section("agents", "Agents", whole)


def models(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """Every model, by every tier."""
    if not analysis.models:
        return None
    tiers = [tier for tier in TIERS if any(tier in each.tiers for each in analysis.models)]
    rows = [
        (
            each.model,
            Number(f"{each.sides:,}"),
            *(Number(numbers.stacked(each.tiers[tier])) if tier in each.tiers else numbers.NONE for tier in tiers),
            Number(numbers.stacked(each.obtained)),
            Number(numbers.stacked(each.optimal)),
        )
        for each in analysis.models
    ]
    heads = ("model", ">sides", *(f">leaked, {tier}" for tier in tiers), ">obtained", ">optimal")
    caption = (
        f"Leak rates by model and tier; obtained and optimal are by the {analysis.tier} tier. A side is one agent in "
        "one interaction. Sides that share an interaction or words may hang together: intervals are those of as many "
        "independent sides as these are worth. A rate is against the opponents that a model had here, which differ "
        "from model to model unless each also played itself."
    )
    drawn = shown(
        plot,
        f"Share of each model's secrets that leaked, by tier, with {analysis.level:.0%} intervals; filled marks are "
        f"the headline tier ({analysis.tier}). The most leaking model is on top.{fixed_n(analysis)}",
    )
    return Section("models", "Leak rates by model", joined([drawn, table(caption + fixed_n(analysis), heads, rows)]))


def pairs(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """Who leaks to whom."""
    if not analysis.pairs:
        return None
    rows = [
        (
            pair.first,
            pair.second,
            *(Number(f"{n:,}") for n in (pair.interactions, pair.both, pair.first_only, pair.second_only)),
            Number(f"{pair.neither:,}"),
            Number(numbers.stacked(pair.first_revealed)),
            Number(numbers.stacked(pair.second_revealed)),
        )
        for pair in analysis.pairs
    ]
    heads = ["first speaker", "second speaker", ">n", ">both", ">only first", ">only second", ">neither"]
    heads += [">first leaked", ">second leaked"]
    caption = (
        f"Whose secret leaked, in how many interactions of two models in these seats, by the {analysis.tier} tier."
    )
    drawn = shown(
        plot,
        f"Share of interactions in which a secret leaked, by the {analysis.tier} tier: that of the first speaker (A) "
        "and of the second (B). Rows speak first, columns second; n interactions in a cell, none where it is empty.",
    )
    as_table = tag("details", tag("summary", "As a table"), table(caption + fixed_n(analysis), heads, rows))
    return Section("pairs", "Who leaks to whom", joined([drawn, as_table]))


def together(analysis: Analysis) -> Section | None:
    """Whether leaks come in twos, and whether the seat matters."""
    if not analysis.overall.total_interactions:
        return None
    both = sum(pair.both for pair in analysis.pairs)
    first, second = (sum(getattr(p, name) for p in analysis.pairs) for name in ("first_only", "second_only"))
    neither = sum(pair.neither for pair in analysis.pairs)
    rows = [
        ("first leaked", Number(f"{both:,}"), Number(f"{first:,}"), Number(f"{both + first:,}")),
        ("first kept it", Number(f"{second:,}"), Number(f"{neither:,}"), Number(f"{second + neither:,}")),
        (
            "all",
            Number(f"{both + second:,}"),
            Number(f"{first + neither:,}"),
            Number(f"{both + first + second + neither:,}"),
        ),
    ]
    found = analysis.overall
    heads = ("", ">second leaked", ">second kept it", ">all")
    caption = (
        "Who leaked, by seat. The table has all interactions; the odds ratio is within the same two models in the same "
        f"seats: {numbers.number(found.odds_ratio)} ({numbers.between(found.odds_low, found.odds_high)}), exact test "
        f"p {_p(found.association_p)}. Intraclass correlation over all of them: {numbers.number(found.correlation)}."
    )
    body = [table(caption + fixed_n(analysis), heads, rows), _seats(analysis)]
    return Section("together", "Do leaks come in twos?", joined(body))


def _p(p: float) -> str:
    shown = numbers.p_value(p)
    return shown if shown.startswith("<") else f"= {shown}"


def seat_messages(analysis: Analysis) -> tuple[int, int]:
    """How many messages the first and the second speaker have."""
    first = (analysis.messages_per_interaction + 1) // 2
    return first, analysis.messages_per_interaction - first


def chances(analysis: Analysis) -> str:
    """How many messages each seat has, and what that means for an effect of the seat."""
    first, second = seat_messages(analysis)
    if first == second:
        return f" Each of them has {numbers.plural(first, 'message')}."
    return (
        f" The first speaker has {numbers.plural(first, 'message')}, the second {second:,}: "
        "what the seat does includes what that one message more does."
    )


def _seats(analysis: Analysis) -> Html:
    found = analysis.seats
    many = [Number(f"{n:,}") for n in seat_messages(analysis)]
    rows = [
        ("first speaker", many[0], *rate_cells(found.first)),
        ("second speaker", many[1], *rate_cells(found.second)),
    ]
    doubt = "" if found.apart else " Some models spoke in one seat only: this is no effect of the seat alone."
    caption = (
        "The seat: how often the first and the second speaker leak. Difference "
        f"{numbers.percent(found.difference, signed=True)} ({numbers.interval(found.low, found.high, signed=True)}, "
        f"Newcombe's interval for pairs), McNemar's test p {_p(found.p)}."
    )
    caption += chances(analysis) + doubt + fixed_n(analysis)
    return table(caption, ("", ">messages each", ">leaked", f">share, {analysis.level:.0%} interval"), rows)


def survival(analysis: Analysis, plot: Drawing | None) -> Section | None:
    """How long secrets are kept."""
    if plot is None:
        return None
    differ = (
        ""
        if analysis.survival_p is None
        else f" Log-rank test that all are alike, as if all sides were independent: p {_p(analysis.survival_p)}."
    )
    drawn = shown(
        plot,
        "Share that still keeps its secret after so many messages of its own, with "
        f"{analysis.level:.0%} bands (Kaplan and Meier, Greenwood's variance times the design effect of leak rates); "
        f"the other models in grey.{differ}{fixed_n(analysis)}",
    )
    rows = [
        (
            each.model,
            Number(str(step.time)),
            Number(f"{step.at_risk:,}"),
            Number(f"{step.events:,}"),
            Number(numbers.percent(step.share)),
            Number(numbers.interval(step.low, step.high)),
        )
        for each in analysis.models
        for step in each.survival
    ]
    heads = ("model", ">own message", ">still keeping", ">leaked", ">kept after", f">{analysis.level:.0%} interval")
    caption = "The steps of the curves. Still keeping: those that were about to say this message with a secret to keep."
    as_table = tag("details", tag("summary", "As a table"), table(caption, heads, rows))
    return Section("survival", "How long secrets are kept", joined([drawn, as_table]))
