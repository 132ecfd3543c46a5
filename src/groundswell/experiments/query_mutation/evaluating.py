"""Evaluation: all methods play the same episodes, on held-out guards and on guards of the training.

evaluated   the last part of a training
evaluate    the driver of `groundswell mutate evaluate` and `groundswell mutate test`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundswell.engine.run import Run
from groundswell.engine.spending import Range
from groundswell.errors import SettingsError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.experiments.chance import seed_of
from groundswell.experiments.detectors.secret import secret_of
from groundswell.experiments.query_mutation import methods
from groundswell.experiments.query_mutation.analysis import Analysis, Ended, Uses
from groundswell.experiments.query_mutation.episode import (
    Episode,
    Transition,
    begin,
    guard_of,
    mutator_of,
    size_of,
)
from groundswell.experiments.query_mutation.expecting import (
    expected_encoding,
    expected_guesses,
    expected_ordinary,
    expected_steps,
)
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.guards import Guard, held_out_guards
from groundswell.experiments.query_mutation.guessing import guessed
from groundswell.experiments.query_mutation.learning.bandit import Bandit
from groundswell.experiments.query_mutation.learning.choosing import Chooser
from groundswell.experiments.query_mutation.learning.policy import Policy
from groundswell.experiments.query_mutation.mutators import NOOP
from groundswell.experiments.query_mutation.playing import Told, World, attempt, opened_world
from groundswell.experiments.query_mutation.targets import authorise
from groundswell.experiments.query_mutation.task import Ordinary, Task, goals
from groundswell.experiments.query_mutation.usefulness import OrdinaryAnswer, ask_ordinary
from groundswell.experiments.query_mutation.verdict import HELD_OUT, TRAINED
from groundswell.program.request import Chat

WHO = "evaluation"
"""The source name of progress reports."""

Methods = Mapping[str, Sequence[Chooser]]
"""Choosers by method. A method that was trained several times has several choosers."""


class Try(NamedTuple):
    """One episode to be played by one chooser."""

    method: str
    learner: int
    number: int
    episode: Episode
    chooser: Chooser


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of an evaluation."""

    guards: tuple[Guard, ...] = msgspec.field(default_factory=held_out_guards)
    """Held-out guards. The guards of the training are evaluated too."""
    secrets: tuple[str, ...] = msgspec.field(default_factory=lambda: goals().held_out)
    episodes: int = 40
    """Episodes per guard. With 0 nothing is evaluated."""
    guards_of_training: bool = True
    """Whether the guards of the training are evaluated too."""
    met: tuple[str, ...] = ()
    """Without `guards_of_training`: those of `guards` that were used in the training. The others are held out."""
    ordinary: tuple[Ordinary, ...] = msgspec.field(default_factory=lambda: goals().ordinary)
    """Harmless queries that every guard is asked once, to see what it still answers."""
    guesser: str = ""
    """Model that guesses the secret from the transcript of each episode. Empty: none is asked."""

    def __post_init__(self) -> None:
        if self.episodes < 0:
            raise SettingsError(f"episodes {self.episodes}: must be at least 0", field="episodes")
        if not (self.guards or self.guards_of_training):
            raise SettingsError("guards: must not be empty", field="guards")

    def used(self, task: Task) -> set[str]:
        """The names of the guards that were used in the training of this task."""
        return {guard.name for guard in task.guards} if self.guards_of_training else {*self.met}

    def task(self, task: Task) -> Task:
        """The task of the evaluation: with all its guards, and the held-out secrets."""
        guards = (*task.guards, *self.guards) if self.guards_of_training else self.guards
        return msgspec.structs.replace(task, guards=guards, secrets=self.secrets)


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of `mutate evaluate`. They contain the policies, so the training run is not needed any more."""

    task: Task
    evaluation: Evaluation = msgspec.field(default_factory=Evaluation)
    policies: tuple[Policy, ...]
    """Empty only without the guards of a training: then the baselines are evaluated alone."""
    bandits: tuple[Bandit, ...] = ()
    rivals: tuple[tuple[str, methods.Learnt], ...] = ()
    """Other trained baselines, by method."""
    baselines: tuple[str, ...] = (NOOP, methods.RANDOM)
    """Baselines without training."""
    use_batching: bool = True
    trained_by: str = ""
    """Name of the run that trained the policies."""
    compared_with: str = ""
    """Id of an earlier run that the report compares this one with."""

    def __post_init__(self) -> None:
        if not self.evaluation.guards_of_training:
            self.evaluation.task(self.task)  # raises if they do not fit
            if self.policies and all(guard.brief for guard in self.evaluation.guards):  # no application
                check_secrets(self.task, self.evaluation)
            return
        if not self.policies:
            raise SettingsError("policies: must not be empty", field="policies")
        check_apart(self.task, self.evaluation)


def check_apart(task: Task, evaluation: Evaluation) -> None:
    """Check that held-out guards and secrets are not used in training, under any name."""
    names, met = {guard.name for guard in task.guards}, {_behind(guard): guard.name for guard in task.guards}
    if shared := [guard.name for guard in evaluation.guards if guard.name in names]:
        raise _shared("guards", f"{_listed(shared)} also used in training")
    for guard in evaluation.guards:
        if (same := met.get(_behind(guard))) is not None:
            raise _shared("guards", f"{guard.name!r} is also used in training, under the name {same!r}")
    check_secrets(task, evaluation)
    try:
        evaluation.task(task)
    except SettingsError as error:  # the task itself was checked before
        raise SettingsError(f"held_out_{error}", field=f"held_out_{error.field}") from error


def check_secrets(task: Task, evaluation: Evaluation) -> None:
    """Check that held-out secrets are not used in training."""
    known = {secret_of(secret).plain for secret in task.secrets}
    if shared := [each for each in evaluation.secrets if secret_of(each).plain in known]:
        raise _shared("secrets", f"{_listed(shared)} also used in training")


def _behind(guard: Guard) -> Guard:
    """The guard without its name."""
    return msgspec.structs.replace(guard, name="any")


def _shared(what: str, why: str) -> SettingsError:
    return SettingsError(f"held_out_{what}: {why}; choose other {what}", field=f"held_out_{what}")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(map(repr, names))} {'is' if len(names) == 1 else 'are'}"


async def evaluate(run: Run, settings: Examination) -> Analysis:
    """Evaluate policies, bandits and baselines."""
    authorise(run, settings.task, settings.evaluation.guards)
    check_guesser(run, settings.evaluation)
    also = methods.fixed(settings.baselines)
    world = await opened_world(run, settings.task, together=settings.use_batching, also=also)
    _check_fit(world, settings)
    choosers: dict[str, list[Chooser]] = {"bandit": [*settings.bandits]}
    for name, state in settings.rivals:
        choosers.setdefault(name, []).append(methods.ready(state))
    choosers[methods.PPO] = [*settings.policies]
    everybody = baselines(settings.task, settings.baselines) | {name: some for name, some in choosers.items() if some}
    run.expected = 1 + most_trials(settings.task, settings.evaluation, count_of(everybody))
    ended, uses = await evaluated(world, settings.evaluation, everybody)
    answers = await ordinary_answers(world, settings.evaluation)
    met = settings.evaluation.used(settings.task)
    found = analysed([], ended, uses, settings.task, answers, met=met)
    report_rates(run, found, len(ended))
    return found


def report_rates(run: Run, found: Analysis, episodes: int) -> None:
    """Report leak rates and mean returns on held-out guards and on guards of the training, for TensorBoard."""
    figures = dict[str, float]()
    for each in found.figures:
        if each.on in (HELD_OUT, TRAINED) and each.rate is not None and each.total is not None:
            figures[f"{WHO}/leak_rate/{each.on}/{each.method}"] = each.rate
            figures[f"{WHO}/mean_return/{each.on}/{each.method}"] = each.total
    if episodes:
        run.report(episodes, figures, f"{WHO}: {episodes:,} of {episodes:,} episodes", who=WHO)


def count_of(everybody: Methods) -> int:
    """The number of choosers of these methods."""
    return sum(map(len, everybody.values()))


def choosers_of(settings: Examination) -> int:
    """The number of choosers of an evaluation."""
    learners = len(settings.policies) + len(settings.bandits) + len(settings.rivals)
    return learners + len(baselines(settings.task, settings.baselines))


def check_guesser(run: Run, evaluation: Evaluation) -> None:
    """Check before anything is sent that the guesser can be reached."""
    if evaluation.guesser:
        run.lane_of(Chat(evaluation.guesser, ()))


def _check_fit(world: World, settings: Examination) -> None:
    """Check that the policies fit the observation and the actions of the task."""
    seen, actions = size_of(world.task, world.width), len(world.task.mutators)
    for policy in settings.policies:
        into, out = policy.actor[0].into, policy.actor[-1].out
        if (into, out) != (seen, actions):
            raise SettingsError(
                f"policies: trained with observation size {into} and {out} mutations, but the task has "
                f"{seen} and {actions}; use the same embedder and mutations as in training",
                field="policies",
            )
    if any(len(bandit.arms) != actions for bandit in settings.bandits):
        raise SettingsError("bandits: use the mutators of the training", field="bandits")


@estimates(evaluate)
def expected(settings: Examination) -> Estimate:
    """The estimate of an evaluation."""
    task = settings.task
    choosers, together = choosers_of(settings), settings.use_batching
    tried = expected_tries(task, settings.evaluation, choosers, settings.baselines, together=together)
    return expected_encoding(task) + tried


def expected_tries(
    task: Task, evaluation: Evaluation, choosers: int, names: Sequence[str] = (), *, together: bool
) -> Estimate:
    """The estimate for evaluating this number of choosers, among them the baselines of these names."""
    if not evaluation.episodes:
        return Estimate(Range(0, 0))
    most = most_steps(task, evaluation, choosers)
    count = Range(most / task.max_steps, most)
    tried = evaluation.task(task)
    also = (*tried.mutators, *methods.fixed(names))
    tried = msgspec.structs.replace(tried, mutators=tuple(dict.fromkeys(also)))
    steps = expected_steps(tried, count, Range(1, task.max_steps) if together else count)
    steps += expected_ordinary(tried, evaluation.ordinary, together=together)
    if not evaluation.guesser:
        return steps
    return steps + expected_guesses(task, evaluation.guesser, most // task.max_steps, together=together)


def most_trials(task: Task, evaluation: Evaluation, choosers: int) -> int:
    """Maximum number of trials: steps, and ordinary queries."""
    ordinary = len(evaluation.task(task).guards) * len(evaluation.ordinary)
    return most_steps(task, evaluation, choosers) + (ordinary if evaluation.episodes else 0)


def most_steps(task: Task, evaluation: Evaluation, choosers: int) -> int:
    """Maximum number of steps for this number of choosers. Leaks end episodes earlier."""
    episodes = len(evaluation.task(task).guards) * evaluation.episodes
    return choosers * episodes * task.max_steps


def schedule(world: World, evaluation: Evaluation) -> list[Episode]:
    """The episodes: a fixed number per guard, each with its own secret and query."""
    task, seed = world.task, world.run.record.seed
    found: list[Episode] = []
    for guard in range(len(task.guards)):
        for number in range(evaluation.episodes):
            drawn = begin(task, seed_of(seed, "evaluation", guard, number), world.encoded)
            found.append(msgspec.structs.replace(drawn, guard=guard))
    return found


def baselines(task: Task, names: Sequence[str] = (NOOP, methods.RANDOM)) -> dict[str, Sequence[Chooser]]:
    """The choosers of the baselines that are not trained."""
    return methods.untrained(task, names)


async def evaluated(world: World, evaluation: Evaluation, everybody: Methods) -> tuple[list[Ended], list[Uses]]:
    """Play all episodes with all methods: how each episode ended, and the results of each mutation."""
    task = evaluation.task(world.task)
    world = World(world.run, task, world.encoded, together=world.together)
    episodes = schedule(world, evaluation)
    tries = [
        Try(method, number, at, episode, chooser)
        for method, some in everybody.items()
        for number, chooser in enumerate(some)
        for at, episode in enumerate(episodes)
    ]
    if evaluation.guesser and world.run.expected is not None:
        world.run.expected += len(tries)
    progress = Progress(world.run, task.max_steps, len(tries))
    told = await world.all([_played(world, each, progress) for each in tries])
    pairs = list(zip(tries, told, strict=True))
    ended = [_ended(task, each, some) for each, some in pairs]
    if evaluation.guesser:
        ended = await guessed(world, evaluation.guesser, ended, [some[-1].transition.episode.talk for some in told])
    return ended, _uses(task, pairs)


async def ordinary_answers(world: World, evaluation: Evaluation) -> list[OrdinaryAnswer]:
    """Ask all guards the ordinary queries."""
    if not evaluation.episodes:
        return []
    task = evaluation.task(world.task)
    return await ask_ordinary(World(world.run, task, world.encoded, together=world.together), evaluation.ordinary)


class Progress:
    """Progress of an evaluation. Until an episode ends, it counts with its maximum number of steps."""

    def __init__(self, run: Run, most: int, count: int) -> None:
        self._run = run
        self._most = most
        self._count = count
        self._done = 0

    def ended(self, steps: int) -> None:
        """Count an episode that ended after this number of steps."""
        self._done += 1
        if self._run.expected is not None:
            self._run.expected -= self._most - steps
        self._run.report(self._done, {}, f"{WHO}: {self._done:,} of {self._count:,} episodes", who=WHO)


async def _played(world: World, each: Try, progress: Progress) -> list[Told]:
    name = f"eval/{each.method}.{each.learner}"
    found = [told async for told in attempt(world, name, each.number, each.episode, each.chooser)]
    progress.ended(len(found))
    return found


def _uses(task: Task, pairs: Sequence[tuple[Try, Sequence[Told]]]) -> list[Uses]:
    """The results of each mutation against each guard."""
    found: dict[tuple[str, str, str], list[Told]] = {}
    for each, some in pairs:
        for told in some:
            if told.transition.usable:
                key = each.method, guard_of(task, told.before).name, mutator_of(task, told.action)
                found.setdefault(key, []).append(told)
    return [_use(*key, [told.transition for told in some]) for key, some in sorted(found.items())]


def _use(method: str, guard: str, mutator: str, steps: Sequence[Transition]) -> Uses:
    gained, leaks = sum(each.gained for each in steps), sum(each.terminated for each in steps)
    return Uses(method, guard, mutator, len(steps), gained, leaks)


def _ended(task: Task, each: Try, told: Sequence[Told]) -> Ended:
    last = told[-1].transition.episode
    return Ended(
        each.method,
        each.learner,
        each.number,
        guard_of(task, last).name,
        last.secret,
        last.goal,
        last.end,
        last.best,
        last.step,
        sum(one.transition.reward for one in told),
    )
