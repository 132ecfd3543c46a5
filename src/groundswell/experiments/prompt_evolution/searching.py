"""A steady-state search for a good prompt. Births overlap, and the result does not depend on their speed.

A birth creates one genome and evaluates it. Births are numbered. Birth n uses only the results of births up to n - W,
and waits for these. So W genomes are evaluated at the same time, and the same seed gives the same genomes, whatever the
network does.

    Search.run   starts the births in order
    _born        one birth: create the genome, then race it
    _fold        applies a birth to the population, in the order of births
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
"""Maximum number of operators that random search applies to a seed."""
SHOWN = 3
"""Number of failed problems shown to a model that writes a prompt."""
AGAIN = 3
"""Maximum number of further random edits to a child that duplicates a known prompt."""


class Plan(NamedTuple):
    """How to create a child: the operators, applied in order, and the parents."""

    operators: tuple[str, ...]
    parents: tuple[Member, ...]


class Purse(NamedTuple):
    """The budget of a search. None: no limit."""

    asks: int | None = None
    usd: float | None = None


UNLIMITED = Purse()
Planner = Callable[["Search", Random, int], Plan]
"""Plans a birth from the population that it may use."""


class Bred(NamedTuple):
    """A child and the cost of creating it. If creation failed, `why` is set and the genome is its first parent's."""

    genome: Genome
    operator: str
    parents: tuple[int, ...] = ()
    asks: int = 0
    usd: float | None = 0.0
    why: str = ""


class Search:
    """One search: the evolution or a baseline. `size` is the population size; None keeps every survivor."""

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
        """Requests saved because candidates were dropped early, and because duplicates are not evaluated again."""
        self.since_better = 0
        """Births since the current best genome."""
        self._run = run
        self._writing = Outage(run, called="request for a new prompt")
        self._first: dict[str, int] = {}
        self._past = deque[Population](maxlen=settings.genome_batch_size)
        self._lived: dict[str, Fate] = {}
        self._counted: dict[str, int] = {}
        self._met = self._met_for = 0
        """Number of evaluations so far, and the requests they took."""
        self._began, self._lately = run.clock.now(), 0
        self._seconds: dict[int, float] = {}

    async def run(self, plan: Planner, over: Callable[[Search], str], purse: Purse = UNLIMITED) -> str:
        """Create and evaluate genomes until `over` gives a reason to stop; returns the reason.

        No birth starts while the births in progress are expected to use up the rest of the budget. Their use is
        predicted from recent births. So a search exceeds its budget by about its last birth.
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
            self._run.report(len(self.members), {}, f"{self.name}: done, best {self._best:.3f}", who=self.name)
            return why
        finally:
            for task in going:
                task.cancel()
            await asyncio.gather(*going, return_exceptions=True)

    def _promised(self, purse: Purse, going: int) -> bool:
        """Whether the budget is used up, including the predicted use of the births in progress."""
        if purse == UNLIMITED or not self.members:
            return purse != UNLIMITED
        lately = self.members[-max(self.settings.population_size, 2 * self.settings.genome_batch_size) :]
        asks = self.asks + going * fmean(child.asks for child in lately)
        if purse.asks is not None and asks >= purse.asks:
            return True
        usd = (self.usd or 0.0) + going * fmean(child.usd or 0.0 for child in lately)
        return purse.usd is not None and usd >= purse.usd

    def known_to(self, number: int) -> Population:
        """The population that a birth may use: that after the last birth which is W or more before it."""
        more = len(self.members) - self._old_enough(number)
        return self._past[-1 - more] if more < len(self._past) else Population()

    def _old_enough(self, number: int) -> int:
        """The number of births that are W or more before this one."""
        return max(0, number - self.settings.genome_batch_size + 1)

    def seeds_of(self, number: int) -> tuple[Member, ...]:
        """The seed prompts as parents, with their scores if this birth may use them."""
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
        if run.counters.settled > before:  # otherwise an earlier session has done it all
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
        """Whether the genome duplicates one that birth `number` may use."""
        first = self._first.get(genome.text)
        return first is not None and first <= number - self.settings.genome_batch_size

    async def _bred(self, number: int, plan: Plan) -> Bred:
        """Create the child. A duplicate gets a few more random edits, if random edits are enabled."""
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
        """Let a model write a prompt. The key of the trial includes a digest of the parents and the failures."""
        settings = self.settings
        spec = Breeding(
            operator, parents, settings.by, failures, seed_of(self._run.record.seed, self.name, place) % 2**31
        )
        shown = blake2b("\0".join([*(each.text for each in parents), *map(str, failures)]).encode(), digest_size=6)
        outcome = await self._run.submit(breed, spec, key=f"{self.name}/{place}/{operator}/{shown.hexdigest()}")
        return outcome.unwrap()

    def _failures(self, parent: Member, number: int) -> tuple[Failure, ...]:
        """A sample of the problems that a parent failed on."""
        failed = [at for at, score in enumerate(parent.scores) if score is not None and score < 1]
        chosen = sorted(self._draw("failures", number).sample(failed, min(SHOWN, len(failed))))
        problems = self.examiner.problems("train")
        said = self.examiner.said(parent.genome, "train")
        return tuple(Failure(problems[at].question, problems[at].answer, said.get(at, "")) for at in chosen)

    async def _raced(self, number: int, bred: Bred, known: Population) -> Member:
        """Evaluate a genome block by block, until it is clearly worse or has seen all problems."""
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
        """The child with the results so far; `accuracy` replaces its mean score by an estimate for all problems."""
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
        """Apply a birth to the population, in the order of births."""
        text, before = child.genome.text, self.population.best
        self._first.setdefault(text, child.born)
        child = self._paid(child)
        if child.fate in LIVING and self._lived.get(text) in ("lives", child.fate):
            child = msgspec.structs.replace(child, fate="known")
        self.members.append(child)
        if child.fate in LIVING:
            if text in self._lived:  # a duplicate that was evaluated on fewer problems
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
        """Add up what creating and evaluating a genome took, and what racing and duplicates saved."""
        text, met, problems = child.genome.text, len(child.scores), len(self.examiner.problems("train"))
        known = min(met, self._counted.get(text, 0))  # problems of a duplicate that are evaluated already
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
        """Record the state of the search for its curve."""
        living = self.population.members
        mean = sum(each.fitness for each in living) / len(living) if living else 0.0
        self.curve.append(Moment(len(self.members), self.asks, self._best, mean, self.population.spread, self.usd))

    @property
    def _best(self) -> float:
        """The fitness of the best genome; 0 while there is none."""
        return 0.0 if self.population.best is None else self.population.best.fitness

    def _tell(self, child: Member) -> None:
        """Report the state of the search after each birth."""
        run, elapsed = self._run, self._run.clock.now() - self._began
        speed = self._lately / elapsed if elapsed > 0 else 0.0
        seconds = self._seconds.pop(child.born, 0.0)
        figures = _figures(self, child, seconds=seconds, speed=speed, cached=run.counters.cached)
        run.report(len(self.members), figures, _words(self, figures), who=self.name)


def _parents(plan: Plan) -> tuple[int, ...]:
    """The parents that contribute to a child: the second one only if an operator takes two."""
    two = any(PARENTS.get(operator) == 2 or operator in CROSSOVERS for operator in plan.operators)
    return tuple(dict.fromkeys(each.born for each in plan.parents[: 2 if two else 1]))


def _figures(search: Search, child: Member, *, seconds: float, speed: float, cached: int) -> dict[str, float]:
    """The figures of a birth and of its search, for listeners."""
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
    """The progress line of a search. Speed, cache hits and cost of the run are shown by the display itself."""
    births, whole = len(search.members), search.settings.max_generations
    if search.size is None:
        at = f"{births:,} candidate{'s' * (births != 1)}"
    else:
        at = f"generation {figures['generation']:.1f} of {whole:,}"
    return f"{search.name}: {at}, best {figures['best']:.3f}, {search.asks:,} requests"
