"""The driver of an evolution. Read `evolve` from top to bottom.

_searched    run the evolution, then the baseline searches with as many requests
_chosen      evaluate the best genomes of a search on the validation set, and pick its winner
_judged      evaluate the winners and the seed prompt on the held-out test
over         the conditions that stop an evolution
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from random import Random

from groundswell.engine.run import Run
from groundswell.errors import RunError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.experiments.prompt_evolution.analysis import (
    SEED,
    Analysis,
    Finalist,
    Savings,
    Searched,
    mean_of,
)
from groundswell.experiments.prompt_evolution.costs import Costs
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks
from groundswell.experiments.prompt_evolution.expecting import expected_evolution
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.metrics import find_metric
from groundswell.experiments.prompt_evolution.pareto import front
from groundswell.experiments.prompt_evolution.population import Member, ranked
from groundswell.experiments.prompt_evolution.searching import DEEPEST, Plan, Planner, Purse, Search
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.prompt_evolution.solving import solve
from groundswell.experiments.prompt_evolution.verdict import gains, tested

EVOLUTION = "evolution"
IN_VAIN = 200
"""A baseline search stops after this many births in a row that failed or repeated a known prompt."""


async def evolve(run: Run, settings: Evolution) -> Analysis:
    """Run all searches, choose their winners on the validation set, and compare these on the held-out test."""
    run.relies_on(solve, [find_metric(settings.metric)])
    costs = Costs(run, settings.stops.usd)
    await costs.learn((*settings.models, settings.by))
    with closing(Examiner(run, settings, costs)) as examiner:
        return await _judged(run, settings, examiner, await _searched(run, settings, examiner))


async def _searched(run: Run, settings: Evolution, examiner: Examiner) -> list[Searched]:
    """Run the evolution and the baseline searches."""
    main = Search(run, settings, examiner, EVOLUTION, settings.population_size)
    why = await main.run(evolved, over, Purse(settings.stops.asks, settings.stops.usd))
    _living(main)  # raises before the baselines spend anything
    purse = Purse(main.asks)
    others = [Search(run, settings, examiner, name) for name in settings.baselines]
    whys = await asyncio.gather(
        *(each.run(BASELINES[each.name], lambda it: _spent(it, main), purse) for each in others)
    )
    ends = [(main, why), *zip(others, whys, strict=True)]
    run.report(0, {}, f"validating the finalists on {len(settings.problems.validation):,} problems")
    return list(await asyncio.gather(*(_chosen(search, reason) for search, reason in ends)))


async def _chosen(search: Search, why: str) -> Searched:
    """The finalists of a search, ordered by their validation score."""
    best = _living(search)[: search.settings.finalists]
    tried = await asyncio.gather(*(search.examiner.all(member.genome, "validation") for member in best))
    found = [_finalist(member, cells) for member, cells in zip(best, tried, strict=True) if not lacks(cells)]
    if not found:
        why = next(cell.why for cells in tried for cell in cells if cell.why)
        raise RunError(
            f"{search.name}: every finalist has too many missing validation problems to choose a winner: {why}"
        )
    found.sort(key=lambda each: (-each.validation, each.tokens, each.born))
    return Searched(
        search.name,
        why,
        search.asks,
        search.usd,
        Savings(search.saved_by_racing, search.saved_as_known),
        tuple(search.members),
        tuple(search.curve),
        tuple(found),
    )


async def _judged(run: Run, settings: Evolution, examiner: Examiner, searched: Sequence[Searched]) -> Analysis:
    """Evaluate the seed prompt and the winner of each search on the held-out test."""
    seed = settings.seeds[0]
    validated = mean_of([cell.score for cell in await examiner.all(seed, "validation")])
    prompts: dict[str, tuple[Genome, float | None]] = {SEED: (seed, validated)}
    prompts |= {each.name: (each.winner.genome, each.winner.validation) for each in searched}
    run.report(0, {}, f"held-out test: {len(settings.problems.test):,} problems")
    met = await asyncio.gather(*(examiner.all(genome, "test") for genome, _ in prompts.values()))
    scores = {name: [cell.score for cell in cells] for name, cells in zip(prompts, met, strict=True)}
    several = {name: _by_model(settings, cells) for name, cells in zip(prompts, met, strict=True)}
    first = searched[0].name
    return Analysis(
        tuple(searched),
        tuple(tested(name, genome, scores[name], known, several[name]) for name, (genome, known) in prompts.items()),
        gains(scores[first], {name: each for name, each in scores.items() if name != first}),
        tuple(front([final for each in searched for final in each.finalists], _goals)),
    )


def _living(search: Search) -> list[Member]:
    """The genomes that were evaluated on all training problems, the best first."""
    living = ranked([each for each in search.members if each.fate == "lives"])
    if not living:
        raise RunError(
            f"{search.name}: no candidate could be evaluated on all training problems: {_reason(search.members)}"
        )
    return living


def over(search: Search) -> str:
    """The reason why an evolution stops now; empty if it continues."""
    settings, stops = search.settings, search.settings.stops
    best = search.population.best
    if stops.target is not None and best is not None and best.fitness >= stops.target:
        return f"the target fitness of {stops.target:g} is reached"
    if search.started >= settings.births:
        whole = settings.max_generations
        return f"all {whole:,} generations are complete" if whole > 1 else "1 generation is complete"
    if stops.asks is not None and search.asks >= stops.asks:
        return f"the limit of {stops.asks:,} requests is reached"
    if stops.usd is not None and search.usd is not None and search.usd >= stops.usd:
        return f"the limit of ${stops.usd:g} is reached"
    if stops.plateau is not None and search.since_better >= stops.plateau * settings.population_size:
        return f"no better candidate was found for {stops.plateau:,} generation{'s' * (stops.plateau > 1)}"
    full = len(search.population.members) == settings.population_size
    if stops.least_spread is not None and full and search.population.spread <= stops.least_spread:
        return f"the diversity of the population fell to {stops.least_spread:g} or less"
    return ""


def _spent(search: Search, other: Search) -> str:
    """The reason why a baseline search stops now; empty if it continues. Its budget is what `other` used."""
    if search.asks >= other.asks:
        return f"the budget of {other.asks:,} requests is used"
    lately = search.members[-IN_VAIN:]
    if len(lately) == IN_VAIN and not any(each.asks and each.fate != "failed" for each in lately):
        return f"no new prompt was found in {IN_VAIN:,} candidates"
    return ""


def evolved(search: Search, draw: Random, number: int) -> Plan:
    """Plan a birth of the evolution: parents are selected from the population, or from the seeds while it is empty."""
    settings, population = search.settings, search.known_to(number)
    operator = _operator(settings, draw)
    if not population.members:
        seeds = search.seeds_of(number)
        return Plan((operator,), (draw.choice(seeds), draw.choice(seeds)))
    one, other = (population.parent(settings.selection, settings.tournament, draw) for _ in range(2))
    return Plan((operator,), (one, other))


def at_random(search: Search, draw: Random, number: int) -> Plan:
    """Plan a birth of random search: random operators on a seed, without using earlier results."""
    operators = tuple(_operator(search.settings, draw) for _ in range(draw.randint(1, DEEPEST)))
    seeds = search.seeds_of(number)
    return Plan(operators, (draw.choice(seeds), draw.choice(seeds)))


def rewritten(search: Search, draw: Random, number: int) -> Plan:
    """Plan a birth of best-of-N: a model rewrites a seed."""
    return Plan(("reflect",), (draw.choice(search.seeds_of(number)),))


BASELINES: Mapping[str, Planner] = {"random": at_random, "best_of_n": rewritten}


def _operator(settings: Evolution, draw: Random) -> str:
    names = list(settings.operators)
    return draw.choices(names, [settings.operators[name] for name in names])[0]


def _finalist(member: Member, cells: Sequence[Cell]) -> Finalist:
    scores = [cell.score for cell in cells]
    usd = mean_of([cell.usd for cell in cells if cell.score is not None])
    return Finalist(member.born, member.genome, member.fitness, mean_of(scores) or 0.0, member.tokens, usd)


def _by_model(settings: Evolution, cells: Sequence[Cell]) -> dict[str, float | None]:
    """The mean score of each model; empty if there is only one."""
    if len(settings.models) == 1:
        return {}
    there = [cell.each for cell in cells if cell.score is not None]
    return {model: mean_of([each[at] for each in there]) for at, model in enumerate(settings.models)}


def _goals(each: Finalist) -> tuple[float, ...]:
    return (each.validation, -each.tokens, -(each.usd or 0.0))


def _reason(members: Sequence[Member]) -> str:
    return next((each.why for each in members if each.why), "all candidates were dropped by racing")


@estimates(evolve)
def expected(settings: Evolution) -> Estimate:
    """Estimate what an evolution would use."""
    return expected_evolution(settings)
