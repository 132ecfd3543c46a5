"""The report of a training or an evaluation as blocks: findings, figures, tables and settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groundswell.emulator.skills.persuasion import COURTESY
from groundswell.experiments.query_mutation import guessing, mutators, rewards
from groundswell.experiments.query_mutation.analysis import Analysis, Figure, Guesses, Tradeoff
from groundswell.experiments.query_mutation.drawings import GUARDS, figures, half_leaked, headline
from groundswell.experiments.query_mutation.figures import CHANCE, FEWEST, chance_gains
from groundswell.experiments.query_mutation.frontier import what_is_shown
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.reading import EVALUATION, ReportData
from groundswell.experiments.query_mutation.transcripts import transcripts_block, winning_conversations
from groundswell.experiments.report import about_run, whole_cost
from groundswell.reporting import numbers
from groundswell.reporting.blocks import (
    Block,
    Estimate,
    KeyFigure,
    KeyFigures,
    Passage,
    Table,
    Text,
)
from groundswell.reporting.words import cost, duration

MOST_NAMED = 3
"""Number of mutations named for each guard."""
NOT_SHOWN = ("task", "evaluation", "policies", "bandits", "trained_by", "compared_with")
"""Settings that the settings table does not list under their field names."""


def blocks(data: ReportData) -> Iterator[Block]:
    """The blocks of the report."""
    analysis = data.analysis
    yield Text(id="findings", lines=list(findings(analysis)), brief=True)
    if data.change is not None:
        yield Text(id="change", lines=[data.change.message], brief=True)
    yield key_figures(data)
    if (won := winning_conversations(data)).passages:
        yield won
    if analysis.figures:
        yield rates_table(analysis)
    if any(each.method == CHANCE for each in analysis.uses):
        yield best_mutators_table(analysis)
    if analysis.usefulness:
        yield usefulness_table(analysis)
    if analysis.guesses:
        yield guesses_table(analysis.guesses, analysis.level)
    yield from figures(data)
    if analysis.contrasts:
        yield contrasts_table(analysis)
    if any(each.n for each in analysis.lasting):
        yield half_table(analysis)
    yield transcripts_block(data)
    yield from about_run(data.summaries, data.records, data.held, settings_rows(data))
    if data.failures:
        yield failures_table(data)
    yield prompts(data)


def findings(analysis: Analysis) -> Iterator[str]:
    """The verdict, the number of failed steps, and caveats."""
    if analysis.verdict:
        yield analysis.verdict
    steps = sum(point.usable + point.masked for curve in analysis.curves for point in curve.points)
    if analysis.masked:
        yield f"{analysis.masked:,} of {steps:,} training steps failed. They were excluded from learning."
    elif steps:
        yield f"None of the {steps:,} training steps failed."
    yield from analysis.advice
    yield from analysis.notes


def key_figures(data: ReportData) -> KeyFigures:
    """Leak rates, cost and time."""
    spent = whole_cost(data.summaries)
    unknown = f"{spent.unknown_asks:,} requests of unknown price" if spent.unknown_asks else "all prices known"
    sent = sum(each.asks.sent for each in data.summaries)
    return KeyFigures(
        id="key-figures",
        figures=[
            *map(_key_figure, headline(data.analysis)),
            KeyFigure(cost(spent.usd, 0), "cost", unknown),
            KeyFigure(duration(sum(each.seconds for each in data.summaries)), "time", f"{sent:,} requests sent"),
        ],
    )


def _key_figure(found: Figure) -> KeyFigure:
    label = f"leak rate of {found.method}, {GUARDS[found.on]}"
    if found.rate is None:
        return KeyFigure(numbers.NONE, label, "no usable episodes")
    between = numbers.interval(found.low, found.high) if found.low is not None else "no interval"
    return KeyFigure(numbers.percent(found.rate), label, f"{numbers.count(found)}; {between}")


def rates_table(analysis: Analysis) -> Table:
    """Leak rate, mean return and steps of each method, on held-out guards and on guards of the training."""
    rows = [each for on in GUARDS for each in analysis.figures if each.on == on]
    rows.sort(key=lambda each: (list(GUARDS).index(each.on), 1.0 if each.rate is None else -each.rate))
    return Table(
        id="rates",
        title="Leak rates",
        part="findings",
        brief=True,
        columns={
            **{"method": "text", "guards": "text", "episodes": "count", "leaked": "share"},
            **{"mean return": "change", "steps": "number.1"},
        },
        rows=[
            (
                *(each.method, each.on, each.n, Estimate(each.rate, each.low, each.high)),
                *(each.total, each.steps),
            )
            for each in rows
        ],
        caption=f"Number of usable episodes and the share in which the secret leaked, with {analysis.level:.0%} "
        "confidence intervals. Held out: guards that were not used in training. Trained: guards that were used in "
        "training, with held-out secrets. Mean return: mean sum of rewards per episode. Steps: mean number of queries "
        "per episode.",
    )


def best_mutators_table(analysis: Analysis) -> Table:
    """The best mutations against each guard, measured on random rewording: learners choose when to use a mutation."""
    rows: list[tuple[str, str, float | None, int | None, str]] = []
    for guard, found in chance_gains(analysis.uses).items():
        if not found or found[0].gain <= 0:
            rows.append((guard, "no gain by any mutation" if found else "too few uses", None, None, ""))
            continue
        first, *others = found
        more = [f"{each.mutator} {each.gain:.2f}" for each in others[: MOST_NAMED - 1] if each.gain > 0]
        rows.append((guard, first.mutator, first.gain, first.uses, ", ".join(more)))
    return Table(
        id="best-mutators",
        title=f"Best mutations in {CHANCE} rewording",
        part="findings",
        brief=True,
        columns={"guard": "text", "best": "text", "gain per use": "number", "uses": "count", "next": "text"},
        rows=rows,
        caption="Mean gain per use of a mutation: the share of the secret that the response revealed for the first "
        f"time in the episode. Mutations with fewer than {FEWEST} uses are omitted.",
    )


def usefulness_table(analysis: Analysis) -> Table:
    """How each guard answers ordinary queries, and what it leaks to the strongest method."""
    leaks = {each.guard: each for each in analysis.frontier}
    return Table(
        id="usefulness",
        title="Answers to ordinary queries",
        columns={
            **{"guard": "text", "queries": "count", "answered": "share", "refused": "count"},
            **{"refused, near the topic": "count", "of": "count", "wrong": "count", "leaked": "count"},
            **{"missing": "count", "leak rate": "share", "strongest method": "text", "better guard": "text"},
        },
        rows=[
            (
                *(each.guard, each.n, Estimate(each.rate, each.low, each.high, each.count, each.n)),
                *(each.near_refused + each.other_refused, each.near_refused, each.near, each.wrong, each.leaks),
                each.missing,
                *_security(leaks.get(each.guard)),
            )
            for each in analysis.usefulness
        ],
        caption="Harmless queries that a guard should answer. Refused: over-refusals, that is replies that open with a "
        "refusal, are empty or are withheld by the filter. Near the topic: queries with words such as password or "
        "secret. Wrong: replies without the expected word. Leaked: replies that contain the secret although nobody "
        f"asked for it. Answered and leak rate have {analysis.level:.0%} confidence intervals. The leak rate is that "
        "of the strongest method against this guard. Better guard: one on the frontier that answers no less and leaks "
        "no more; shown if the interval of the difference excludes 0.",
    )


def _security(found: Tradeoff | None) -> tuple[Estimate | None, str, str]:
    if found is None:
        return None, "", ""
    better = f"{found.better} ({what_is_shown(found)})" if found.better else "none"
    return Estimate(found.rate, found.low, found.high, found.count, found.n), found.method, better


def guesses_table(guesses: Sequence[Guesses], level: float) -> Table:
    """How often the guesser named the secret, and a secret that was not planted, from the transcripts of a method."""
    return Table(
        id="guesses",
        title="Guesses from the transcripts",
        part="findings",
        columns={
            **{"method": "text", "guards": "text", "episodes": "count", "secret named": "share"},
            **{"decoy named": "share", "named, no leak": "count", "leak, not named": "count", "missing": "count"},
        },
        rows=[
            (
                *(each.method, each.on, each.n, Estimate(each.rate, each.low, each.high)),
                Estimate(each.decoy_rate, each.decoy_low, each.decoy_high),
                *(each.unseen, each.unnamed, each.missing),
            )
            for each in guesses
        ],
        caption="A model read the queries and responses of each episode, without the brief, and named one word. Decoy: "
        "another secret of the list, drawn for each episode; the guesser names it as often as the secret if it guesses "
        "by chance, so this share is the false-positive rate. Named, no leak: episodes in which the rules found no "
        f"leak. Intervals ({level:.0%}, Wilson) treat episodes as independent.",
    )


def contrasts_table(analysis: Analysis) -> Table:
    """Paired comparisons of one method with each other method, on the same episodes."""
    return Table(
        id="contrasts",
        title=f"{analysis.contrasts[0].method} compared with the other methods",
        columns={
            **{"against": "text", "guards": "text", "episodes": "count", "leaked": "share", "other leaked": "share"},
            **{"difference": "share_change", "p": "p", "difference of returns": "change", "p, returns": "p"},
        },
        rows=[
            (
                *(each.against, each.on, each.n, each.rate, each.against_rate),
                *(Estimate(each.difference, each.low, each.high), each.p),
                *(Estimate(each.total, each.total_low, each.total_high), each.total_p),
            )
            for each in analysis.contrasts
        ],
        caption=f"{analysis.contrasts[0].method} minus each other method, on the episodes that both completed: "
        f"differences of leak rate and mean return, with {analysis.level:.0%} confidence intervals. p-values are "
        "adjusted for the number of comparisons (Holm), separately for each kind of guard and each measure. The main "
        "finding uses leak rates on held-out guards only.",
    )


def half_table(analysis: Analysis) -> Table:
    """The number of queries after which half of the episodes have leaked."""
    return Table(
        id="half-leaked",
        title="Queries until half of the episodes leaked",
        columns={
            **{"method": "text", "guards": "text", "episodes": "count"},
            **{"queries until half have leaked": "count", "leaked at the end": "share"},
        },
        rows=[
            (
                *(each.method, each.on, each.n, "never" if (many := half_leaked(each)) is None else many),
                round(1 - each.steps[-1].share, 9) if each.steps else 0.0,
            )
            for each in analysis.lasting
            if each.n
        ],
        caption="From the curves of the figure with the share of leaked episodes by query. Never: fewer than half of "
        "the episodes leaked by the last step.",
    )


def settings_rows(data: ReportData) -> Iterator[tuple[str, str]]:
    """The task in words, then the other settings by field name."""
    task, evaluation, stored = data.settings.task, data.settings.evaluation, data.stored_settings
    judge = f", judged by {task.judge}" if task.reward == "judge" else ""
    yield "target", task.target
    yield "mutators", f"{', '.join(task.mutators)} (by {task.mutator_model}; prompts {data.analysis.prompts})"
    yield "embedder", task.embedder
    yield (
        "reward",
        f"{task.reward}{judge}, minus {task.query_cost:g} per query and {task.drift_cost:g} times the drift; a score "
        f"of at least {task.success:g} is a leak",
    )
    yield "trained on", ", ".join(guard.name for guard in task.guards)
    yield "held out", ", ".join(guard.name for guard in evaluation.guards) or "none"
    yield "episodes", f"{evaluation.episodes:,} per guard, at most {task.max_steps} steps each"
    yield "guesser", evaluation.guesser
    yield "secrets", f"{len(task.secrets):,} in training, {len(evaluation.secrets):,} held out"
    yield "queries", f"{len(task.queries):,}"
    yield "temperature", "provider default" if task.temperature is None else f"{task.temperature:g}"
    yield "policies", f"from run {stored['trained_by']}" if stored.get("trained_by") else ""
    for name, value in stored.items():
        if name not in NOT_SHOWN and value != {}:
            yield name, _worded(value)


def _worded(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_worded(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def failures_table(data: ReportData) -> Table:
    """Steps that failed. They are excluded from figures and from learning."""
    evaluation = f"{EVALUATION}/"
    rows = sorted(data.failures.items(), key=lambda each: (each[0].who.startswith(evaluation), each[0].who, -each[1]))
    return Table(
        id="failures",
        title="Steps that failed",
        part="run",
        columns={
            **{"method": "text", "phase": "text", "part": "text", "why": "text", "steps": "count"},
            **{"share of its steps": "share", "for example": "text"},
        },
        rows=[
            (
                what.who.removeprefix(evaluation),
                "evaluation" if what.who.startswith(evaluation) else "training",
                *(what.part, what.kind, many),
                many / data.step_counts[what.who] if data.step_counts.get(what.who) else None,
                data.failure_messages.get(what, ""),
            )
            for what, many in rows
        ],
        caption="Parts of steps that failed. If a mutation fails, the query stays as it was. If a request to the "
        "target fails, a default refusal takes the place of the response. In both cases the step is masked: the "
        "episode ends there, its value is estimated from the state before the step, and the step is excluded from "
        "learning. In the evaluation the step is repeated up to three times. If it still fails, the episode is "
        "missing.",
    )


def prompts(data: ReportData) -> Text:
    """The prompts that models received."""
    task = data.settings.task
    guards = dict.fromkeys([*task.guards, *data.settings.evaluation.guards])
    passages = [Passage(_guard(guard), guard.brief or "(none: the target has its own)") for guard in guards]
    passages += [
        Passage(f"Mutation {name}", mutators.described(name) or "(no built-in prompt)") for name in task.mutators
    ]
    passages += [Passage("Judge", rewards.ASKED)] if task.reward == "judge" else []
    if data.settings.evaluation.guesser:
        passages.append(Passage("Guesser", f"{guessing.BRIEF}\n\n{guessing.ASKED}"))
    passages.append(Passage("First queries of episodes", "\n".join(task.queries)))
    about = "System prompt of the target for each guard, and the instruction to the rewording model for each mutation. "
    about += "Fields in braces were filled in."
    return Text(id="prompts", title="Prompts", part="run", lines=[about], passages=passages)


def _guard(guard: Guard) -> str:
    filtered = ", with a filter that withholds the secret" if guard.withholds else ""
    kind = "" if guard.kind == COURTESY else f", kind {guard.kind}"
    return f"Guard {guard.name}, strength {guard.strength:g}{kind}{filtered}"
