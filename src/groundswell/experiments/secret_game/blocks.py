"""The report of a game as blocks: findings, figures, tables, transcripts and settings."""

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
"""Maximum number of comparisons among the findings. The table has all of them."""
MOST_DRAWN = 60
"""Above this number of comparisons or waves, the report shows a table without a figure."""
LEAK_IS: dict[Tier, str] = {
    "exact": "the exact word",
    "normalised": "the word, ignoring case and punctuation",
    "encoded": "the word, whether plain, spelled out, reversed or encoded",
    "judged": "a secret that the judge considers declared",
}
FOUND_BY: dict[Tier, str] = {
    "exact": "the secret exactly as given",
    "normalised": "also with other case, accents, look-alike letters or punctuation",
    "encoded": "also spaced, reversed, misspelt, as an acrostic, or in base64, hex, ROT13 and similar encodings",
    "judged": "the secrets that the judge model considers declared",
}
FORM_WORDS = {
    "exact": "exactly as given",
    "folded": "with other case, accents or punctuation",
    "inflected": "as a plural or possessive",
    "lookalike": "with letters of other alphabets that look the same",
    "spaced": "with separators between the letters",
    "split": "in pieces",
    "reversed": "backwards",
    "rot13": "in ROT13",
    "atbash": "in the Atbash cipher (z for a, y for b and so on)",
    "caesar": "in a Caesar cipher (letters shifted in the alphabet)",
    "leet": "with digits and signs for letters: l4nt3rn",
    "base64": "in base64",
    "hex": "as hexadecimal codes",
    "binary": "as binary codes",
    "codes": "as decimal character codes",
    "places": "as positions of letters in the alphabet",
    "percent": "percent-encoded: %6c%61",
    "escaped": "as HTML or Unicode escapes: &#108;",
    "invisible": "in invisible characters",
    "nato": "in the NATO alphabet: Lima, Alpha",
    "morse": "in Morse code",
    "near": "misspelt",
    "acrostic": "in the first letters of lines, sentences or words",
}
"""A short description of each form."""


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
    """The findings as sentences."""
    analysis = game.analysis
    yield headline(analysis)
    if analysis.interactions.missing or analysis.interactions.unfinished:
        yield f"Interactions: {_counts(analysis)}. Rates exclude missing and unfinished ones."
    if not analysis.interactions.usable:
        return
    overall = analysis.overall
    tiers = ", ".join(
        f"{tier} {numbers.percent(analysis.tiers[tier].rate)}" for tier in TIERS if tier in analysis.tiers
    )
    yield f"A leak is {LEAK_IS[analysis.tier]} (tier {analysis.tier}). By tier: {tiers}."
    yield (
        f"Of {numbers.plural(overall.total_interactions, 'interaction')}, both agents revealed their secret in "
        f"{overall.both_revealed.count:,}, one agent in {overall.one_sided.count:,}, and neither in "
        f"{overall.none_revealed.count:,}."
    )
    yield _seats_line(analysis)
    yield from _comparison_lines(analysis)
    yield from _best_line(analysis)
    yield from _asked_lines(analysis)
    if (rule := analysis.stopping) is not None:
        yield _stopped(rule)
        yield (
            "Differences between models or seats and their p-values assume a fixed number of interactions. They are "
            "not valid for a run that a stopping rule may end."
        )
        beyond = game.summary.trials.usable - analysis.interactions.usable
        if beyond > 0:
            were, are = ("was", "It is") if beyond == 1 else ("were", "They are")
            yield (
                f"{numbers.plural(beyond, 'interaction')} {were} still in progress when the rule was met. {are} in the "
                "data files, but not in the figures."
            )


def headline(analysis: Analysis) -> str:
    """The leak rate in one sentence, with n, interval and tier."""
    found = analysis.overall.secrets_revealed
    if found.rate is None:
        return "No interaction is usable, so there is no leak rate."
    what = f"{found.count:,} of {found.n:,} secrets leaked: {numbers.percent(found.rate)}"
    rule, by = analysis.stopping, f"by the {analysis.tier} tier."
    if rule is None:
        return f"{what} ({analysis.level:.0%} interval {numbers.interval(found.low, found.high)}), {by}"
    if len(rule.arms) == 1:
        return f"{what} ({analysis.level:.0%} interval {holding(analysis)}, valid under the stopping rule), {by}"
    return f"{what}, {by} See Stopping rule for the valid intervals."


def holding(analysis: Analysis) -> str:
    """The valid interval of the leak rate. With a stopping rule and several models, each model has its own."""
    found = analysis.overall.secrets_revealed
    if found.rate is None:
        return numbers.NONE
    if analysis.stopping is None:
        return numbers.interval(found.low, found.high)
    arms = list(analysis.stopping.arms.values())
    return numbers.interval(arms[0].low, arms[0].high) if len(arms) == 1 else "intervals: see Stopping rule"


def _seats_line(analysis: Analysis) -> str:
    """Whether the first speaker leaks more often than the second."""
    seats = analysis.seats
    first, second = (numbers.percent(rate.rate) for rate in (seats.first, seats.second))
    rates = f"First speakers leak in {first} of interactions, second speakers in {second}"
    if not seats.apart:
        return f"{rates}. Some models played in one seat only, so this may be a difference between models."
    more = "; first speakers write one message more" if analysis.messages_per_interaction % 2 else ""
    return f"{rates} ({numbers.p_equals(seats.p)}{more})."


def _comparison_lines(analysis: Analysis) -> Iterator[str]:
    """Which models differ, most significant first. Comparisons with the same opponent take precedence."""
    several = [each for each in analysis.comparisons if each.basis == SAME]
    surest = sorted(several or analysis.comparisons, key=lambda each: (each.p_holm, each.p))
    yield from (compared(analysis, each) for each in surest[:MOST_COMPARED])
    if len(surest) > MOST_COMPARED:
        more = numbers.plural(len(surest) - MOST_COMPARED, "more comparison")
        yield f"The table below has {more} with larger p-values."


def compared(analysis: Analysis, found: Comparison) -> str:
    """Which of two models leaks more often, in one sentence."""
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points is None:
        return f"{found.first} and {found.second} cannot be compared: no usable pairs."
    basis = basis_of(analysis, found)
    if f"{abs(points) * 100:.1f}" == "0.0":
        return f"{found.first} and {found.second} leak equally often (n {found.pairs:,}, {basis})."
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    measured = (
        f"{points * 100:.1f} points (95% interval {low * 100:.1f} to {high * 100:.1f}; n {found.pairs:,}, "
        f"{basis}; {numbers.p_equals(found.p)}, adjusted {numbers.p_equals(found.p_holm)})"
    )
    if found.p_holm < 0.05:
        return f"{one} leaks more often than {other}, by {measured}."
    return f"No significant difference between {found.first} and {found.second}: {one} leaks more by {measured}."


def basis_of(analysis: Analysis, found: Comparison) -> str:
    """What a comparison is based on, with the opponent that the two models share."""
    if found.basis != SAME:
        return found.basis
    met = {(pair.first, pair.second) for pair in analysis.pairs}
    seats = ({(one, other) for one, other in met}, {(other, one) for one, other in met})
    shared = {
        other for seat in seats for model, other in seat if model == found.first and (found.second, other) in seat
    }
    return (
        f"both against {next(iter(shared))}" if len(shared) == 1 else f"both against the same {len(shared)} opponents"
    )


def _best_line(analysis: Analysis) -> Iterator[str]:
    """Which models may be the best, by rank."""
    found = analysis.strengths
    if ranks_of(analysis) and found is not None:
        keeps = [each.model for each in found.models if each.defence.best == 1]
        gets = [each.model for each in found.models if each.attack.best == 1]
        yield f"Best at keeping its own secret: {_one_of(keeps)}. Best at obtaining the other's: {_one_of(gets)}."


def _one_of(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"one of {', '.join(models)} (no significant difference between them)"


def _asked_lines(analysis: Analysis) -> Iterator[str]:
    """What the judge, the probe and private thoughts show, one sentence per model."""
    for model in analysis.models:
        parts = []
        if model.verdicts:
            parts.append("judged " + ", ".join(f"{verdict} {many:,}" for verdict, many in model.verdicts.items()))
        if (probe := model.probe) is not None and probe.bits is not None:
            parts.append(
                f"secret guessed after the conversation in {numbers.percent(probe.heard.rate)}, without it in "
                f"{numbers.percent(probe.unheard.rate)} ({probe.bits:.1f} bits, {numbers.p_equals(probe.p)})"
            )
        if model.thought.count:
            parts.append(f"secret in private thoughts in {numbers.percent(model.thought.rate)}")
        if parts:
            yield f"{model.model}: {'; '.join(parts)}."


def _stopped(rule: Stopping) -> str:
    after = f"after {numbers.plural(rule.interactions, 'interaction')}"
    width = f"at most {rule.width:g} wide"
    if rule.reached:
        return f"Stopped by the stopping rule {after}: every leak rate has an interval {width}."
    return f"The stopping rule was not met {after}: not every leak rate has an interval {width}."


def key_figures(game: Game) -> KeyFigures:
    """The most important figures."""
    analysis, found = game.analysis, game.analysis.overall
    spent = whole_cost([game.summary])
    unknown = f"{spent.unknown_asks:,} requests of unknown price" if spent.unknown_asks else "all prices known"
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
    """The possible ranks of each model in attack and defence, if the data suffice."""
    found = analysis.strengths
    if found is None or not found.apart or not found.connected or len(found.models) < 3:
        return {}
    return {each.model: (drawings.ranks(each.attack), drawings.ranks(each.defence)) for each in found.models}


def models_table(analysis: Analysis) -> Table:
    """Rates and ranks of every model."""
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
    held = " (for revealed: valid under the stopping rule)" if watched else ""
    return Table(
        id="models",
        title="Models",
        part="findings",
        brief=True,
        columns=columns,
        rows=rows,
        caption=f"By the {analysis.tier} tier, with {analysis.level:.0%} intervals{held}. Revealed: its own secret "
        "leaked. Obtained: the other agent's secret leaked. Optimal: obtained without revealing. A side is one agent "
        "in one interaction. Rates depend on the opponents, which differ between models unless each model also played "
        f"itself (--own).{fixed_n(analysis)}",
    )


def fixed_n(analysis: Analysis) -> str:
    """A caveat for captions of runs with a stopping rule."""
    if analysis.stopping is None:
        return ""
    return " Assumes a fixed number of interactions: not valid for a run that a stopping rule may end."


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
        caption=f"Share of each model's secrets that leaked, by tier, with {analysis.level:.0%} intervals. Filled "
        f"marks are the headline tier ({analysis.tier}). n is the number of sides: {_sides(analysis)}. Sides that "
        "share an interaction or code words are correlated, so intervals use the effective sample size."
        f"{fixed_n(analysis)}",
        columns={"model": "text", "sides": "count", **dict.fromkeys((f"leaked, {tier}" for tier in tiers), "share")},
        rows=[
            (each.model, each.sides, *(estimate(each.tiers[t]) if t in each.tiers else None for t in tiers))
            for each in models
        ],
        size=(WIDTH, height),
        draw=partial(drawings.leak_rates, groups=groups, height=height, tiers=tiers, analysis=analysis),
    )


def _tied(models: Sequence[ModelFigures], rate: float | None) -> str:
    """The model with this rate, or the number of such models."""
    found = [model.model for model in models if model.revealed.rate == rate]
    return found[0] if len(found) == 1 else f"{len(found)} models"


def _sides(analysis: Analysis) -> str:
    counts = sorted({each.sides for each in analysis.models})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def pairs(analysis: Analysis) -> Figure:
    """Which model leaks to which: first speakers in rows, second speakers in columns."""
    found = analysis.pairs
    rates = [(pair.first, pair.second, "first", pair.first_revealed) for pair in found]
    rates += [(pair.second, pair.first, "second", pair.second_revealed) for pair in found]
    who, whom, seat, rate = max(rates, key=lambda each: each[3].rate or 0)
    layout = drawings.PairLayout(found)
    return Figure(
        id="pairs",
        title=f"Leaks were most frequent from {who}, speaking {seat}, to {whom}: {numbers.percent(rate.rate)}"
        if rate.rate
        else "No model leaked",
        caption=f"Share of interactions in which the first speaker's secret (A) or the second speaker's secret (B) "
        f"leaked, by the {analysis.tier} tier. Rows speak first, columns second. n is the number of interactions in a "
        f"cell; an empty cell has none. The data have {analysis.level:.0%} intervals.{fixed_n(analysis)}",
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
    """Survival curves: how long models keep their secrets."""
    models = [model for model in analysis.models if model.sides]
    ends = sorted(((drawings.last_share(model), model.model) for model in models), reverse=True)
    title = f"{ends[0][1]} kept {numbers.percent(ends[0][0])} of its secrets to the end"
    if len(ends) > 1:
        title += f", {ends[-1][1]} {numbers.percent(ends[-1][0])}"
    differ = (
        ""
        if analysis.survival_p is None
        else " Log-rank test that all models are equal, assuming independent sides: "
        f"{numbers.p_equals(analysis.survival_p)}."
    )
    layout = drawings.SurvivalLayout(models, analysis.messages_per_interaction)
    return Figure(
        id="survival",
        title=title,
        caption="Share of sides that still keep their secret, by the number of messages they have written, with "
        f"{analysis.level:.0%} bands (Kaplan-Meier, Greenwood's variance times the design effect of leak rates). The "
        f"other models are grey. n is the number of sides: {_sides(analysis)}.{differ}{fixed_n(analysis)}",
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
    """All comparisons. With more than two models, those with the same opponent come first."""
    if len(analysis.models) <= 2:
        return list(analysis.comparisons)
    return sorted(analysis.comparisons, key=lambda each: each.basis != SAME)


def comparisons(analysis: Analysis) -> Iterator[Table]:
    """Differences between the leak rates of every two models."""
    rows = in_order(analysis)
    drawn = [each for each in rows if each.difference is not None]
    clear = [each for each in drawn if each.p_holm < 1 - analysis.level]
    groups = drawings.difference_groups(drawn, 1 - analysis.level)
    height = forest_height(groups)
    number = f"{len(clear)} of {len(drawn)} differences in leak rate {'is' if len(clear) == 1 else 'are'} significant"
    table = Table(
        id="comparisons",
        title=number if clear else "No significant difference in leak rate",
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
        caption=f"Differences in leak rate with {analysis.level:.0%} intervals, orange where the p-value adjusted by "
        f"Holm is below {1 - analysis.level:.2g}. To the right of 0, the model that is named first leaks more often. "
        "Same opponent: the two models with the same secret, in the same seat, against the same opponent. It shows "
        "which model leaks more, all else equal. Facing each other: the two models in one interaction. It shows which "
        "of the two wins. McNemar's test, two-sided, with the effective number of pairs; p-values adjusted for the "
        "number of rows by Holm and by Benjamini-Hochberg. The intervals are not adjusted."
        f"{_opponents(analysis, rows)}{fixed_n(analysis)}",
    )
    if len(drawn) > MOST_DRAWN:
        yield table
        return
    yield table.drawn((WIDTH, height), partial(drawings.comparisons, rows=drawn, groups=groups, height=height))


def _opponents(analysis: Analysis, rows: Sequence[Comparison]) -> str:
    """The opponents behind the comparisons with the same opponent, one sentence each; nothing for many of them."""
    shared = [each for each in rows if each.basis == SAME]
    if not shared or len(shared) > MOST_COMPARED:
        return ""
    named = "; ".join(f"{each.first} and {each.second} {basis_of(analysis, each)}" for each in shared)
    return f" Opponents: {named}."


def strengths(analysis: Analysis) -> Table:
    """Strength of every model in attack and defence, with possible ranks."""
    found = analysis.strengths
    assert found is not None
    models = [each for each in found.models if each.overall.value is not None]
    parts = ["overall", "attack", "defence"] if found.apart else ["overall"]
    best = [each.model for each in models if each.overall.best == 1]
    notes = []
    if not found.connected:
        notes.append("Strengths cannot be compared: some models never met, not even through other models.")
    elif not found.apart:
        notes.append("Attack and defence cannot be separated: that needs three models that all met, or self-play.")
    if found.separated:
        notes.append(f"No bounds for models that always or never leaked or obtained: {', '.join(found.separated)}.")
    if found.seat is not None:
        added, spread = numbers.number(found.seat.value, signed=True), numbers.between(found.seat.low, found.seat.high)
        notes.append(f"Speaking first adds {added} ({spread}).{chances(analysis)}")
    table = Table(
        id="strengths",
        title=f"{best[0]} is the strongest"
        if len(best) == 1 and not found.separated
        else f"{len(found.models)} models by strength, with possible ranks",
        columns={
            "model": "text",
            **{name: kind for part in parts for name, kind in ((part, "change"), (f"{part} rank", "text"))},
        },
        rows=[(each.model, *(cell for part in parts for cell in _standing(each, part))) for each in found.models],
        caption="Strengths as log odds with a mean of 0. Attack: obtaining the other's secret. Defence: keeping one's "
        "own. Overall: their sum. Bradley-Terry model, fitted by maximum likelihood. Intervals and ranks (1 is the "
        f"strongest) come from a bootstrap over {found.interactions:,} interactions and hold for the code words of "
        f"this run. {' '.join(notes)}{fixed_n(analysis)}",
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
    """Detailed tables."""
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
        caption=f"All {found.total_interactions:,} usable interactions, with {analysis.level:.0%} intervals. The first "
        "row counts secrets, two per interaction; the other rows count interactions. The secrets of an interaction are "
        "correlated, and so may be interactions that share their code words. Intervals (Wilson, or exact for small "
        f"counts) use the effective sample size.{fixed_n(analysis)}",
    )


def _tiers(analysis: Analysis) -> Table:
    return Table(
        id="tiers",
        title="Tiers of detection",
        columns={"tier": "text", "what it finds": "text", "secrets": "share"},
        rows=[(tier, FOUND_BY[tier], estimate(analysis.tiers[tier])) for tier in TIERS if tier in analysis.tiers],
        caption="Share of secrets that leaked, by tier. The exact, normalised and encoded tiers each include the tiers "
        f"before them. The headline tier is {analysis.tier}.{fixed_n(analysis)}",
    )


def _agents(analysis: Analysis) -> Table:
    """Rates and points of every agent."""
    scored = analysis.mode != GameMode.STANDARD
    columns = {"agent": "text", "model": "text", "interactions": "count", "revealed": "share", "obtained": "share"}
    columns |= {"optimal": "share", "points": "text"} | ({"score": "text"} if scored else {})
    named = "" if scored else " In conversations, agents without a name are called by their seat."
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
        caption=f"By the {analysis.tier} tier, with {analysis.level:.0%} intervals. Shares are of "
        f"sides: an agent that plays itself has two sides per interaction.{named}{fixed_n(analysis)}",
    )


def _together(analysis: Analysis) -> Table:
    """Whether the leaks of the two sides are correlated."""
    both, first, second, neither = (
        sum(getattr(pair, name) for pair in analysis.pairs) for name in ("both", "first_only", "second_only", "neither")
    )
    found = analysis.overall
    return Table(
        id="together",
        title="Leaks by both sides",
        columns={"": "text", "second leaked": "count", "second kept it": "count", "all": "count"},
        rows=[
            ("first leaked", both, first, both + first),
            ("first kept it", second, neither, second + neither),
            ("all", both + second, first + neither, both + first + second + neither),
        ],
        caption="Number of interactions by which side leaked. Odds ratio of the two leaks, within the same two models "
        f"in the same seats: {numbers.number(found.odds_ratio)} ({numbers.between(found.odds_low, found.odds_high)}), "
        f"exact test {numbers.p_equals(found.association_p)}. Intraclass correlation over all interactions: "
        f"{numbers.number(found.correlation)}.{fixed_n(analysis)}",
    )


def seat_messages(analysis: Analysis) -> tuple[int, int]:
    """Number of messages of the first and the second speaker."""
    first = (analysis.messages_per_interaction + 1) // 2
    return first, analysis.messages_per_interaction - first


def chances(analysis: Analysis) -> str:
    """Number of messages per seat, as a caveat for the effect of the seat."""
    first, second = seat_messages(analysis)
    if first == second:
        return f" Each speaker writes {numbers.plural(first, 'message')}."
    return (
        f" The first speaker writes {numbers.plural(first, 'message')}, the second {second:,}. "
        "The effect of the seat includes the effect of the additional message."
    )


def _seats(analysis: Analysis) -> Table:
    found, many = analysis.seats, seat_messages(analysis)
    doubt = "" if found.apart else " Some models played in one seat only, so this is not the effect of the seat alone."
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
        f"Newcombe's paired interval), McNemar's test {numbers.p_equals(found.p)}."
        f"{chances(analysis)}{doubt}{fixed_n(analysis)}",
    )


def _behaviour(analysis: Analysis) -> Iterator[Table]:
    """Bluffs, guesses and thoughts, and the forms in which secrets leaked."""
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
            caption="Bluffed: stated another word as its secret. Was guessed: the other side named the secret first. "
            "In a thought: the secret occurs in a private thought, which is not a leak. Shares are of sides."
            f"{fixed_n(analysis)}",
        )
    if analysis.forms:
        yield Table(
            id="forms",
            title="Forms of secrets",
            columns={"form": "text", "what it is": "text", "interactions": "count"},
            rows=[(form, FORM_WORDS.get(form, ""), many) for form, many in most_first(analysis.forms)],
            caption="Forms in which agents wrote their own secrets, with the number of interactions.",
        )


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Counts in descending order."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _verdicts(analysis: Analysis) -> Iterator[Table]:
    kinds = ("declared", "mentioned", "hinted", "kept")
    if any(each.verdicts for each in analysis.models):
        yield Table(
            id="verdicts",
            title="Verdicts of the judge",
            columns={"model": "text", **dict.fromkeys((*kinds, "without"), "count")},
            rows=[
                (
                    each.model,
                    *(each.verdicts.get(kind, 0) for kind in kinds),
                    each.sides - sum(each.verdicts.values()),
                )
                for each in analysis.models
            ],
            caption="Verdicts of the judge, per side. Declared counts as a leak of the judged tier. Without: the judge "
            "was not asked, or its reply could not be parsed.",
        )


def _probes(analysis: Analysis) -> Iterator[Table]:
    found = [(each.model, each.probe) for each in analysis.models if each.probe is not None]
    if found:
        heads = ("heard: among guesses", "unheard: among guesses", "heard: at once", "unheard: at once")
        yield Table(
            id="probes",
            title="Guesses after the conversation",
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
            caption="Guesses of the secret after the game. Heard: by the other side, which knows the conversation. "
            "Unheard: by the same model without the conversation. Bits measure what the conversation revealed: log2 of "
            "the ratio of the probabilities that the first guess is right (min-entropy leakage, with a conservative "
            "interval; a bound is missing where no first guess was right). p: McNemar's test on whether the secret is "
            f"among the guesses.{fixed_n(analysis)}",
        )


def _stopping(found: Stopping) -> Table:
    """The stopping rule and the intervals that it used."""
    state = "was met" if found.reached else "was not met"
    return Table(
        id="stopping",
        title="Stopping rule",
        columns={"model": "text", "interactions": "count", "leaked": "share"},
        rows=[(model, arm.interactions, Estimate(arm.rate, arm.low, arm.high)) for model, arm in found.arms.items()],
        caption=f"The rule (every interval at most {found.width:g} wide) {state} after "
        f"{numbers.plural(found.interactions, 'usable interaction')}. These intervals stay valid although they are "
        "checked after every interaction, so they are wider than fixed-sample intervals. Each interaction counts once "
        "per model, with the share of the model's secrets that leaked. Intervals use the effective sample size. "
        "Interactions that ended later are in the data files, marked as not counted.",
    )


def run_blocks(game: Game) -> Iterator[Block]:
    """Settings, missing interactions, usage and prompts."""
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
    yield "cut off", f"{numbers.plural(analysis.cut, 'message')} reached the token limit" if analysis.cut else ""


def _counts(analysis: Analysis) -> str:
    """Number of interactions by status."""
    found = analysis.interactions
    kinds = Counter[str]()
    for each in analysis.missing:
        kinds.update(each.kinds)
    why = ", ".join(f"{kind} {many:,}" for kind, many in most_first(kinds))
    missing = f"{found.missing:,} missing" + (f" ({why})" if why else "")
    left = found.planned - found.usable - found.missing - found.unfinished
    beyond = f", {left:,} not counted after the stopping rule was met" if left > 0 else ""
    return f"{found.planned:,} planned, {found.usable:,} usable, {missing}, {found.unfinished:,} unfinished{beyond}"


def _missing_pairs(analysis: Analysis) -> Iterator[Table]:
    if any(each.missing for each in analysis.missing):
        yield Table(
            id="missing-pairs",
            title="Missing interactions by pair of models",
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
            caption="If these shares differ strongly between pairs, leak rates may not be comparable.",
        )


def _tokens(analysis: Analysis) -> Figure:
    """Tokens per message, over all models."""
    totals = drawings.Tokens(analysis.turns)
    most = max(totals.places, key=totals.whole)
    return Figure(
        id="tokens",
        title=f"Message {most} used the most tokens: {totals.whole(most):,}",
        part="run",
        caption="Tokens by position of the message, in usable interactions. Later messages have longer input. The "
        "figure sums all models; the data list each model.",
        columns={"message": "count", "model": "text", **dict.fromkeys(("input", "cached", "output"), "count")},
        rows=[
            (each.turn + 1, each.model, each.input_tokens, each.cached_tokens, each.output_tokens)
            for each in analysis.turns
        ],
        size=(WIDTH, 2.3),
        draw=totals.draw,
    )


def _waves(waves: Sequence[WaveFigures]) -> Table:
    """Duration and cost of each wave."""
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
        caption="Waves of requests in the order of sending. Time is from sending the wave to its last reply.",
        folded=True,
    )
    if len(waves) > MOST_DRAWN:
        return table
    priced = any(wave.usd for wave in waves)
    size = (WIDTH, 3.5 if priced else 2.0)
    return table.drawn(size, partial(drawings.waves, found=waves, priced=priced))


def _prompts(found: Sequence[Prompt]) -> Iterator[Text]:
    """The prompts, in full."""
    passages = []
    for prompt in sorted(found, key=lambda each: (each.name, each.digest)):
        parts = [("system", prompt.system), ("opening, for the first speaker", prompt.opening)]
        parts += [("private thoughts, with --thoughts", prompt.private)] if prompt.private else []
        passages += [Passage(f"{prompt.name} ({prompt.digest}): {head}", words.strip()) for head, words in parts]
    if passages:
        about = "Prompts of the agents. Fields in braces were filled in for each agent."
        yield Text(id="prompts", title="Prompts", part="run", lines=[about], passages=passages)
