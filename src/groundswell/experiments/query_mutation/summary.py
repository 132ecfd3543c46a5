"""What a training or an evaluation is about to do and came to, for a terminal. The report has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from groundswell.emulator.skills.secrets import given_secret
from groundswell.experiments.query_mutation.analysis import Analysis, Figure, Uses
from groundswell.experiments.query_mutation.evaluating import Evaluation, baselines
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.training import Training
from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED

MOST_SHOWN = 3
"""So many operators are named for a guard."""
CHANCE = "random"
"""The method whose uses say what an operator is worth."""
FEWEST = 5
"""An operator that was used less often is not named."""


def announced(settings: Training) -> str:
    """What a training is about to do."""
    learners = "ppo and bandit" + (f", {settings.repeats} of each" if settings.repeats > 1 else "")
    steps = f"{settings.num_processes} environments x {settings.num_steps} steps x {settings.updates:,} updates"
    target = f"target {settings.task.target} behind {', '.join(guard.name for guard in settings.task.guards)}"
    return f"{learners}: {steps}; {target}; then {tried(settings.task, settings.evaluation, 2 * settings.repeats)}"


def tried(task: Task, evaluation: Evaluation, learners: int) -> str:
    """What everybody is about to be tried on."""
    guards = len(task.guards) + len(evaluation.guards)
    held_out = ", ".join(guard.name for guard in evaluation.guards) or "none"
    others = len(baselines(task))
    count = guards * evaluation.episodes * (learners + others)
    who = f"{learners} learners and {others} baselines, {evaluation.episodes} each behind {guards} guards"
    return f"{count:,} episodes ({who}); held out: {held_out}"


def unread(task: Task, evaluation: Evaluation) -> Iterator[str]:
    """Which guards an emulated target cannot leak behind, since it does not find the secret in their briefs."""
    if not task.target.startswith("emulated/"):
        return
    guards = (*task.guards, *evaluation.guards)
    planted = {each.name: each.brief.replace("{secret}", task.secrets[0]) for each in guards}
    if names := [name for name, brief in planted.items() if given_secret(brief) is None]:
        yield (
            f"guards {', '.join(map(repr, names))}: the emulator finds no secret in the brief, and so never leaks; "
            'write as it knows it (Your secret code word is "{secret}"), or name a real target'
        )


def summary(analysis: Analysis) -> Iterator[str | Table]:
    """The short version of an analysis."""
    yield ""
    yield _methods(analysis)
    if analysis.verdict:
        yield ""
        yield analysis.verdict
    if working := list(_operators(analysis)):
        yield ""
        yield f"operators that work, by what a use gained on average in {CHANCE} rewording, of 1:"
        yield from (f"  {line}" for line in working)
    if notes := list(_notes(analysis)):
        yield ""
        yield from notes


def _methods(analysis: Analysis) -> Table:

    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    table.add_column("guards")
    for column in ("episodes", "leaked", "95% interval", "mean return", "steps"):
        table.add_column(column, justify="right")
    for on in (HELD_OUT, TRAINED):
        for figure in _by_rate([each for each in analysis.figures if each.on == on]):
            table.add_row(figure.method, on, *_cells(figure))
    return table


def _by_rate(figures: Sequence[Figure]) -> list[Figure]:
    return sorted(figures, key=lambda each: -1.0 if each.rate is None else each.rate, reverse=True)


def _cells(figure: Figure) -> list[str]:
    rate = "" if figure.rate is None else f"{figure.rate:.1%}"
    between = "" if figure.low is None or figure.high is None else f"{figure.low:.1%} to {figure.high:.1%}"
    total = "" if figure.total is None else f"{figure.total:+.2f}"
    return [f"{figure.n:,}", rate, between, total, "" if figure.steps is None else f"{figure.steps:.1f}"]


def _operators(analysis: Analysis) -> Iterator[str]:
    """For each guard the mutators that gained most a use; by chance alone, since others use them where it pays."""
    drawn = [each for each in analysis.uses if each.method == CHANCE]
    for guard in dict.fromkeys(each.guard for each in drawn):
        found = _gains([each for each in drawn if each.guard == guard])
        best = [(name, gain, uses) for name, gain, uses in found if gain > 0][:MOST_SHOWN]
        told = ", ".join(f"{name} {gain:.2f} ({uses:,} uses)" for name, gain, uses in best)
        yield f"{guard}: {told or ('none gained anything' if found else 'too few uses to tell')}"


def _gains(uses: Sequence[Uses]) -> list[tuple[str, float, int]]:
    """What each mutator gained a use, most first; those that were hardly used are left out."""
    steps: dict[str, int] = {}
    gained: dict[str, float] = {}
    for each in uses:
        steps[each.mutator] = steps.get(each.mutator, 0) + each.steps
        gained[each.mutator] = gained.get(each.mutator, 0.0) + each.gained
    found = [(name, gained[name] / count, count) for name, count in steps.items() if count >= FEWEST]
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _notes(analysis: Analysis) -> Iterator[str]:
    """What is missing, and what to beware of."""
    steps = sum(point.usable + point.masked for curve in analysis.curves for point in curve.points)
    if analysis.masked:
        yield f"{analysis.masked:,} of {steps:,} steps of the training failed: they were masked, and not learnt from"
    elif steps:
        yield f"no step of the training was masked ({steps:,} steps)"
    missing = {each.method: 0 for each in analysis.figures}
    for each in analysis.figures:
        if each.on in (HELD_OUT, TRAINED):
            missing[each.method] += each.missing
    if told := ", ".join(f"{method} {count:,}" for method, count in missing.items() if count):
        yield f"episodes that a fault broke off, which count for nothing: {told}"
    yield from analysis.notes
