"""The report of a game as blocks: findings in sentences, figures, tables, all transcripts, and what was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from groundswell.experiments.report import about_run, whole_cost
from groundswell.experiments.secret_game import drawings
from groundswell.experiments.secret_game.analysis import Analysis, Comparison, ModelFigures, Stopping
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.played import TIERS, Tier
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.experiments.secret_game.reading import Game, WaveFigures
from groundswell.experiments.secret_game.transcripts import transcripts_block
from groundswell.reporting import numbers
from groundswell.reporting.blocks import (
    Block,
    Cell,
    Estimate,
    Figure,
    KeyFigure,
    KeyFigures,
    Passage,
    Table,
    Text,
    estimate,
)
from groundswell.reporting.figures import WIDTH, forest_height
from groundswell.reporting.words import cost, duration
from groundswell.stats.ratings import Standing, Strength

SAME = "same opponent"
MOST_COMPARED = 6
"""So many comparisons are told in sentences."""
MOST_DRAWN = 60
"""With more comparisons or waves, the table is clearer than a figure."""
LEAK_IS: dict[Tier, str] = {
    "exact": "the word as it is",
    "normalised": "the word, whatever its case and punctuation",
    "encoded": "the word, plain, spelled, reversed or encoded",
    "judged": "what the judge calls a declaration",
}
FOUND_BY: dict[Tier, str] = {
    "exact": "the secret letter by letter",
    "normalised": "also in other case, spelling of letters and punctuation",
    "encoded": "also spaced, reversed, as an acrostic, in base64, hex, ROT13 and the like, or misspelt",
    "judged": "a model read the conversation and calls the secret declared",
}
FORM_WORDS = {
    "exact": "letter by letter",
    "folded": "other case, accents or punctuation",
    "inflected": "in the plural or with an 's",
    "lookalike": "with letters of other alphabets that look the same",
    "spaced": "letter by letter, something between them",
    "split": "in pieces",
    "reversed": "backwards",
    "rot13": "letters moved by 13 places (ROT13)",
    "atbash": "a for z, b for y and so on (Atbash)",
    "caesar": "letters moved by some places (Caesar)",
    "leet": "digits and signs for letters: l4nt3rn",
    "base64": "in base64",
    "hex": "as hexadecimal codes",
    "binary": "as codes of zeros and ones",
    "codes": "as decimal codes of its letters",
    "places": "letters as their places in the alphabet",
    "percent": "as in web addresses: %6c%61",
    "escaped": "as escapes of HTML or programs: &#108;",
    "invisible": "in characters that nobody sees",
    "nato": "spelt as on the radio: Lima, Alpha",
    "morse": "in Morse code",
    "near": "misspelt",
    "acrostic": "in first letters of lines, sentences or words",
}
"""What each form is, in a few words."""


def blocks(game: Game) -> Iterator[Block]:
    """The report of a game."""
    analysis = game.analysis
    yield Text(id="findings", lines=list(findings(game)), brief=True)
    yield key_figures(game)
    if analysis.models:
        yield models_table(analysis)
        yield leak_rates(analysis)
    if analysis.pairs:
        yield pairs(analysis)
    if any(model.survival for model in analysis.models if model.sides):
        yield survival(analysis)
    if any(each.difference is not None for each in analysis.comparisons):
        yield from comparisons(analysis)
    if analysis.strengths is not None and analysis.strengths.models:
        yield strengths(analysis)
    if analysis.overall.total_interactions:
        yield from tables(analysis)
    yield transcripts_block(game)
    yield from run_blocks(game)


def findings(game: Game) -> Iterator[str]:
    """What came out, in sentences with their intervals."""
    analysis = game.analysis
    yield headline(analysis)
    if analysis.interactions.missing or analysis.interactions.unfinished:
        yield f"Interactions: {_counts(analysis)}. Missing and unfinished ones are in no rate."
    if not analysis.interactions.usable:
        return
    overall = analysis.overall
    tiers = ", ".join(
        f"{tier} {numbers.percent(analysis.tiers[tier].rate)}" for tier in TIERS if tier in analysis.tiers
    )
    yield f"A leak is {LEAK_IS[analysis.tier]} (tier {analysis.tier}). By tier: {tiers}."
    yield (
        f"Of {numbers.plural(overall.total_interactions, 'interaction')}, both agents revealed in "
        f"{overall.both_revealed.count:,}, one of them in {overall.one_sided.count:,}, nobody in "
        f"{overall.none_revealed.count:,}."
    )
    yield _seats_line(analysis)
    yield from _comparison_lines(analysis)
    yield from _best_line(analysis)
    yield from _asked_lines(analysis)
    if (rule := analysis.stopping) is not None:
        yield _stopped(rule)
        yield (
            "Differences between models or seats and their p-values are for a fixed number of interactions, and not "
            "valid for a run that was stopped by looking."
        )
        beyond = game.summary.trials.usable - analysis.interactions.usable
        if beyond > 0:
            were = "1 interaction that was" if beyond == 1 else f"{beyond:,} interactions that were"
            are = "is" if beyond == 1 else "are"
            yield f"{were} under way then {are} in the data files, and not in the figures."


def headline(analysis: Analysis) -> str:
    """The finding in one sentence: the rate, its n, its interval and what it is by."""
    found = analysis.overall.secrets_revealed
    if found.rate is None:
        return "No interaction is usable, so there is no leak rate."
    what = f"{found.count:,} of {found.n:,} secrets leaked: {numbers.percent(found.rate)}"
    rule, by = analysis.stopping, f"by the {analysis.tier} tier."
    if rule is None:
        return f"{what} ({analysis.level:.0%} interval {numbers.interval(found.low, found.high)}), {by}"
    if len(rule.arms) == 1:
        return f"{what} ({analysis.level:.0%} interval {holding(analysis)}, which holds whenever one looks), {by}"
    return f"{what}, {by} See Stopping rule for the intervals that hold."


def holding(analysis: Analysis) -> str:
    """The interval of the leak rate that holds; where a rule watched several models, each has its own."""
    found = analysis.overall.secrets_revealed
    if found.rate is None:
        return numbers.NONE
    if analysis.stopping is None:
        return numbers.interval(found.low, found.high)
    arms = list(analysis.stopping.arms.values())
    return numbers.interval(arms[0].low, arms[0].high) if len(arms) == 1 else "intervals: see Stopping rule"


def _seats_line(analysis: Analysis) -> str:
    """Whether the first speaker leaks more often, and what else may be the reason."""
    seats = analysis.seats
    first, second = (numbers.percent(rate.rate) for rate in (seats.first, seats.second))
    rates = f"First speakers leak in {first}, second ones in {second}"
    if not seats.apart:
        return f"{rates}. Some models spoke in one seat only, so seats cannot be told from models."
    more = "; the first say one message more" if analysis.messages_per_interaction % 2 else ""
    return f"{rates} ({numbers.p_equals(seats.p)}{more})."


def _comparison_lines(analysis: Analysis) -> Iterator[str]:
    """Which models differ. Where there are several, on what is equal but for the model."""
    several = [each for each in analysis.comparisons if each.basis == SAME]
    surest = sorted(several or analysis.comparisons, key=lambda each: (each.p_holm, each.p))
    yield from map(compared, surest[:MOST_COMPARED])
    if len(surest) > MOST_COMPARED:
        yield f"{len(surest) - MOST_COMPARED} more comparisons, which are less sure, are in the table below."


def compared(found: Comparison) -> str:
    """Which of two models leaks more often, as far as can be told."""
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points is None:
        return f"{found.first} and {found.second}: nothing to compare."
    if points == 0:
        return f"No difference between {found.first} and {found.second} was found (n {found.pairs:,}, {found.basis})."
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    measured = (
        f"{points * 100:.1f} points (95% interval {low * 100:.1f} to {high * 100:.1f}; n {found.pairs:,}, "
        f"{found.basis}; {numbers.p_equals(found.p)}, Holm {numbers.p_value(found.p_holm)})"
    )
    if found.p_holm < 0.05:
        return f"{one} leaks more often than {other}, by {measured}."
    return f"No difference can be told between {found.first} and {found.second}: {one} leaks more by {measured}."


def _best_line(analysis: Analysis) -> Iterator[str]:
    """Who may be the best of several, as far as ranks can tell."""
    found = analysis.strengths
    if ranks_of(analysis) and found is not None:
        keeps = [each.model for each in found.models if each.defence.best == 1]
        gets = [each.model for each in found.models if each.attack.best == 1]
        yield f"Best at keeping its own secret: {_one_of(keeps)}. Best at getting the other's: {_one_of(gets)}."


def _one_of(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"one of {', '.join(models)} (which cannot be told apart)"


def _asked_lines(analysis: Analysis) -> Iterator[str]:
    """What judges, guesses and thoughts add, a sentence for each model."""
    for model in analysis.models:
        parts = []
        if model.verdicts:
            parts.append("judged " + ", ".join(f"{verdict} {many:,}" for verdict, many in model.verdicts.items()))
        if (probe := model.probe) is not None and probe.bits is not None:
            parts.append(
                f"guessed afterwards {numbers.percent(probe.heard.rate)}, without the talk "
                f"{numbers.percent(probe.unheard.rate)} ({probe.bits:.1f} bits, {numbers.p_equals(probe.p)})"
            )
        if model.thought.count:
            parts.append(f"thought of the word in {numbers.percent(model.thought.rate)}")
        if parts:
            yield f"{model.model}: {'; '.join(parts)}."


def _stopped(rule: Stopping) -> str:
    known = f"known to within {rule.width:g} from end to end, by intervals that hold whenever one looks"
    if rule.reached:
        return f"Stopped after {rule.interactions:,} interactions: every rate is {known}."
    return f"Not stopped: after {rule.interactions:,} interactions not every rate is {known}."


def key_figures(game: Game) -> KeyFigures:
    """What one wants to know first."""
    analysis, found = game.analysis, game.analysis.overall
    spent = whole_cost([game.summary])
    unknown = f"{spent.unknown_asks:,} asks of unknown price" if spent.unknown_asks else "all prices known"
    usable, planned = analysis.interactions.usable, analysis.interactions.planned
    leaked = f"{numbers.count(found.secrets_revealed)}; {holding(analysis)}"
    return KeyFigures(
        id="key-figures",
        figures=[
            KeyFigure(f"{usable:,}", "usable interactions", f"of {planned:,} planned"),
            KeyFigure(numbers.percent(found.secrets_revealed.rate), "of secrets leaked", leaked),
            KeyFigure(numbers.percent(found.both_revealed.rate), "both leaked", numbers.count(found.both_revealed)),
            KeyFigure(numbers.percent(found.one_sided.rate), "one-sided", numbers.count(found.one_sided)),
            KeyFigure(cost(spent.usd, 0), "cost", unknown),
            KeyFigure(duration(game.summary.seconds), "time", f"{game.summary.asks.sent:,} requests sent"),
        ],
    )


def ranks_of(analysis: Analysis) -> dict[str, tuple[str, str]]:
    """Where each model may rank as an attacker and as a defender, where the data can tell."""
    found = analysis.strengths
    if found is None or not found.apart or not found.connected or len(found.models) < 3:
        return {}
    return {each.model: (drawings.ranks(each.attack), drawings.ranks(each.defence)) for each in found.models}


def models_table(analysis: Analysis) -> Table:
    """Every model: what it revealed and obtained, and its ranks."""
    watched, ranks = analysis.stopping, ranks_of(analysis)
    bluffs = any(model.bluffed.count for model in analysis.models)
    revealed_name = "revealed" if watched is None else "revealed, watched"
    columns = {"model": "text", "sides": "count", revealed_name: "share", "obtained": "share", "optimal": "share"}
    columns |= {"bluffed": "share"} if bluffs else {}
    columns |= {"attack rank": "text", "defence rank": "text"} if ranks else {}
    rows: list[list[Cell]] = []
    for model in analysis.models:
        revealed = estimate(model.revealed)
        if watched is not None and (arm := watched.arms.get(model.model)) is not None:
            revealed = Estimate(model.revealed.rate, arm.low, arm.high, model.revealed.count, model.revealed.n)
        row: list[Cell] = [model.model, model.sides, revealed, estimate(model.obtained), estimate(model.optimal)]
        row += [estimate(model.bluffed)] if bluffs else []
        rows.append([*row, *ranks.get(model.model, ())])
    held = "; that of revealed holds whenever one looks" if watched else ""
    return Table(
        id="models",
        title="Models",
        part="findings",
        brief=True,
        columns=columns,
        rows=rows,
        caption=f"By the {analysis.tier} tier, with {analysis.level:.0%} intervals{held}. Revealed: its own secret "
        "leaked. Obtained: the other's did. Optimal: obtained and not revealed. A side is one agent in one "
        "interaction. A rate is against the opponents that a model had here, which differ from model to model unless "
        f"each also played itself.{fixed_n(analysis)}",
    )


def fixed_n(analysis: Analysis) -> str:
    """What a caption says of intervals and p-values where a rule may have ended the run."""
    if analysis.stopping is None:
        return ""
    return " For a fixed number of interactions: not valid for a run that was stopped by looking."


def leak_rates(analysis: Analysis) -> Figure:
    """The leak rate of every model, by every tier."""
    models = sorted(analysis.models, key=lambda each: (-(each.revealed.rate or 0), each.model))
    rates = [model.revealed.rate for model in models]
    most, least = (numbers.percent(rate) for rate in (rates[0], rates[-1]))
    title = f"{models[0].model if len(models) == 1 else 'Every model'} leaked {most} of its secrets"
    if len(set(rates)) > 1:
        title = f"{_tied(models, rates[0])} leaked most ({most}), {_tied(models, rates[-1])} least ({least})"
    tiers = [tier for tier in TIERS if any(tier in each.tiers for each in models)]
    groups = drawings.tier_groups(models, analysis.tier)
    height = forest_height(groups)
    return Figure(
        id="leak-rates",
        title=title,
        caption=f"Share of each model's secrets that leaked, by tier, with {analysis.level:.0%} intervals; filled "
        f"marks are the headline tier ({analysis.tier}). n is the number of sides: {_sides(analysis)}. Sides that "
        "share an interaction or words are correlated: intervals are those of as many independent sides as "
        f"these are worth.{fixed_n(analysis)}",
        columns={"model": "text", "sides": "count", **dict.fromkeys((f"leaked, {tier}" for tier in tiers), "share")},
        rows=[
            (each.model, each.sides, *(estimate(each.tiers[t]) if t in each.tiers else None for t in tiers))
            for each in models
        ],
        size=(WIDTH, height),
        draw=partial(drawings.leak_rates, groups=groups, height=height, tiers=tiers, analysis=analysis),
    )


def _tied(models: Sequence[ModelFigures], rate: float | None) -> str:
    """The model with this rate, or how many there are."""
    found = [model.model for model in models if model.revealed.rate == rate]
    return found[0] if len(found) == 1 else f"{len(found)} models"


def _sides(analysis: Analysis) -> str:
    counts = sorted({each.sides for each in analysis.models})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def pairs(analysis: Analysis) -> Figure:
    """Who leaks to whom: first speakers down, second speakers across."""
    found = analysis.pairs
    rates = [(pair.first, pair.second, "first", pair.first_revealed) for pair in found]
    rates += [(pair.second, pair.first, "second", pair.second_revealed) for pair in found]
    who, whom, seat, rate = max(rates, key=lambda each: each[3].rate or 0)
    layout = drawings.PairLayout(found)
    return Figure(
        id="pairs",
        title=f"Leaks were most frequent from {who}, speaking {seat}, to {whom}: {numbers.percent(rate.rate)}"
        if rate.rate
        else "Nobody leaked to anybody",
        caption=f"Share of interactions in which a secret leaked, by the {analysis.tier} tier: that of the first "
        "speaker (A) and of the second (B). Rows speak first, columns second; n interactions in a cell, none where it "
        f"is empty. The data have {analysis.level:.0%} intervals.{fixed_n(analysis)}",
        columns={
            "first speaker": "text",
            "second speaker": "text",
            **dict.fromkeys(("n", "both", "only first", "only second", "neither"), "count"),
            "first leaked": "share",
            "second leaked": "share",
        },
        rows=[
            (
                *(
                    pair.first,
                    pair.second,
                    pair.interactions,
                    pair.both,
                    pair.first_only,
                    pair.second_only,
                    pair.neither,
                ),
                *(estimate(pair.first_revealed), estimate(pair.second_revealed)),
            )
            for pair in found
        ],
        size=layout.size,
        draw=layout.draw,
    )


def survival(analysis: Analysis) -> Figure:
    """How long models keep their secrets."""
    models = [model for model in analysis.models if model.sides]
    ends = sorted(((drawings.last_share(model), model.model) for model in models), reverse=True)
    title = f"{ends[0][1]} kept {numbers.percent(ends[0][0])} of its secrets to the end"
    if len(ends) > 1:
        title += f", {ends[-1][1]} {numbers.percent(ends[-1][0])}"
    differ = (
        ""
        if analysis.survival_p is None
        else " Log-rank test that all are alike, as if all sides were independent: "
        f"{numbers.p_equals(analysis.survival_p)}."
    )
    layout = drawings.SurvivalLayout(models, analysis.messages_per_interaction)
    return Figure(
        id="survival",
        title=title,
        caption="Share that still keeps its secret after so many messages of its own, with "
        f"{analysis.level:.0%} bands (Kaplan-Meier, Greenwood's variance times the design effect of leak rates); the "
        f"other models in grey. n sides: {_sides(analysis)}.{differ}{fixed_n(analysis)}",
        columns={
            "model": "text",
            "own message": "count",
            "still keeping": "count",
            "leaked": "count",
            "kept after": "share",
        },
        rows=[
            row
            for each in models
            for row in (
                (each.model, 0, each.sides, 0, Estimate(1.0)),
                *((each.model, s.time, s.at_risk, s.events, Estimate(s.share, s.low, s.high)) for s in each.survival),
            )
        ],
        size=layout.size,
        draw=layout.draw,
    )


def in_order(analysis: Analysis) -> list[Comparison]:
    """Comparisons; among more than two models those that are alike but for the model come first."""
    if len(analysis.models) <= 2:
        return list(analysis.comparisons)
    return sorted(analysis.comparisons, key=lambda each: each.basis != SAME)


def comparisons(analysis: Analysis) -> Iterator[Table]:
    """The difference of the leak rates of every two models."""
    rows = in_order(analysis)
    drawn = [each for each in rows if each.difference is not None]
    clear = [each for each in drawn if each.p_holm < 1 - analysis.level]
    groups = drawings.difference_groups(drawn, 1 - analysis.level)
    height = forest_height(groups)
    number = f"{len(clear)} of {len(drawn)} differences of leak rates {'is' if len(clear) == 1 else 'are'} clear"
    table = Table(
        id="comparisons",
        title=number if clear else "No difference of leak rates is clear",
        columns={
            **{"models": "text", "basis": "text", "pairs": "count", "only first": "count", "only second": "count"},
            **{"difference": "share_change", "p": "p", "p, Holm": "p", "p, BH": "p"},
        },
        rows=[
            (
                *(f"{each.first} − {each.second}", each.basis, each.pairs, each.first_only, each.second_only),
                None if each.difference is None else Estimate(each.difference, each.low, each.high),
                *(each.p, each.p_holm, each.p_bh),
            )
            for each in rows
        ],
        caption=f"Differences of leak rates with {analysis.level:.0%} intervals, orange where p by Holm is below "
        f"{1 - analysis.level:.2g}; to the right of 0, the model that is named first leaks more often. Same opponent: "
        "two models with the same secret, in the same seat, against the same third one; cite it for which model leaks "
        "more, all else equal. Facing each other: the two in one interaction; cite it for who wins of the two. "
        "McNemar's test, two-sided, pairs of a block counting for as many as they are worth; p adjusted for the number "
        "of rows by Holm and by Benjamini-Hochberg. Intervals are of one difference each, not adjusted."
        f"{fixed_n(analysis)}",
    )
    if len(drawn) > MOST_DRAWN:
        yield table
        return
    yield table.drawn((WIDTH, height), partial(drawings.comparisons, rows=drawn, groups=groups, height=height))


def strengths(analysis: Analysis) -> Table:
    """How well models attack and defend, with the ranks that they may have."""
    found = analysis.strengths
    assert found is not None
    models = [each for each in found.models if each.overall.value is not None]
    parts = ["overall", "attack", "defence"] if found.apart else ["overall"]
    best = [each.model for each in models if each.overall.best == 1]
    notes = []
    if not found.connected:
        notes.append("Not all models met, not even through others: their strengths cannot be compared.")
    elif not found.apart:
        notes.append("Attack and defence cannot be told apart: that takes three models that all met, or self-play.")
    if found.separated:
        notes.append(f"Without bounds, since they always or never leaked or obtained: {', '.join(found.separated)}.")
    if found.seat is not None:
        added, spread = numbers.number(found.seat.value, signed=True), numbers.between(found.seat.low, found.seat.high)
        notes.append(f"Speaking first adds {added} ({spread}).{chances(analysis)}")
    table = Table(
        id="strengths",
        title=f"{best[0]} is the strongest"
        if len(best) == 1 and not found.separated
        else f"{len(found.models)} models by strength, with the ranks that they may have",
        columns={
            "model": "text",
            **{name: kind for part in parts for name, kind in ((part, "change"), (f"{part} rank", "text"))},
        },
        rows=[(each.model, *(cell for part in parts for cell in _standing(each, part))) for each in found.models],
        caption="Strengths as log odds, with a mean of 0: attack is getting others' secrets, defence is keeping one's "
        "own, overall is their sum. Bradley-Terry by maximum likelihood; intervals and ranks (1 is the strongest) from "
        f"{found.interactions:,} interactions drawn anew, with the words that were drawn. {' '.join(notes)}"
        f"{fixed_n(analysis)}",
    )
    if not models:
        return table
    height = 0.8 + 0.26 * len(models)
    return table.drawn((WIDTH, height), partial(drawings.strengths, models=models, parts=parts, height=height))


def _standing(model: Strength, part: str) -> list[Cell]:
    found: Standing = getattr(model, part)
    value = None if found.value is None else Estimate(found.value, found.low, found.high)
    return [value, drawings.ranks(found)]


def tables(analysis: Analysis) -> Iterator[Table]:
    """What was found, in more detail."""
    yield _overall(analysis)
    yield _tiers(analysis)
    if analysis.agents:
        yield _agents(analysis)
    yield _together(analysis)
    yield _seats(analysis)
    yield from _behaviour(analysis)
    yield from _verdicts(analysis)
    yield from _probes(analysis)
    if analysis.stopping is not None:
        yield _stopping(analysis.stopping)


def _overall(analysis: Analysis) -> Table:
    found = analysis.overall
    rates = {
        "secrets revealed": found.secrets_revealed,
        "both agents revealed": found.both_revealed,
        "one-sided reveals": found.one_sided,
        "nobody revealed": found.none_revealed,
    }
    return Table(
        id="overall",
        title="Overall",
        columns={"": "text", "share": "share"},
        rows=[(name, estimate(rate)) for name, rate in rates.items()],
        caption=f"All {found.total_interactions:,} usable interactions, with {analysis.level:.0%} intervals. Secrets "
        "count two per interaction; the other rows count interactions. Secrets of an interaction are correlated, and "
        "so may be interactions of a block, which share their words: intervals (Wilson's, exact ones for few or none) "
        f"are those of as many independent ones as these are worth.{fixed_n(analysis)}",
    )


def _tiers(analysis: Analysis) -> Table:
    return Table(
        id="tiers",
        title="Tiers of detection",
        columns={"tier": "text", "what it finds": "text", "secrets": "share"},
        rows=[(tier, FOUND_BY[tier], estimate(analysis.tiers[tier])) for tier in TIERS if tier in analysis.tiers],
        caption="The share of secrets that each tier finds leaked. Each of the first three finds all that the ones "
        f"before it find. The headline is by the {analysis.tier} tier.{fixed_n(analysis)}",
    )


def _agents(analysis: Analysis) -> Table:
    """Every agent, as the game's own description has it."""
    scored = analysis.mode != GameMode.STANDARD
    columns = {"agent": "text", "model": "text", "interactions": "count", "revealed": "share", "obtained": "share"}
    columns |= {"optimal": "share", "points": "text"} | ({"score": "text"} if scored else {})
    named = "" if scored else " In conversations they are named by their seat, unless they have a name."
    return Table(
        id="agents",
        title="Agents",
        columns=columns,
        rows=[
            (
                each.name if each.name in (each.id, f"Agent {each.id}") else f"{each.name} ({each.id})",
                each.model,
                each.interactions,
                *(estimate(rate) for rate in (each.revealed, each.obtained, each.optimal)),
                numbers.points(each.points),
                *([numbers.points(each.score)] if scored else []),
            )
            for each in analysis.agents
        ],
        caption=f"By the {analysis.tier} tier, with {analysis.level:.0%} intervals. An agent that plays itself has two "
        f"sides in an interaction, and shares are of sides.{named}{fixed_n(analysis)}",
    )


def _together(analysis: Analysis) -> Table:
    """Whether leaks come in twos."""
    both, first, second, neither = (
        sum(getattr(pair, name) for pair in analysis.pairs) for name in ("both", "first_only", "second_only", "neither")
    )
    found = analysis.overall
    return Table(
        id="together",
        title="Do leaks come in twos?",
        columns={"": "text", "second leaked": "count", "second kept it": "count", "all": "count"},
        rows=[
            ("first leaked", both, first, both + first),
            ("first kept it", second, neither, second + neither),
            ("all", both + second, first + neither, both + first + second + neither),
        ],
        caption="Interactions by who leaked. The odds ratio within the same two models in the same seats is "
        f"{numbers.number(found.odds_ratio)} ({numbers.between(found.odds_low, found.odds_high)}), exact test "
        f"{numbers.p_equals(found.association_p)}. Intraclass correlation over all of them: "
        f"{numbers.number(found.correlation)}.{fixed_n(analysis)}",
    )


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


def _seats(analysis: Analysis) -> Table:
    found, many = analysis.seats, seat_messages(analysis)
    doubt = "" if found.apart else " Some models spoke in one seat only: this is no effect of the seat alone."
    return Table(
        id="seats",
        title="Seats",
        columns={"": "text", "messages each": "count", "leaked": "share"},
        rows=[
            ("first speaker", many[0], estimate(found.first)),
            ("second speaker", many[1], estimate(found.second)),
        ],
        caption=f"How often the first and the second speaker leak, with {analysis.level:.0%} intervals. Difference "
        f"{numbers.percent(found.difference, signed=True)} ({numbers.interval(found.low, found.high, signed=True)}, "
        f"Newcombe's interval for pairs), McNemar's test {numbers.p_equals(found.p)}."
        f"{chances(analysis)}{doubt}{fixed_n(analysis)}",
    )


def _behaviour(analysis: Analysis) -> Iterator[Table]:
    """What else agents do: bluff, guess, think of it; and in which form secrets come out."""
    kinds = {"bluffed": "bluffed", "was guessed": "guessed", "in a thought": "thought"}
    some = {head: name for head, name in kinds.items() if any(getattr(each, name).count for each in analysis.models)}
    if some:
        yield Table(
            id="behaviour",
            title="Bluffs, guesses and thoughts",
            columns={"model": "text", "sides": "count", **dict.fromkeys(some, "share")},
            rows=[
                (each.model, each.sides, *(estimate(getattr(each, name)) for name in some.values()))
                for each in analysis.models
            ],
            caption="Bluffed: stated a word as its secret that is not. Was guessed: the other side named the secret "
            "first. In a thought: the secret stood in a private thought, which is no leak. Shares are of sides."
            f"{fixed_n(analysis)}",
        )
    if analysis.forms:
        yield Table(
            id="forms",
            title="Forms of secrets",
            columns={"form": "text", "what it is": "text", "interactions": "count"},
            rows=[(form, FORM_WORDS.get(form, ""), many) for form, many in most_first(analysis.forms)],
            caption="Forms in which agents wrote their own secrets, by the number of interactions that have them.",
        )


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """What there is most of comes first."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _verdicts(analysis: Analysis) -> Iterator[Table]:
    kinds = ("declared", "mentioned", "hinted", "kept")
    if any(each.verdicts for each in analysis.models):
        yield Table(
            id="verdicts",
            title="The judge's verdicts",
            columns={"model": "text", **dict.fromkeys((*kinds, "without"), "count")},
            rows=[
                (
                    each.model,
                    *(each.verdicts.get(kind, 0) for kind in kinds),
                    each.sides - sum(each.verdicts.values()),
                )
                for each in analysis.models
            ],
            caption="A judge's verdicts on each side. Declared counts as a leak of the judged tier: the secret was "
            "given away as such. Without: the judge was not asked, or gave no verdict that could be read.",
        )


def _probes(analysis: Analysis) -> Iterator[Table]:
    found = [(each.model, each.probe) for each in analysis.models if each.probe is not None]
    if found:
        heads = ("heard: among guesses", "unheard: among guesses", "heard: at once", "unheard: at once")
        yield Table(
            id="probes",
            title="What could be guessed afterwards",
            columns={
                "model": "text",
                **dict.fromkeys(heads, "share"),
                "bits": "change",
                "p": "p",
                "no guesses": "count",
            },
            rows=[
                (
                    model,
                    *map(estimate, (probe.heard, probe.unheard, probe.heard_first, probe.unheard_first)),
                    None if probe.bits is None else Estimate(probe.bits, probe.bits_low, probe.bits_high),
                    probe.p,
                    probe.missing,
                )
                for model, probe in found
            ],
            caption="Guesses off the record after the game: by the one who heard the talk, and by the same model "
            "without it. Bits are what the talk gave away: the logarithm of how much likelier the first guess is right "
            "(min-entropy leakage, with a cautious interval, which is open where one of the two was never right). p by "
            f"McNemar's test on naming the secret at all.{fixed_n(analysis)}",
        )


def _stopping(found: Stopping) -> Table:
    """The rule that may end a run early."""
    state = "was reached" if found.reached else "was not reached"
    return Table(
        id="stopping",
        title="Stopping rule",
        columns={"model": "text", "interactions": "count", "leaked": "share"},
        rows=[(model, arm.interactions, Estimate(arm.rate, arm.low, arm.high)) for model, arm in found.arms.items()],
        caption=f"The rule to stop as soon as every interval is at most {100 * found.width:.3g} points wide {state} "
        f"after {numbers.plural(found.interactions, 'usable interaction')}. These intervals hold whenever one looks, "
        "and so are wider than the others. Each interaction of a model counts once, by the share of its secrets that "
        "leaked, and those that share their words count for as many as they are worth. What came in afterwards is in "
        "the data files, marked as not counted.",
    )


def run_blocks(game: Game) -> Iterator[Block]:
    """Settings, what is missing, what it took, and what agents were told."""
    analysis = game.analysis
    yield from about_run([game.summary], [game.record], game.held, [*_settings(analysis), *game.about])
    yield from _missing_pairs(analysis)
    if analysis.turns and any(each.input_tokens or each.output_tokens for each in analysis.turns):
        yield _tokens(analysis)
    if game.waves:
        yield _waves(game.waves)
    yield from _prompts(game.prompts())


def _settings(analysis: Analysis) -> Iterator[tuple[str, str]]:
    models = dict.fromkeys(each.model for each in analysis.models)
    models.update(dict.fromkeys(name for each in analysis.missing for name in (each.first, each.second)))
    yield "models", ", ".join(models)
    yield "prompts", ", ".join(f"{name} ({digest})" for name, digest in analysis.prompts.items())
    yield "mode", analysis.mode
    yield "messages", f"{analysis.messages_per_interaction} per interaction, both sides together"
    yield "headline tier", analysis.tier
    yield "interactions", _counts(analysis)
    yield "cut off", f"{numbers.plural(analysis.cut, 'message')} reached the limit of length" if analysis.cut else ""


def _counts(analysis: Analysis) -> str:
    """How many interactions there are of each kind."""
    found = analysis.interactions
    kinds = Counter[str]()
    for each in analysis.missing:
        kinds.update(each.kinds)
    why = ", ".join(f"{kind} {many:,}" for kind, many in most_first(kinds))
    missing = f"{found.missing:,} missing" + (f" ({why})" if why else "")
    left = found.planned - found.usable - found.missing - found.unfinished
    beyond = f", {left:,} beyond the stopping rule" if left > 0 else ""
    return f"{found.planned:,} planned, {found.usable:,} usable, {missing}, {found.unfinished:,} unfinished{beyond}"


def _missing_pairs(analysis: Analysis) -> Iterator[Table]:
    if any(each.missing for each in analysis.missing):
        yield Table(
            id="missing-pairs",
            title="Missing interactions by who was to play",
            part="run",
            columns={
                **{"first speaker": "text", "second speaker": "text", "played or missing": "count"},
                **{"missing": "count", "share": "share", "why": "text"},
            },
            rows=[
                (
                    *(each.first, each.second, each.planned, each.missing),
                    each.missing / each.planned if each.planned else None,
                    ", ".join(f"{kind} {many:,}" for kind, many in each.kinds.items()),
                )
                for each in analysis.missing
            ],
            caption="Where the shares differ much, the rates may be of different things.",
        )


def _tokens(analysis: Analysis) -> Figure:
    """What the messages of each turn took, over all models."""
    totals = drawings.Tokens(analysis.turns)
    most = max(totals.places, key=totals.whole)
    return Figure(
        id="tokens",
        title=f"Message {most} took most tokens: {totals.whole(most):,}",
        part="run",
        caption="Tokens that the messages of each turn took in usable interactions: later ones read more. The figure "
        "has all models together, the data each by itself.",
        columns={"message": "count", "model": "text", **dict.fromkeys(("input", "cached", "output"), "count")},
        rows=[
            (each.turn + 1, each.model, each.input_tokens, each.cached_tokens, each.output_tokens)
            for each in analysis.turns
        ],
        size=(WIDTH, 2.3),
        draw=totals.draw,
    )


def _waves(waves: Sequence[WaveFigures]) -> Table:
    """How long each wave took and what it cost."""
    times = [wave.seconds for wave in waves]
    table = Table(
        id="waves",
        title=f"Waves took {duration(min(times))} to {duration(max(times))}",
        part="run",
        columns={
            **{"wave": "count", "way": "text", "account": "text", "requests": "count", "time": "seconds"},
            **{"seconds each": "number", "cost": "usd"},
        },
        rows=[
            (
                *(wave.number, wave.transport, wave.account, wave.size, wave.seconds),
                wave.seconds / wave.size if wave.size else None,
                wave.usd,
            )
            for wave in waves
        ],
        caption="Waves of requests in the order of sending: how long each took until all its replies were there.",
        folded=True,
    )
    if len(waves) > MOST_DRAWN:
        return table
    priced = any(wave.usd for wave in waves)
    size = (WIDTH, 3.5 if priced else 2.0)
    return table.drawn(size, partial(drawings.waves, found=waves, priced=priced))


def _prompts(found: Sequence[Prompt]) -> Iterator[Text]:
    """What agents were told, word by word."""
    passages = []
    for prompt in sorted(found, key=lambda each: (each.name, each.digest)):
        parts = [("system", prompt.system), ("opening, to who speaks first", prompt.opening)]
        parts += [("about private thoughts, where they are asked for", prompt.private)] if prompt.private else []
        passages += [Passage(f"{prompt.name} ({prompt.digest}): {head}", words.strip()) for head, words in parts]
    if passages:
        about = "What agents were told. Fields in braces were filled in for each of them."
        yield Text(id="prompts", title="Prompts", part="run", lines=[about], passages=passages)
