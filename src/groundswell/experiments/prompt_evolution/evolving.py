"""The driver of an evolution. Read `evolve` from top to bottom.

_searched    run the evolution, then the baseline searches with as many requests
_chosen      evaluate the best genomes of a search on the validation set, and pick its winner
_polished    let the writer shorten and correct the best of all winners
_judged      evaluate the winners and the seed prompt on the held-out test, and decide which one to ship
_ablated     measure what each sentence of the shipped prompt contributes
over         the conditions that stop an evolution
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from math import ceil
from random import Random
from statistics import fmean

import msgspec

from groundswell.engine.run import Run
from groundswell.errors import RunError, SettingsError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.measured import Known
from groundswell.experiments.chance import seed_of
from groundswell.experiments.prompt_evolution.accuracy import expected_accuracy
from groundswell.experiments.prompt_evolution.analysis import (
    SEED,
    Analysis,
    Finalist,
    Part,
    Polish,
    Savings,
    Searched,
    mean_of,
)
from groundswell.experiments.prompt_evolution.best import Best, BestSoFar, Stage
from groundswell.experiments.prompt_evolution.breeding import POLISH, Breeding, breed
from groundswell.experiments.prompt_evolution.costs import LONGER, Costs, Spent
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks, relied_on
from groundswell.experiments.prompt_evolution.expecting import expected_evolution
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.metrics import asks_model
from groundswell.experiments.prompt_evolution.pareto import front
from groundswell.experiments.prompt_evolution.population import Member, Population, ranked
from groundswell.experiments.prompt_evolution.searching import (
    DEEPEST,
    LEAST,
    MEASURED,
    Plan,
    Planner,
    Purse,
    Record,
    Search,
    State,
    seed_problems,
)
from groundswell.experiments.prompt_evolution.settings import ABLATED, EXAMPLES, MOST_PARTS, SHORTEN, Evolution
from groundswell.experiments.prompt_evolution.tokens import parts_of, without_part
from groundswell.experiments.prompt_evolution.verdict import gains, paired, tested

EVOLUTION = "evolution"
IN_VAIN = 200
"""A search stops after this many births in a row that failed or repeated a known prompt."""
FEWEST_PARTS = 2
"""Minimum number of parts for an ablation."""
PRIOR = Record(3, 60, 0.1)
"""What an operator is taken to have gained before it is tried."""
FLOOR = 0.01
"""Minimum share of births for every operator that is switched on."""


async def evolve(run: Run, settings: Evolution) -> Analysis:
    """Run all searches, choose their winners on the validation set, and compare these on the held-out test."""
    run.relies_on(*relied_on(settings))
    costs = Costs(run, settings.stops.usd)
    await costs.learn((*settings.models, settings.by))
    so_far = BestSoFar(run)
    with closing(Examiner(run, settings, costs)) as examiner:
        settings = await _measured(await _affordable(settings, examiner), examiner)
        searched = await _searched(run, settings, examiner, so_far)
        chosen, polish = await _polished(run, settings, examiner, searched, so_far)
        return await _judged(run, settings, examiner, searched, chosen, polish, so_far=so_far)


async def _affordable(settings: Evolution, examiner: Examiner) -> Evolution:
    """Turn a limit in dollars into requests per search, by what the seed prompts cost on a few problems.

    What the held-out test will cost is reserved first. Evolution and baselines share the rest, which also pays for
    choosing their winners.
    """
    usd = settings.stops.usd
    if usd is None:
        return settings
    _purse(settings)  # refuses a number of requests that is too small
    count = seed_problems(settings, settings.stops.asks, settings.reserved)
    evaluation, why = await _evaluated(settings, examiner, settings.seeds, min(LEAST, count))
    if evaluation is None:
        raise RunError(f"usd {usd:g}: the cost of the seed prompts could not be measured: {why}")
    asks, cost = evaluation
    each, searches = LONGER * cost / asks if asks else 0.0, 1 + len(settings.baselines)
    tested = (searches + 1) * len(settings.problems.test) * asks
    left = usd - each * tested
    if left <= cost * examiner.measured * len(settings.seeds):
        raise RunError(
            f"usd {usd:g}: the held-out test needs about ${each * tested:.2g}, so nothing is left for the search. "
            "Allow more, use fewer test problems, or switch the baselines off"
        )
    if not each:  # free models, or a program without requests: other limits end the search
        return msgspec.structs.replace(settings, stops=msgspec.structs.replace(settings.stops, usd=None))
    most = int(left / each / searches)
    stops = msgspec.structs.replace(settings.stops, asks=min(most, settings.stops.asks or most))
    return msgspec.structs.replace(settings, stops=stops)


async def _measured(settings: Evolution, examiner: Examiner) -> Evolution:
    """Measure how many requests a program and a metric make for a problem, so that the search fits its budget."""
    if not _makes_several(settings):
        return settings
    _purse(settings)  # refuses a budget that is too small even for one request per problem
    count = max(examiner.measured, min(MEASURED, len(settings.problems.train)))
    evaluation, _ = await _evaluated(settings, examiner, settings.seeds[:1], count)
    if evaluation is None:
        return settings
    return msgspec.structs.replace(settings, requests_per_problem=max(1.0, evaluation[0] / len(settings.models)))


def _makes_several(settings: Evolution) -> bool:
    """Whether an evaluation may take more requests than there are models."""
    return settings.program is not msgspec.UNSET or asks_model(settings.metric)


async def _evaluated(
    settings: Evolution, examiner: Examiner, seeds: Sequence[Genome], count: int
) -> tuple[tuple[float, float] | None, str]:
    """Evaluate seeds on the first training problems, as the search does anyway.

    Returns requests and dollars per evaluation. If all are missing, these are None, and the second value says why.
    """
    cells = [cell for each in seeds for cell in await examiner.met(each, "train", range(count))]
    known = [Spent(cell.asks, cell.usd).and_(cell.judged) for cell in cells if cell.score is not None]
    if not known:
        return None, next((cell.why for cell in cells if cell.why), "")
    asks, usd = (fmean(each) for each in zip(*((spent.asks, spent.usd or 0.0) for spent in known), strict=True))
    models = len(settings.models)
    examiner.measured, examiner.missing = count, Spent(ceil(asks / models), usd / models)
    return (asks, usd), ""


async def _searched(run: Run, settings: Evolution, examiner: Examiner, so_far: BestSoFar) -> list[Searched]:
    """Run the evolution and the baseline searches."""
    searches = 1 + len(settings.baselines)
    seconds = None if settings.stops.seconds is None else settings.stops.seconds / searches
    main = Search(run, settings, examiner, EVOLUTION, so_far)
    why = await main.run(evolved, over, _purse(settings), seconds)
    _living(main)  # raises before the baselines spend anything
    purse = Purse(main.asks)
    others = [Search(run, settings, examiner, name, is_baseline=True) for name in settings.baselines]
    whys = await asyncio.gather(*(each.run(BASELINES[each.name], _in_vain, purse) for each in others))
    ends = [(main, why), *zip(others, whys, strict=True)]
    run.report(0, {}, f"validating the finalists on {settings.shape.validation:,} problems")
    return list(await asyncio.gather(*(_chosen(search, reason) for search, reason in ends)))


def _purse(settings: Evolution) -> Purse:
    """The budget of a search. The evaluations for choosing and polishing its winner are reserved."""
    asks, usd = settings.shape.asks, settings.stops.usd
    if asks is None:
        return Purse()
    train = len(settings.problems.train)
    each_seed = min(MEASURED, train) if settings.races else train
    least = ceil((settings.reserved + len(settings.seeds) * each_seed) * settings.each)
    if asks < least:
        unknown = settings.requests_per_problem is msgspec.UNSET and _makes_several(settings)
        more = ", and more if the metric or the program makes several requests" if unknown else ""
        raise SettingsError(
            f"asks {asks}: must be at least {least}, to evaluate the seed prompts and to choose a winner on the "
            f"validation set{more}",
            field="asks",
        )
    searches = 1 + len(settings.baselines)
    tested = len(settings.problems.test) * (searches + 1) / searches
    return Purse(asks, usd and usd / searches, settings.reserved, ceil(tested))


async def _chosen(search: Search, why: str) -> Searched:
    """The finalists of a search, ordered by their validation score."""
    best = _finalists(search)
    problems = range(search.shape.validation)
    tried = await asyncio.gather(*(search.examiner.met(member.genome, "validation", problems) for member in best))
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


def _finalists(search: Search) -> list[Member]:
    """The best genomes of a search; if it looks for a Pareto front, those on the front first."""
    best = _living(search)
    if search.settings.pareto:
        edge = {each.born for each in front(best, lambda each: (each.fitness, -each.tokens))}
        best.sort(key=lambda each: each.born not in edge)
    return best[: search.shape.finalists]


async def _polished(
    run: Run, settings: Evolution, examiner: Examiner, searched: list[Searched], so_far: BestSoFar
) -> tuple[str, Polish | None]:
    """Choose the best of all winners and the seed prompt, and let the writer polish it.

    Validation scores decide. Against the seed prompt, estimates from training count as much as a few more problems.

    The polished prompt replaces the winner if its validation score is not lower. Returns the name of the choice.
    """
    problems = range(settings.shape.validation)
    seed = mean_of([cell.score for cell in await examiner.met(settings.seeds[0], "validation", problems)])
    at, best = max(enumerate(searched), key=lambda each: (each[1].winner.validation, -each[1].winner.tokens, -each[0]))
    first = await _expected(examiner, searched[0].members[0], settings.seeds[0], problems)
    found = await _expected(examiner, best.members[best.winner.born], best.winner.genome, problems)
    if seed is not None and first >= found:
        await so_far.choose(_best(searched, SEED, "validation", seed))
        return SEED, None
    await so_far.choose(_best(searched, best.name, "validation", best.winner.validation))
    if not settings.polish:
        return best.name, None
    winner, how = best.winner, settings.writing
    spec = Breeding(
        POLISH, (winner.genome,), settings.by, (), seed_of(run.record.seed, POLISH) % 2**31, 0.0, how.max_tokens
    )
    longest = max(winner.genome.texts, key=lambda name: len(winner.genome.texts[name]), default="")
    spec = msgspec.structs.replace(spec, task=settings.task, text=longest)
    outcome = await run.submit(breed, spec, key=f"{POLISH}/{best.name}")
    new = None
    if outcome.ok:
        written = outcome.unwrap()
        new = written.genome
        examiner.costs.charge(settings.by, written.input_tokens, written.output_tokens)
    if new is None or new == winner.genome:
        return best.name, None
    cells = await examiner.met(new, "validation", problems)
    after = None if lacks(cells) else mean_of([cell.score for cell in cells])
    kept = after is not None and after >= winner.validation
    if kept and after is not None:
        tokens = _tokens(cells)
        made = Finalist(winner.born, new, winner.train, after, tokens, _usd(cells))
        searched[at] = msgspec.structs.replace(best, finalists=(made, *best.finalists))
        await so_far.choose(_best(searched, best.name, "polish", after))
    return best.name, Polish(new, winner.validation, after, kept)


async def _expected(examiner: Examiner, member: Member, genome: Genome, problems: Sequence[int]) -> float:
    """The expected accuracy of a prompt, by its scores in training and on validation problems."""
    cells = await examiner.met(genome, "validation", problems)
    scores = [cell.score for cell in cells if cell.score is not None]
    return expected_accuracy(member.estimate, member.error, scores) if member.seen else mean_of(scores) or 0.0


async def _judged(
    run: Run,
    settings: Evolution,
    examiner: Examiner,
    searched: Sequence[Searched],
    chosen: str,
    polish: Polish | None,
    *,
    so_far: BestSoFar,
) -> Analysis:
    """Evaluate the seed prompt and the winner of each search on the held-out test."""
    seed = settings.seeds[0]
    validated = mean_of(
        [cell.score for cell in await examiner.met(seed, "validation", range(settings.shape.validation))]
    )
    prompts: dict[str, tuple[Genome, float | None]] = {SEED: (seed, validated)}
    prompts |= {each.name: (each.winner.genome, each.winner.validation) for each in searched}
    run.report(0, {}, f"held-out test: {len(settings.problems.test):,} problems")
    met = await asyncio.gather(*(examiner.all(genome, "test") for genome, _ in prompts.values()))
    scores = {name: [cell.score for cell in cells] for name, cells in zip(prompts, met, strict=True)}
    several = {name: _by_model(settings, cells) for name, cells in zip(prompts, met, strict=True)}
    first = searched[0].name
    shipped, why = _shipped(chosen, scores, {name: known for name, (_, known) in prompts.items()})
    await so_far.choose(_best(searched, shipped, "test", prompts[shipped][1], mean_of(scores[shipped])))
    parts, why_no_parts = await _ablated(run, settings, examiner, prompts[shipped][0])
    return Analysis(
        tuple(searched),
        tuple(tested(name, genome, scores[name], known, several[name]) for name, (genome, known) in prompts.items()),
        gains(scores[first], {name: each for name, each in scores.items() if name != first}),
        tuple(front([final for each in searched for final in each.finalists], _goals)),
        shipped,
        why,
        polish,
        parts,
        why_no_parts,
        examiner.cut,
        settings.shape,
    )


def _best(
    searched: Sequence[Searched], name: str, stage: Stage, validation: float | None, test: float | None = None
) -> Best:
    """The best prompt so far: the seed prompt or the winner of a search, by name."""
    main = searched[0]
    search = main if name == SEED else next(each for each in searched if each.name == name)
    member = search.members[0 if name == SEED else search.winner.born]
    return Best(
        genome=member.genome if name == SEED else search.winner.genome,
        found_by=name,
        stage=stage,
        train=member.fitness,
        problems=member.seen,
        validation=validation,
        test=test,
        births=len(main.members),
        asks=main.asks,
        usd=main.usd,
        curve=main.curve,
    )


def _shipped(
    chosen: str, scores: Mapping[str, Sequence[float | None]], validated: Mapping[str, float | None]
) -> tuple[str, str]:
    """The prompt to deploy and why: the chosen one, unless the held-out test shows that another is better."""
    others = {name: each for name, each in scores.items() if name != chosen}
    better = [each for each in gains(scores[chosen], others) if each.is_clear and (each.value or 0.0) < 0]
    if better:
        best = min(better, key=lambda each: each.value or 0.0)
        return best.over, "significantly better on the held-out test than the prompt with the best validation score"
    if (validated[chosen] or 0.0) >= max(each or 0.0 for each in validated.values()):
        return chosen, "the best score on the validation set"
    return chosen, "the best in training and on the validation set together"


async def _ablated(run: Run, settings: Evolution, examiner: Examiner, genome: Genome) -> tuple[tuple[Part, ...], str]:
    """Measure the shipped prompt without each of its sentences and examples in turn, on the validation set."""
    texts = [f"{name}: {part}" if name else part for name, part in parts_of(genome)]
    if not settings.ablation:
        return (), "switched off"
    if not FEWEST_PARTS <= len(texts) <= MOST_PARTS:
        return (), f"the prompt has {len(texts):,} parts, and {FEWEST_PARTS} to {MOST_PARTS} can be measured"
    problems = range(min(ABLATED, settings.shape.validation))
    if settings.stops.usd is not None:
        spent = examiner.spent(genome, "validation", problems)
        if examiner.costs.total + len(texts) * (spent.usd or 0.0) > settings.stops.usd:
            return (), f"the limit of ${settings.stops.usd:g} does not cover it"
    run.report(0, {}, f"what each of {len(texts):,} parts of the prompt contributes: {len(problems):,} problems each")
    whole, *without = await asyncio.gather(
        *(
            examiner.met(each, "validation", problems)
            for each in (genome, *(without_part(genome, at) for at in range(len(texts))))
        )
    )
    found = [
        Part(text, *paired([cell.score for cell in whole], [cell.score for cell in cells]))
        for text, cells in zip(texts, without, strict=True)
    ]
    return tuple(found), ""


def _living(search: Search) -> list[Member]:
    """The genomes that can win, the best first."""
    living = ranked([each for each in search.members if each.fate == "lives"])
    if not living:
        raise RunError(f"{search.name}: no candidate could be evaluated: {_reason(search.members)}")
    return living


def over(search: Search) -> str:
    """The reason why an evolution stops now; empty if it continues."""
    settings, stops, shape = search.settings, search.settings.stops, search.shape
    best = search.population.best
    if stops.target is not None and best is not None and best.fitness >= stops.target:
        return f"the target fitness of {stops.target:g} is reached"
    if best is not None and not settings.pareto and best.seen == len(search.train) and best.accuracy == 1:
        return "a candidate solves all training problems"
    if shape.births is not None and search.started >= shape.births:
        whole = settings.max_generations or 0
        return f"all {whole:,} generations are complete" if whole > 1 else "1 generation is complete"
    if stops.plateau is not None and search.since_better >= stops.plateau * shape.population_size:
        return f"no better candidate was found for {stops.plateau:,} generation{'s' * (stops.plateau > 1)}"
    full = len(search.population.members) == shape.population_size
    if stops.least_spread is not None and full and search.population.spread <= stops.least_spread:
        return f"the diversity of the population fell to {stops.least_spread:g} or less"
    return _in_vain(search)


def _in_vain(search: Search) -> str:
    """The reason why a search stops that finds no new prompts."""
    lately = search.members[-IN_VAIN:]
    if len(lately) == IN_VAIN and all(each.fate in ("failed", "known") for each in lately):
        return f"no new prompt was found in {IN_VAIN:,} candidates"
    return ""


def evolved(search: Search, draw: Random, number: int) -> Plan:
    """Plan a birth of the evolution: parents are selected from the population."""
    settings, state = search.settings, search.state_for(number)
    if not state.population.members:
        seeds = search.seeds_of(number)
        first, second = draw.choice(seeds), draw.choice(seeds)
        return Plan((_operator(settings, draw),), (first, second), first)
    one = state.population.parent(settings.selection, settings.tournament, draw)
    if search.stuck(number):
        one = draw.choice(state.population.members)
    operator = _operator(settings, draw, state)
    if operator == "combine":
        other = _complement(one, state.population, draw)
        if other is not None:
            return Plan((operator,), (one, other), one)
    if operator in NEEDS and not NEEDS[operator](one):
        enabled = [name for name, weight in settings.operators.items() if weight]
        instead = next((name for name in enabled if name not in NEEDS or NEEDS[name](one)), None)
        if instead is None:  # the fittest parent that gives the operator something to work on
            one = next((each for each in state.population.members if NEEDS[operator](each)), one)
        operator = instead or operator
    return Plan((operator,), (one, state.population.parent(settings.selection, settings.tournament, draw)), one)


def _fails(member: Member) -> bool:
    return any(score is not None and score < 1 for score in member.scores)


NEEDS = {
    "reflect": _fails,
    "combine": lambda member: False,  # the population had no second parent that adds anything
    SHORTEN: lambda member: len(parts_of(member.genome)) > 1,
    EXAMPLES: _fails,
}
"""Whether an operator has something to work on."""


def _complement(one: Member, population: Population, draw: Random) -> Member | None:
    """A second parent: one of those that solve most of the problems that the first fails on; None if none does."""
    solves = {
        other.born: sum(
            theirs is not None and mine is not None and theirs > mine
            for mine, theirs in zip(one.scores, other.scores, strict=False)
        )
        for other in population.members
    }
    useful = [other for other in population.members if solves[other.born]]
    return draw.choices(useful, [solves[other.born] for other in useful])[0] if useful else None


def at_random(search: Search, draw: Random, number: int) -> Plan:
    """Plan a birth of random search: random operators on a seed, without using earlier results."""
    operators = tuple(_operator(search.settings, draw) for _ in range(draw.randint(1, DEEPEST)))
    seeds = search.seeds_of(number)
    return Plan(operators, (draw.choice(seeds), draw.choice(seeds)), _promising(search, draw, number))


def rewritten(search: Search, draw: Random, number: int) -> Plan:
    """Plan a birth of best-of-N: a model rewrites a seed."""
    return Plan(("reflect",), (draw.choice(search.seeds_of(number)),), _promising(search, draw, number))


def _promising(search: Search, draw: Random, number: int) -> Member:
    """A good candidate of a baseline search, which is evaluated further."""
    population = search.known_to(number)
    if not population.members:
        return search.seeds_of(number)[0]
    return population.parent("thompson", 1, draw)


BASELINES: Mapping[str, Planner] = {"random": at_random, "best_of_n": rewritten}


def _operator(settings: Evolution, draw: Random, state: State | None = None) -> str:
    """Draw an operator. With a state, operators that have gained more per request are more frequent."""
    weights = {name: weight for name, weight in settings.operators.items() if weight}
    if state is not None and settings.adapt:
        rates = {}
        for name in weights:
            seen = state.records.get(name, Record())
            rates[name] = (seen.gain + PRIOR.gain) / (seen.asks + PRIOR.asks)
        weights = {name: weight * rates[name] for name, weight in weights.items()}
        whole = sum(weights.values())
        weights = {name: max(weight, FLOOR * whole) for name, weight in weights.items()}
    return draw.choices(list(weights), list(weights.values()))[0]


def _finalist(member: Member, cells: Sequence[Cell]) -> Finalist:
    scores = [cell.score for cell in cells]
    return Finalist(member.born, member.genome, member.fitness, mean_of(scores) or 0.0, member.tokens, _usd(cells))


def _usd(cells: Sequence[Cell]) -> float | None:
    return mean_of([cell.usd for cell in cells if cell.score is not None])


def _tokens(cells: Sequence[Cell]) -> float:
    return mean_of([cell.input_tokens + cell.output_tokens for cell in cells if cell.score is not None]) or 0.0


def _by_model(settings: Evolution, cells: Sequence[Cell]) -> dict[str, float | None]:
    """The mean score of each model; empty if there is only one."""
    if len(settings.models) == 1:
        return {}
    there = [cell.each for cell in cells if cell.score is not None]
    return {model: mean_of([each[at] for each in there]) for at, model in enumerate(settings.models)}


def _goals(each: Finalist) -> tuple[float, ...]:
    return (each.validation, -each.tokens, -(each.usd or 0.0))


def _reason(members: Sequence[Member]) -> str:
    return next((each.why for each in members if each.why), "all candidates were worse than others")


@estimates(evolve)
def expected(settings: Evolution, known: Known | None = None) -> Estimate:
    """Estimate what an evolution would use."""
    return expected_evolution(settings, known)
