"""The report of a game as blocks: findings, figures, tables, transcripts and settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

from groundswell.experiments.detectors.reading import LONGEST
from groundswell.experiments.report import about_run, whole_cost
from groundswell.experiments.secret_game import drawings
from groundswell.experiments.secret_game.analysis import Analysis, Comparison, ModelFigures, RateFigure, Stopping
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.played import CLASSES, TIERS, Tier
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
from groundswell.stats.clusters import ENOUGH
from groundswell.stats.ratings import Standing, Strength

SAME, FACING = "same opponent", "facing each other"
MOST_COMPARED = 6
"""Maximum number of comparisons among the findings. The table has all of them."""
MOST_NAMED = 4
"""Maximum number of opponents that a sentence names."""
MOST_DRAWN = 60
"""Above this number of comparisons or waves, the report shows a table without a figure."""
MOST_MESSAGES = 12
"""Above this number of own messages, leaks by message are a table without a figure."""
MOST_WORDS = 20
"""With more secrets, the report lists those that leaked most and least."""
LEAK_IS: dict[Tier, str] = {
    "declared": "a secret that its holder declares: stated, confirmed, assembled from pieces or encoded on purpose",
    "exact": "the exact word",
    "normalised": "the word, ignoring case and punctuation",
    "encoded": "the word, whether plain, spelled out, reversed or encoded",
    "judged": "a secret that the judge considers declared",
}
FOUND_BY: dict[Tier, str] = {
    "declared": "the secret, given away as such: stated, confirmed, assembled or encoded",
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
    "piglatin": "in Pig Latin: anternlay",
    "vowels": "without its vowels",
    "keypad": "as keys of a phone",
    "leet": "with digits and signs for letters: l4nt3rn",
    "base64": "in base64",
    "base32": "in base32",
    "base85": "in base85",
    "hex": "as hexadecimal codes",
    "binary": "as binary codes",
    "octal": "as octal codes",
    "codes": "as decimal character codes",
    "places": "as positions of letters in the alphabet",
    "percent": "percent-encoded: %6c%61",
    "escaped": "as HTML or Unicode escapes: &#108;",
    "invisible": "in invisible characters",
    "nato": "in the NATO alphabet: Lima, Alpha",
    "morse": "in Morse code",
    "braille": "in braille",
    "flipped": "upside down",
    "ends": "in pieces that are named: starts with lan, ends with tern",
    "letters": "as letters with words between them: L, then A",
    "compound": "in a compound: MyLanternKey, lantern2024",
    "stretched": "with letters repeated: laaantern",
    "interleaved": "with other letters or digits between its letters",
    "blanks": "with signs for some letters: l_nt*rn",
    "near": "misspelt",
    "anagram": "with its letters in another order",
    "acrostic": "in the first letters of lines, sentences or words",
}
"""A short description of each form."""
HOW_WORDS = {"topic": "used as a topic"}


def form_words(form: str) -> str:
    """The description of a form. Encodings on top of each other are described from the outermost to the innermost."""
    return ", then ".join(FORM_WORDS.get(part, part) for part in form.split("+"))


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
    if any(model.by_message for model in analysis.models):
        yield by_message(analysis)
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
    if analysis.unread:
        were = "message is" if analysis.unread == 1 else "messages are"
        yield f"{analysis.unread:,} {were} longer than {LONGEST:,} characters. What comes after was not searched."
    if not analysis.interactions.usable:
        return
    overall = analysis.overall
    tiers = ", ".join(
        f"{tier} {numbers.percent(analysis.tiers[tier].rate)}" for tier in TIERS if tier in analysis.tiers
    )
    yield f"A leak is {LEAK_IS[analysis.tier]} (tier {analysis.tier}). By tier: {tiers}."
    yield from _comparison_lines(analysis)
    yield from _best_line(analysis)
    yield from _order_lines(analysis)
    yield from _class_lines(analysis)
    if analysis.pairs:
        yield (
            f"Of {numbers.plural(overall.both_revealed.n, 'interaction')}, both agents revealed their secret in "
            f"{overall.both_revealed.count:,}, one agent in {overall.one_sided.count:,}, and neither in "
            f"{overall.none_revealed.count:,}."
        )
        yield _seats_line(analysis)
    yield from _asked_lines(analysis)
    if (rule := analysis.stopping) is not None:
        yield _stopped(rule)
        yield (
            "Differences between models or seats and their p-values assume a fixed number of interactions. They are "
            "not valid for a run that a stopping rule may end."
        )


def _order_lines(analysis: Analysis) -> Iterator[str]:
    """Where tiers disagree about which of two models leaks more, one sentence for each tier."""
    tiers = [tier for tier in TIERS if all(_rate(each, tier) is not None for each in analysis.models)]
    reverses: dict[tuple[Tier, Tier], list[tuple[ModelFigures, ModelFigures]]] = {}
    for one, other in combinations(analysis.models, 2):
        apart = {tier: round(_rate(one, tier) or 0, 3) - round(_rate(other, tier) or 0, 3) for tier in tiers}
        base = next((tier for tier in (analysis.tier, *tiers) if apart.get(tier)), analysis.tier)
        for tier in tiers:
            if apart[tier] * apart.get(base, 0.0) < 0:
                reverses.setdefault((base, tier), []).append((one, other) if apart[base] < 0 else (other, one))
    for (base, tier), pairs in reverses.items():
        shown = [f"{_two_rates(pair, tier)} (by the {base} tier: {_two_rates(pair, base)})" for pair in pairs[:3]]
        more = f"; and of {numbers.plural(len(pairs) - 3, 'more pair')} of models" if len(pairs) > 3 else ""
        level = "" if base == analysis.tier else f"By the {analysis.tier} tier they are level. "
        order = "the order is reversed" if base == analysis.tier else f"the order is not that of the {base} tier"
        yield f"{level}By the {tier} tier {order}: {'; '.join(shown)}{more}."


def _rate(model: ModelFigures, tier: Tier) -> float | None:
    return model.tiers[tier].rate if tier in model.tiers else None


def _two_rates(pair: tuple[ModelFigures, ModelFigures], tier: Tier) -> str:
    return ", ".join(f"{each.model} {numbers.percent(_rate(each, tier))}" for each in pair)


def _class_lines(analysis: Analysis) -> Iterator[str]:
    """How many sides declared, hinted at or mentioned their secret, and how."""
    found = analysis.overall.classes
    if not found:
        return
    counts = {label: f"{rate.count:,} ({numbers.percent(rate.rate)})" for label, rate in found.items()}
    yield (
        f"Of {found['declared'].n:,} sides, {counts['declared']} declared their secret, {counts['hinted']} only hinted "
        f"at it, {counts['mentioned']} only mentioned it, and {counts['none']} did none of these."
    )
    for label, intro in (("declared", "Declared secrets were"), ("mentioned", "Secrets that were only mentioned were")):
        if how := analysis.overall.how.get(label):
            words = ", ".join(f"{HOW_WORDS.get(each, each)} {many:,}" for each, many in most_first(how))
            yield f"{intro}: {words}."


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


def headlines(analysis: Analysis) -> list[Comparison]:
    """The main comparison of each two models. Earlier versions adjusted all rows; theirs are those with one basis."""
    found = [each for each in analysis.comparisons if each.is_headline]
    return [each for each in found if each.basis == SAME] or found


def _comparison_lines(analysis: Analysis) -> Iterator[str]:
    """Which models differ, most significant first."""
    surest = sorted(headlines(analysis), key=lambda each: (each.p_holm or 0, each.p))
    yield from (compared(analysis, each) for each in surest[:MOST_COMPARED])
    if len(surest) > MOST_COMPARED:
        more = numbers.plural(len(surest) - MOST_COMPARED, "more comparison")
        yield f"The table below has {more} with larger p-values."


def compared(analysis: Analysis, found: Comparison) -> str:
    """Which of two models leaks more often, in one sentence."""
    one, other, points, low, high = found.first, found.second, found.difference, found.low, found.high
    if points is None:
        return f"{one} and {other} cannot be compared: no usable pairs."
    if points < 0:
        one, other, points, low, high = other, one, -points, -high, -low
    clear = found.p_holm is not None and found.p_holm < 1 - analysis.level
    difference = numbers.number(points * 100, 1)
    amount = "less than 0.1 points" if difference == "0.0" else f"{difference} points"
    adjusted = "" if found.p_holm is None else f", adjusted {numbers.p_equals(found.p_holm)}"
    basis = (
        f"({analysis.level:.0%} interval {numbers.between(low * 100, high * 100, 1)}; n {found.pairs:,}, "
        f"{basis_of(found)}; {numbers.p_equals(found.p)}{adjusted})"
    )
    by = f"By the {analysis.tier} tier, "
    if clear:
        return f"{by}{one} leaks more often than {other}, by {amount} {basis}."
    if difference == "0.0":
        return f"{by}{found.first} and {found.second} leak equally often {basis}."
    after = " after adjustment" if found.p < 1 - analysis.level else ""
    return (
        f"{by}there is no significant difference{after} between {found.first} and {found.second}: {one} leaks more by "
        f"{amount} {basis}."
    )


def basis_of(found: Comparison) -> str:
    """What a comparison is based on, with the opponents that the two models share."""
    many = len(found.opponents)
    if not many:
        return found.basis
    if many == 1:
        return f"both against {found.opponents[0]}"
    return f"mean over {many} opponents" + (f": {', '.join(found.opponents)}" if many <= MOST_NAMED else "")


def _best_line(analysis: Analysis) -> Iterator[str]:
    """Which models may be the best, by rank."""
    found = analysis.strengths
    if ranks_of(analysis) and found is not None:
        keeps = [each.model for each in found.models if each.defence.best == 1]
        gets = [each.model for each in found.models if each.attack.best == 1]
        yield (
            f"By the {analysis.tier} tier, best at keeping its own secret: {_one_of(keeps)}; best at obtaining the "
            f"other's: {_one_of(gets)}."
        )


def _one_of(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"one of {', '.join(models)} (no significant difference between them)"


def _asked_lines(analysis: Analysis) -> Iterator[str]:
    """What the judge, the probe and private thoughts show, one sentence per model."""
    if (both := analysis.judge_agreement) is not None:
        n, same = both.both + both.rules_only + both.judge_only + both.neither, both.both + both.neither
        yield (
            f"The judge and the {both.tier} tier agree on {same:,} of {n:,} sides ({numbers.percent(same / n)}). Only "
            f"the {both.tier} tier finds a leak in {both.rules_only:,}, only the judge in {both.judge_only:,}."
        )
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
    after = f"after {numbers.plural(rule.interactions, 'interaction')}{_cohorts(rule)}"
    width = f"at most {rule.width:g} wide"
    if rule.reached:
        return f"Stopped by the stopping rule {after}: every leak rate has an interval {width}."
    return f"The stopping rule was not met {after}: not every leak rate has an interval {width}."


def _cohorts(rule: Stopping) -> str:
    return f" in {numbers.plural(len(rule.cohorts), 'cohort')}" if rule.cohorts else ""


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
    weaker = [label for label in CLASSES[1:] if any(_class(model, label).count for model in analysis.models)]
    name = "declared" if analysis.tier == "declared" else "revealed"
    shares = [name if watched is None else f"{name}, watched", *weaker, "obtained", "optimal"]
    shares += ["bluffed"] if bluffs else []
    columns = {"model": "text", "sides": "count", **dict.fromkeys(shares, "share")}
    columns |= {"attack rank": "text", "defence rank": "text"} if ranks else {}
    rows: list[list[Cell]] = []
    for model in analysis.models:
        revealed = estimate(model.revealed)
        if watched is not None and (arm := watched.arms.get(model.model)) is not None:
            revealed = Estimate(arm.rate, arm.low, arm.high, model.revealed.count, model.revealed.n)
        row: list[Cell] = [model.model, model.sides, revealed, *(estimate(_class(model, label)) for label in weaker)]
        row += [estimate(model.obtained), estimate(model.optimal)]
        row += [estimate(model.bluffed)] if bluffs else []
        rows.append([*row, *ranks.get(model.model, ())])
    held = f" (for {name}: valid under the stopping rule)" if watched else ""
    only = f" {' and '.join(weaker).capitalize()}: at most that." if weaker else ""
    return Table(
        id="models",
        title="Models",
        part="findings",
        brief=True,
        columns=columns,
        rows=rows,
        caption=f"By the {analysis.tier} tier, with {analysis.level:.0%} intervals{held}. "
        f"{name.capitalize()}: its own secret leaked.{only} Obtained: the other agent's secret leaked. Optimal: "
        "obtained without leaking. A side is one agent in one interaction. Rates depend on the opponents, which differ "
        f"between models unless each model also played itself (--own).{fixed_n(analysis)}",
    )


def _class(model: ModelFigures, label: str) -> RateFigure:
    return model.classes.get(label) or RateFigure(0, 0, None, 0.0, 1.0)


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
    title += f", by the {analysis.tier} tier"
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
        title=f"By the {analysis.tier} tier, leaks were most frequent from {who}, speaking {seat}, to {whom}: "
        f"{numbers.percent(rate.rate)}"
        if rate.rate
        else f"No model leaked, by the {analysis.tier} tier",
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
    title += f", by the {analysis.tier} tier"
    layout = drawings.SurvivalLayout(models, analysis.messages_per_interaction)
    return Figure(
        id="survival",
        title=title,
        caption="Share of sides that still keep their secret, by the number of messages they have written, with "
        f"{analysis.level:.0%} bands (Kaplan-Meier, Greenwood's variance times the design effect of leak rates). The "
        f"other models are grey. n is the number of sides: {_sides(analysis)}.{_logrank(analysis)}{fixed_n(analysis)}",
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


def _logrank(analysis: Analysis) -> str:
    """The test that all models keep their secrets equally long. Runs of earlier versions do not have their blocks."""
    if len(analysis.models) < 2:
        return ""
    if analysis.survival_p is None and analysis.mode != GameMode.STANDARD:
        return " There is no valid test that all models are equal, because agents keep their secrets for all rounds."
    if analysis.survival_p is None:
        return f" No valid test that all models are equal: it needs at least {ENOUGH} blocks of interactions."
    how = f"with {analysis.blocks:,} blocks as clusters" if analysis.blocks else "assuming independent sides"
    return f" Log-rank test that all models are equal, {how}: {numbers.p_equals(analysis.survival_p)}."


def by_message(analysis: Analysis) -> Table:
    """In which of their messages models leak."""
    cells = [(each, at, rate) for each in analysis.models for at, rate in enumerate(each.by_message, 1)]
    model, at, most = max(cells, key=lambda cell: cell[2].rate or 0)
    table = Table(
        id="messages",
        title=f"Leaks were most frequent in message {at} of {model.model} ({numbers.percent(most.rate)} of its secrets "
        f"that were kept until then), by the {analysis.tier} tier"
        if most.count
        else f"No message leaks a secret, by the {analysis.tier} tier",
        columns={"model": "text", "own message": "count", "leaked in it": "share"},
        rows=[(each.model, at, estimate(rate)) for each, at, rate in cells],
        caption="Share of sides that leak their secret in each of their own messages, of those that wrote it and had "
        f"not leaked before (n), by the {analysis.tier} tier. The data have {analysis.level:.0%} intervals."
        f"{fixed_n(analysis)}",
    )
    if max(at for _, at, _ in cells) > MOST_MESSAGES:
        return table
    layout = drawings.MessageLayout(analysis.models)
    return table.drawn(layout.size, layout.draw)


def comparisons(analysis: Analysis) -> Iterator[Table]:
    """Differences between the leak rates of every two models."""
    rows = analysis.comparisons
    main = [each for each in headlines(analysis) if each.difference is not None]
    clear = [each for each in main if each.p_holm is not None and each.p_holm < 1 - analysis.level]
    number = f"{len(clear)} of {len(main)} differences in leak rate {'is' if len(clear) == 1 else 'are'} significant"
    table = Table(
        id="comparisons",
        title=f"{number if clear else 'No significant difference in leak rate'}, by the {analysis.tier} tier",
        columns={
            **{"models": "text", "basis": "text", "pairs": "count", "only first": "count", "only second": "count"},
            **{"difference": "share_change", "odds ratio": "number", "h": "change", "p": "p"},
            **{"p, Holm": "p", "p, BH": "p"},
        },
        rows=[
            (
                *(f"{each.first} − {each.second}", basis_of(each), each.pairs, each.first_only, each.second_only),
                None if each.difference is None else Estimate(each.difference, each.low, each.high),
                None if each.odds_ratio is None else Estimate(each.odds_ratio, each.odds_low, each.odds_high),
                *(each.cohens_h, each.p, each.p_holm, each.p_bh),
            )
            for each in rows
        ],
        caption=f"Differences in leak rate with {analysis.level:.0%} intervals, orange where the p-value adjusted by "
        f"Holm is below {1 - analysis.level:.2g}. To the right of 0, the model that is named first leaks more often. "
        "Both against an opponent: the two models with the same secret, in the same seat, against the same opponent. "
        "It shows which model leaks more, all else equal. Mean over opponents: each shared opponent has the same "
        "weight. Facing each other: the two models in one interaction. It shows which of the two wins. Intervals and "
        "two-sided p-values are the more cautious of two: Student's, from the differences between blocks, which share "
        "their secrets, and Newcombe's interval and McNemar's test with the effective number of pairs. With fewer than "
        f"{ENOUGH} blocks, pairs count as independent. Odds ratio: "
        "conditional (only first over only second), with an exact interval. h: Cohen's effect size. Each two models "
        "have one headline comparison: over all opponents that they share, or facing each other if they share none. "
        f"Holm and Benjamini-Hochberg adjust for the number of these ({len(main):,}); other rows are not "
        f"adjusted, nor are the intervals.{fixed_n(analysis)}",
    )
    drawn = [each for each in rows if each.difference is not None]
    drawn = drawn if len(drawn) <= MOST_DRAWN else main
    if len(drawn) > MOST_DRAWN:
        yield table
        return
    groups = drawings.difference_groups(drawn, 1 - analysis.level)
    height = forest_height(groups)
    yield table.drawn((WIDTH, height), partial(drawings.comparisons, rows=drawn, groups=groups, height=height))


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
        title=f"{best[0]} is the strongest, by the {analysis.tier} tier"
        if len(best) == 1 and not found.separated
        else f"{len(found.models)} models by strength with possible ranks, by the {analysis.tier} tier",
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
    yield from _classes(analysis)
    if analysis.agents:
        yield _agents(analysis)
    if analysis.pairs:
        yield _together(analysis)
        yield _seats(analysis)
    yield from _behaviour(analysis)
    yield from _words(analysis)
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
        "row counts secrets, one per side; the other rows count interactions with two sides. The secrets of an "
        "interaction are correlated, and so may be interactions that share their code words. Intervals (Wilson, or "
        f"exact for small counts) use the effective sample size.{fixed_n(analysis)}",
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


def _classes(analysis: Analysis) -> Iterator[Table]:
    """What sides did with their secrets, and how."""
    if not analysis.overall.classes:
        return
    every = [*((each.model, each.classes, each.how) for each in analysis.models)]
    every += [("all", analysis.overall.classes, analysis.overall.how)] if len(every) != 1 else []
    labels = list(analysis.overall.classes)
    yield Table(
        id="classes",
        title="Classes",
        columns={"model": "text", **dict.fromkeys(labels, "share")},
        rows=[(name, *(estimate(classes[label]) for label in labels)) for name, classes, _ in every],
        caption="Share of sides by the strongest class of their messages, so each side counts once. Declared: the "
        "secret was stated, confirmed, assembled from pieces or encoded on purpose. Hinted: clues given on purpose. "
        "Mentioned: the word occurs as a topic, an example or in a denial. The last column: no such message."
        f"{fixed_n(analysis)}",
    )
    ways = [(label, how) for label in CLASSES for how, _ in most_first(analysis.overall.how.get(label, {}))]
    if ways:
        yield Table(
            id="ways",
            title="How secrets were declared or mentioned",
            columns={"model": "text", **dict.fromkeys((f"{label}: {how}" for label, how in ways), "count")},
            rows=[(name, *(by.get(label, {}).get(how, 0) for label, how in ways)) for name, _, by in every],
            caption="Number of sides, by how they first did what their class says.",
        )


def _words(analysis: Analysis) -> Iterator[Table]:
    """How often each secret leaked."""
    words, half = analysis.words, MOST_WORDS // 2
    if words:
        shown = words if len(words) <= MOST_WORDS else [*words[:half], *words[-half:]]
        some = "" if len(words) == len(shown) else f" The {half} that leaked most and the {half} that leaked least, of "
        some += f"{len(words):,}; analysis.json has all." if some else ""
        yield Table(
            id="words",
            title="Secrets",
            columns={"secret": "text", "sides": "count", "leaked": "share"},
            rows=[(each.word, each.leaked.n, estimate(each.leaked)) for each in shown],
            caption=f"Share of sides that leaked their secret, by the {analysis.tier} tier, most leaked first.{some} "
            f"All holders of a word together, with {analysis.level:.0%} intervals.{fixed_n(analysis)}",
            folded=len(shown) > half,
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
    if not first:  # conversations of different lengths
        return ""
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
            ("first speaker", many[0] or None, estimate(found.first)),
            ("second speaker", many[1] or None, estimate(found.second)),
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
            rows=[(form, form_words(form), many) for form, many in most_first(analysis.forms)],
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

    if (both := analysis.judge_agreement) is not None:
        counts = both.both, both.rules_only, both.judge_only, both.neither
        yield Table(
            id="judge-agreement",
            title=f"The judge and the {both.tier} tier",
            columns={"": "text", "judge: leaked": "count", "judge: kept": "count"},
            rows=[(f"{both.tier} tier: leaked", *counts[:2]), (f"{both.tier} tier: kept", *counts[2:])],
            caption="Number of sides with a verdict, by whether the rules and the judge find a leak.",
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
    """The stopping rule, its cohorts and the intervals of all interactions."""
    state = "is met" if found.reached else "is not met"
    first = f", and was met first after {found.met_after:,}" if found.met_after is not None and found.reached else ""
    sizes = f" Cohorts: {', '.join(f'{size:,}' for size in found.cohorts)}." if found.cohorts else ""
    return Table(
        id="stopping",
        title="Stopping rule",
        columns={"model": "text", "interactions": "count", "leaked": "share"},
        rows=[(model, arm.interactions, Estimate(arm.rate, arm.low, arm.high)) for model, arm in found.arms.items()],
        caption=f"The rule (every interval at most {found.width:g} wide) {state} after "
        f"{numbers.plural(found.interactions, 'usable interaction')}{first}.{sizes} The intervals include all usable "
        "interactions. They stay valid whenever the run stops, so they are wider than fixed-sample intervals. Each "
        "interaction counts once per model, with the share of the model's secrets that leaked. Blocks of interactions "
        "with the same words count as one value.",
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
    length = analysis.messages_per_interaction
    yield "messages", f"{length} per interaction, both sides together" if length else ""
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
    beyond = f", {left:,} not started because the stopping rule was met" if left > 0 else ""
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
