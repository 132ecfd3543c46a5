"""Compare searches for prompts: `make bench-searching`, or `python bench/searching.py` where the peers are installed.

Searches run on the landscapes of `bench/landscapes.py`, where the exact expected accuracy of every prompt is known.
They use the same two models (one solves problems, one writes prompts), the same seed prompt, and the same problems:
200 for training and 200 for validation. The budget is the number of task calls: one prompt on one problem. Calls that
choose the final prompt count; calls of the writer are reported separately.

  groundswell   prompt evolution of this project, with its defaults
  gepa          GEPA 0.1.4, with 25, 50, 100 or 200 problems as its validation set, and parents from the Pareto front
                (its default) or always the best prompt (greedy); other settings are the defaults
  capo          CAPO of promptolution 2.3.0, with small or default populations and blocks; its initial prompts are
                written by the writer from training problems with their answers, as its library does
  random        rewrites of randomly chosen earlier prompts, after a few of their failures; nothing is selected before
                the end, when the best on training problems are validated
  best_of_n     rewrites of the seed prompt after a few of its failures; the best on training problems are validated

Peers and baselines have variants. Of each, the variant with the best mean is used, separately for each landscape and
budget: the choice favours them. Differences are taken within a seed, with 95% intervals by Student's t. At small
budgets results vary most, so three times as many seeds are used there. Goals: at no budget below GEPA or random search,
which means that the lower limit is above -0.02. `--noise N` also counts how often a gain is claimed where the prompt
makes no difference.

Finished searches are appended to bench/out/searching.jsonl, and an interrupted comparison continues. Use `--again
NAME` to repeat the searches of one name. The table is also written to bench/out/searching.json and drawn to
docs/images/searching.svg.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import logging
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np
from scipy import special, stats  # type: ignore[import-untyped]

import groundswell
from groundswell import Chat, Request
from groundswell.experiments.prompt_evolution.analysis import SEED, Analysis
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem, Problems
from groundswell.experiments.prompt_evolution.settings import Evolution, Stops
from groundswell.loop import new_event_loop, tuned_collector
from landscapes import LANDSCAPES, Landscape, prompts_in

OUT = Path(__file__).parent / "out"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "searching.svg"
BUDGETS = (500, 1_000, 2_000, 5_000, 10_000, 30_000)
SEEDS, TRAIN, VALIDATION, TEST = 20, 200, 200, 200
SMALL, MORE = 5_000, 3
"""Budgets up to the first have this many times as many seeds."""
MARGIN = 0.02
SHOWN = 3
"""Failures that a baseline shows to the writer, as many as GEPA does."""


class Row(msgspec.Struct, frozen=True):
    """The result of one search with one budget."""

    search: str
    variant: str
    landscape: str
    seed: int
    budget: int
    accuracy: float
    """The exact expected accuracy of the prompt that was found."""
    calls: int
    written: int
    """Requests to the writer."""
    prompt: str


class Claim(msgspec.Struct, frozen=True):
    """Whether an evolution claimed a gain over the seed prompt where no prompt is better than another."""

    seed: int
    claimed: bool


class OutOfBudget(Exception):
    """The next task call would exceed the budget."""


@dataclass
class Models:
    """The two models of a landscape, with counted calls."""

    landscape: Landscape
    budget: int | None = None
    """If given, more task calls raise `OutOfBudget`."""
    calls: int = 0
    written: int = 0

    def solve(self, prompt: str, problem: Problem) -> str:
        """The reply to a problem."""
        if self.calls == self.budget:
            raise OutOfBudget
        self.calls += 1
        return self.landscape.solve(prompt, problem.question)

    def write(self, request: str) -> str:
        """The reply of the writer. Equal requests get different replies."""
        self.written += 1
        return self.landscape.write(request, self.written)


Point = tuple[str, int, int]
"""A prompt with the task calls and the requests to the writer that it took."""


def is_right(reply: str, problem: Problem) -> bool:
    """Whether a reply is right. All landscapes reply with the number after ####."""
    return reply.rpartition("#### ")[2] == problem.answer


# Ours


async def drive(landscape: Landscape, settings: Evolution, seed: int) -> tuple[Analysis, Models]:
    """Run an evolution on a landscape. The held-out test is not counted."""
    models = Models(landscape)
    problems = settings.problems
    known = {each.question: each for each in (*problems.train, *problems.validation)}
    test = {each.question for each in problems.test}

    def script(request: Request, sample: int) -> str:
        assert isinstance(request, Chat)
        texts = [str(message.content) for message in request.messages]
        if texts[-1] in known:
            return models.solve(texts[0], known[texts[-1]])
        if texts[-1] in test:
            return landscape.solve(texts[0], texts[-1])
        models.written += 1
        return landscape.write("\n\n".join(texts), sample)

    with tempfile.TemporaryDirectory() as folder:
        async with groundswell.open(Path(folder) / "runs.db", script=script) as engine:
            summary = await engine.drive(evolve, settings, seed=seed)
    return msgspec.convert(summary.analysis, Analysis), models


def settings_of(landscape: Landscape, budget: int, problems: Problems) -> Evolution:
    """An evolution with a budget and default settings."""
    return Evolution(
        problems=problems,
        metric=landscape.metric,
        seeds=(Genome.of(landscape.seed_prompt),),
        stops=Stops(asks=budget),
        baselines=(),
        ablation=False,
    )


def ours(landscape: Landscape, budget: int, seed: int) -> Point:
    """Prompt evolution of this project."""
    problems = landscape.problems(seed, TRAIN, VALIDATION, 1)
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        found, models = runner.run(drive(landscape, settings_of(landscape, budget, problems), seed))
    return found.deployed.genome.text, models.calls, models.written


def claims(seed: int, budget: int = 2_000) -> Claim:
    """An evolution on noise."""
    landscape = LANDSCAPES["noise"](seed)
    settings = settings_of(landscape, budget, landscape.problems(seed, TRAIN, VALIDATION, TEST))
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        found, _ = runner.run(drive(landscape, settings, seed))
    return Claim(seed, found.standing(SEED) != "open")


# Baselines


def rewrite(models: Models, prompt: str, failures: Sequence[tuple[Problem, str]]) -> str:
    """Ask the writer for a better prompt."""
    shown = "\n\n".join(
        f"Problem: {problem.question}\nReply: {reply}\nRight answer: {problem.answer}" for problem, reply in failures
    )
    failed = f"It failed on these problems:\n\n{shown}\n\n" if shown else ""
    reply = models.write(
        f"Improve this prompt.\n\n<prompt>\n{prompt}\n</prompt>\n\n{failed}"
        "Reply with the improved prompt between <prompt> and </prompt>."
    )
    return prompts_in(reply)[0][0]


def unguided(landscape: Landscape, budget: int, seed: int, *, problems_each: int, walking: bool) -> Point:
    """Rewrite prompts at random, from the seed prompt or (`walking`) from any earlier one, and validate the best.

    A quarter of the budget is for validation, on up to 100 problems for each finalist.
    """
    models, rng = Models(landscape, budget), random.Random(f"unguided {seed}")
    problems = landscape.problems(seed, TRAIN, VALIDATION, 1)
    each = min(problems_each, max(2, budget // 20))
    tried: list[tuple[float, str, list[tuple[Problem, str]]]] = []
    prompt = landscape.seed_prompt
    while models.calls + each <= 0.75 * budget:
        replies = [(problem, models.solve(prompt, problem)) for problem in rng.sample(problems.train, each)]
        failures = [(problem, reply) for problem, reply in replies if not is_right(reply, problem)]
        tried.append((1 - len(failures) / each, prompt, failures))
        parent = rng.choice(tried) if walking else tried[0]
        prompt = rewrite(models, parent[1], rng.sample(parent[2], min(SHOWN, len(parent[2]))))
    validated = min(100, VALIDATION, max(10, budget // 20))
    ranked = [prompt for _, prompt, _ in sorted(tried, key=lambda one: -one[0])]
    finalists = list(dict.fromkeys(ranked))[: (budget - models.calls) // validated]
    scores = {
        prompt: fmean(is_right(models.solve(prompt, one), one) for one in problems.validation[:validated])
        for prompt in finalists
    }
    return max(finalists, key=lambda prompt: scores[prompt]), models.calls, models.written


# Peers


def peer(name: str) -> Any:
    """A module of a peer, which need not be installed."""
    return import_module(name)


class Remembered:
    """The function of GEPA that takes most of its time, which is called again and again with the same Pareto front."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.known: tuple[Any, Any] = (None, None)

    def __call__(self, fronts: Mapping[Any, set[int]], scores: Sequence[float]) -> Any:
        """The result of the function, from memory if the arguments are those of the last call."""
        key = ([(each, *front) for each, front in fronts.items()], list(scores))
        if self.known[0] != key:
            self.known = (key, self.function(fronts, scores=scores))
        return self.known[1]


def gepa(
    landscape: Landscape, budgets: Sequence[int], seed: int, *, validation: int, selection: str = "pareto"
) -> Iterator[tuple[int, Point]]:
    """GEPA. One run gives the results of all budgets, because only the end of a run depends on its budget."""
    library, utils, adapter = (peer(name) for name in ("gepa", "gepa.gepa_utils", "gepa.core.adapter"))
    models, problems = Models(landscape), landscape.problems(seed, TRAIN, VALIDATION, 1)
    found: dict[int, Point] = {}
    if not isinstance(utils.remove_dominated_programs, Remembered):
        utils.remove_dominated_programs = Remembered(utils.remove_dominated_programs)

    class Adapter:
        """One prompt that is evaluated on problems."""

        propose_new_texts = None

        def evaluate(self, batch: list[Problem], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            replies = [models.solve(candidate["prompt"], each) for each in batch]
            return adapter.EvaluationBatch(
                outputs=replies,
                scores=[float(is_right(reply, each)) for reply, each in zip(replies, batch, strict=True)],
                trajectories=list(zip(batch, replies, strict=True)) if capture_traces else None,
            )

        def make_reflective_dataset(self, candidate: Any, evaluated: Any, components: list[str]) -> Any:
            records = [
                {
                    "Inputs": problem.question,
                    "Generated Outputs": reply,
                    "Feedback": "This response is correct."
                    if is_right(reply, problem)
                    else f"This response is wrong. The right answer is {problem.answer}.",
                }
                for problem, reply in evaluated.trajectories
            ]
            return dict.fromkeys(components, records)

    class Silent:
        """A logger that does nothing."""

        def log(self, message: str) -> None:
            pass

    def stop(state: Any) -> bool:
        due = [each for each in budgets if each not in found and state.total_num_evals >= each]
        if due:
            scores = state.program_full_scores_val_set
            best = state.program_candidates[scores.index(max(scores))]["prompt"]
            found.update((each, (best, models.calls, models.written)) for each in due)
        return len(found) == len(budgets)

    library.optimize(
        seed_candidate={"prompt": landscape.seed_prompt},
        trainset=list(problems.train),
        valset=list(problems.validation[:validation]),
        adapter=Adapter(),
        reflection_lm=models.write,
        candidate_selection_strategy=selection,
        stop_callbacks=stop,
        logger=Silent(),
        seed=seed,
    )
    yield from found.items()


def capo(
    landscape: Landscape, budgets: Sequence[int], seed: int, *, population: int, block: int, blocks: int, shots: int
) -> Iterator[tuple[int, Point]]:
    """CAPO. The result for a budget is the best prompt of the last step that ended within it."""
    pandas, llms, optimizers, predictors, tasks, callbacks, creation = (
        peer(name)
        for name in (
            "pandas",
            "promptolution.llms.base_llm",
            "promptolution.optimizers.capo",
            "promptolution.predictors.base_predictor",
            "promptolution.tasks.base_task",
            "promptolution.utils.callbacks",
            "promptolution.utils.prompt_creation",
        )
    )
    logging.disable(logging.ERROR)
    random.seed(seed)
    np.random.seed(seed)
    models = Models(landscape, max(budgets))
    problems = landscape.problems(seed, TRAIN, VALIDATION, 1)
    known = {each.question: each for each in (*problems.train, *problems.validation)}
    passed: list[Point] = [(landscape.seed_prompt, 0, 0)]

    class Writer(llms.BaseLLM):  # type: ignore[misc, name-defined]
        """The model that writes prompts."""

        def _get_response(self, prompts: list[str], system_prompts: list[str]) -> list[str]:
            return [models.write(each) for each in prompts]

    class Predictor(predictors.BasePredictor):  # type: ignore[misc, name-defined]
        """The model that solves problems."""

        def predict(self, prompts: Any, xs: list[str], system_prompts: Any = None) -> tuple[list[str], list[str]]:
            given = [prompts] * len(xs) if isinstance(prompts, str) else prompts
            replies = [models.solve(prompt, known[x]) for prompt, x in zip(given, xs, strict=True)]
            return self._extract_preds(replies), [f"{x}\n{reply}" for x, reply in zip(xs, replies, strict=True)]

        def _extract_preds(self, preds: list[str]) -> list[str]:
            return [each.rpartition("#### ")[2] for each in preds]

    class Task(tasks.BaseTask):  # type: ignore[misc, name-defined]
        """Problems with right answers."""

        def _evaluate(self, xs: list[str], ys: list[str], preds: list[str]) -> Any:
            return np.array([float(y == pred) for y, pred in zip(ys, preds, strict=True)])

    class Record(callbacks.BaseCallback):  # type: ignore[misc, name-defined]
        """Notes the best prompt after each step."""

        def on_step_end(self, optimizer: Any) -> bool:
            passed.append((optimizer.prompts[0].construct_prompt(), models.calls, models.written))
            return True

        def on_train_end(self, optimizer: Any) -> None:
            pass

    frame = pandas.DataFrame([{"x": each.question, "y": each.answer} for each in known.values()])
    task = Task(frame, "x", "y", landscape.seed_prompt, n_subsamples=block, eval_strategy="sequential_block", seed=seed)
    task.task_type = "classification"
    writer = Writer()
    first = creation.create_prompts_from_samples(task, writer, n_prompts=population - 1)
    optimizer = optimizers.CAPO(
        Predictor(writer),
        task,
        writer,
        initial_prompts=[landscape.seed_prompt, *first],
        crossovers_per_iter=max(2, population * 4 // 10),
        upper_shots=shots,
        max_n_blocks_eval=blocks,
        callbacks=[Record()],
    )
    optimizer.test_statistic = better
    try:
        optimizer.optimize(n_steps=10_000)  # ends when a step raises OutOfBudget
    except OutOfBudget:  # before the first step
        pass
    for budget in budgets:
        yield budget, [point for point in passed if point[1] <= budget][-1]


def better(one: Any, other: Any, alpha: float) -> bool:
    """The paired t-test that CAPO uses, a hundred times as fast as `scipy.stats.ttest_rel`."""
    differences = np.asarray(one) - np.asarray(other)
    mean, deviation = differences.mean(), differences.std(ddof=1)
    if not deviation > 1e-12:
        return bool(mean > 0)
    return bool(special.stdtr(len(differences) - 1, -mean / deviation * np.sqrt(len(differences))) < alpha)


# The comparison


def one_by_one(search: Callable[..., Point], **settings: Any) -> Callable[..., Iterator[tuple[int, Point]]]:
    """A search that has to be run again for each budget."""

    def run(landscape: Landscape, budgets: Sequence[int], seed: int) -> Iterator[tuple[int, Point]]:
        for budget in budgets:
            yield budget, search(landscape, budget, seed, **settings)

    return run


def at_once(
    search: Callable[..., Iterator[tuple[int, Point]]], **settings: Any
) -> Callable[..., Iterator[tuple[int, Point]]]:
    """A search that gives the results of all budgets in one run."""

    def run(landscape: Landscape, budgets: Sequence[int], seed: int) -> Iterator[tuple[int, Point]]:
        return search(landscape, budgets, seed, **settings)

    return run


class Variant(msgspec.Struct, frozen=True):
    """A search with settings, and the budgets for which they make sense."""

    run: Callable[..., Iterator[tuple[int, Point]]]
    least: int = 0
    most: int = 1_000_000


OURS, GEPA, RANDOM = "groundswell", "gepa", "random"
DEFAULT = "100"
"""The variant of GEPA with default settings that suits all budgets."""
SEARCHES: Mapping[str, Mapping[str, Variant]] = {
    OURS: {"": Variant(one_by_one(ours))},
    GEPA: {
        "25": Variant(at_once(gepa, validation=25), most=2_000),
        "50": Variant(at_once(gepa, validation=50), most=10_000),
        "100": Variant(at_once(gepa, validation=100)),
        "200": Variant(at_once(gepa, validation=200), least=5_000),
        "50 greedy": Variant(at_once(gepa, validation=50, selection="current_best"), most=10_000),
        "200 greedy": Variant(at_once(gepa, validation=200, selection="current_best"), least=5_000),
    },
    "capo": {
        "small": Variant(at_once(capo, population=5, block=20, blocks=5, shots=5), most=5_000),
        "default": Variant(at_once(capo, population=10, block=30, blocks=10, shots=5), least=2_000),
        "more shots": Variant(at_once(capo, population=10, block=30, blocks=10, shots=12), least=2_000),
    },
    RANDOM: {str(each): Variant(one_by_one(unguided, problems_each=each, walking=True)) for each in (5, 15, 40, 100)},
    "best_of_n": {
        str(each): Variant(one_by_one(unguided, problems_each=each, walking=False)) for each in (5, 15, 40, 100)
    },
}
NEEDS = {GEPA: "gepa", "capo": "promptolution"}


class Job(msgspec.Struct, frozen=True):
    """A search on a landscape with one seed."""

    search: str
    variant: str
    landscape: str
    seed: int
    budgets: tuple[int, ...]


def work(job: Job | int) -> list[Row] | Claim:
    """Run a job, or an evolution on noise with this seed."""
    if isinstance(job, int):
        return claims(job)
    landscape = LANDSCAPES[job.landscape](job.seed)
    found = SEARCHES[job.search][job.variant].run(landscape, job.budgets, job.seed)
    return [
        Row(
            job.search, job.variant, job.landscape, job.seed, budget, landscape.expected(prompt), calls, written, prompt
        )
        for budget, (prompt, calls, written) in found
    ]


def seeds_for(budget: int, seeds: int) -> int:
    """The number of seeds at a budget."""
    return seeds * (MORE if budget <= SMALL else 1)


def jobs_for(given: argparse.Namespace, done: Iterable[Row]) -> list[Job]:
    """What remains to be done, the longest first."""
    known = {(row.search, row.variant, row.landscape, row.seed, row.budget) for row in done}
    jobs = list[Job]()
    for search in given.searches:
        if search in NEEDS and importlib.util.find_spec(NEEDS[search]) is None:
            print(f"{search} is left out: the package {NEEDS[search]} is not installed; see `make bench-searching`")
            continue
        for name, variant in SEARCHES[search].items():
            budgets = [each for each in given.budgets if variant.least <= each <= variant.most]
            for landscape in given.landscapes:
                for seed in range(MORE * given.seeds):
                    key = (search, name, landscape, seed)
                    wanted = [each for each in budgets if seed < seeds_for(each, given.seeds)]
                    if missing := tuple(each for each in wanted if (*key, each) not in known):
                        apart = search == OURS
                        jobs += [Job(*key, (each,)) for each in missing] if apart else [Job(*key, missing)]
    return sorted(jobs, key=lambda job: -max(job.budgets) * (3 if job.search == GEPA else 1))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """A mean over seeds, with its 95% interval."""
    mean = fmean(values)
    off = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else float("nan")
    return mean, mean - off, mean + off


class Cell(msgspec.Struct, frozen=True):
    """A search at one budget on one landscape: means over seeds, with differences to GEPA and to random search."""

    landscape: str
    budget: int
    search: str
    variant: str
    seeds: int
    accuracy: tuple[float, float, float]
    calls: float
    written: float
    over_gepa: tuple[float, float, float] | None = None
    over_random: tuple[float, float, float] | None = None


def table(rows: Sequence[Row]) -> list[Cell]:
    """All cells, with the best variant of each search."""
    groups: dict[tuple[str, int, str], dict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        groups[row.landscape, row.budget, row.search][row.variant][row.seed] = row
    best = {key: max(group.items(), key=lambda item: mean_of(item[1])) for key, group in groups.items()}

    def over(key: tuple[str, int, str], other: str) -> tuple[float, float, float] | None:
        one, two = best[key][1], best.get((*key[:2], other), ("", {}))[1]
        both = [one[seed].accuracy - two[seed].accuracy for seed in one if seed in two]
        return interval(both) if both and key[2] != other else None

    places, order = list(LANDSCAPES), list(SEARCHES)
    return [
        Cell(
            *key,
            variant,
            len(found),
            interval([row.accuracy for row in found.values()]),
            fmean(row.calls for row in found.values()),
            fmean(row.written for row in found.values()),
            over(key, GEPA),
            over(key, RANDOM),
        )
        for key, (variant, found) in sorted(
            best.items(), key=lambda item: (places.index(item[0][0]), item[0][1], order.index(item[0][2]))
        )
    ]


def means(rows: Sequence[Row]) -> dict[str, float]:
    """The mean accuracy of each variant, at each budget on each landscape."""
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        groups[f"{row.landscape}, {row.budget}, {row.search}, {row.variant}"].append(row.accuracy)
    return {name: fmean(found) for name, found in sorted(groups.items())}


def mean_of(found: Mapping[int, Row]) -> float:
    """The mean accuracy over seeds."""
    return fmean(row.accuracy for row in found.values())


def below(rows: Sequence[Row], variant: str) -> list[str]:
    """Where the lower limit of our difference to one variant of GEPA is not above the margin."""
    found: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row.search == OURS or (row.search == GEPA and row.variant == variant):
            found[row.landscape, row.budget][row.search][row.seed] = row.accuracy
    both = {
        f"{place} at {budget:,}": [group[OURS][seed] - value for seed, value in group[GEPA].items()]
        for (place, budget), group in found.items()
        if group[OURS].keys() == group[GEPA].keys()
    }
    return [name for name, differences in both.items() if not interval(differences)[1] > -MARGIN]


def show(cells: Sequence[Cell], rows: Sequence[Row]) -> None:
    """Print the table and the goals."""
    for landscape in dict.fromkeys(cell.landscape for cell in cells):
        optimum = fmean(LANDSCAPES[landscape](seed).optimum for seed in range(5))
        print(f"\n{landscape} (optimum {optimum:.3f})")
        print(f"{'budget':>7} {'search':12}{'variant':>11}{'accuracy':>9}{'95% interval':>18}", end="")
        print(f"{'minus gepa':>24}{'minus random':>24}{'calls':>8}{'written':>9}{'seeds':>6}")
        for cell in cells:
            if cell.landscape == landscape:
                mean, low, high = cell.accuracy
                print(f"{cell.budget:>7,} {cell.search:12}{cell.variant:>11}{mean:>9.3f}", end="")
                print(f"{f'{low:.3f} to {high:.3f}':>18}", end="")
                print(f"{difference(cell.over_gepa):>24}{difference(cell.over_random):>24}", end="")
                print(f"{cell.calls:>8,.0f}{cell.written:>9,.0f}{cell.seeds:>6}")
    print()
    for name, of in (("GEPA", "over_gepa"), ("random search", "over_random")):
        checked = [(cell, getattr(cell, of)) for cell in cells if cell.search == OURS and getattr(cell, of)]
        missed = [f"{cell.landscape} at {cell.budget:,}" for cell, found in checked if not found[1] > -MARGIN]
        if checked:
            verdict = f"missed in {len(missed)} of {len(checked)}: {', '.join(missed)}" if missed else "met"
            print(f"goal: not below {name}, lower limit above {-MARGIN}: {verdict}")
    if {OURS, GEPA} <= {cell.search for cell in cells}:
        missed = below(rows, DEFAULT)
        verdict = f"missed: {', '.join(missed)}" if missed else "met"
        print(f"goal: the same for GEPA with {DEFAULT} validation problems and default settings: {verdict}")
    if own := [cell for cell in cells if cell.search == OURS]:
        over = [f"{cell.landscape} at {cell.budget:,}" for cell in own if cell.calls > cell.budget]
        print(f"goal: within the budget: {f'missed in {len(over)}: ' + ', '.join(over) if over else 'met'}")


def difference(found: tuple[float, float, float] | None) -> str:
    """A difference with its interval."""
    return "" if found is None else f"{found[0]:+.3f} ({found[1]:+.3f}, {found[2]:+.3f})"


def show_noise(found: Sequence[Claim]) -> None:
    """Print how often a gain was claimed that does not exist."""
    count = sum(each.claimed for each in found)
    low, high = stats.binomtest(count, len(found)).proportion_ci(method="wilson")
    above = stats.binomtest(count, len(found), 0.05, alternative="greater").pvalue
    print(f"\nnoise: a difference from the seed prompt was claimed in {count} of {len(found)} evolutions, ", end="")
    print(f"{count / len(found):.1%} ({low:.1%} to {high:.1%}); above 5%: p {above:.2f}")
    print(f"goal: claims on noise not significantly above 5%: {'met' if above >= 0.05 else 'missed'}")


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Draw one panel for each landscape."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "searching"
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(cell.landscape for cell in cells))
    figure, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.4), sharey=True, squeeze=False)
    for name, axis in zip(names, axes[0], strict=True):
        for number, search in enumerate(SEARCHES):
            line = [cell for cell in cells if cell.landscape == name and cell.search == search]
            if line:
                budgets = [cell.budget for cell in line]
                shade = f"C{number}"
                axis.plot(budgets, [cell.accuracy[0] for cell in line], "o-", ms=3, color=shade, label=search)
                lows, highs = ([cell.accuracy[at] for cell in line] for at in (1, 2))
                axis.fill_between(budgets, lows, highs, color=shade, alpha=0.15, linewidth=0)
        best = fmean(LANDSCAPES[name](seed).optimum for seed in range(5))
        axis.axhline(best, color="grey", linewidth=0.8, linestyle=":")
        axis.set(xscale="log", title=name, xlabel="task calls", ylim=(0, 1))
        axis.grid(alpha=0.2)
        ticks = sorted({cell.budget for cell in cells})[::2]
        axis.set_xticks(ticks, [f"{each:,}" for each in ticks], minor=False)
        axis.minorticks_off()
    axes[0][0].set_ylabel("expected accuracy")
    handles = {
        label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(handles), frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def read_rows(path: Path, again: Sequence[str]) -> list[Row]:
    """The finished searches, without those that are to be repeated."""
    if not path.exists():
        return []
    rows = [msgspec.json.decode(line, type=Row) for line in path.read_bytes().splitlines()]
    if again:
        rows = [row for row in rows if row.search not in again]
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return rows


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Read a list of known names from the command line."""

    def read(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [each for each in found if each not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r}: choose from {', '.join(known)}")
        return found

    return read


def main() -> None:
    """Run all searches that are missing, and print, store and draw the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shown = [name for name in LANDSCAPES if name != "noise"]
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    parser.add_argument(
        "--budgets", type=lambda text: [int(each) for each in text.split(",")], default=BUDGETS, help="task calls"
    )
    parser.add_argument("--landscapes", type=names(LANDSCAPES), default=shown, help=f"of {', '.join(LANDSCAPES)}")
    parser.add_argument("--searches", type=names(SEARCHES), default=[*SEARCHES], help=f"of {', '.join(SEARCHES)}")
    parser.add_argument("--again", type=names(SEARCHES), default=[], help="repeat these searches")
    parser.add_argument("--noise", type=int, default=0, help="number of evolutions on noise")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--quick", action="store_true", help="3 seeds, and budgets up to 2,000")
    parser.add_argument("--out", type=Path, default=OUT / "searching.jsonl", help="finished searches")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where to draw")
    given = parser.parse_args()
    if given.quick:
        given.seeds, given.budgets = min(given.seeds, 3), [each for each in given.budgets if each <= 2_000]
    given.out.parent.mkdir(exist_ok=True)
    rows, noise = read_rows(given.out, given.again), list[Claim]()
    jobs: list[Job | int] = [*jobs_for(given, rows), *range(given.noise)]
    began = printed = time.monotonic()
    with ProcessPoolExecutor(given.jobs) as pool, given.out.open("ab") as out:
        for done, future in enumerate(as_completed([pool.submit(work, each) for each in jobs]), 1):
            result = future.result()
            if isinstance(result, Claim):
                noise.append(result)
            else:
                rows += result
                out.write(b"".join(msgspec.json.encode(row) + b"\n" for row in result))
                out.flush()
            if time.monotonic() > printed + 10:
                printed = time.monotonic()
                print(f"{done} of {len(jobs)} searches, {printed - began:.0f} s", flush=True)
    wanted = [
        row
        for row in rows
        if row.seed < seeds_for(row.budget, given.seeds)
        and row.budget in given.budgets
        and row.landscape in given.landscapes
        and row.search in given.searches
    ]
    cells = table(wanted)
    show(cells, wanted)
    if noise:
        show_noise(noise)
    whole = {"cells": cells, "variants": means(wanted), "noise": noise}
    given.out.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2))
    if cells:
        draw(cells, given.picture)


if __name__ == "__main__":
    main()
