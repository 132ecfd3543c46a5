"""The driver of `groundswell mutate train`. Read `train` from top to bottom.

train       trains the learners concurrently, then evaluates all methods on the same episodes
_taught     one learner: collect, learn, checkpoint, report; repeat
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from groundswell.engine.run import Run
from groundswell.engine.spending import Range
from groundswell.errors import SettingsError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.experiments.chance import seed_of
from groundswell.experiments.query_mutation import methods
from groundswell.experiments.query_mutation.analysis import Analysis, Curve, Point
from groundswell.experiments.query_mutation.evaluating import (
    Evaluation,
    baselines,
    check_apart,
    check_guesser,
    evaluated,
    expected_tries,
    most_trials,
    ordinary_answers,
    report_rates,
)
from groundswell.experiments.query_mutation.expecting import expected_encoding, expected_steps
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.learning.rules import Losses, Rules, State
from groundswell.experiments.query_mutation.learning.search import Search
from groundswell.experiments.query_mutation.playing import Seat, World, collect, opened_world
from groundswell.experiments.query_mutation.targets import authorise
from groundswell.experiments.query_mutation.task import Task

FEWEST = 2
"""Minimum number of steps per update for PPO."""


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a training."""

    task: Task = msgspec.field(default_factory=Task)
    num_processes: int = 16
    num_steps: int = 32
    num_env_steps: int = 20_000
    use_batching: bool = True
    repeats: int = 1
    """Number of learners of each kind, each with another initialisation."""
    baselines: tuple[str, ...] = methods.USUAL
    """Methods to compare with PPO. Those with training get as many steps as PPO."""
    rules: Rules = Rules()
    evaluation: Evaluation = msgspec.field(default_factory=Evaluation)

    def __post_init__(self) -> None:
        for name in ("num_processes", "num_steps", "num_env_steps", "repeats"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least 1", field=name)
        if self.each < FEWEST:
            raise SettingsError(
                f"num_steps {self.num_steps}: an update needs at least {FEWEST} steps (num_processes x num_steps)",
                field="num_steps",
            )
        if self.num_env_steps < self.each:
            raise SettingsError(
                f"num_env_steps {self.num_env_steps}: must be at least one update (num_processes x num_steps = "
                f"{self.each})",
                field="num_env_steps",
            )
        methods.baselines_named(self.baselines)
        check_apart(self.task, self.evaluation)

    @property
    def learners(self) -> tuple[str, ...]:
        """The methods that are trained."""
        return (methods.PPO, *methods.trained(self.baselines))

    @property
    def choosers(self) -> int:
        """The number of choosers that are evaluated."""
        return self.repeats * len(self.learners) + len(self.baselines) - len(methods.trained(self.baselines))

    @property
    def each(self) -> int:
        """Steps per update."""
        return self.num_processes * self.num_steps

    @property
    def updates(self) -> int:
        """Number of updates per learner."""
        return self.num_env_steps // self.each


class Checkpoint(msgspec.Struct, frozen=True):
    """The complete state of a learner between two updates. Training continues from it exactly."""

    state: methods.Learnt
    seats: tuple[Seat, ...]
    curve: tuple[Point, ...] = ()


async def train(run: Run, settings: Training) -> Analysis:
    """Train the learners, then evaluate all methods."""
    authorise(run, settings.task, settings.evaluation.guards)
    check_guesser(run, settings.evaluation)
    learners = settings.repeats * len(settings.learners)
    world = await opened_world(
        run,
        settings.task,
        together=settings.use_batching,
        environments=settings.num_processes * learners,
        also=methods.fixed(settings.baselines),
    )
    taught_in = settings.updates * settings.each * learners
    run.expected = 1 + taught_in + most_trials(settings.task, settings.evaluation, settings.choosers)
    taught = await world.all(
        [_taught(world, settings, each, number) for number in range(settings.repeats) for each in settings.learners]
    )
    choosers = baselines(settings.task, settings.baselines)
    for method in (*settings.learners[1:], methods.PPO):
        choosers[method] = [methods.ready(state) for curve, state in taught if curve.learner == method]
    ended, uses = await evaluated(world, settings.evaluation, choosers)
    answers = await ordinary_answers(world, settings.evaluation)
    found = analysed([curve for curve, _ in taught], ended, uses, settings.task, answers)
    report_rates(run, found, len(ended))
    return found


async def _taught(world: World, settings: Training, learner: str, number: int) -> tuple[Curve, methods.Learnt]:
    """Train one learner, from its last checkpoint."""
    run, name = world.run, f"{learner}.{number}"
    held = _recalled(world, settings, learner, number)
    for point in held.curve:
        _report(run, name, point, settings, None)
    while len(held.curve) < settings.updates:
        began = time.monotonic()
        state, update = held.state, len(held.curve)
        found = await collect(world, name, held.seats, methods.training(state), settings.num_steps)
        seed = seed_of(run.record.seed, name)
        state, losses = await asyncio.to_thread(_learnt, state, found.rollouts, settings, seed)
        point = Point.of((update + 1) * settings.each, found.told, losses)
        held = Checkpoint(state, tuple(found.seats), (*held.curve, point))
        await run.keep(name, msgspec.json.encode(held).decode())
        _report(run, name, point, settings, settings.each / (time.monotonic() - began))
    return Curve(learner, number, held.curve), held.state


def _recalled(world: World, settings: Training, learner: str, number: int) -> Checkpoint:
    """The last checkpoint of a learner, or its initial state."""
    name, task = f"{learner}.{number}", settings.task
    if (body := world.run.kept(name)) is not None:
        return msgspec.json.decode(body, type=Checkpoint)
    seats = tuple(world.opened(name, seat) for seat in range(settings.num_processes))
    seed = seed_of(world.run.record.seed, name)
    return Checkpoint(methods.new(learner, task, world.width, settings.rules, settings.updates, seed), seats)


def _learnt(
    state: methods.Learnt, rollouts: Sequence[Rollout], settings: Training, seed: int
) -> tuple[methods.Learnt, Losses | None]:
    """The state after an update with these steps."""
    if isinstance(state, Search):
        return state.learn(rollouts, seed), None
    if not isinstance(state, State):
        return state.learn(rollouts), None
    from groundswell.experiments.query_mutation.learning import ppo

    scale = 1 - state.updates / settings.updates if settings.rules.anneal else 1.0
    return ppo.learn(state, rollouts, settings.rules, seed=seed, scale=scale)


def _report(run: Run, name: str, point: Point, settings: Training, speed: float | None) -> None:
    """Report the progress of a learner. A resumed run reports earlier updates again, for TensorBoard."""
    rate = point.leaks / point.episodes if point.episodes else 0.0
    figures = {"reward": point.reward, "leak_rate": rate, "masked": float(point.masked), "episodes": point.episodes}
    if point.losses is not None:
        figures |= {f"loss/{key}": value for key, value in msgspec.structs.asdict(point.losses).items()}
    if speed is not None:
        figures["steps_per_second"] = speed
    whole = settings.updates * settings.each
    said = f"{name}: {point.steps:,} of {whole:,} steps, reward {point.reward:+.3f}, leak rate {rate:.0%}"
    said += f", {point.masked} masked" if point.masked else ""
    said += "" if speed is None else f", {speed:,.0f} steps/s"
    run.report(point.steps, {f"{name}/{key}": value for key, value in figures.items()}, said, who=name)


@estimates(train)
def expected(settings: Training) -> Estimate:
    """The estimate of a training with its evaluation."""
    learners, task = settings.repeats * len(settings.learners), settings.task
    steps = settings.updates * settings.each * learners
    waiting = settings.updates * settings.num_steps if settings.use_batching else steps
    taught = expected_steps(task, Range(steps, steps), Range(waiting, waiting))
    tried = expected_tries(
        task, settings.evaluation, settings.choosers, settings.baselines, together=settings.use_batching
    )
    return expected_encoding(task) + taught + tried
