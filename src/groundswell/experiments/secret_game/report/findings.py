"""The sections with what was found: overall, by agent, by model, by pair, and who does better than whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundswell.experiments.secret_game.analysis import Analysis, Comparison, ModelFigures, RateFigure
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.played import TIERS, Tier
from groundswell.experiments.secret_game.report import numbers
from groundswell.experiments.secret_game.report.drawing import Drawing, on_page
from groundswell.experiments.secret_game.report.markup import (
    Html,
    Number,
    Section,
    drawing,
    joined,
    paragraph,
    table,
    tag,
)

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
    body = [
        table(caption, ("", ">count", f">share, {analysis.level:.0%} interval"), rows),
        table(ladder, ("tier", "what it finds", ">secrets", f">share, {analysis.level:.0%} interval"), tiers),
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
            each.name if each.id in each.name else f"{each.name} ({each.id})",
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
        caption += " In conversations, agents without a name of their own are named by their seat: Agent 1 speaks first."
    return Section("agents", "Agents", table(caption, [*heads, ">score"] if scored else heads, rows))


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
        f"the headline tier ({analysis.tier}). The most leaking model is on top.",
    )
    return Section("models", "Leak rates by model", joined([drawn, table(caption, heads, rows)]))


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
    as_table = tag("details", tag("summary", "As a table"), table(caption, heads, rows))
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
    return Section("together", "Do leaks come in twos?", joined([table(caption, heads, rows), _seats(analysis)]))


def _p(p: float) -> str:
    shown = numbers.p_value(p)
    return shown if shown.startswith("<") else f"= {shown}"


def _seats(analysis: Analysis) -> Html:
    found = analysis.seats
    rows = [("first speaker", *rate_cells(found.first)), ("second speaker", *rate_cells(found.second))]
    doubt = "" if found.apart else " Some models spoke in one seat only: this is no effect of the seat alone."
    if analysis.messages_per_interaction % 2:
        doubt += " The first speaker says one message more, and has one more chance to leak."
    caption = (
        "The seat: how often the first and the second speaker leak. Difference "
        f"{numbers.percent(found.difference, signed=True)} ({numbers.interval(found.low, found.high, signed=True)}, "
        f"Newcombe's interval for pairs), McNemar's test p {_p(found.p)}.{doubt}"
    )
    return table(caption, ("", ">leaked", f">share, {analysis.level:.0%} interval"), rows)


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
        f"the other models in grey.{differ}",
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
        for each in analysis.comparisons
    ]
    heads = ["models", "basis", ">pairs", ">only first", ">only second", ">difference"]
    heads += [">p", ">p, Holm", ">p, BH"]
    caption = (
        "Differences of leak rates. Same opponent: two models with the same secret, in the same seat, against the same "
        "third one, alike but for the model. Facing each other: the two in one interaction, so that a difference may "
        "come from how well the one keeps its secret or how well the other asks. McNemar's test, two-sided, rows of a "
        "block counting for as many as they are worth; p adjusted for the number of rows, by Holm (any false one) and "
        "Benjamini-Hochberg (the share of false ones). Intervals are of one difference each, not adjusted."
    )
    drawn = shown(
        plot,
        f"Differences of leak rates with {analysis.level:.0%} intervals, orange where p by Holm is below "
        f"{1 - analysis.level:.2g}. To the right of 0, the model that is named first leaks more often.",
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
            f"({numbers.between(found.seat.low, found.seat.high)})."
        )
    )
    drawn = shown(
        plot,
        "Strengths with bootstrap intervals, and the ranks that each may have (1 is the strongest).",
    )
    caption = (
        "Strengths on the scale of log odds, with a mean of 0: attack is getting others' secrets, defence is keeping "
        "one's own, overall is their sum. Bradley-Terry by maximum likelihood; intervals and ranks from "
        f"{found.interactions:,} interactions drawn anew, with the words that were drawn.{seat}"
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


def behaviour(analysis: Analysis) -> Section | None:
    """What else agents do: bluff, guess, think of it; and in which form secrets come out."""
    if not any(each.sides for each in analysis.models):
        return None
    kinds = [("bluffed", "bluffed"), ("guessed", "was guessed"), ("thought", "in a thought")]
    some = [(name, head) for name, head in kinds if any(getattr(each, name).count for each in analysis.models)]
    parts = []
    if some:
        parts.append(_other_doings(analysis.models, some))
    if analysis.forms:
        rows = [(form, Number(f"{many:,}")) for form, many in most_first(analysis.forms)]
        caption = "Forms in which agents wrote their own secrets, by the number of interactions that have them."
        parts.append(table(caption, ("form", ">interactions"), rows))
    return Section("behaviour", "Forms, bluffs, guesses and thoughts", joined(parts)) if parts else None


def _other_doings(models: Sequence[ModelFigures], some: Sequence[tuple[str, str]]) -> Html:
    rows = [
        (
            each.model,
            Number(f"{each.sides:,}"),
            *(Number(numbers.stacked(getattr(each, name), counted=True)) for name, _ in some),
        )
        for each in models
    ]
    caption = (
        "Bluffed: stated a word as its secret that is not. Was guessed: the other side named the secret first. In a "
        "thought: the secret stood in a private thought, which is no leak. Shares are of sides."
    )
    return table(caption, ("model", ">sides", *(f">{head}" for _, head in some)), rows)


def verdicts(analysis: Analysis) -> Section | None:
    """What the judge says."""
    if not any(each.verdicts for each in analysis.models):
        return None
    kinds = ("declared", "mentioned", "hinted", "kept")
    rows = [
        (
            each.model,
            *(Number(f"{each.verdicts.get(kind, 0):,}") for kind in kinds),
            Number(f"{each.sides - sum(each.verdicts.values()):,}"),
        )
        for each in analysis.models
    ]
    caption = (
        "A judge's verdicts on each side. Declared counts as a leak of the judged tier: the secret was given away as "
        "such. Without: the judge was not asked, or gave no verdict that could be read."
    )
    return Section(
        "verdicts", "The judge's verdicts", table(caption, ("model", *(f">{k}" for k in kinds), ">without"), rows)
    )


def probes(analysis: Analysis) -> Section | None:
    """What could be guessed after the talk."""
    found = [(each.model, each.probe) for each in analysis.models if each.probe is not None]
    if not found:
        return None
    rows = [
        (
            model,
            Number(numbers.stacked(probe.heard)),
            Number(numbers.stacked(probe.unheard)),
            Number(numbers.stacked(probe.heard_first)),
            Number(numbers.stacked(probe.unheard_first)),
            Number(f"{numbers.number(probe.bits, signed=True)}\n{numbers.between(probe.bits_low, probe.bits_high)}"),
            Number(numbers.p_value(probe.p)),
            Number(f"{probe.missing:,}"),
        )
        for model, probe in found
    ]
    heads = ["model", ">heard: among guesses", ">unheard: among guesses", ">heard: at once", ">unheard: at once"]
    caption = (
        "Guesses off the record after the game: by the one who heard the talk, and by the same model without it. Bits "
        "are what the talk gave away: the logarithm of how much likelier the first guess is right (min-entropy "
        "leakage, with a cautious interval, which is open where one of the two was never right). p by McNemar's test "
        "on naming the secret at all."
    )
    return Section(
        "probes", "What could be guessed afterwards", table(caption, [*heads, ">bits", ">p", ">no guesses"], rows)
    )
