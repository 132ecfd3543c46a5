"""Who gets the secret out of which guards: `python bench/learning.py`, `--repeats N` (5), `--quick`, `--only NAME`.

PPO and all its baselines attack emulated guards in this process, in three settings:

  alike     guards that differ in one number and share one weakness, rewordings only: a fixed sequence should do as well
  kinds     guards with different weaknesses, some of them not met in the training; rewordings and converters. PPO reads
            the responses. Refusals of these guards contain hints, so who reads them should have an advantage
  talks     the same guards and two more that keep the conversation; with attackers that are driven by a model

Trained methods get the same number of queries (8,000), `--repeats` times from different starts. All methods then play
the same episodes against guards of the training and held-out guards, with new secrets. For each method: the share of
episodes with a leak, with a 95% interval; then the paired differences from PPO and from the best fixed sequence, and
the verdict. Results are written to
bench/out/learning.json.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

import groundswell
from groundswell.compose import look_into
from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Figure
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.figures import Clusters, contrasts_of
from groundswell.experiments.query_mutation.guards import guards_named
from groundswell.experiments.query_mutation.learning.rules import Rules
from groundswell.experiments.query_mutation.methods import BASELINES
from groundswell.experiments.query_mutation.mutators import mutators_named
from groundswell.experiments.query_mutation.reading import read_runs
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.training import Training, train
from groundswell.loop import new_event_loop, tuned_collector

OUT = Path(__file__).parent / "out"
SETTINGS = ("alike", "kinds", "talks")
ALIKE, TALKING = ("open", "asked", "firm"), ("patient", "hardening")
REPEATS, STEPS, QUICK = 5, 8_192, 2_048


class Found(msgspec.Struct, frozen=True):
    """A training, its seconds, its steps, and the best fixed sequence compared with all other methods."""

    analysis: Analysis
    seconds: float
    steps: int
    of_sequence: list[Contrast]


async def trained(settings: Training, seed: int) -> Found:
    """Train and evaluate."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        async with groundswell.open(Path(folder) / "runs.db") as engine:
            summary = await engine.drive(train, settings, name="run", seed=seed)
        seconds = time.perf_counter() - start
        with look_into(Path(folder) / "runs.db") as store:
            assert store is not None
            record = store.runs.get("run")
            ended = [each.ended for each in read_runs([(record, store.results(record))], store).attempts]
    met = {guard.name for guard in settings.task.guards}
    held_out = [each for each in ended if each.guard not in met]
    methods = list(dict.fromkeys(each.method for each in ended))
    compared = contrasts_of("held out", held_out, methods, Clusters(ended), "sequence")
    return Found(msgspec.convert(summary.analysis, Analysis), seconds, summary.trials.usable, compared)


def show_figures(figures: tuple[Figure, ...]) -> None:
    """Print the results of every method."""
    print(f"\n{'':12}{'on':12}{'n':>6}{'leaked':>8}{'95% interval':>18}{'rewards':>9}{'steps':>7}")
    for each in sorted(figures, key=lambda figure: (figure.on, -(figure.rate or 0))):
        if each.rate is None or each.low is None or each.high is None:
            continue
        interval = f"{each.low:.1%} to {each.high:.1%}"
        rest = "".join("" if one is None else f"{one:>{width}.2f}" for one, width in ((each.total, 9), (each.steps, 7)))
        print(f"{each.method:12}{each.on:12}{each.n:>6}{each.rate:>8.1%}{interval:>18}{rest}")


def show_contrasts(contrasts: Sequence[Contrast]) -> None:
    """Print the differences between methods."""
    for each in contrasts:
        if each.difference is not None and each.low is not None and each.high is not None:
            interval = f"{each.low:+.1%} to {each.high:+.1%}"
            p = "" if each.p is None else f", p {each.p:.2g}"
            print(f"{each.method} minus {each.against}, {each.on}: {each.difference:+.1%} ({interval}{p})")


def settings_of(name: str, repeats: int, *, quick: bool) -> Training:
    """The training of a setting."""
    task, evaluation = (
        Task(mutators=mutators_named(["rewordings"]), guards=guards_named(ALIKE)),
        Evaluation(guards=guards_named(["wary", "warned"])),
    )
    if name != "alike":
        task = Task(mutators=mutators_named(["rewordings", "converters"]), read_responses=True)
        evaluation = Evaluation()
    if name == "talks":
        task = msgspec.structs.replace(task, multi_turn=True, guards=(*task.guards, *guards_named(TALKING[:1])))
        evaluation = Evaluation(guards=(*evaluation.guards, *guards_named(TALKING[1:])))
    return Training(
        task=task,
        num_env_steps=QUICK if quick else STEPS,
        rules=Rules(lr=3e-3),
        repeats=1 if quick else repeats,
        baselines=tuple(each for each in BASELINES if name == "talks" or each not in ("pair", "tap", "crescendo")),
        evaluation=msgspec.structs.replace(evaluation, episodes=10 if quick else 40),
    )


def main() -> None:
    """Train, compare, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="number of learners of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=SETTINGS)
    parser.add_argument("--quick", action="store_true", help="one learner of each kind, 2,048 steps")
    given = parser.parse_args()
    found = {}
    for name in [given.only] if given.only else SETTINGS:
        settings = settings_of(name, given.repeats, quick=given.quick)
        with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
            run = runner.run(trained(settings, given.seed))
        analysis = run.analysis
        print(f"\n== {name}: {settings.repeats} learners of each kind, {settings.updates * settings.each:,} steps each")
        print(f"{run.steps:,} steps in {run.seconds:.0f} s, {run.steps / run.seconds:,.0f} per second")
        show_figures(analysis.figures)
        show_contrasts([*analysis.contrasts, *run.of_sequence])
        print(f"\n{analysis.verdict}", flush=True)
        found[name] = run
    OUT.mkdir(exist_ok=True)
    (OUT / "learning.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))


if __name__ == "__main__":
    main()
