"""Environments in a run: each goes on by itself, and what is found does not depend on which is faster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest

import groundswell
from groundswell import Run
from groundswell.errors import SettingsError, TrialMissing
from groundswell.experiments.query_mutation.learning.choosing import Choice, Script, Uniform
from groundswell.experiments.query_mutation.playing import Collected, World, attempt, collect, opened_world, unpacked
from groundswell.experiments.query_mutation.stepping import Encoded
from groundswell.experiments.query_mutation.task import Task
from tests.experiments.query_mutation.kindness import AT_ONCE, TASK, Models, vector

T = TypeVar("T")
ANYTHING = Uniform(2)


def within(folder: Path, models: Models, work: Callable[[Run], Awaitable[T]], **how: Any) -> T:
    async def main() -> T:
        async with groundswell.open(folder / "runs.db", script=models, options=AT_ONCE, **how) as engine:
            return await work(engine.run("r", seed=4))

    return asyncio.run(main())


async def two_updates(world: World) -> list[Collected]:
    seats = [world.opened("a", number) for number in range(3)]
    first = await collect(world, "a", seats, ANYTHING, 5)
    return [first, await collect(world, "a", first.seats, ANYTHING, 5)]


def shown(found: Collected) -> Any:
    """What can be compared: arrays compare element by element."""
    return [[seen.tolist() for seen in each.seen] for each in found.rollouts], found.seats, found.told


@pytest.mark.sampled
@pytest.mark.parametrize("together", [True, False], ids=["at once", "one after the other"])
@pytest.mark.parametrize("jitter", [None, 1, 2])
def test_what_is_found_does_not_depend_on_who_is_faster(tmp_path: Path, together: bool, jitter: int | None) -> None:
    async def work(run: Run, together: bool) -> list[Any]:
        return [shown(each) for each in await two_updates(await opened_world(run, TASK, together=together))]

    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    expected = within(tmp_path / "one", Models(), lambda run: work(run, True))
    assert within(tmp_path / "other", Models(jitter=jitter), lambda run: work(run, together)) == expected


def test_a_rollout_holds_what_was_seen_and_done_and_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    found = within(tmp_path, Models(), lambda run: _opened(run, two_updates))
    for number in range(3):
        rollouts = [each.rollouts[number] for each in found]
        own = [told for each in found for told in each.told[number * 5 : number * 5 + 5]]
        assert [each.action for each in own] == [action for rollout in rollouts for action in rollout.actions]
        assert [each.transition.reward for each in own] == [paid for rollout in rollouts for paid in rollout.rewards]
        for one, other in pairwise(own):
            if one.transition.episode.end:
                assert other.before.step == 0
                assert other.before.seed != one.before.seed
            else:
                assert other.before == one.transition.episode
    assert len({each.before.seed for each in found[0].told if each.before.step == 0}) > 3


async def _opened(run: Run, work: Callable[[World], Awaitable[T]], task: Task = TASK) -> T:
    return await work(await opened_world(run, task))


def test_a_step_that_fails_ends_its_episode_and_is_masked(tmp_path: Path) -> None:
    async def work(world: World) -> Collected:
        return await collect(world, "a", [world.opened("a", 0)], Script((0,)), 6)

    found = within(tmp_path, Models(fails=range(1, 2)), lambda run: _opened(run, work))
    [rollout] = found.rollouts
    assert rollout.usable == [True, False, True, True, True, True]
    assert rollout.ended == [False, True, False, False, True, False]
    failed, after = found.told[1:3]
    assert failed.transition.episode.end == "fault"
    assert failed.transition.reward == 0.0
    assert failed.stepped is not None
    assert list(failed.stepped.failed) == ["target"]
    assert after.before.step == 0


def test_what_is_expected_at_the_cut_is_asked_of_the_chooser(tmp_path: Path) -> None:
    class Steps(Script, frozen=True):
        """Expects as much as there were steps."""

        def value(self, seen: Any) -> float:
            return float(seen[8 + 2] * TASK.max_steps)

        def choose(self, seen: Any, chance: float, episode: Any = None) -> Choice:
            return Choice(0, 0.0, self.value(seen))

    async def work(world: World) -> Collected:
        return await collect(world, "a", [world.opened("a", 0)], Steps((0,)), 5)

    [rollout] = within(tmp_path, Models(), lambda run: _opened(run, work)).rollouts
    assert rollout.values == pytest.approx([0, 1, 2, 0, 1])
    assert rollout.last_value == pytest.approx(2.0)


def test_an_attempt_goes_to_the_end_of_its_episode(tmp_path: Path) -> None:
    async def work(world: World) -> list[list[str]]:
        episode = world.opened("a", 0).episode
        return [
            [told.transition.episode.end async for told in attempt(world, f"a{action}", 0, episode, Script((action,)))]
            for action in (0, 1)
        ]

    assert within(tmp_path, Models(), lambda run: _opened(run, work)) == [["", "", "steps"], ["leak"]]


def test_queries_are_embedded_in_one_call(tmp_path: Path) -> None:
    models = Models(which="embedder")

    async def work(world: World) -> tuple[int, set[str]]:
        return world.width, set(world.encoded)

    assert within(tmp_path, models, lambda run: _opened(run, work)) == (8, set(TASK.queries))
    assert models.met == 1


def test_every_text_gets_its_own_embedding() -> None:
    texts = ("one", "two", "three")
    packed = [b"abcdefgh", b"ijklmnop", b"qrstuvwx"]
    assert unpacked(texts, Encoded(2, b"".join(packed))) == dict(zip(texts, packed, strict=True))
    assert len(vector("one")) == 8


def test_without_embeddings_nothing_begins(tmp_path: Path) -> None:
    with pytest.raises(TrialMissing, match="out of order"):
        within(tmp_path, Models(which="embedder", fails=range(1)), lambda run: _opened(run, two_updates))


def test_models_that_cannot_be_reached_are_told_before_anything_is_asked(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "runs.db") as engine:
            await opened_world(engine.run("r"), Task(target="emulated/nobody-of-this-name"))

    with pytest.raises(SettingsError, match="nobody-of-this-name"):
        asyncio.run(main())


def test_when_one_of_many_fails_nothing_goes_on_behind_its_back(tmp_path: Path) -> None:
    ended: list[str] = []

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("let go")

    async def failing() -> None:
        raise ValueError("no further")

    async def work(run: Run) -> list[str]:
        world = await opened_world(run, TASK)
        with pytest.raises(ValueError, match="no further"):
            await world.all([lasting(), failing(), lasting()])
        return list(ended)

    assert within(tmp_path, Models(), work) == ["let go", "let go"]


def test_one_after_the_other_the_rest_is_not_begun_after_a_failure(tmp_path: Path) -> None:
    begun: list[int] = []

    async def one(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError("no further")

    async def work(run: Run) -> None:
        world = await opened_world(run, TASK, together=False)
        with pytest.raises(ValueError, match="no further"):
            await world.all([one(number) for number in range(4)])

    within(tmp_path, Models(), work)
    assert begun == [0, 1]
