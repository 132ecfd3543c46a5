"""What a search finds: `python bench/searching.py` (half an hour), `--seeds N` (20), `--noise N` (200), `--quick`.

  landscape   an evolution with races on the emulator's landscape of prompts, whose optimum is known; random search
              and best of N with as many requests; and the optimum itself, on the same held-out problems
  races       the same evolution with every candidate on every problem: what races cost in accuracy and save in
              requests
  noise       evolutions where the prompt makes no difference: how often a gain is claimed

Each seed has its own problems: 200 for training, 200 for validation, 1,000 held out. Means are over seeds, with
intervals by Student's t, and differences are taken within a seed. Goals: within 2 points of the optimum; races within
1 point of full evaluation (90% interval) with at most a third of the requests; claims on noise not significantly
above 5%. Seeds are distributed over the cores. Results are written to bench/out/searching.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import fmean

import msgspec
from scipy import stats  # type: ignore[import-untyped]

import groundswell
from groundswell import Chat, Reply, Request
from groundswell.emulator import in_process
from groundswell.emulator.skills.landscape import OPTIMUM
from groundswell.experiments.chance import chance_of
from groundswell.experiments.prompt_evolution import AsyncEvolutionConfig, AsyncLLMInterface
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION, evolve
from groundswell.experiments.prompt_evolution.problems import Problem, Sizes, generated
from groundswell.experiments.prompt_evolution.settings import EMULATED, Evolution, Stops
from groundswell.experiments.prompt_evolution.solving import Solved
from groundswell.loop import new_event_loop, tuned_collector
from groundswell.program.request import fingerprint

OUT = Path(__file__).parent / "out"
SEEDS, NOISE = 20, 200
SIZES, SMALL = Sizes(200, 200, 1000), Sizes(50, 50, 200)
OPTIMUM_NAME, FULL = "optimum", "full evaluation"
RIGHT = 0.5
"""How often an answer is right on noise."""


class Found(msgspec.Struct, frozen=True):
    """One seed: accuracies on its held-out test, and the requests of the search."""

    seed: int
    accuracy: dict[str, float]
    asks: dict[str, int]


class Claimed(msgspec.Struct, frozen=True):
    """One seed on noise: the baselines over which a gain was claimed."""

    seed: int
    over: tuple[str, ...]
    asks: int


def settings_of(seed: int, *, racing: bool) -> Evolution:
    """An evolution with its own problems."""
    base = Evolution(
        problems=generated(sizes=SIZES, seed=seed),
        population_size=30,
        max_generations=12,
        stops=Stops(plateau=None),
    )
    if racing:
        return base
    return msgspec.structs.replace(base, rules=msgspec.structs.replace(base.rules, racing=False), baselines=())


async def driven(settings: Evolution, seed: int, script: Callable[[Request], Reply] | None = None) -> Analysis:
    """The result of an evolution."""
    with tempfile.TemporaryDirectory() as folder:
        async with groundswell.open(Path(folder) / "runs.db", script=script) as engine:
            summary = await engine.drive(evolve, settings, seed=seed)
    return msgspec.convert(summary.analysis, Analysis)


async def optimum(problems: Sequence[Problem]) -> float:
    """The accuracy of the best possible prompt."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncLLMInterface(AsyncEvolutionConfig(model=EMULATED), store=Path(folder) / "runs.db") as llm:
            found = await llm.solve(OPTIMUM, problems)
    return fmean(each.score for each in found if isinstance(each, Solved))


async def searched(seed: int) -> Found:
    """One seed, with races and without."""
    raced, whole = settings_of(seed, racing=True), settings_of(seed, racing=False)
    one, other = await driven(raced, seed), await driven(whole, seed)
    accuracy = {each.name: each.accuracy or 0.0 for each in one.tested}
    accuracy[FULL] = next(each.accuracy or 0.0 for each in other.tested if each.name == EVOLUTION)
    accuracy[OPTIMUM_NAME] = await optimum(raced.problems.test)
    asks = {each.name: each.asks for each in one.searches} | {FULL: other.evolution.asks}
    return Found(seed, accuracy, asks)


async def on_noise(seed: int) -> Claimed:
    """One seed where every prompt is right by chance, equally often."""
    problems = generated(sizes=SMALL, seed=seed)
    answers = {each.question: each.answer for each in (*problems.train, *problems.validation, *problems.test)}

    def noise(request: Request) -> Reply:
        assert isinstance(request, Chat)
        answer = answers.get(str(request.messages[-1].content))
        if answer is None:  # the request is to write a prompt
            said = in_process.answer(msgspec.structs.replace(request, model=EMULATED), 0)
            assert isinstance(said, Reply)
            return said
        return Reply(f"#### {answer}" if chance_of(seed, fingerprint(request)) < RIGHT else "#### -1")

    settings = Evolution(problems=problems, population_size=20, max_generations=5, stops=Stops(plateau=None))
    found = await driven(settings, seed, noise)
    return Claimed(
        seed, tuple(each.over for each in found.gains if found.standing(each.over) != "open"), found.evolution.asks
    )


def run(which: str, seed: int) -> Found | Claimed:
    """One seed, in a separate process."""
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        if which == "landscape":
            return runner.run(searched(seed))
        return runner.run(on_noise(seed))


def interval(values: Sequence[float], level: float) -> tuple[float, float, float]:
    """A mean over seeds, with its interval."""
    mean = fmean(values)
    off = stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(values) if len(values) > 1 else float("nan")
    return mean, mean - off, mean + off


def show_landscape(found: Sequence[Found]) -> None:
    """Print accuracies, and the distance from the optimum and from full evaluation."""
    print(f"\n{len(found)} seeds; accuracy on {SIZES.test:,} held-out problems, means over seeds")
    print(f"{'':18}{'accuracy':>9}{'95% interval':>20}{'asks':>10}")
    for name in found[0].accuracy:
        mean, low, high = interval([each.accuracy[name] for each in found], 0.95)
        asks = f"{fmean(each.asks[name] for each in found):>10,.0f}" if name in found[0].asks else ""
        print(f"{name:18}{mean:>9.2%}{f'{low:.2%} to {high:.2%}':>20}{asks}")
    for other, level in ((OPTIMUM_NAME, 0.95), (SEED, 0.95), ("random", 0.95), ("best_of_n", 0.95), (FULL, 0.90)):
        mean, low, high = interval([each.accuracy[EVOLUTION] - each.accuracy[other] for each in found], level)
        bounds = f"({level:.0%} interval {100 * low:+.2f} to {100 * high:+.2f})"
        print(f"evolution minus {other}: {100 * mean:+.2f} points {bounds}")
    share, low, high = interval([each.asks[EVOLUTION] / each.asks[FULL] for each in found], 0.95)
    print(f"requests with races, relative to full evaluation: {share:.3f} ({low:.3f} to {high:.3f})")


def show_noise(found: Sequence[Claimed]) -> None:
    """Print how often a gain was claimed that does not exist."""
    print(f"\nnoise: {len(found)} seeds, {fmean(each.asks for each in found):,.0f} requests per evolution on average")
    for what, count in (
        ("a difference from the seed prompt", sum(SEED in each.over for each in found)),
        ("any of three differences", sum(bool(each.over) for each in found)),
    ):
        test = stats.binomtest(count, len(found), 0.05, alternative="greater")
        low, high = stats.binomtest(count, len(found)).proportion_ci(method="wilson")
        print(f"{what} was claimed in {count}, {count / len(found):.1%} ({low:.1%} to {high:.1%}); ", end="")
        print(f"above 5%: p {test.pvalue:.2f}")


def main() -> None:
    """Search, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds on the landscape")
    parser.add_argument("--noise", type=int, default=NOISE, help="number of seeds on noise")
    parser.add_argument("--quick", action="store_true", help="2 seeds on the landscape, and 10 on noise")
    given = parser.parse_args()
    seeds, noise = (2, 10) if given.quick else (given.seeds, given.noise)
    work = [("landscape", seed) for seed in range(seeds)] + [("noise", seed) for seed in range(noise)]
    began, found, claimed = time.monotonic(), list[Found](), list[Claimed]()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, future in enumerate(as_completed([pool.submit(run, *each) for each in work]), 1):
            result = future.result()
            if isinstance(result, Found):
                found.append(result)
            else:
                claimed.append(result)
            print(f"\r{done} of {len(work)}, {time.monotonic() - began:.0f} s", end="", flush=True)
    found.sort(key=lambda each: each.seed)
    claimed.sort(key=lambda each: each.seed)
    OUT.mkdir(exist_ok=True)
    whole = {"landscape": found, "noise": claimed}
    (OUT / "searching.json").write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2))
    if found:
        show_landscape(found)
    if claimed:
        show_noise(claimed)


if __name__ == "__main__":
    main()
