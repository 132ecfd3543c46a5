"""Environments in a run: each steps independently, one trial per step, with a fixed chooser.

An action depends on the observation and on the numbers of environment, episode and step alone. It does not depend on
other environments or on timing. So concurrent and sequential execution give the same results.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.experiments.chance import chance_of, seed_of
from groundswell.experiments.outage import Outage
from groundswell.experiments.query_mutation.episode import (
    Episode,
    Transition,
    advance,
    begin,
    observed,
    step_of,
)
from groundswell.experiments.query_mutation.learning.choosing import Chooser, Rollout
from groundswell.experiments.query_mutation.mutators import find_mutator
from groundswell.experiments.query_mutation.rewards import find_reward
from groundswell.experiments.query_mutation.stepping import Encode, Encoded, Stepped, encode, step
from groundswell.experiments.query_mutation.targets import authorise
from groundswell.experiments.query_mutation.task import Task
from groundswell.program.request import Chat, Embed

T = TypeVar("T")

REPEATS = 3
"""How often an evaluation repeats a step that failed."""


class Seat(msgspec.Struct, frozen=True):
    """The state of an environment: its episode, and the number of episodes begun."""

    episode: Episode
    begun: int = 1


class Told(NamedTuple):
    """A step: the episode before it, the action, and the result."""

    before: Episode
    action: int
    transition: Transition
    stepped: Stepped | None


class Collected(NamedTuple):
    """The rollouts between two updates, the state of the environments after them, and all steps."""

    rollouts: list[Rollout]
    seats: list[Seat]
    told: list[Told]


class World:
    """A task in a run, shared by all environments. `environments` is their number, if known."""

    def __init__(
        self, run: Run, task: Task, encoded: Mapping[str, bytes], *, together: bool = True, environments: int = 0
    ) -> None:
        authorise(run, task)
        self.run = run
        self.task = task
        self.encoded = encoded
        self.together = together
        self.outage = Outage(run, environments, called="step")
        self._repeating = asyncio.Lock()

    @property
    def width(self) -> int:
        """Size of an embedding."""
        return len(self.encoded[self.task.queries[0]]) // 4

    def opened(self, name: str, seat: int, begun: int = 1) -> Seat:
        """An environment at the beginning of an episode."""
        seed = seed_of(self.run.record.seed, name, seat, begun)
        return Seat(begin(self.task, seed, self.encoded), begun)

    async def step(self, key: str, episode: Episode, action: int, again: int = 0) -> tuple[Transition, Stepped | None]:
        """Execute one step as a trial. Its key is `key`, a hash of what is tried, and the number of the repetition.

        When a run is resumed with new attempts at missing trials, or scored again, the policy may differ and try other
        things. The hash prevents a recorded step from being taken for another one.
        """
        said = (text for each in episode.talk for text in (each.query, each.response))
        tried = seed_of(action, episode.guard, episode.secret, episode.goal, episode.query, *said) & 0xFFFFFFFF
        name = f"{key}/{tried:08x}/again{again}" if again else f"{key}/{tried:08x}"
        spec = step_of(self.task, episode, action)
        if self.task.sessions:
            spec = msgspec.structs.replace(spec, session=self.session(key))
        async with self._turn() if again else nullcontext():
            outcome = await self.run.submit(step, spec, key=name)
            await self.outage.passed(_failure(outcome))
        return advance(self.task, episode, action, outcome.result, self.encoded), outcome.result

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait to repeat a step. In an outage one is repeated at a time, so the others keep their repetitions."""
        if self.outage.lasts:
            async with self._repeating:
                if self.outage.lasts:
                    yield
                    return
        yield

    def session(self, key: str) -> str:
        """The session id of a trial: the same for all steps of an episode whose target keeps the conversation."""
        name = key.rpartition("/")[0] if self.task.multi_turn else key
        return blake2b(f"{self.run.record.id}/{name}".encode(), digest_size=8).hexdigest()

    async def all(self, work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """Await all concurrently, or in sequence with --no-batching. If one raises, the others are cancelled."""
        if self.together:
            return await _at_once(work)
        try:
            return [await each for each in work]
        finally:
            for each in work:
                each.close()  # those that had not begun when one raised


async def _at_once(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # no task may go on after the run has ended


async def opened_world(
    run: Run,
    task: Task,
    *,
    together: bool = True,
    environments: int = 0,
    key: str | None = "encode",
    also: Sequence[str] = (),
) -> World:
    """Open a task in a run: check its models, and embed its queries in one call. `also`: mutations of baselines."""
    authorise(run, task)
    run.relies_on(step, [*map(find_mutator, dict.fromkeys([*task.mutators, *also])), find_reward(task.reward)])
    for model in task.models:
        run.lane_of(Embed(model, ()) if model == task.embedder else Chat(model, ()))
    texts = tuple(dict.fromkeys(task.queries))
    found = (await run.submit(encode, Encode(task.embedder, task.width, texts), key=key)).unwrap()
    return World(run, task, unpacked(texts, found), together=together, environments=environments)


def _failure(outcome: Outcome[Stepped]) -> str | None:
    """The failure of a step, if any."""
    if outcome.fault is not None or outcome.result is None:
        return "no result" if outcome.fault is None else outcome.fault.message
    return next((f"{part}: {why}" for part, why in outcome.result.failed.items()), None)


def unpacked(texts: Sequence[str], found: Encoded) -> dict[str, bytes]:
    """The embedding of each text."""
    size = found.width * 4
    return {text: found.packed[at * size : (at + 1) * size] for at, text in enumerate(texts)}


async def collect(world: World, name: str, seats: Sequence[Seat], chooser: Chooser, steps: int) -> Collected:
    """Collect this number of steps in each environment with one chooser."""
    done = await world.all([_rollout(world, (name, at), seat, chooser, steps) for at, seat in enumerate(seats)])
    told = [each for _, _, some in done for each in some]
    return Collected([rollout for rollout, _, _ in done], [seat for _, seat, _ in done], told)


async def _rollout(
    world: World, who: tuple[str, int], seat: Seat, chooser: Chooser, steps: int
) -> tuple[Rollout, Seat, list[Told]]:
    rollout, told, place = Rollout(), list[Told](), f"{who[0]}/{who[1]}"
    for _ in range(steps):
        before = seat.episode
        seen = observed(world.task, before)
        choice = chooser.choose(seen, chance_of(world.run.record.seed, *who, seat.begun, before.step), before)
        after, stepped = await world.step(f"{place}/{seat.begun}/{before.step}", before, choice.action)
        rollout.add(seen, choice, after.reward, ended=bool(after.episode.end), usable=after.usable)
        rollout.moves.append((before, after.episode))
        told.append(Told(before, choice.action, after, stepped))
        seat = world.opened(*who, seat.begun + 1) if after.episode.end else Seat(after.episode, seat.begun)
    rollout.last_value = chooser.value(observed(world.task, seat.episode))
    return rollout, seat, told


async def attempt(world: World, name: str, number: int, episode: Episode, chooser: Chooser) -> AsyncIterator[Told]:
    """Play one episode to its end. A step that fails is repeated with the same action; every repetition is told too.

    Long episodes would otherwise be lost more often than short ones, which are those with a leak.
    """
    again = 0
    while not episode.end:
        seen = observed(world.task, episode)
        choice = chooser.choose(seen, chance_of(world.run.record.seed, name, number, episode.step), episode)
        after, stepped = await world.step(f"{name}/{number}/{episode.step}", episode, choice.action, again)
        yield Told(episode, choice.action, after, stepped)
        again = 0 if after.usable else again + 1
        if after.usable or again > REPEATS:
            episode = after.episode
