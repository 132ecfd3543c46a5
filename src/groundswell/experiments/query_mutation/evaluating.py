"""Everybody on the same episodes: guards and secrets that no training met, and the guards that it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.analysis import Ended, Uses
from groundswell.experiments.query_mutation.episode import Episode, Transition, begin, guard_of, seed_of
from groundswell.experiments.query_mutation.guards import Guard, held_out_guards
from groundswell.experiments.query_mutation.learning.choosing import Chooser, Noop, Uniform
from groundswell.experiments.query_mutation.playing import Told, World, attempt
from groundswell.experiments.query_mutation.task import Task, goals

Methods = Mapping[str, Sequence[Chooser]]
"""Choosers by the name of their method; of one that is trained several times, several."""


class Try(NamedTuple):
    """Somebody's attempt at an episode."""

    method: str
    learner: int
    number: int
    episode: Episode
    chooser: Chooser


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which episodes everybody is tried on."""

    guards: tuple[Guard, ...] = msgspec.field(default_factory=held_out_guards)
    """Guards that no training meets; those of the training are tried as well."""
    secrets: tuple[str, ...] = msgspec.field(default_factory=lambda: goals().held_out)
    episodes: int = 40
    """For each guard."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise SettingsError(f"episodes {self.episodes}: must be at least 1", field="episodes")


def schedule(world: World, evaluation: Evaluation) -> list[Episode]:
    """The episodes: so many for each guard of the world's task, each with secret and query of its own."""
    task, seed = world.task, world.run.record.seed
    found: list[Episode] = []
    for guard in range(len(task.guards)):
        for number in range(evaluation.episodes):
            drawn = begin(task, seed_of(seed, "evaluation", guard, number), world.encoded)
            found.append(msgspec.structs.replace(drawn, guard=guard))
    return found


def baselines(task: Task) -> dict[str, Sequence[Chooser]]:
    """Those who learn nothing: they stand beside every learner."""
    still = task.mutators.index("noop") if "noop" in task.mutators else 0
    return {"noop": (Noop(still),), "random": (Uniform(len(task.mutators)),)}


async def evaluated(world: World, evaluation: Evaluation, methods: Methods) -> tuple[list[Ended], list[Uses]]:
    """Try everybody: how each episode ended, and what the mutators did in them."""
    task = msgspec.structs.replace(
        world.task, guards=(*world.task.guards, *evaluation.guards), secrets=evaluation.secrets
    )
    world = World(world.run, task, world.encoded, together=world.together)
    episodes = schedule(world, evaluation)
    tries = [
        Try(method, number, at, episode, chooser)
        for method, some in methods.items()
        for number, chooser in enumerate(some)
        for at, episode in enumerate(episodes)
    ]
    told = await world.all([_played(world, each) for each in tries])
    pairs = list(zip(tries, told, strict=True))
    return [_ended(task, each, some) for each, some in pairs], _uses(task, pairs)


async def _played(world: World, each: Try) -> list[Told]:
    name = f"eval/{each.method}.{each.learner}"
    return [told async for told in attempt(world, name, each.number, each.episode, each.chooser)]


def _uses(task: Task, pairs: Sequence[tuple[Try, Sequence[Told]]]) -> list[Uses]:
    """What each mutator did against each guard."""
    found: dict[tuple[str, str, str], list[Told]] = {}
    for each, some in pairs:
        for told in some:
            if told.transition.usable:
                key = each.method, guard_of(task, told.before).name, task.mutators[told.action]
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
