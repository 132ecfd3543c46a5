"""The methods of the benchmark. All send the same requests, and none sees the replies of another.

sequential   one request after the other, with the HTTP client only
batches      batches of genomes and of problems, with a barrier after each; HTTP client only
pooled       every genome on every problem, with a fixed concurrency; HTTP client only
engine       every genome on every problem, through the engine with its journal
raced        the same genomes with racing: those that are probably worse than the first are dropped early
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cached_property
from itertools import count
from math import sqrt
from random import Random
from statistics import NormalDist
from typing import NamedTuple

from groundswell.engine.lanes import Lane
from groundswell.engine.ports import Singly
from groundswell.engine.records import AskId, Intent, Item, Wave
from groundswell.engine.run import Run
from groundswell.errors import RunError
from groundswell.experiments.chance import seed_of
from groundswell.experiments.prompt_evolution.costs import Costs
from groundswell.experiments.prompt_evolution.examining import Examiner
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.metrics import number
from groundswell.experiments.prompt_evolution.problems import Problem, Problems, Sizes, generated
from groundswell.experiments.prompt_evolution.settings import SEED_PROMPT, Evolution, Rules
from groundswell.experiments.prompt_evolution.solving import Attempt, solve
from groundswell.experiments.prompt_evolution.tokens import MUTATIONS
from groundswell.experiments.small_models import extras_of
from groundswell.program.request import Chat, Fault, Reply, Settlement, system, user

DOUBT = NormalDist().inv_cdf(0.2)
"""Standard errors: a genome is dropped if its mean difference to the first is below this."""
Place = tuple[int, int]
"""A genome and a problem, by their numbers."""
Scores = dict[Place, float | None]
"""None if there was no reply."""
MAX_TOKENS = 300


class Sheet(NamedTuple):
    """The batch sizes and concurrency of `batches`."""

    genome_batch: int
    genomes_at_once: int
    problem_batch: int
    asks_at_once: int


class Tally:
    """The number of evaluations and of calls so far."""

    def __init__(self) -> None:
        self.met = self.calls = 0


class Workload:
    """The genomes and problems of a seed."""

    def __init__(self, model: str, genomes: int, problems: int, seed: int) -> None:
        self.model = model
        self.genomes = distinct(genomes, seed)
        self.given: Problems = generated(sizes=Sizes(problems, 1, 1), seed=seed)

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems."""
        return self.given.train

    @property
    def asks(self) -> int:
        """The number of requests for every genome on every problem."""
        return len(self.genomes) * len(self.problems)

    @cached_property
    def places(self) -> list[Place]:
        """All pairs of genome and problem."""
        return [(genome, problem) for genome in range(len(self.genomes)) for problem in range(len(self.problems))]

    def request(self, prompt: str, problem: Problem) -> Chat:
        """The request for a prompt on a problem, as in the experiment."""
        said = (system(prompt), user(problem.question))
        return Chat(self.model, said, temperature=0.0, max_tokens=MAX_TOKENS, extra=extras_of(self.model))

    def settings(self, block: int, at_once: int, *, racing: bool) -> Evolution:
        """The genomes as the seeds of an evolution."""
        return Evolution(
            models=(self.model,),
            problems=self.given,
            seeds=tuple(self.genomes),
            population_size=len(self.genomes),
            max_generations=1,
            genome_batch_size=at_once,
            rules=Rules(racing=racing, block=block),
            elite=0,
            max_tokens=MAX_TOKENS,
        )


WORDS = ("carefully", "clearly", "now", "please", "again", "exactly", "here", "slowly", "well", "below")


def distinct(many: int, seed: int) -> list[Genome]:
    """Distinct prompts, made by random edits of the seed prompt."""
    first = Genome(SEED_PROMPT)
    found, operators = {first.text: first}, list(MUTATIONS.values())
    for step in count():
        if len(found) == many:
            break
        draw = Random(seed_of(seed, "genome", step))
        child = draw.choice(operators)(draw.choice(list(found.values())), draw, WORDS)
        found.setdefault(child.text, child)
    return list(found.values())


class Plain:
    """Sends requests with only the HTTP client of an account: no journal, no cache, no retry.

    `per_minute` is the rate limit of the account, if there is one.
    """

    def __init__(self, run: Run, workload: Workload, tally: Tally, per_minute: float | None) -> None:
        self._run = run
        self._lane = run.lane_of(Chat(workload.model, ()))
        self._workload = workload
        self._tally = tally
        self._gap = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._numbers = count(1)
        self.fault: Fault | None = None
        """The last fault."""

    async def score(self, place: Place) -> float | None:
        """The score of a genome on a problem."""
        problem = self._workload.problems[place[1]]
        await self._turn()
        self._tally.calls += 1
        settlement = await self._settled(self._workload.request(self._workload.genomes[place[0]].text, problem))
        self._tally.met += 1
        if isinstance(settlement, Fault):
            self.fault = settlement
        return number(settlement.text, problem) if isinstance(settlement, Reply) else None

    async def _turn(self) -> None:
        """Wait for the rate limit."""
        if self._gap:
            now = time.monotonic()
            self._next = max(now, self._next) + self._gap
            await asyncio.sleep(self._next - self._gap - now)

    async def _settled(self, request: Chat) -> Settlement:
        way = self._lane.transport
        if isinstance(way, Singly):
            return (await way.ask(request))[0]
        wave = _wave(self._run, self._lane, next(self._numbers), request)
        receipt = await way.dispatch(wave)
        found = [settled.settlement async for settled in way.collect(wave, receipt)]
        return found[0]


def _wave(run: Run, lane: Lane, number: int, request: Chat) -> Wave:
    """A wave with one request, for transports that only take waves."""
    ask = AskId(number, "0")
    about = Intent(number, run.record.id, lane.account, lane.transport.name, (ask,), run.clock.wall())
    return Wave(
        about.id, about.run, about.account, about.transport, about.asks, about.at, items=(Item(ask, request, 0),)
    )


async def sequential(plain: Plain, places: Iterable[Place]) -> Scores:
    """One request after the other. If the first one fails, the rest is not tried."""
    found = Scores()
    for place in places:
        found[place] = await plain.score(place)
        if plain.fault is not None and len(found) == 1:
            raise RunError(f"The first request failed, so the benchmark stopped: {plain.fault.message}")
    return found


async def batches(plain: Plain, workload: Workload, sheet: Sheet) -> Scores:
    """Batches of genomes, and batches of problems for each genome, with a barrier after every batch."""
    found = Scores()
    genomes = asyncio.Semaphore(sheet.genomes_at_once)

    async def asked(place: Place, asks: asyncio.Semaphore) -> None:
        async with asks:
            found[place] = await plain.score(place)

    async def evaluated(genome: int) -> None:
        async with genomes:
            asks = asyncio.Semaphore(sheet.asks_at_once)
            for some in _cut(range(len(workload.problems)), sheet.problem_batch):
                await asyncio.gather(*(asked((genome, problem), asks) for problem in some))

    for some in _cut(range(len(workload.genomes)), sheet.genome_batch):
        await asyncio.gather(*(evaluated(genome) for genome in some))
    return found


async def pooled(plain: Plain, places: Iterable[Place], at_once: int) -> Scores:
    """No barriers and no engine: the limit of client, server and machine."""
    found, left = Scores(), iter(places)

    async def work() -> None:
        for place in left:
            found[place] = await plain.score(place)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return found


async def engine(run: Run, workload: Workload, settings: Evolution) -> Scores:
    """Every genome on every problem, through the engine."""
    with closing(_examiner(run, settings)) as examiner:
        met = await asyncio.gather(*(examiner.all(genome, "train") for genome in workload.genomes))
    return {(genome, problem): cell.score for genome, cells in enumerate(met) for problem, cell in enumerate(cells)}


async def raced(run: Run, workload: Workload, settings: Evolution) -> Scores:
    """The given genomes with racing: all but the first are dropped as soon as they are probably worse than it."""
    found, problems = Scores(), len(workload.problems)
    with closing(_examiner(run, settings)) as examiner:

        async def seen(number: int, end: int) -> list[float | None]:
            cells = await examiner.met(workload.genomes[number], "train", range(end))
            found.update({(number, at): cell.score for at, cell in enumerate(cells)})
            return [cell.score for cell in cells]

        first = await seen(0, problems)

        async def race(number: int) -> None:
            end = 0
            while end < problems:
                end = min(problems, max(settings.shape.block, 2 * end))
                if probably_worse(await seen(number, end), first):
                    break

        await asyncio.gather(*(race(number) for number in range(1, len(workload.genomes))))
    return found


def probably_worse(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Whether the first is as good as the second with a chance below 0.2, by the problems that both have seen."""
    pairs = zip(one, other, strict=False)
    differences = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
    if not differences:
        return False
    n = len(differences)
    error = sqrt(sum(each * each for each in differences) + 1 / n) / n
    return sum(differences) / n < DOUBT * error


def _examiner(run: Run, settings: Evolution) -> Examiner:
    return Examiner(run, settings, Costs(run))


async def warmed_up(run: Run, workload: Workload, at_once: int) -> None:
    """Open connections, and show the server every prompt and every problem once, since it may cache their analysis.

    None of these requests is part of the measurement.
    """
    other = workload.given.validation[0]
    asked = [(f"Connection {number}.", other) for number in range(at_once)]
    asked += [(genome.text, other) for genome in workload.genomes]
    asked += [("Warm up.", problem) for problem in workload.problems]
    specs = (Attempt(workload.model, prompt, problem, max_tokens=MAX_TOKENS) for prompt, problem in asked)
    async for _ in run.map(solve, specs):
        pass


def _cut(numbers: range, size: int) -> Iterable[range]:
    return (numbers[at : at + size] for at in range(0, len(numbers), size))
