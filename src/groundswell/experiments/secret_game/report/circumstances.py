"""The sections about the run itself: what was run, when it stopped, what is missing, what it took, the prompts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.drawing import Drawing
from groundswell.experiments.reporting.markup import Html, Number, Section, joined, paragraph, table, tag
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.experiments.secret_game.report.findings import most_first, shown
from groundswell.experiments.secret_game.report.told import Told, WaveFigures
from groundswell.reporting.words import cost, duration

MOST_WAVES = 200


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


def key_figures(told: Told) -> list[tuple[str, str, str]]:
    """What one wants to know first: a figure, what it is, and more about it."""
    analysis, summary = told.analysis, told.summary
    found = analysis.overall
    usable = analysis.interactions.usable
    leaked = f"{numbers.count(found.secrets_revealed)}; {holding(analysis)}"
    return [
        (f"{usable:,}", "usable interactions", f"of {analysis.interactions.planned:,} planned"),
        (numbers.percent(found.secrets_revealed.rate), "of secrets leaked", leaked),
        (numbers.percent(found.both_revealed.rate), "both leaked", numbers.count(found.both_revealed)),
        (numbers.percent(found.one_sided.rate), "one-sided", numbers.count(found.one_sided)),
        (cost(summary.cost.usd, 0), "cost", _unknown(summary.cost.unknown_asks)),
        (duration(summary.seconds), "time", f"{summary.asks.sent:,} requests sent"),
    ]


def _unknown(asks: int) -> str:
    return f"{asks:,} asks of unknown price" if asks else "all prices known"


def run(told: Told) -> Section:
    """What was run."""
    analysis, summary = told.analysis, told.summary
    models = dict.fromkeys(each.model for each in analysis.models)
    models.update(dict.fromkeys(name for each in analysis.missing for name in (each.first, each.second)))
    rows = [
        ("run", told.run_id + (f" ({summary.name})" if summary.name else "")),
        ("status", summary.status if summary.error in (None, summary.status) else f"{summary.status}: {summary.error}"),
        ("models", ", ".join(models) or numbers.NONE),
        ("prompts", ", ".join(f"{name} ({digest})" for name, digest in analysis.prompts.items()) or numbers.NONE),
        ("mode", analysis.mode),
        ("messages", f"{analysis.messages_per_interaction} per interaction, both sides together"),
        ("headline tier", analysis.tier),
        ("seed", str(told.seed)),
        ("interactions", _interactions(analysis)),
        ("requests", _asks(told)),
        ("cost", summary.cost.words),
        ("time", duration(summary.seconds)),
    ]
    if analysis.cut:
        rows.append(("cut off", f"{numbers.plural(analysis.cut, 'message')} reached the limit of length"))
    rows += told.about
    caption = "The same seed, agents and number of interactions give the same seats and secrets again."
    return Section("run", "What was run", table(caption, ("", ""), rows))


def _interactions(analysis: Analysis) -> str:
    found = analysis.interactions
    kinds: dict[str, int] = {}
    for each in analysis.missing:
        for kind, many in each.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + many
    why = ", ".join(f"{kind} {many:,}" for kind, many in most_first(kinds))
    missing = f"{found.missing:,} missing" + (f" ({why})" if why else "")
    left = found.planned - found.usable - found.missing - found.unfinished
    beyond = f", {left:,} beyond the stopping rule" if left > 0 else ""
    return f"{found.planned:,} planned, {found.usable:,} usable, {missing}, {found.unfinished:,} unfinished{beyond}"


def _asks(told: Told) -> str:
    asks = told.summary.asks
    more = {"resent": asks.resent, "from the cache": asks.cached, "replayed": asks.replayed, "failed": asks.failed}
    return ", ".join([f"{asks.sent:,} sent", *(f"{many:,} {what}" for what, many in more.items() if many)])


def stopping(analysis: Analysis) -> Section | None:
    """The rule that may end a run early."""
    found = analysis.stopping
    if found is None:
        return None
    rows = [
        (
            model,
            Number(f"{arm.interactions:,}"),
            Number(numbers.percent(arm.rate)),
            Number(numbers.interval(arm.low, arm.high)),
        )
        for model, arm in found.arms.items()
    ]
    state = "was reached" if found.reached else "was not reached"
    caption = (
        f"The rule to stop as soon as every interval is at most {100 * found.width:.3g} points wide {state} after "
        f"{numbers.plural(found.interactions, 'usable interaction')}. These intervals hold whenever one looks, and so "
        "are wider than the others. Each interaction of a model counts once, by the share of its secrets that "
        "leaked, and those that share their words count for as many as they are worth. "
        "What came in afterwards is in the files, marked as not counted."
    )
    return Section(
        "stopping", "Stopping rule", table(caption, ("model", ">interactions", ">leaked", ">anytime interval"), rows)
    )


def missing(analysis: Analysis) -> Section | None:
    """What is missing, by who was to play."""
    if not any(each.missing for each in analysis.missing):
        return None
    rows = [
        (
            each.first,
            each.second,
            Number(f"{each.planned:,}"),
            Number(f"{each.missing:,}"),
            Number(numbers.percent(each.missing / each.planned if each.planned else None)),
            ", ".join(f"{kind} {many:,}" for kind, many in each.kinds.items()),
        )
        for each in analysis.missing
    ]
    caption = (
        "Interactions that could not be played to the end are left out of all rates. Where the shares differ much, the "
        "rates may be of different things."
    )
    heads = ("first speaker", "second speaker", ">played or missing", ">missing", ">share", "why")
    return Section("missing", "Missing interactions", table(caption, heads, rows))


def costs(told: Told, turns: Drawing | None, waves: Drawing | None) -> Section | None:
    """What it took: by model, by message, by wave."""
    parts = [_by_model(told)] if told.summary.models else []
    parts.append(shown(turns, "Tokens that the messages of each turn took, all models together: later ones read more."))
    if told.analysis.turns:
        parts.append(_by_turn(told.analysis))
    parts.append(shown(waves, "Waves in the order of sending: how long each took until all its replies were there."))
    if told.waves:
        parts.append(_by_wave(told.waves))
    body = joined(parts)
    return Section("costs", "Cost and time", body) if body else None


def _by_model(told: Told) -> Html:
    rows = [
        (
            model,
            *(Number(f"{n:,}") for n in (paid.replies, paid.input_tokens, paid.output_tokens)),
            Number(cost(paid.cost.usd, paid.cost.unknown_asks)),
        )
        for model, paid in told.summary.models.items()
    ]
    caption = "What each model was paid for in this run, judges and guesses included; cached replies cost nothing."
    return table(caption, ("model", ">replies", ">input tokens", ">output tokens", ">cost"), rows)


def _by_turn(analysis: Analysis) -> Html:
    rows = [
        (
            Number(str(each.turn + 1)),
            each.model,
            *(Number(f"{n:,}") for n in (each.input_tokens, each.cached_tokens, each.output_tokens)),
        )
        for each in analysis.turns
    ]
    heads = (">message", "model", ">input tokens", ">of them cached", ">output tokens")
    inner = table("Tokens of the messages of usable interactions, by turn and model.", heads, rows)
    return tag("details", tag("summary", "Tokens by message and model"), inner)


def _by_wave(waves: Sequence[WaveFigures]) -> Html:
    rows = [
        (
            Number(str(wave.number)),
            wave.transport,
            wave.account,
            Number(f"{wave.size:,}"),
            Number(duration(wave.seconds)),
            Number(f"{wave.seconds / wave.size:.2f}" if wave.size else numbers.NONE),
            Number(cost(wave.usd, 0)),
        )
        for wave in waves[:MOST_WAVES]
    ]
    more = len(waves) - MOST_WAVES
    caption = "Waves of requests." + (f" {more:,} more are left out." if more > 0 else "")
    heads = (">wave", "way", "account", ">requests", ">time", ">seconds each", ">cost")
    return tag("details", tag("summary", "Waves as a table"), table(caption, heads, rows))


def prompts(found: Iterable[Prompt]) -> Section | None:
    """What agents were told, word by word."""
    parts = [_prompt(each) for each in sorted(found, key=lambda each: (each.name, each.digest))]
    if not parts:
        return None
    about = "What agents were told. Fields in braces were filled in for each of them."
    return Section("prompts", "Prompts", joined([paragraph(about), *parts]))


def _prompt(prompt: Prompt) -> Html:
    parts = [("system", prompt.system), ("opening, to who speaks first", prompt.opening)]
    if prompt.private:
        parts.append(("about private thoughts, where they are asked for", prompt.private))
    told = [joined([tag("h4", head), tag("pre", words.strip(), dir="auto")]) for head, words in parts]
    return tag("details", tag("summary", f"{prompt.name} ({prompt.digest})"), *told)
