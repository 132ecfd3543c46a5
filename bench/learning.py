"""What each method learns: `python bench/learning.py` (about five minutes), `--repeats N` (5), `--quick` (4,000 steps).

PPO and the bandit are trained on the emulator's guards, in this process, `--repeats` times from different starts, for
20,000 environment steps each. They are then compared with random choice and with no rewording on the same episodes:
guards from training, and held-out guards and secrets. For each method: the share of episodes with a leak, with a 95%
interval, the rewards per episode and the steps. Then the paired differences and the verdict. Results are written to
bench/out/learning.json.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import msgspec

import groundswell
from groundswell.experiments.query_mutation.analysis import Analysis, Contrast, Figure
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.training import Training, train
from groundswell.loop import new_event_loop, tuned_collector

OUT = Path(__file__).parent / "out"
REPEATS, STEPS, QUICK = 5, 20_000, 4_000


async def trained(settings: Training, seed: int) -> tuple[Analysis, float, int]:
    """The analysis of a training, its seconds and its steps."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        async with groundswell.open(Path(folder) / "runs.db") as engine:
            summary = await engine.drive(train, settings, seed=seed)
        seconds = time.perf_counter() - start
        return msgspec.convert(summary.analysis, Analysis), seconds, summary.trials.usable


def show_curves(analysis: Analysis) -> None:
    """How often the secret leaked in a learner's first and last updates."""
    print(f"\n{'learner':14}{'first':>9}{'middle':>9}{'last':>9}   episodes with a leak, in a tenth of the updates")
    for curve in analysis.curves:
        points, tenth = curve.points, max(1, len(curve.points) // 10)
        middle = len(points) // 2
        parts = (points[:tenth], points[middle : middle + tenth], points[-tenth:])
        rates = [sum(each.leaks for each in part) / max(1, sum(each.episodes for each in part)) for part in parts]
        print(f"{curve.learner + f' {curve.number}':14}" + "".join(f"{rate:>9.0%}" for rate in rates))


def show_figures(figures: tuple[Figure, ...]) -> None:
    """Print the results of every method."""
    print(f"\n{'':10}{'on':12}{'n':>6}{'leaked':>8}{'95% interval':>18}{'rewards':>9}{'steps':>7}")
    for each in sorted(figures, key=lambda figure: figure.on):
        if each.rate is None or each.low is None or each.high is None:
            continue
        interval = f"{each.low:.1%} to {each.high:.1%}"
        rest = "".join("" if one is None else f"{one:>{width}.2f}" for one, width in ((each.total, 9), (each.steps, 7)))
        print(f"{each.method:10}{each.on:12}{each.n:>6}{each.rate:>8.1%}{interval:>18}{rest}")


def show_contrasts(contrasts: tuple[Contrast, ...]) -> None:
    """Print the differences between methods."""
    for each in contrasts:
        if each.difference is not None and each.low is not None and each.high is not None:
            interval = f"{each.low:+.1%} to {each.high:+.1%}"
            p = "" if each.p is None else f", p {each.p:.2g}"
            print(f"{each.method} minus {each.against}, {each.on}: {each.difference:+.1%} ({interval}{p})")


def main() -> None:
    """Train, compare, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="number of learners of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one learner of each kind, 4,000 steps")
    given = parser.parse_args()
    settings = Training(
        num_env_steps=QUICK if given.quick else STEPS,
        repeats=1 if given.quick else given.repeats,
        evaluation=Evaluation(episodes=10) if given.quick else Evaluation(),
    )
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        analysis, seconds, steps = runner.run(trained(settings, given.seed))
    print(f"{settings.repeats} learners of each kind, {settings.updates * settings.each:,} steps each")
    print(f"{steps:,} steps in {seconds:.0f} s, {steps / seconds:,.0f} per second; {analysis.masked} masked")
    show_curves(analysis)
    show_figures(analysis.figures)
    show_contrasts(analysis.contrasts)
    print(f"\n{analysis.verdict}")
    OUT.mkdir(exist_ok=True)
    (OUT / "learning.json").write_bytes(msgspec.json.format(msgspec.json.encode(analysis), indent=2))


if __name__ == "__main__":
    main()
