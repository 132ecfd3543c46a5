"""A steady-state search for a good prompt. Births overlap, and the result does not depend on their speed.

A birth creates one genome and evaluates it. Births are numbered. Birth n uses only the results of births up to n - W,
and waits for these. So W genomes are evaluated at the same time, and the same seed gives the same genomes, whatever the
network does.

    Search.run   starts the births in order, while the budget covers them
    _born        one birth: create the genome, compare it with its parent on a few problems, then race it
    _fold        applies a birth to the population, in the order of births

A search begins with few training problems and uses more as it goes on (`_reach`). So a candidate that survives never
costs more than a small share of what was spent before, and the search suits any budget.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from math import ceil
from random import Random
from typing import NamedTuple

import msgspec

from groundswell.engine.retry import LOAD, PASSING
from groundswell.engine.run import Run
from groundswell.errors import TrialMissing
from groundswell.experiments.chance import seed_of
from groundswell.experiments.outage import Outage
from groundswell.experiments.prompt_evolution.analysis import Moment
from groundswell.experiments.prompt_evolution.best import Best, BestSoFar
from groundswell.experiments.prompt_evolution.breeding import PARENTS, Breeding, Case, Written, breed
from groundswell.experiments.prompt_evolution.costs import Spent, added
from groundswell.experiments.prompt_evolution.examining import Cell, Examiner, lacks
from groundswell.experiments.prompt_evolution.fitness import apart, worth
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.population import LIVING, Fate, Member, Population
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.racing import Rivals, blocks
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
LEAST = 16
"""Number of training problems that a search begins with."""
SHARE = 40
"""A search uses one training problem for this many evaluations so far."""
STEP = 1.5
"""The number of training problems in use grows in steps of this factor."""
FEW_FAILURES = 3
"""If the best candidate has fewer failures, more training problems are used."""
PROMOTED = 2
"""Number of best candidates that are evaluated on all training problems in use."""
TRIAL = 48
"""Number of problems after which a candidate that is not worse than its parents becomes a possible parent."""
GATE, KEPT = 6, 3
"""Number of problems on which a child is first compared with its parents: that a parent fails on, and that it solves.
"""
EXAMPLES_DRAWN = 8
"""Number of worked examples that a child can choose from."""


class Plan(NamedTuple):
    """How to create a child: the operators, applied in order, and the parents."""

    operators: tuple[str, ...]
    parents: tuple[Member, ...]


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
    evaluations: int = 0
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
    """What a birth leads to: the child, members that were evaluated on more problems, and all that was evaluated."""

    child: Member
    promoted: tuple[Member, ...] = ()
    used: tuple[tuple[Genome, tuple[int, ...]], ...] = ()


class Search:
    """One search: the evolution or a baseline. `size` is the population size; None keeps every survivor.

    The best prompt so far is stored in `so_far`, if it is given.
    """

    def __init__(
        self,
        run: Run,
        settings: Evolution,
        examiner: Examiner,
        name: str,
        size: int | None = None,
        so_far: BestSoFar | None = None,
    ) -> None:
        self.settings = settings
        self.shape = settings.shape
        self.examiner = examiner
        self.name = name
        self.size = size
        self.state = State(Population(pareto=settings.pareto))
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
        self._best_so_far = so_far
        self._writing = Outage(run, called="request for a new prompt")
        self._first: dict[str, int] = {}
        self._past = deque[State](maxlen=self.shape.window + 1)
        self._lived: dict[str, Fate] = {}
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
                state, is_seed = self.state_for(number), number < seeds
                planned = None if is_seed else plan(self, self._draw("plan", number), number)
                reach = self._seed_reach(purse) if is_seed else self._reach(state)
                task = asyncio.create_task(self._born(number, planned, state, reach))
                going.append((task, self._most(number)))
                self.started += 1
            while going:
                await self._take(await going.popleft()[0])
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
        if best is not None and best.asks:  # a better prompt is often longer
            rate = max(rate, (best.usd or 0.0) / best.asks)
        return usd + (most + purse.tested * self._each) * rate <= purse.usd

    def _most(self, number: int) -> float:
        """The maximum number of requests of a birth."""
        if number < len(self.settings.seeds):
            return self._each * (LEAST if self.settings.rules.racing else len(self.train))
        state = self.state_for(number)
        reach, top = self._reach(state), state.population.members[:PROMOTED]
        later = sum(_unseen(each, reach) for each in top if not _whole(each, reach))
        return DEEPEST * (self.size is None) + 1 + self._each * (reach + later)

    @property
    def _each(self) -> float:
        """Requests per evaluation."""
        return self._met_for / self._met if self._met else self.settings.each

    def _seed_reach(self, purse: Purse) -> int:
        """The number of problems that the seeds are evaluated on: fewer if the budget covers no more."""
        whole = len(self.train)
        if not self.settings.rules.racing:
            return whole
        most = whole
        if purse.asks is not None:
            most = int((purse.asks / self._each - purse.reserved) / len(self.settings.seeds))
        return max(1, min(whole, LEAST, most))

    def _reach(self, state: State) -> int:
        """The number of training problems that a birth may be evaluated on."""
        whole = len(self.train)
        if not self.settings.rules.racing:
            return whole
        wanted, best = state.evaluations / SHARE, state.population.best
        if best is not None and sum(score is not None and score < 1 for score in best.scores) < FEW_FAILURES:
            wanted = max(wanted, STEP * len(best.scores))
        found = float(LEAST)
        while found < wanted:
            found *= STEP
        return min(whole, ceil(found))

    def state_for(self, number: int) -> State:
        """The state that a birth may use: after the last birth that is W or more before it, or after the seeds."""
        more = len(self.members) - self._needed(number)
        return self._past[-1 - more] if 0 <= more < len(self._past) else State(Population(pareto=self.settings.pareto))

    def _needed(self, number: int) -> int:
        """The number of births that must be complete before this one: all seeds, and all W or more before it."""
        seeds = len(self.settings.seeds)
        return 0 if number < seeds else max(seeds, number - self.shape.window + 1)

    def known_to(self, number: int) -> Population:
        """The population that a birth may use."""
        return self.state_for(number).population

    def seeds_of(self, number: int) -> tuple[Member, ...]:
        """The seed prompts as parents, with their scores."""
        return tuple(self.members[: len(self.settings.seeds)])

    def _draw(self, *about: object) -> Random:
        return Random(seed_of(self._run.record.seed, self.name, *about))

    async def _born(self, number: int, plan: Plan | None, state: State, reach: int) -> Birth:
        run = self._run
        began, before = run.clock.now(), run.counters.settled
        top = () if plan is None else [each for each in state.population.members[:PROMOTED] if not _whole(each, reach)]
        promoted = await asyncio.gather(*(self._promoted(each, reach) for each in top))
        birth = await self._conceived(number, plan, state, reach, promoted)
        self._seconds[number] = run.clock.now() - began
        if run.counters.settled > before:  # otherwise an earlier session has done it all
            self._lately += sum(len(numbers) for _, numbers in birth.used)
        used = [(each.genome, tuple(range(reach))) for each in promoted]
        return birth._replace(promoted=tuple(promoted), used=(*used, *birth.used))

    async def _promoted(self, member: Member, reach: int) -> Member:
        """A member of the population, evaluated on all problems in use."""
        cells = await self.examiner.met(member.genome, "train", range(reach))
        return msgspec.structs.replace(self._so_far(member, cells, self._apart_from(member)), asks=member.asks)

    def _apart_from(self, member: Member) -> float:
        if not self.settings.fitness.diversity:
            return 0.5
        return apart(member.genome, [each.genome for each in self.population.members if each.born != member.born])

    async def _conceived(
        self, number: int, plan: Plan | None, state: State, reach: int, promoted: Sequence[Member]
    ) -> Birth:
        if plan is None:
            bred = Bred(self.settings.seeds[number], "seed")
        else:
            bred = await self._bred(number, plan)
        child = Member(number, bred.genome, bred.operator, bred.parents, asks=bred.asks, usd=bred.usd, why=bred.why)
        if bred.why or self._was_born(bred.genome, number):
            return Birth(msgspec.structs.replace(child, fate="failed" if bred.why else "known"))
        gate = self._gate(number, plan, bred) if plan is not None else ()
        return await self._raced(child, plan, state, reach, promoted, gate)

    def _gate(self, number: int, plan: Plan, bred: Bred) -> tuple[int, ...]:
        """The few problems on which a child is first compared with its parents.

        Those that it was made for, or some that the first parent fails on, and some that the first parent solves.
        """
        if not (self.settings.rules.gate and self.settings.rules.racing):
            return ()
        draw, (failed, solved) = self._draw("gate", number), _split(plan.parents[0])
        some = bred.made_for or draw.sample(failed, min(len(failed), GATE))
        return tuple(sorted({*some, *draw.sample(solved, min(len(solved), KEPT))}))

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
                paid = self.examiner.costs.of(self.settings.by, written.input_tokens, written.output_tokens)
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

    async def _raced(
        self,
        child: Member,
        plan: Plan | None,
        state: State,
        reach: int,
        promoted: Sequence[Member],
        gate: Sequence[int],
    ) -> Birth:
        """Evaluate a genome block by block, until it is clearly worse or has seen all problems in use."""
        settings, rules, met = self.settings, self.settings.rules, list[int]()
        longer = {each.born: each for each in promoted}
        living = [longer.get(each.born, each) for each in state.population.members]
        parents = {each.born: longer.get(each.born, each) for each in (plan.parents if plan is not None else ())}
        races = rules.racing and settings.fitness.accuracy and plan is not None
        rivals = Rivals.of([parents[at].racer for at in child.parents], [each.racer for each in living])
        others = [each.genome for each in living] if settings.fitness.diversity else ()
        diversity, order = apart(child.genome, others), list(range(reach))
        if races:
            self._draw("order", child.born).shuffle(order)  # a fixed order would select for luck on the first problems
            order.sort(key=lambda at: at not in gate)  # stable: the rest stays in its random order
        enough = min(reach, TRIAL) if races else reach
        for end in blocks(rules, len(gate), self.shape.block, enough):
            met = order[:end]
            cells = _placed(met, await self.examiner.met(child.genome, "train", met))
            child = self._so_far(child, cells, diversity)
            if child.fate == "failed":
                break
            if rivals is None or not races or end == reach:
                continue
            standing = rivals.standing(child.racer, rules)
            if standing == "ahead" and end == enough:
                standing = "middling"
            if standing == "middling":
                child = self._so_far(child, cells, diversity, rivals.expected(child.racer))
            if standing != "ahead":
                child = msgspec.structs.replace(child, fate=standing)
                break
        return Birth(child, used=((child.genome, tuple(sorted(met))),))

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
        for each in birth.promoted:
            held = next((one for one in population.members if one.born == each.born), None)
            if held is not None and held.seen < each.seen and each.fate == "lives":
                population = population.replaced(each)
                self.members[each.born] = msgspec.structs.replace(
                    each, asks=self.members[each.born].asks, usd=self.members[each.born].usd
                )
        self._first.setdefault(text, child.born)
        child = self._paid(child, birth.used)
        if child.fate in LIVING and self._lived.get(text) in ("lives", child.fate):
            child = msgspec.structs.replace(child, fate="known")
        self.members.append(child)
        if child.fate in LIVING:
            if text in self._lived:  # a duplicate that was evaluated on fewer problems
                population = population.without(text)
            self._lived[text] = child.fate
            draw = self._draw("fold", child.born)
            population = population.joined(child, self.size, min(self.settings.elite, self._most_elite), draw)
        self.state = State(population, self._met, self._recorded(child))
        self._past.append(self.state)
        best = population.best
        better = best is not None and (before is None or best.fitness > before.fitness)
        self.since_better = 0 if better else self.since_better + 1
        noted = better or len(self.members) % self.shape.population_size == 0
        if noted:
            self._note()
        self._tell(child, noted)

    @property
    def _most_elite(self) -> int:
        return self.shape.population_size - 1

    def _recorded(self, child: Member) -> Mapping[str, Record]:
        """What each operator has used and gained, with this child. A gain is one over its better parent."""
        parents = [self.members[at].fitness for at in child.parents]
        gain = max(0.0, child.fitness - max(parents)) if parents and child.fate in LIVING else 0.0
        old = self.state.records.get(child.operator, Record())
        new = Record(old.births + 1, old.asks + child.asks, old.gain + gain)
        return {**self.state.records, child.operator: new}

    def _paid(self, child: Member, used: Iterable[tuple[Genome, Sequence[int]]]) -> Member:
        """Add up what a birth took, and what racing and duplicates saved."""
        text, problems, races = child.genome.text, len(self.train), Spent()
        for genome, numbers in used:
            counted = self._counted.setdefault(genome.text, set())
            new = [at for at in numbers if at not in counted]
            spent = self.examiner.spent(genome, "train", new)
            races = races.and_(spent)
            counted.update(new)
            self._met += sum(not self.examiner.cell(genome, "train", at).given for at in new)
            self._met_for += spent.asks
            if genome.text != text:
                self.saved_by_racing -= spent.asks
        each = self._each
        if child.fate == "known" or self._first[text] != child.born:
            self.saved_as_known += round(each * problems)
        elif child.fate != "failed":
            self.saved_by_racing += round(each * (problems - len(self._counted[text])))
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


def demonstration(problem: Problem, reply: str = "") -> str:
    """A problem as a worked example: with the reply of a model that solved it, or with its own working and answer."""
    if reply.strip():
        return f"{problem.question}\n{reply.strip()}"
    working = f"{problem.working}\n" if problem.working else ""
    return f"{problem.question}\n{working}Answer: {problem.answer}"


def _whole(member: Member, reach: int) -> bool:
    """Whether a member was evaluated on all problems in use."""
    return member.fate == "lives" and len(member.scores) >= reach


def _unseen(member: Member, reach: int) -> int:
    """The number of problems in use that a member was not evaluated on."""
    return reach - sum(score is not None for score in member.scores[:reach])


def _placed(numbers: Sequence[int], cells: Sequence[Cell]) -> list[Cell]:
    """Cells in the order of their problems. Those in between that were not evaluated have no score, and are `given`."""
    found = [Cell(None, given=True)] * (max(numbers) + 1)
    for at, cell in zip(numbers, cells, strict=True):
        found[at] = cell
    return found


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
    if search.size is None or whole is None:
        at = f"{births:,} candidate{'s' * (births != 1)}"
    else:
        at = f"generation {figures['generation']:.1f} of {whole:,}"
    return f"{search.name}: {at}, best {figures['best']:.3f}, {search.asks:,} requests"
