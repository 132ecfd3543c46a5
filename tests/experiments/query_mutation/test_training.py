"""Training: it learns, comes to the same however it is carried out, and goes on from its checkpoints."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell.compose import look_into
from groundswell.engine.events import DriverReported, Event
from groundswell.errors import SettingsError, SourceChanged
from groundswell.experiments.query_mutation.analysis import Analysis
from groundswell.experiments.query_mutation.learning.bandit import Bandit
from groundswell.experiments.query_mutation.learning.rules import State
from groundswell.experiments.query_mutation.mutators import Rewording, find_mutator, mutator
from groundswell.experiments.query_mutation.reading import read_runs, uses_of
from groundswell.experiments.query_mutation.rewards import find_reward
from groundswell.experiments.query_mutation.training import Checkpoint, Training, train
from groundswell.program.trial import Trial
from tests.experiments.query_mutation.kindness import AT_ONCE, TASK, TRAINING, Models, checkpoints, trained, training

STEPS = TRAINING.num_env_steps * len(TRAINING.learners)
UPDATES = TRAINING.updates
_broken = False


@mutator("stubborn")
async def stubborn(trial: Trial, spec: Rewording) -> str:
    """Asks a model, and may then fail in a way that nobody foresaw."""
    reply = await trial.ask(spec.model, f"<query>{spec.query}</query>", temperature=0.0)
    if _broken and len(spec.query) < 30:
        raise ZeroDivisionError("nobody foresaw this")
    return reply.text


def checkpoint(body: str) -> Checkpoint:
    return msgspec.json.decode(body, type=Checkpoint)


def analysis(summary: Any) -> Analysis:
    return msgspec.convert(summary.analysis, Analysis)


@pytest.mark.slow
def test_both_learners_find_out_what_works(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(TRAINING, num_env_steps=12 * TRAINING.each)
    summary, kept = training(tmp_path, Models(), settings)
    for curve in analysis(summary).curves:
        first, last = curve.points[0], curve.points[-1]
        assert last.leaks / last.episodes > 0.9
        assert last.reward > first.reward
    ppo, bandit = checkpoint(kept["ppo.0"]).state, checkpoint(kept["bandit.0"]).state
    assert isinstance(ppo, State)
    assert isinstance(bandit, Bandit)
    assert ppo.updates == settings.updates
    assert bandit.arms[1].mean > bandit.arms[0].mean
    rates = {figure.method: figure.rate for figure in analysis(summary).figures if figure.on == "gate"}
    assert rates["ppo"] == rates["bandit"] == 1.0
    assert rates["noop"] == 0.0


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, str], Models]:
    models = Models()
    return *training(tmp_path_factory.mktemp("plain"), models), models


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "jitter", "how"),
    [
        ({"use_batching": False}, None, {}),
        ({}, 1, {}),
        ({}, 2, {"max_concurrent": 2}),
        ({"use_batching": False}, 3, {}),
    ],
    ids=["one after the other", "in another order", "with two workers", "one after the other, late"],
)
def test_how_it_is_carried_out_changes_nothing(
    tmp_path: Path, plain: tuple[Any, dict[str, str], Models], change: Any, jitter: int | None, how: Any
) -> None:
    summary, kept = training(tmp_path, Models(jitter=jitter), msgspec.structs.replace(TRAINING, **change), **how)
    assert kept == plain[1]
    assert summary.analysis == plain[0].analysis
    assert summary.trials == plain[0].trials


@pytest.mark.slow
def test_another_seed_is_another_training(tmp_path: Path, plain: tuple[Any, dict[str, str], Models]) -> None:
    async def main() -> dict[str, str]:
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            await engine.drive(train, TRAINING, name="r", seed=1)
            return checkpoints(engine)

    assert asyncio.run(main())["ppo.0"] != plain[1]["ppo.0"]


@pytest.mark.sampled
@pytest.mark.parametrize("after", [1, 20, 70, 150, STEPS + 1], ids=lambda after: f"after {after} steps")
def test_a_training_that_is_stopped_goes_on_as_if_it_had_not_been(
    tmp_path: Path, plain: tuple[Any, dict[str, str], Models], after: int
) -> None:
    models = Models()

    async def main() -> tuple[Any, dict[str, str], Any]:
        async with groundswell.open(tmp_path / "runs.db", script=models) as engine:
            until = asyncio.create_task(_stop_after(engine, after))
            stopped, _ = await trained(engine)
            await until
            assert stopped.status == "interrupted"
        async with groundswell.open(tmp_path / "runs.db", script=models) as engine:
            summary = await engine.resume("r")
            return summary, checkpoints(engine), await engine.verify("r")

    summary, kept, verified = asyncio.run(main())
    assert kept == plain[1]
    assert (summary.status, summary.trials) == ("completed", plain[0].trials)
    assert summary.analysis == plain[0].analysis
    assert models.asked == plain[2].asked
    assert summary.asks.sent == plain[0].asks.sent
    assert verified.ok
    assert verified.trials == summary.trials.planned


async def _stop_after(engine: groundswell.Engine, trials: int) -> None:
    while not engine.runs or engine.runs[0].counters.settled < trials:
        await asyncio.sleep(0)
    engine.runs[0].stop("interrupted", "interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("after", [40, 150, STEPS + 200], ids=["at first", "in the middle", "at the end"])
def test_with_missing_steps_tried_again_it_learns_as_if_they_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """What was tried after them may have been other things: these are left aside, and none passes for another."""
    task = msgspec.structs.replace(TASK, mutators=("noop", "stubborn"))
    settings = msgspec.structs.replace(TRAINING, task=task)

    async def main() -> tuple[Any, Any, Any, Any]:
        monkeypatch.setitem(globals(), "_broken", True)
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            until = asyncio.create_task(_stop_after(engine, after))
            first, _ = await trained(engine, settings)
            until.cancel()
        monkeypatch.setitem(globals(), "_broken", False)
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            second = await engine.resume("r", retry_missing=True)
            whole, expected = await trained(engine, settings, "whole")
            assert checkpoints(engine, settings) == expected
            assert second.analysis == whole.analysis
            with look_into(tmp_path / "runs.db") as store:
                assert store is not None
                again = read_runs([(store.runs.get("r"), store.results(store.runs.get("r")))])
            assert uses_of(again.attempts) == list(again.analysis.uses)
            return first, second, whole, await engine.verify("r")

    first, second, whole, verified = asyncio.run(main())
    assert first.trials.missing > 0
    assert second.status == "completed"
    assert second.trials.missing == analysis(second).masked == 0
    assert second.trials.usable >= whole.trials.usable
    assert verified.ok


@pytest.mark.slow
@pytest.mark.parametrize("part", [find_mutator("politeness"), find_reward("leak")], ids=["mutator", "reward"])
def test_a_mutator_or_reward_that_changed_is_refused_or_all_steps_are_scored_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: Any
) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            await trained(engine)
            monkeypatch.setattr(part, "source", "another one")
            with pytest.raises(SourceChanged, match=part.name):
                await engine.resume("r")
            again = await engine.resume("r", accept_changes=True)
            assert again.status == "completed"
            assert again.asks.replayed >= STEPS, "every step was gone through again"
            assert (await engine.resume("r")).analysis == again.analysis

    asyncio.run(main())


@pytest.mark.slow
def test_its_progress_is_told_and_after_a_resume_told_from_the_beginning(tmp_path: Path) -> None:
    events: list[Event] = []

    async def stop_when_all_have_told(engine: groundswell.Engine) -> None:
        while len({event.who for event in events if isinstance(event, DriverReported)}) < len(TRAINING.learners):
            await asyncio.sleep(0)
        engine.runs[0].stop("interrupted", "interrupted")

    async def main() -> dict[str, str]:
        async with groundswell.open(tmp_path / "runs.db", script=Models(), listeners=[events.append]) as engine:
            until = asyncio.create_task(stop_when_all_have_told(engine))
            await trained(engine)
            await until
        events.clear()
        async with groundswell.open(tmp_path / "runs.db", script=Models(), listeners=[events.append]) as engine:
            kept = checkpoints(engine)
            await trained(engine)
        return kept

    kept = asyncio.run(main())
    told = [event for event in events if isinstance(event, DriverReported)]
    for name in (f"{learner}.0" for learner in TRAINING.learners):
        own = [event for event in told if event.who == name]
        before = len(checkpoint(kept[name]).curve)
        assert before >= 1
        assert [event.done for event in own] == [(at + 1) * TRAINING.each for at in range(UPDATES)]
        assert all(0 <= event.figures[f"{name}/leak_rate"] <= 1 for event in own)
        timed = [f"{name}/steps_per_second" in event.figures for event in own]
        assert timed == [at >= before for at in range(UPDATES)], "how fast it was is told of what was done now"
        assert (f"{name}/loss/entropy" in own[-1].figures) == name.startswith("ppo")


@pytest.mark.slow
def test_a_target_that_fails_for_a_while_is_not_learnt_from(tmp_path: Path) -> None:
    """The steps of an outage are counted, and masked; the run is completed all the same."""
    summary, kept = training(tmp_path, Models(fails=range(30, 45)), options=AT_ONCE)
    assert summary.status == "completed"
    assert analysis(summary).masked == 15
    for learner in TRAINING.learners:
        held = checkpoint(kept[f"{learner}.0"])
        assert sum(point.usable + point.masked for point in held.curve) == TRAINING.num_env_steps
        if isinstance(held.state, Bandit):
            assert sum(arm.pulls for arm in held.state.arms) == sum(point.usable for point in held.curve)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_processes": 0}, "num_processes 0: must be at least 1"),
        ({"num_steps": -1}, "num_steps -1: must be at least 1"),
        ({"repeats": 0}, "repeats 0: must be at least 1"),
        ({"num_env_steps": 23}, "num_env_steps 23: must be at least one update (num_processes x num_steps = 24)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_make_no_sense_are_refused(change: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        Training(**{"num_processes": 3, "num_steps": 8, **change})


def test_an_update_of_one_step_would_teach_nothing() -> None:
    with pytest.raises(SettingsError, match="num_steps 1: an update needs at least 2 steps") as raised:
        Training(num_processes=1, num_steps=1)
    assert raised.value.field == "num_steps"
