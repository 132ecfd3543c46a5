"""A search for a good prompt, in a steady state: births overlap, and nothing depends on which of them is faster.

Births are numbered. Birth n is decided from the genomes that were born W or more before it, once all of those are done;
so W genomes are on their way at a time, and the same seed gives the same genomes, whatever the network does.

    Search.run   the births, one after the other
    _born        one of them: bred, then raced
    _fold        what it changes, in the order of births
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from random import Random
from statistics import fmean
from typing import NamedTuple

import msgspec

from groundswell.engine.retry import LOAD, PASSING
from groundswell.engine.run import Run
from groundswell.errors import TrialMissing
from groundswell.experiments.chance import seed_of
from groundswell.experiments.outage import Outage
from groundswell.experiments.prompt_evolution.analysis import Moment
from groundswell.experiments.prompt_evolution.breeding import PARENTS, Breeding, Failure, Written, breed
from groundswell.experiments.prompt_evolution.costs import Spent, added
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks
from groundswell.experiments.prompt_evolution.fitness import apart, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import LIVING, Fate, Member, Population
from groundswell.experiments.prompt_evolution.racing import Rivals, blocks
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.prompt_evolution.tokens import CROSSOVERS, MUTATIONS

DEEPEST = 3
"""The most operators that a random search applies to a seed."""
SHOWN = 3
"""Failures that a model is shown."""
AGAIN = 3
"""How often one that was born before is changed once more, to be somebody else."""


class Plan(NamedTuple):
    """How a child comes to be: by which operators, one after the other, and from whom."""

    operators: tuple[str, ...]
    parents: tuple[Member, ...]


class Purse(NamedTuple):
    """The most that a search may spend. None: as much as it likes."""

    asks: int | None = None
    usd: float | None = None


UNLIMITED = Purse()
Planner = Callable[["Search", Random, int], Plan]
"""Decides a birth, when all that it may know is folded."""


class Bred(NamedTuple):
    """A child, and what it took to get it; or why there is none, and then the genome is its first parent's."""

    genome: Genome
    operator: str
    parents: tuple[int, ...] = ()
    asks: int = 0
    usd: float | None = 0.0
    why: str = ""


class Search:
    """One search: an evolution, or one of those that it is compared with. `size` is the most that live."""

    def __init__(self, run: Run, settings: Evolution, examiner: Examiner, name: str, size: int | None = None) -> None:
        self.settings = settings
        self.examiner = examiner
        self.name = name
        self.size = size
        self.population = Population()
        self.members: list[Member] = []
        self.curve: list[Moment] = []
        self.started = 0
        self.asks = 0
        self.usd: float | None = 0.0
        self.saved_by_racing = self.saved_as_known = 0
        """Asks that it could do without: races that ended early, and prompts that were known already."""
        self.since_better = 0
        """Births since the best was born."""
        self._run = run
        self._writing = Outage(run, called="prompt that a model is to write")
        self._first: dict[str, int] = {}
        self._past = deque[Population](maxlen=settings.genome_batch_size)
        self._lived: dict[str, Fate] = {}
        self._counted: dict[str, int] = {}
        self._met = self._met_for = 0
        """Problems that genomes met, and the asks that this took."""
        self._began, self._lately = run.clock.now(), 0
        self._seconds: dict[int, float] = {}

    async def run(self, plan: Planner, over: Callable[[Search], str], purse: Purse = UNLIMITED) -> str:
        """Let genomes be born until it is over; says why it is.

        None is begun while those on their way are to take all that is left in the purse, if they take what others took
        lately. So a search oversteps its purse by about its last birth, however many are on their way at a time.
        """
        window, going = self.settings.genome_batch_size, deque[asyncio.Task[Member]]()
        try:
            while True:
                while going and (len(going) == window or self._promised(purse, len(going))):
                    self._fold(await going.popleft())
                if why := over(self):
                    break
                number = self.started
                is_seed = number < len(self.settings.seeds)
                planned = None if is_seed else plan(self, self._draw("plan", number), number)
                going.append(asyncio.create_task(self._born(number, planned, self.known_to(number))))
                self.started += 1
            while going:
                self._fold(await going.popleft())
            return why
        finally:
            for task in going:
                task.cancel()
            await asyncio.gather(*going, return_exceptions=True)

    def _promised(self, purse: Purse, going: int) -> bool:
        """Whether all is spent, counting what so many births on their way will take: each as much as others lately."""
        if purse == UNLIMITED or not self.members:
            return purse != UNLIMITED
        lately = self.members[-max(self.settings.population_size, 2 * self.settings.genome_batch_size) :]
        asks = self.asks + going * fmean(child.asks for child in lately)
        if purse.asks is not None and asks >= purse.asks:
            return True
        usd = (self.usd or 0.0) + going * fmean(child.usd or 0.0 for child in lately)
        return purse.usd is not None and usd >= purse.usd

    def known_to(self, number: int) -> Population:
        """Who lives, as far as a birth may know: of those that were born W or more before it."""
        more = len(self.members) - self._old_enough(number)
        return self._past[-1 - more] if more < len(self._past) else Population()

    def _old_enough(self, number: int) -> int:
        """How many were born W or more before a birth."""
        return max(0, number - self.settings.genome_batch_size + 1)

    def seeds_of(self, number: int) -> tuple[Member, ...]:
        """What everything descends from; where a birth may know it, with what they failed on."""
        there = self.members[: min(len(self.settings.seeds), self._old_enough(number))]
        to_come = list(enumerate(self.settings.seeds))[len(there) :]
        return (*there, *(Member(born, genome, "seed") for born, genome in to_come))

    def _draw(self, *about: object) -> Random:
        return Random(seed_of(self._run.record.seed, self.name, *about))

    async def _born(self, number: int, plan: Plan | None, known: Population) -> Member:
        run = self._run
        began, before = run.clock.now(), run.counters.settled
        child = await self._conceived(number, plan, known)
        self._seconds[number] = run.clock.now() - began
        if run.counters.settled > before:  # else an earlier session did all of it
            self._lately += len(child.scores)
        return child

    async def _conceived(self, number: int, plan: Plan | None, known: Population) -> Member:
        if plan is None:
            bred = Bred(self.settings.seeds[number], "seed")
        else:
            bred = await self._bred(number, plan)
        if not bred.why and not self._was_born(bred.genome, number):
            return await self._raced(number, bred, known)
        genome, operator, parents, asks, usd, why = bred
        fate: Fate = "failed" if why else "known"
        return Member(number, genome, operator, parents, fate=fate, asks=asks, usd=usd, why=why)

    def _was_born(self, genome: Genome, number: int) -> bool:
        """Whether it is among those that birth `number` may know of."""
        first = self._first.get(genome.text)
        return first is not None and first <= number - self.settings.genome_batch_size

    async def _bred(self, number: int, plan: Plan) -> Bred:
        """Make the child. One that was born before is changed by a word or two, where words may be changed."""
        one, other = plan.parents[0].genome, plan.parents[-1].genome
        asks, told = 0, "+".join(plan.operators)
        usd: float | None = 0.0
        for step, operator in enumerate(plan.operators):
            if operator in PARENTS:
                parents = (one, other)[: PARENTS[operator]]
                failures = self._failures(plan.parents[0], number) if operator == "reflect" and step == 0 else ()
                try:
                    written = await self._written(f"{number}/{step}", operator, parents, failures)
                except TrialMissing as error:
                    await self._writing.passed(str(error), lasting=error.fault.kind not in PASSING | LOAD)
                    return Bred(plan.parents[0].genome, told, _parents(plan), asks + 1, usd, str(error))
                await self._writing.passed(None)
                paid = self.examiner.costs.of(self.settings.by, written.input_tokens, written.output_tokens)
                asks, usd = asks + 1, added(usd, paid)
                if written.genome is None:
                    return Bred(plan.parents[0].genome, told, _parents(plan), asks, usd, written.why)
                one = written.genome
            elif operator in MUTATIONS:
                one = MUTATIONS[operator](one, self._draw("mutation", number, step))
            else:
                one = CROSSOVERS[operator](one, other, self._draw("crossover", number, step))
        changes = [name for name in MUTATIONS if self.settings.operators.get(name)]
        for again in range(AGAIN if changes else 0):
            if not self._was_born(one, number):
                break
            draw = self._draw("again", number, again)
            one = MUTATIONS[draw.choice(changes)](one, draw)
        return Bred(one, told, _parents(plan), asks, usd)

    async def _written(
        self, place: str, operator: str, parents: tuple[Genome, ...], failures: tuple[Failure, ...]
    ) -> Written:
        """Have a model write. The key names what it works from: if that changes, so does the trial."""
        settings = self.settings
        spec = Breeding(
            operator, parents, settings.by, failures, seed_of(self._run.record.seed, self.name, place) % 2**31
        )
        shown = blake2b("\0".join([*(each.text for each in parents), *map(str, failures)]).encode(), digest_size=6)
        outcome = await self._run.submit(breed, spec, key=f"{self.name}/{place}/{operator}/{shown.hexdigest()}")
        return outcome.unwrap()

    def _failures(self, parent: Member, number: int) -> tuple[Failure, ...]:
        """Some of what a parent failed on."""
        failed = [at for at, score in enumerate(parent.scores) if score is not None and score < 1]
        chosen = sorted(self._draw("failures", number).sample(failed, min(SHOWN, len(failed))))
        problems = self.examiner.problems("train")
        said = self.examiner.said(parent.genome, "train")
        return tuple(Failure(problems[at].question, problems[at].answer, said.get(at, "")) for at in chosen)

    async def _raced(self, number: int, bred: Bred, known: Population) -> Member:
        """Let it meet the problems, block by block, for as long as it may be among the best."""
        settings, rules, cells = self.settings, self.settings.rules, list[Cell]()
        problems, races = len(self.examiner.problems("train")), rules.racing and settings.fitness.accuracy
        rivals = Rivals.of([each.racer for each in known.members], problems) if races else None
        diversity = apart(bred.genome, [each.genome for each in known.members] if settings.fitness.diversity else ())
        child = Member(number, bred.genome, bred.operator, bred.parents, asks=bred.asks, usd=bred.usd)
        for block in blocks(rules, problems):
            cells += await self.examiner.met(bred.genome, "train", block)
            child = self._so_far(child, cells, diversity)
            if child.fate == "failed":
                break
            if rivals is None or len(cells) == problems:
                continue
            standing = rivals.standing(child.racer, rules.doubt)
            if standing == "middling":
                child = self._so_far(child, cells, diversity, rivals.expected(child.scores))
            if standing != "ahead":
                return msgspec.structs.replace(child, fate=standing)
        return child

    def _so_far(self, child: Member, cells: Sequence[Cell], diversity: float, accuracy: float | None = None) -> Member:
        """A newcomer, by the problems that it has met, and by its accuracy on all if that is estimated."""
        there = [cell for cell in cells if cell.score is not None]
        settings, count = self.settings, max(1, len(there))
        said = sum(cell.output_tokens for cell in there) / count
        found = worth(child.genome, [cell.score or 0.0 for cell in there], said, settings.max_tokens, diversity)
        if accuracy is not None:
            found = msgspec.structs.replace(found, accuracy=accuracy)
        failed = lacks(cells)
        return msgspec.structs.replace(
            child,
            scores=tuple(cell.score for cell in cells),
            fitness=found.fitness(settings.fitness),
            beside=found.beside(settings.fitness),
            fate="failed" if failed else "lives",
            tokens=said + sum(cell.input_tokens for cell in there) / count,
            why=next((cell.why for cell in cells if cell.why), "") if failed else "",
        )

    def _fold(self, child: Member) -> None:
        """Take a genome in, when all that were born before it have been."""
        text, before = child.genome.text, self.population.best
        self._first.setdefault(text, child.born)
        child = self._paid(child)
        if child.fate in LIVING and self._lived.get(text) in ("lives", child.fate):
            child = msgspec.structs.replace(child, fate="known")
        self.members.append(child)
        if child.fate in LIVING:
            if text in self._lived:  # a twin, that went less far
                self.population = self.population.without(text)
            self._lived[text] = child.fate
            draw = self._draw("fold", child.born)
            self.population = self.population.joined(child, self.size, self.settings.elite, draw)
        self._past.append(self.population)
        best = self.population.best
        better = best is not None and (before is None or best.fitness > before.fitness)
        self.since_better = 0 if better else self.since_better + 1
        if len(self.members) % self.settings.population_size == 0 or better:
            self._note()
        self._tell(child)

    def _paid(self, child: Member) -> Member:
        """Count what its birth and its races took, and what was saved: races that ended early, and what was known."""
        text, met, problems = child.genome.text, len(child.scores), len(self.examiner.problems("train"))
        known = min(met, self._counted.get(text, 0))  # so many a twin has met
        self._counted[text] = max(met, self._counted.get(text, 0))
        races = self.examiner.spent(child.genome, "train", range(known, met))
        self._met, self._met_for = self._met + met - known, self._met_for + races.asks
        each = self._met_for / self._met if self._met else len(self.settings.models)
        self.saved_as_known += round(each * (problems if child.fate == "known" else known))
        if child.fate in ("behind", "middling"):
            self.saved_by_racing += round(each * (problems - met))
        asks, usd = Spent(child.asks, child.usd).and_(races)
        self.asks, self.usd = self.asks + asks, added(self.usd, usd)
        return msgspec.structs.replace(child, asks=asks, usd=usd)

    def _note(self) -> None:
        """Write down how the search stands."""
        living = self.population.members
        mean = sum(each.fitness for each in living) / len(living) if living else 0.0
        best = self.population.best.fitness if self.population.best is not None else 0.0
        self.curve.append(Moment(len(self.members), self.asks, best, mean, self.population.spread, self.usd))

    def _tell(self, child: Member) -> None:
        """Say how the search stands, after each birth."""
        run, elapsed = self._run, self._run.clock.now() - self._began
        speed = self._lately / elapsed if elapsed > 0 else 0.0
        seconds = self._seconds.pop(child.born, 0.0)
        figures = _figures(self, child, seconds=seconds, speed=speed, cached=run.counters.cached)
        run.report(len(self.members), figures, _words(self, figures), who=self.name)


def _parents(plan: Plan) -> tuple[int, ...]:
    """Those that a child has something of: of the second only where an operator takes two."""
    two = any(PARENTS.get(operator) == 2 or operator in CROSSOVERS for operator in plan.operators)
    return tuple(dict.fromkeys(each.born for each in plan.parents[: 2 if two else 1]))


def _figures(search: Search, child: Member, *, seconds: float, speed: float, cached: int) -> dict[str, float]:
    """Those of the birth, which took so many seconds, and of the search, which meets so many problems a second."""
    last, best = search.curve[-1] if search.curve else None, search.population.best
    found = {
        "birth": float(child.born),
        "fitness": child.fitness,
        "problems": float(len(child.scores)),
        "asks": float(child.asks),
        "seconds": seconds,
        "generation": len(search.members) / search.settings.population_size,
        "best": 0.0 if best is None else best.fitness,
        "mean": 0.0 if last is None else last.mean,
        "spread": 0.0 if last is None else last.spread,
        "asks_in_all": float(search.asks),
        "saved_by_racing": float(search.saved_by_racing),
        "saved_as_known": float(search.saved_as_known),
        "from_cache": float(cached),
        "problems_per_second": speed,
    }
    return found | ({"usd": search.usd} if search.usd else {})


def _words(search: Search, figures: dict[str, float]) -> str:
    """The same in a line."""
    births, whole = len(search.members), search.settings.max_generations
    stand = f"{births:,} births" if search.size is None else f"{figures['generation']:.1f} of {whole:,} generations"
    saved = search.saved_by_racing + search.saved_as_known
    said = [
        f"{search.name}: {stand}",
        f"best {figures['best']:.3f}",
        f"spread {figures['spread']:.2f}",
        f"{search.asks:,} asks",
        f"{saved:,} saved",
    ]
    if cached := figures["from_cache"]:
        said[-1] += f" ({cached:,.0f} replies from the cache)"
    said.append(f"{figures['problems_per_second']:,.0f} problems/s")
    return ", ".join([*said, *([f"${search.usd:,.4f}"] if search.usd else [])])
