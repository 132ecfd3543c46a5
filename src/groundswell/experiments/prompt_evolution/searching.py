"""A steady-state search for a good prompt. Births overlap, and the result does not depend on their speed.

A birth creates one genome and evaluates it. Births are numbered. Birth n uses only the results of births up to n - W,
and waits for these. So W genomes are evaluated at the same time, and the same seed gives the same genomes, whatever the
network does.

    Search.run   starts the births in order, while the budget covers them
    _born        one birth: create the genome and evaluate it, and evaluate its parent further
    _fold        applies a birth to the population, in the order of births

A child is evaluated on few problems: some that its parent fails on, some that its parent solves. Its accuracy is
estimated from these and from the scores of its relatives (`accuracy.py`). A candidate is evaluated on a few more
problems whenever it becomes a parent. So most requests go to the best candidates, and a candidate that was only
lucky is soon recognised.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import sqrt
from random import Random
from typing import NamedTuple

import msgspec

from groundswell.engine.retry import LOAD, PASSING
from groundswell.engine.run import Run
from groundswell.errors import TrialMissing
from groundswell.experiments.chance import seed_of
from groundswell.experiments.outage import Outage
from groundswell.experiments.prompt_evolution.accuracy import Accuracies, Belief
from groundswell.experiments.prompt_evolution.analysis import Moment
from groundswell.experiments.prompt_evolution.best import Best, BestSoFar
from groundswell.experiments.prompt_evolution.breeding import PARENTS, Breeding, Case, Written, breed
from groundswell.experiments.prompt_evolution.costs import Spent, added
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks
from groundswell.experiments.prompt_evolution.fitness import apart, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import LIVING, Member, Population
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.settings import EXAMPLES, SHORTEN, Evolution
from groundswell.experiments.prompt_evolution.tokens import (
    CROSSOVERS,
    MUTATIONS,
    differing,
    mixed,
    shorten,
    with_examples,
)

DEEPEST = 3
"""Maximum number of operators that random search applies to a seed."""
AGAIN = 3
"""Maximum number of further random edits to a child that duplicates a known prompt."""
LEAST = 12
"""Number of training problems that a seed prompt is evaluated on."""
MEASURED = 2
"""Minimum number of these problems. Requests per problem are measured on as many."""
GATE, KEPT = 4, 2
"""Number of problems for a new child that its parent fails on, and that its parent solves."""
FLAWLESS = 4
"""A candidate that has solved all its problems is evaluated on this many blocks of further ones."""
STUCK = 2
"""After this many births in a row that failed, the next parent is drawn at random."""
EXAMPLES_DRAWN = 8
"""Number of worked examples that a child can choose from."""


class Plan(NamedTuple):
    """How to create a child: the operators, applied in order, and the parents."""

    operators: tuple[str, ...]
    parents: tuple[Member, ...]
    further: Member
    """A candidate that is evaluated on more problems meanwhile."""


class Purse(NamedTuple):
    """The budget of a search. None: no limit."""

    asks: int | None = None
    usd: float | None = None
    reserved: int = 0
    """Evaluations on the validation set after the search that the budget must cover too."""
    tested: int = 0
    """Evaluations on the held-out test that `usd` must cover too."""


UNLIMITED = Purse()
Planner = Callable[["Search", Random, int], Plan]
"""Plans a birth from the state that it may use."""


class Record(NamedTuple):
    """What an operator has used and gained so far."""

    births: int = 0
    asks: int = 0
    gain: float = 0.0


class State(NamedTuple):
    """A search after a number of births, as later births may use it."""

    population: Population
    records: Mapping[str, Record] = {}


class Bred(NamedTuple):
    """A child and the cost of creating it. If creation failed, `why` is set and the genome is its first parent's."""

    genome: Genome
    operator: str
    parents: tuple[int, ...] = ()
    asks: int = 0
    usd: float | None = 0.0
    why: str = ""
    made_for: tuple[int, ...] = ()
    """Numbers of the training problems that the child was made for: failures that its writer has seen."""


class Birth(NamedTuple):
    """What a birth leads to: the child, and the training problems that it and another candidate were evaluated on."""

    child: Member
    problems: Sequence[int] = ()
    further: int | None = None
    """Number of the other candidate."""
    more: Sequence[int] = ()


class Search:
    """One search: the evolution or a baseline. The best prompt so far is stored in `so_far`, if it is given."""

    def __init__(
        self,
        run: Run,
        settings: Evolution,
        examiner: Examiner,
        name: str,
        so_far: BestSoFar | None = None,
        *,
        is_baseline: bool = False,
    ) -> None:
        self.settings = settings
        self.shape = settings.shape
        self.examiner = examiner
        self.name = name
        self.size = settings.shape.population_size
        self.is_baseline = is_baseline
        self._nobody = State(Population(pareto=settings.pareto, accuracy_weight=settings.accuracy_weight))
        self.state = self._nobody
        self.members: list[Member] = []
        self.curve: list[Moment] = []
        self.started = 0
        self.asks = 0
        self.usd: float | None = 0.0
        self.saved_by_racing = self.saved_as_known = 0
        """Requests saved because candidates were dropped early, and because duplicates are not evaluated again."""
        self.since_better = 0
        """Births since a genome became the best one for the first time."""
        self._run = run
        self._best_so_far = so_far
        self._writing = Outage(run, called="request for a new prompt")
        self._accuracies = Accuracies()
        self._first: dict[str, int] = {}
        self._past = deque[State](maxlen=self.shape.window + 1)
        self._lived = set[str]()
        self._were_best = set[int]()
        self._counted: dict[str, set[int]] = {}
        """Training problems of each prompt that are paid for."""
        self._met = self._met_for = 0
        """Number of evaluations so far, and the requests they took."""
        self._began, self._lately = run.clock.now(), 0
        self._seconds: dict[int, float] = {}
        self._words: list[str] | None = None

    @property
    def population(self) -> Population:
        """The current population."""
        return self.state.population

    @property
    def train(self) -> Sequence[Problem]:
        """The training problems."""
        return self.examiner.problems("train")

    async def run(
        self, plan: Planner, over: Callable[[Search], str], purse: Purse = UNLIMITED, seconds: float | None = None
    ) -> str:
        """Create and evaluate genomes until `over` gives a reason to stop; returns the reason.

        A birth starts when the budget covers all that it and the births in progress can use at most. So a search does
        not exceed its budget. No birth starts after `seconds`.
        """
        seeds, going = len(self.settings.seeds), deque[tuple[asyncio.Task[Birth], float]]()
        why = ""
        try:
            while True:
                number = self.started
                while going and (
                    len(going) == self.shape.window
                    or len(self.members) < self._needed(number)
                    or not self._affords(purse, number, sum(most for _, most in going))
                ):
                    await self._take(await going.popleft()[0])
                why = over(self)
                if not why and number >= seeds and not self._affords(purse, number, 0):
                    why = _used(purse)
                if not why and seconds is not None and await self._out_of_time(number, seconds):
                    why = f"its {seconds:g} seconds are used"
                if why:
                    break
                planned = None if number < seeds else plan(self, self._draw("plan", number), number)
                task = asyncio.create_task(self._born(number, planned, self._seed_problems(purse)))
                going.append((task, self._most(number)))
                self.started += 1
            while going:
                await self._take(await going.popleft()[0])
            self._settle()
            self._run.report(len(self.members), {}, f"{self.name}: done, best {self._best:.3f}", who=self.name)
            return why
        finally:
            for task, _ in going:
                task.cancel()
            await asyncio.gather(*(task for task, _ in going), return_exceptions=True)

    async def _out_of_time(self, number: int, seconds: float) -> bool:
        """Whether time is up. The number of births is stored with the run: resumed, it stops at the same birth."""
        name = f"time/{self.name}"
        if (kept := self._run.kept(name)) is not None:
            return number >= int(kept)
        if number < len(self.settings.seeds) or self._run.clock.now() - self._began < seconds:
            return False
        await self._run.keep(name, str(number))
        return True

    def _affords(self, purse: Purse, number: int, promised: float) -> bool:
        """Whether the budget covers one more birth, besides the requests promised to births in progress."""
        most = promised + self._most(number) + purse.reserved * self._each
        if purse.asks is not None and self.asks + most > purse.asks:
            return False
        if purse.usd is None or not self.asks:
            return True
        usd, best = self.usd or 0.0, self.population.best
        rate = usd / self.asks
        if best is not None:  # a better prompt is often longer
            spent = self.examiner.spent(best.genome, "train", self._counted[best.genome.text])
            rate = max(rate, (spent.usd or 0.0) / max(1, spent.asks))
        return usd + (most + purse.tested * self._each) * rate <= purse.usd

    def _most(self, number: int) -> float:
        """The maximum number of requests of a birth."""
        whole, block = len(self.train), self.shape.block
        if number < len(self.settings.seeds):
            return self._each * (LEAST if self._races else whole)
        members = self.known_to(number).members or self.members
        flawless = any(not _split(each)[0] for each in members)
        problems = max(GATE + KEPT, block) + (FLAWLESS if flawless else 1) * block if self._races else whole
        return DEEPEST * self.is_baseline + 1 + self._each * min(problems, 2 * whole)

    @property
    def _races(self) -> bool:
        return self.settings.races

    @property
    def _each(self) -> float:
        """Requests per evaluation."""
        return max(1.0, self._met_for / self._met) if self._met else self.settings.each

    def _seed_problems(self, purse: Purse) -> int:
        """The number of problems that the seeds are evaluated on: fewer if the budget covers no more."""
        return max(self.examiner.measured, seed_problems(self.settings, purse.asks, purse.reserved))

    def state_for(self, number: int) -> State:
        """The state that a birth may use: after the last birth that is W or more before it, or after the seeds."""
        more = len(self.members) - self._needed(number)
        return self._past[-1 - more] if 0 <= more < len(self._past) else self._nobody

    def _needed(self, number: int) -> int:
        """The number of births that must be complete before this one: all seeds, and all W or more before it."""
        seeds = len(self.settings.seeds)
        return 0 if number < seeds else max(seeds, number - self.shape.window + 1)

    def known_to(self, number: int) -> Population:
        """The population that a birth may use."""
        return self.state_for(number).population

    def stuck(self, number: int) -> bool:
        """Whether the last births that this one may use have all failed, perhaps because of their common parent."""
        lately = self.members[: self._needed(number)][-STUCK:]
        return len(lately) == STUCK and all(each.fate == "failed" for each in lately)

    def seeds_of(self, number: int) -> tuple[Member, ...]:
        """The seed prompts as parents, with their scores."""
        return tuple(self.members[: len(self.settings.seeds)])

    def _draw(self, *about: object) -> Random:
        return Random(seed_of(self._run.record.seed, self.name, *about))

    async def _born(self, number: int, plan: Plan | None, first: int) -> Birth:
        run = self._run
        began, before = run.clock.now(), run.counters.settled
        if plan is None:
            birth = await self._evaluated(Member(number, self.settings.seeds[number], "seed"), range(first))
        else:
            birth, more = await asyncio.gather(self._conceived(number, plan), self._further(number, plan.further))
            birth = birth._replace(further=plan.further.born, more=more)
        self._seconds[number] = run.clock.now() - began
        if run.counters.settled > before:  # otherwise an earlier session has done it all
            self._lately += len(birth.problems) + len(birth.more)
        return birth

    async def _further(self, number: int, member: Member) -> Sequence[int]:
        """Evaluate a candidate on a block of problems that are new to it, or on more if it has solved all so far."""
        if not self._races:
            return ()
        old = {at for at, score in enumerate(member.scores) if score is not None}
        new = self._usable(member.genome, [at for at in range(len(self.train)) if at not in old])
        count = self.shape.block * (1 if _split(member)[0] else FLAWLESS)
        problems = sorted(self._draw("further", number).sample(new, min(count, len(new))))
        await self.examiner.met(member.genome, "train", problems)
        return problems

    async def _conceived(self, number: int, plan: Plan) -> Birth:
        """Create a child and evaluate it."""
        bred = await self._bred(number, plan)
        child = Member(number, bred.genome, bred.operator, bred.parents, asks=bred.asks, usd=bred.usd, why=bred.why)
        if bred.why or self._was_born(bred.genome, number):
            return Birth(msgspec.structs.replace(child, fate="failed" if bred.why else "known"))
        return await self._evaluated(child, self._first_problems(number, plan, bred))

    async def _evaluated(self, child: Member, problems: Sequence[int]) -> Birth:
        await self.examiner.met(child.genome, "train", problems)
        return Birth(child, problems)

    def _first_problems(self, number: int, plan: Plan, bred: Bred) -> Sequence[int]:
        """The problems that a child is evaluated on.

        Some that its writer saw, or that its first parent fails on; some that its first parent solves; and if these
        are fewer than a block, others at random.
        """
        whole = range(len(self.train))
        if not self._races:
            return whole
        draw, (failed, solved) = self._draw("gate", number), _split(plan.parents[0])
        failed, solved = (self._usable(bred.genome, some) for some in (bred.made_for or failed, solved))
        some = {*draw.sample(failed, min(len(failed), GATE)), *draw.sample(solved, min(len(solved), KEPT))}
        rest = [at for at in self._usable(bred.genome, whole) if at not in some]
        count = max(0, max(GATE + KEPT, self.shape.block) - len(some))
        return sorted({*some, *draw.sample(rest, min(len(rest), count))}) or whole[:1]  # it contains all of them

    def _usable(self, genome: Genome, problems: Sequence[int]) -> list[int]:
        """The problems that the genome does not contain as examples."""
        return [at for at in problems if not self.examiner.given(genome, "train", at)]

    def _was_born(self, genome: Genome, number: int) -> bool:
        """Whether the genome duplicates one that birth `number` may use."""
        first = self._first.get(genome.text)
        return first is not None and first < self._needed(number)

    async def _bred(self, number: int, plan: Plan) -> Bred:
        """Create the child. A duplicate gets a few more random edits, if random edits are enabled."""
        parent = plan.parents[0]
        one, other = parent.genome, plan.parents[-1].genome
        asks, told = 0, "+".join(plan.operators)
        usd: float | None = 0.0
        failed, solved = self._cases(parent, number) if "reflect" in plan.operators else ((), ())
        made_for = failed if plan.operators[0] == "reflect" else ()
        for step, operator in enumerate(plan.operators):
            draw, differ = self._draw("text", number, step), differing(one, other) if operator == "combine" else []
            if len(differ) > 1:  # texts can be combined without a writer
                one = mixed(one, other, draw)
                continue
            text = draw.choice(differ or [*one.texts]) if one.texts else ""
            if operator in PARENTS:
                shown = (failed, solved) if operator == "reflect" else ((), ())
                try:
                    written = await self._written(f"{number}/{step}", operator, (one, other), parent, *shown, text=text)
                except TrialMissing as error:
                    await self._writing.passed(str(error), lasting=error.fault.kind not in PASSING | LOAD)
                    return Bred(parent.genome, told, _parents(plan), asks + 1, usd, str(error))
                await self._writing.passed(None)
                paid = self.examiner.costs.charge(self.settings.by, written.input_tokens, written.output_tokens)
                asks, usd = asks + 1, added(usd, paid)
                if written.genome is None:
                    return Bred(parent.genome, told, _parents(plan), asks, usd, written.why)
                one = written.genome
            else:
                new = self._edited(operator, one.part(text), other.part(text), parent, (number, step))
                one = one.with_part(text, new)
        changes = [name for name in MUTATIONS if self.settings.operators.get(name)]
        for again in range(AGAIN if changes else 0):
            if not self._was_born(one, number):
                break
            draw = self._draw("again", number, again)
            change = MUTATIONS[draw.choice(changes)]
            text = draw.choice([*one.texts]) if one.texts else ""
            one = one.with_part(text, change(one.part(text), draw, self._vocabulary()))
        return Bred(one, told, _parents(plan), asks, usd, made_for=made_for)

    def _edited(self, operator: str, one: Genome, other: Genome, parent: Member, place: tuple[int, int]) -> Genome:
        """Apply an operator that needs no model."""
        if operator == EXAMPLES:
            draw = self._draw("examples", *place)
            return with_examples(one, draw, self._demonstrations(parent, draw))
        if operator == SHORTEN:
            return shorten(one, self._draw("shorten", *place))
        if operator in MUTATIONS:
            return MUTATIONS[operator](one, self._draw("mutation", *place), self._vocabulary())
        return CROSSOVERS[operator](one, other, self._draw("crossover", *place))

    def _demonstrations(self, parent: Member, draw: Random) -> list[str]:
        """Worked examples to choose from: failures with the right answer, solved problems also with the reply."""
        failed, solved = _split(parent)
        draw.shuffle(failed)
        draw.shuffle(solved)
        found = [demonstration(self.train[at]) for at in failed[: EXAMPLES_DRAWN // 2]]
        for at in solved[: EXAMPLES_DRAWN - len(found)]:
            reply = self.examiner.cell(parent.genome, "train", at).said
            found.append(demonstration(self.train[at], "" if draw.random() < 0.5 else reply))
        return found

    def _vocabulary(self) -> list[str]:
        """The words of the training problems and the seed prompts."""
        if self._words is None:
            texts = [each.question for each in self.train] + [each.text for each in self.settings.seeds]
            self._words = sorted({word for text in texts for word in text.split() if word.isalpha()})
        return self._words

    async def _written(
        self,
        place: str,
        operator: str,
        parents: tuple[Genome, Genome],
        whose: Member,
        failed: Sequence[int],
        solved: Sequence[int],
        *,
        text: str,
    ) -> Written:
        """Let a model write a prompt. The key of the trial includes a digest of all that the model sees."""
        settings, how = self.settings, self.settings.writing
        spec = Breeding(
            operator,
            parents[: PARENTS[operator]],
            settings.by,
            tuple(self._case(whose, at) for at in failed),
            seed_of(self._run.record.seed, self.name, place) % 2**31,
            how.temperature,
            how.max_tokens,
            tuple(self._case(whose, at) for at in solved),
            settings.task,
            how.template,
            text,
        )
        shown = [spec.parents, spec.failures, spec.successes, *([text] if text else [])]
        seen = blake2b(msgspec.json.encode(shown), digest_size=6).hexdigest()
        outcome = await self._run.submit(breed, spec, key=f"{self.name}/{place}/{operator}/{seen}")
        return outcome.unwrap()

    def _cases(self, parent: Member, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Samples of the problems that a parent failed on, and of those that it solved."""
        failed, solved = _split(parent)
        draw, how = self._draw("failures", number), self.settings.writing
        some = sorted(draw.sample(failed, min(how.failures, len(failed))))
        return tuple(some), tuple(sorted(draw.sample(solved, min(how.successes, len(solved)))))

    def _case(self, parent: Member, at: int) -> Case:
        problem, cell = self.train[at], self.examiner.cell(parent.genome, "train", at)
        return Case(problem.question, problem.answer, cell.said, problem.working, cell.feedback, cell.turns)

    def _scored(self, member: Member) -> Member:
        """A candidate with its results on all problems that it was evaluated on so far."""
        problems = sorted(self._counted.get(member.genome.text, ()))
        if not problems:
            return member
        cells = [Cell(None, given=True)] * (max(problems) + 1)  # not evaluated: no score
        for at in problems:
            cells[at] = self.examiner.cell(member.genome, "train", at)
        there = [cell for cell in cells if cell.score is not None]
        settings, count, scores = self.settings, max(1, len(there)), [cell.score or 0.0 for cell in there]
        said = sum(cell.output_tokens for cell in there) / count
        others = [each.genome for each in self.population.members if each.born != member.born]
        diversity = apart(member.genome, others) if settings.fitness.diversity else 0.5
        found = worth(member.genome, scores, said, settings.max_tokens, diversity)
        failed = lacks(cells)
        why = next((cell.why for cell in cells if cell.why), "the prompt contains its problems as examples")
        return msgspec.structs.replace(
            member,
            scores=tuple(cell.score for cell in cells),
            fitness=found.fitness(settings.fitness),
            estimate=found.accuracy,
            error=sqrt(1 / Belief.of(scores).precision) if scores else 0.0,
            fate="failed" if failed else "lives",
            tokens=said + sum(cell.input_tokens for cell in there) / count,
            why=why if failed else "",
        )

    def _estimated(self, members: Sequence[Member]) -> list[Member]:
        """Candidates with the current estimates of their accuracies, on which their fitness depends."""
        if not self._races:
            return list(members)
        weight, found = self.settings.accuracy_weight, list[Member]()
        for each, now in zip(members, self._accuracies.of(*(each.born for each in members)), strict=True):
            mean = min(1.0, max(0.0, now.mean))
            fitness = each.fitness + weight * (mean - each.estimate)
            found.append(msgspec.structs.replace(each, fitness=fitness, estimate=mean, error=sqrt(now.variance)))
        return found

    async def _take(self, birth: Birth) -> None:
        """Apply a birth, and store the best prompt so far, at the points of the curve."""
        noted = len(self.curve)
        self._fold(birth)
        best = self._stored_best() if len(self.curve) > noted else None
        if best is not None and self._best_so_far is not None:
            await self._best_so_far.keep(best)

    def _fold(self, birth: Birth) -> None:
        """Apply a birth to the population, in the order of births."""
        child, population, before = birth.child, self.population, self.population.best
        text = child.genome.text
        self._accuracies.add(child.parents[0] if child.parents else None)
        self._first.setdefault(text, child.born)
        child = self._paid(birth)
        if birth.further is not None and birth.more:
            other = self.members[birth.further]
            [other] = self._estimated([msgspec.structs.replace(self._learned(other), fate=other.fate)])
            self.members[other.born] = other
            population = population.replaced(other)
        if child.fate == "lives" and text in self._lived:  # created twice at the same time
            child = msgspec.structs.replace(self._scored(child), fate="known")
        elif child.fate == "lives":
            child = self._learned(child)
        self.members.append(child)
        population = population.sorted(self._estimated(population.members))
        if child.fate == "lives":
            self._lived.add(text)
            [child] = self._estimated([child])
            population = population.joined(child, self.size, self.settings.elite)
            lives = any(each.born == child.born for each in population.members)
            self.members[-1] = child if lives else msgspec.structs.replace(child, fate="behind")
        for each in population.members:
            self.members[each.born] = each
        self.state = State(population, self._recorded(self.members[-1]))
        self._past.append(self.state)
        best = population.best
        changed = best is not None and (before is None or best.born != before.born)
        is_new = best is not None and best.born not in self._were_best
        if best is not None:
            self._were_best.add(best.born)
        self.since_better = 0 if is_new else self.since_better + 1
        noted = changed or len(self.members) % self.shape.population_size == 0
        if noted:
            self._note()
        self._tell(self.members[-1], noted)

    def _learned(self, member: Member) -> Member:
        """A candidate with its new results, which also count for the estimates of its relatives."""
        member = self._scored(member)
        scores = {at: score for at, score in enumerate(member.scores) if score is not None}
        self._accuracies.learn(member.born, scores)
        return member

    def _settle(self) -> None:
        """Estimate all candidates that lived once more: those that have left the population too."""
        lived = [each for each in self.members if each.fate == "lives"]
        for each in self._estimated(lived):
            self.members[each.born] = each

    def _recorded(self, child: Member) -> Mapping[str, Record]:
        """What each operator has used and gained, with this child. A gain is one over its better parent."""
        parents = [self.members[at].fitness for at in child.parents]
        gain = max(0.0, child.fitness - max(parents)) if parents and child.fate in LIVING else 0.0
        old = self.state.records.get(child.operator, Record())
        new = Record(old.births + 1, old.asks + child.asks, old.gain + gain)
        return {**self.state.records, child.operator: new}

    def _paid(self, birth: Birth) -> Member:
        """Add up what a birth took, and what racing and duplicates saved. Returns the child with its cost."""
        child, whole = birth.child, len(self.train)
        if birth.further is not None:
            other = self.members[birth.further]
            spent = self._newly(other.genome, birth.more)
            self.saved_by_racing -= spent.asks
            self.members[other.born] = _charged(other, spent)
            self.asks, self.usd = self.asks + spent.asks, added(self.usd, spent.usd)
        paid = _charged(child, self._newly(child.genome, birth.problems))
        text = child.genome.text
        if child.fate == "known" or self._first[text] != child.born:
            self.saved_as_known += round(self._each * whole)
        elif child.fate != "failed":
            self.saved_by_racing += round(self._each * (whole - len(self._counted[text])))
        self.asks, self.usd = self.asks + paid.asks, added(self.usd, paid.usd)
        return paid

    def _newly(self, genome: Genome, numbers: Sequence[int]) -> Spent:
        """The requests for a genome on problems that were not counted yet."""
        counted = self._counted.setdefault(genome.text, set())
        new = [at for at in numbers if at not in counted]
        spent = self.examiner.spent(genome, "train", new)
        counted.update(new)
        self._met += sum(not self.examiner.cell(genome, "train", at).given for at in new)
        self._met_for += spent.asks
        return spent

    def _note(self) -> None:
        """Record the state of the search for its curve."""
        living = self.population.members
        mean = sum(each.fitness for each in living) / len(living) if living else 0.0
        self.curve.append(Moment(len(self.members), self.asks, self._best, mean, self.population.spread, self.usd))

    @property
    def _best(self) -> float:
        """The fitness of the best genome; 0 while there is none."""
        return 0.0 if self.population.best is None else self.population.best.fitness

    def _stored_best(self) -> Best | None:
        """The best prompt so far; None while there is none."""
        best = self.population.best
        if best is None:
            return None
        return Best(
            genome=best.genome,
            found_by=self.name,
            train=best.fitness,
            problems=best.seen,
            births=len(self.members),
            asks=self.asks,
            usd=self.usd,
            curve=tuple(self.curve),
        )

    def _tell(self, child: Member, noted: bool) -> None:
        """Report the state of the search after each birth, with the best prompt at the points of the curve."""
        run, elapsed = self._run, self._run.clock.now() - self._began
        speed = self._lately / elapsed if elapsed > 0 else 0.0
        seconds = self._seconds.pop(child.born, 0.0)
        figures = _figures(self, child, seconds=seconds, speed=speed, cached=run.counters.cached)
        best = self._stored_best() if noted else None
        texts = {} if best is None or self._best_so_far is None else self._best_so_far.texts(best)
        run.report(len(self.members), figures, _progress(self, figures), who=self.name, texts=texts)


def seed_problems(settings: Evolution, asks: int | None, reserved: int) -> int:
    """The number of training problems that each seed is evaluated on: fewer if the requests cover no more."""
    whole = len(settings.problems.train)
    if not settings.races:
        return whole
    most = whole if asks is None else int((asks / settings.each - reserved) / len(settings.seeds))
    return min(whole, max(MEASURED, min(LEAST, most)))


def demonstration(problem: Problem, reply: str = "") -> str:
    """A problem as a worked example: with the reply of a model that solved it, or with its own working and answer."""
    if reply.strip():
        return f"{problem.question}\n{reply.strip()}"
    working = f"{problem.working}\n" if problem.working else ""
    return f"{problem.question}\n{working}Answer: {problem.answer}"


def _charged(member: Member, spent: Spent) -> Member:
    asks, usd = Spent(member.asks, member.usd).and_(spent)
    return msgspec.structs.replace(member, asks=asks, usd=usd)


def _split(member: Member) -> tuple[list[int], list[int]]:
    """The numbers of the problems that a member failed on, and of those that it solved."""
    scored = [(at, score) for at, score in enumerate(member.scores) if score is not None]
    return [at for at, score in scored if score < 1], [at for at, score in scored if score >= 1]


def _used(purse: Purse) -> str:
    """The reason why a search ends that has used its budget."""
    limits = [f"{purse.asks:,} requests"] if purse.asks is not None else []
    limits += [f"${purse.usd:.2f}"] if purse.usd is not None else []
    return f"its budget of {' or '.join(limits)} covers no further candidate"


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
        "problems": float(child.seen),
        "asks": float(child.asks),
        "seconds": seconds,
        "generation": len(search.members) / search.shape.population_size,
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


def _progress(search: Search, figures: dict[str, float]) -> str:
    """The progress line of a search. Speed, cache hits and cost of the run are shown by the display itself."""
    births, whole = len(search.members), search.settings.max_generations
    if search.is_baseline or whole is None:
        at = f"{births:,} candidate{'s' * (births != 1)}"
    else:
        at = f"generation {figures['generation']:.1f} of {whole:,}"
    return f"{search.name}: {at}, best {figures['best']:.3f}, {search.asks:,} requests"
