"""The sections about the run itself: what was masked, what was run, what models were told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundswell.engine.summary import RunCost
from groundswell.experiments.query_mutation import mutators, rewards
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.report.reading import EVALUATION
from groundswell.experiments.query_mutation.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.markup import Html, Number, Section, joined, paragraph, table, tag
from groundswell.reporting.words import cost, duration


def masked(told: Told) -> Section:
    """Steps that failed: they are in no figure, and nothing was learnt from them."""
    if not told.failed:
        done = f"Of {sum(told.steps.values()):,} steps none failed." if told.steps else "There are no steps."
        return Section("masked", "What was masked, and why", paragraph(done))
    rows = [
        (
            _whose(what.who),
            what.part,
            what.kind,
            Number(f"{many:,}"),
            Number(numbers.percent(many / told.steps[what.who] if told.steps.get(what.who) else None)),
            told.examples.get(what, ""),
        )
        for what, many in sorted(told.failed.items(), key=lambda each: (each[0].who, -each[1]))
    ]
    caption = (
        "Parts of steps that failed. A mutation that fails leaves the query as it was, and a target that cannot be "
        "asked counts as a refusal; but the step is masked: the episode is broken off there, its value is estimated "
        "from where it stood, and nothing is learnt from it. In the evaluation such episodes are missing."
    )
    heads = ("whose", "part", "why", ">steps", ">of its steps", "for example")
    return Section("masked", "What was masked, and why", table(caption, heads, rows))


def _whose(who: str) -> str:
    phase, _, name = who.rpartition("/")
    return f"{name}, evaluated" if phase == EVALUATION else f"{name}, learning"


def run(told: Told) -> Section:
    """What was run."""
    task, evaluation = told.settings.task, told.settings.evaluation
    names = [summary.name or summary.run_id for summary in told.summaries]
    rows = [
        ("runs", ", ".join(names)),
        ("seeds", ", ".join(map(str, told.seeds))),
        ("status", ", ".join(dict.fromkeys(summary.status for summary in told.summaries))),
        ("target", task.target),
        ("mutators", f"{', '.join(task.mutators)} (by {task.mutator_model}; words {told.analysis.prompts})"),
        ("embedder", task.embedder),
        ("reward", _reward(told)),
        ("trained on", ", ".join(guard.name for guard in task.guards)),
        ("held out", ", ".join(guard.name for guard in evaluation.guards) or numbers.NONE),
        ("episodes", f"{evaluation.episodes:,} for each guard, of at most {task.max_steps} steps"),
        ("secrets", f"{len(task.secrets):,} of the training, {len(evaluation.secrets):,} held out"),
        ("queries", f"{len(task.queries):,}"),
        ("temperature", "the provider's" if task.temperature is None else f"{task.temperature:g}"),
        *_settings(told),
        ("requests", f"{sum(each.asks.sent for each in told.summaries):,} sent"),
        ("cost", _cost(told)),
        ("time", duration(sum(each.seconds for each in told.summaries))),
        *told.about,
    ]
    caption = "The same seed and settings give the same figures again, at temperature 0."
    return Section("run", "What was run", joined([table(caption, ("", ""), rows), _models(told)]))


def _reward(told: Told) -> str:
    task = told.settings.task
    costs = f"less {task.query_cost:g} a query and {task.drift_cost:g} times the drift"
    judge = f", judged by {task.judge}" if task.reward == "judge" else ""
    return f"{task.reward}{judge}, {costs}; success from {task.success:g} on"


def _settings(told: Told) -> list[tuple[str, str]]:
    """What was set by hand, other than task and evaluation."""
    given = {name: value for name, value in told.chosen.items() if name not in ("task", "evaluation") and value != {}}
    return [(name, _value(value)) for name, value in given.items()]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cost(told: Told) -> str:
    costs = [each.cost for each in told.summaries]
    known = [each.usd for each in costs if each.usd is not None]
    return RunCost(
        sum(known) if known else None,
        sum(each.unknown_asks for each in costs),
        sum(each.possible_usd for each in costs),
        sum(each.possible_asks for each in costs),
        sum(each.possible_unknown_asks for each in costs),
    ).words


def _models(told: Told) -> Html:
    rows = [
        (
            model,
            *(Number(f"{n:,}") for n in (paid.replies, paid.input_tokens, paid.output_tokens)),
            Number(cost(paid.cost.usd, paid.cost.unknown_asks)),
        )
        for summary in told.summaries
        for model, paid in summary.models.items()
    ]
    if not rows:
        return Html("")
    caption = "What each model was asked for; replies that were there already cost nothing, and are not counted."
    return table(caption, ("model", ">replies", ">input tokens", ">output tokens", ">cost"), rows)


def prompts(told: Told) -> Section:
    """What models were told, word by word."""
    task = told.settings.task
    every = dict.fromkeys([*task.guards, *told.settings.evaluation.guards])
    parts = [
        paragraph("What models were told. Fields in braces were filled in."),
        _folded("Guards: what the target was told", [_guard(guard) for guard in every]),
        _folded("Mutators: what the rewording model was told", _mutators(task.mutators)),
    ]
    if task.reward == "judge":
        parts.append(_folded("Judge", [("to the judge", rewards.ASKED)]))
    parts.append(_folded("Queries that episodes begin with", [("", "\n".join(task.queries))]))
    return Section("prompts", "Prompts", joined(parts))


def _guard(guard: Guard) -> tuple[str, str]:
    filtered = ", with a filter that withholds the secret" if guard.withholds else ""
    return f"{guard.name}, strength {guard.strength:g}{filtered}", guard.brief


def _mutators(names: Sequence[str]) -> list[tuple[str, str]]:
    said = [(name, mutators.described(name)) for name in names]
    return [(name, words or "(asks no model with words of ours)") for name, words in said]


def _folded(title: str, parts: Sequence[tuple[str, str]]) -> Html:
    told = [joined([tag("h4", head) if head else Html(""), tag("pre", words, dir="auto")]) for head, words in parts]
    return tag("details", tag("summary", title), *told)
