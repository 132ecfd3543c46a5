"""A target that fails for a while, over real HTTP: training goes on, and nothing is learnt from the outage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell import RetryPolicy, RunOptions
from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from groundswell.engine.summary import Summary
from groundswell.experiments.query_mutation import training
from groundswell.experiments.query_mutation.analysis import Analysis
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.learning.bandit import Bandit
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.training import Checkpoint, Training, train
from tests.experiments.query_mutation.learning.rollouts import garbled
from tests.transports.scene import Bench, environment

SETTINGS = Training(
    task=Task(
        target="openai/guard:{strength}",
        mutator_model="openai/reworder",
        embedder="openai/text-embedding-3-small",
        dimensions=16,
    ),
    num_processes=4,
    num_steps=8,
    num_env_steps=96,
    baselines=("noop", "random", "bandit"),
    evaluation=Evaluation(episodes=1),
)
HASTY = RunOptions(retry=RetryPolicy(attempts=2, first_wait=0.01, longest_wait=0.02, patience=0.1))
TARGET = "guard:*"
NAMES = ("ppo.0", "bandit.0")


class Lessons:
    """What learners were given, and what they made of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[tuple[Any, Sequence[Rollout], int, Any]] = []
        self.learn = training._learnt
        monkeypatch.setattr(training, "_learnt", self._noted)

    def _noted(self, state: Any, rollouts: Sequence[Rollout], settings: Training, seed: int) -> Any:
        found = self.learn(state, rollouts, settings, seed)
        self.held.append((state, rollouts, seed, found))
        return found


def trained(folder: Path, emulator: Threaded, options: RunOptions) -> tuple[Summary, dict[str, Checkpoint]]:
    folder.mkdir(exist_ok=True)

    async def main() -> tuple[Summary, dict[str, Checkpoint]]:
        async with Bench(folder, environment(emulator.url)).open(options=options) as engine:
            summary = await engine.drive(train, SETTINGS, name="r")
            kept = {name: engine.stored("r").kept(name) or "" for name in NAMES}
            return summary, {name: msgspec.json.decode(body, type=Checkpoint) for name, body in kept.items()}

    return asyncio.run(main())


def masked(summary: Summary) -> int:
    return msgspec.convert(summary.analysis, Analysis).masked


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["500", "drop", "malformed", "400"])
def test_without_patience_the_steps_of_an_outage_are_counted_and_not_learnt_from(
    tmp_path: Path, emulator: Threaded, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    emulator.set_faults(Rule(script=("ok",) * 40 + (fault,) * 30, model=TARGET))
    lessons = Lessons(monkeypatch)
    summary, kept = trained(tmp_path, emulator, HASTY)
    assert summary.status == "completed"
    assert summary.trials.missing == 0
    assert 5 <= masked(summary) <= 30
    for held in kept.values():
        assert sum(point.usable + point.masked for point in held.curve) == SETTINGS.num_env_steps
    hit = [rollout for _, rollouts, _, _ in lessons.held for rollout in rollouts if not all(rollout.usable)]
    assert sum(rollout.usable.count(False) for rollout in hit) == masked(summary)
    for state, rollouts, seed, found in lessons.held:
        assert lessons.learn(state, [garbled(rollout) for rollout in rollouts], SETTINGS, seed) == found
    bandit = kept["bandit.0"]
    assert isinstance(bandit.state, Bandit)
    assert sum(arm.pulls for arm in bandit.state.arms) == sum(point.usable for point in bandit.curve)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, _emulator: Threaded) -> tuple[Summary, dict[str, Checkpoint]]:
    _emulator.set_faults()
    return trained(tmp_path_factory.mktemp("calm"), _emulator, RunOptions())


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "times"), [("500", 6), ("429", 20)])
def test_with_patience_an_outage_is_waited_out(
    tmp_path: Path, calm: tuple[Summary, dict[str, Checkpoint]], emulator: Threaded, fault: str, times: int
) -> None:
    emulator.set_faults(Rule(script=("ok",) * 40 + (fault,) * times, model=TARGET, retry_after=0.1))
    summary, kept = trained(tmp_path, emulator, RunOptions())
    assert emulator.ledger()["totals"]["refused"] == times
    assert masked(summary) == 0
    assert kept == calm[1]
    assert summary.analysis == calm[0].analysis
