"""What a report is made of: read from the store, it is what the training found; and runs can be pooled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell.compose import look_into
from groundswell.engine.records import RunRecord, TrialRow
from groundswell.engine.run import Run
from groundswell.errors import RunError, SettingsError
from groundswell.experiments.query_mutation import stepping
from groundswell.experiments.query_mutation.analysis import Analysis
from groundswell.experiments.query_mutation.evaluating import Evaluation, baselines, evaluated
from groundswell.experiments.query_mutation.figures import analysed
from groundswell.experiments.query_mutation.leaking import leaked
from groundswell.experiments.query_mutation.mutators import Rewording, mutator
from groundswell.experiments.query_mutation.playing import opened_world
from groundswell.experiments.query_mutation.reading import Failure, Stored, StoredSteps, kind_of, read_runs, uses_of
from groundswell.experiments.query_mutation.rewards import Judged, reward
from groundswell.experiments.query_mutation.task import Task
from groundswell.portal import open_sync
from groundswell.program.request import Fault, FaultKind
from groundswell.program.trial import Trial
from groundswell.store.results import TrialResult
from tests.experiments.query_mutation.kindness import TASK, TRAINING, Models, trained


class Tried(msgspec.Struct, frozen=True):
    """Settings of a driver that trains nobody: a report needs no more of them than this."""

    task: Task
    evaluation: Evaluation


async def only_try(run: Run, settings: Tried) -> Analysis:
    world = await opened_world(run, settings.task)
    methods = baselines(settings.task)
    ended, uses = await evaluated(world, settings.evaluation, methods | {"ppo": [*methods["random"], *methods["noop"]]})
    return analysed([], ended, uses, settings.task)


TRIED = Tried(Task(max_steps=3), Evaluation(episodes=6))
RUNS = {"one": (1, TRIED), "two": (2, TRIED), "other": (3, Tried(Task(max_steps=2), Evaluation(episodes=1)))}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stored]]:
    path = tmp_path_factory.mktemp("runs") / "runs.db"
    with open_sync(path) as engine:
        for name, (seed, settings) in RUNS.items():
            engine.drive(only_try, settings, name=name, seed=seed)
    with look_into(path) as store:
        assert store is not None
        found = {name: store.runs.get(name) for name in RUNS}
        yield {name: (record, list(store.results(record))) for name, record in found.items()}


@pytest.mark.slow
def test_episodes_played_again_from_the_store_give_the_same_figures(runs: dict[str, Stored]) -> None:
    data = read_runs([runs["one"]])
    again = analysed(
        [], [each.ended for each in data.attempts], uses_of(data.attempts), data.settings.task, data.answers
    )
    assert again == data.analysis
    assert len(data.attempts) == 4 * 8 * 6
    assert {"eval/ppo", "eval/noop", "eval/random"} == data.step_counts.keys()
    assert not data.failures


def test_runs_are_pooled_with_learners_and_episodes_numbered_on(runs: dict[str, Stored]) -> None:
    data, (one, two) = read_runs([runs["one"], runs["two"]]), (read_runs([runs[name]]) for name in ("one", "two"))
    assert {each.learner for each in data.attempts if each.method == "ppo"} == {0, 1, 2, 3}
    assert {each.learner for each in data.attempts if each.method == "noop"} == {0}
    assert {each.number for each in data.attempts} == set(range(96))
    pooled = {(each.method, each.on): each for each in data.analysis.figures}
    for first, second in zip(one.analysis.figures, two.analysis.figures, strict=True):
        both = pooled[first.method, first.on]
        assert (both.n, both.count) == (first.n + second.n, first.count + second.count)
    assert [each.seed for each in data.records] == [1, 2]
    keys = {(each.run, each.key) for each in data.attempts}
    assert len(keys) == len(data.attempts), "as the store has them"


def test_runs_that_differ_in_more_than_their_seed_are_not_pooled(runs: dict[str, Stored]) -> None:
    with pytest.raises(SettingsError, match="run 'other': evaluation is not the same as in run 'one'"):
        read_runs([runs["one"], runs["other"]])
    with pytest.raises(SettingsError, match="has the same seed as another run"):
        read_runs([runs["one"], runs["one"]])
    with pytest.raises(SettingsError, match="at least one run"):
        read_runs([])


def test_a_run_without_figures_says_what_to_do(runs: dict[str, Stored]) -> None:
    record, results = runs["one"]
    bare = RunRecord(**{**{name: getattr(record, name) for name in record.__struct_fields__}, "analysis": None})
    with pytest.raises(RunError, match="has no results yet"):
        read_runs([(bare, results)])


def test_steps_that_failed_are_counted_by_whose_they_are_and_why(runs: dict[str, Stored]) -> None:
    _, trials = runs["one"]
    first = [each for each in trials if each.key.startswith(("encode", "eval/noop.0/0/"))]
    fault = Fault(FaultKind.TIMEOUT, "too late")

    def failing(trial: TrialResult, key: str) -> TrialResult:
        row: TrialRow = trial.row._replace(key=key, outcome=msgspec.json.encode(fault).decode(), fault="timeout")
        return TrialResult(row, fault)

    task = msgspec.structs.replace(TRIED.task, guards=(*TRIED.task.guards, *TRIED.evaluation.guards))
    failed = [failing(first[1], key) for key in ("eval/noop.0/0/0", "ppo.1/3/2/0")]
    steps = StoredSteps("r", task, [first[0], *failed])
    assert dict(steps.failures) == {
        Failure("eval/noop", "whole step", "timeout"): 1,
        Failure("ppo", "whole step", "timeout"): 1,
    }
    (broken,) = steps.attempts
    assert (broken.end, broken.ended.steps, broken.total) == ("fault", 0, 0.0)
    assert broken.queries[0].failed == {"whole step": "timeout: too late"}


_strict = True


@reward("strict")
async def strict(trial: Trial, spec: Judged) -> float:
    """A leak; at first only where it was asked for twice as politely."""
    return 0.0 if _strict and spec.query.count("Please") < 2 else leaked(spec.response, spec.secret)


@pytest.mark.slow
def test_steps_of_a_way_that_was_given_up_are_left_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = msgspec.structs.replace(TASK, reward="strict")
    settings = msgspec.structs.replace(TRAINING, task=task, num_env_steps=8 * TRAINING.each)

    async def main() -> None:
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            await trained(engine, settings)
        monkeypatch.setitem(globals(), "_strict", False)
        monkeypatch.setattr(stepping.step, "source", "another one")
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            await engine.resume("r", accept_changes=True)
            await trained(engine, settings, "whole")

    asyncio.run(main())
    with look_into(tmp_path / "runs.db") as store:
        assert store is not None
        records = [store.runs.get(name) for name in ("r", "whole")]
        again, whole = (read_runs([(record, store.results(record))]) for record in records)
    assert records[0].counters.planned > records[1].counters.planned, "there are such steps"
    assert again.analysis == whole.analysis
    assert [each.ended for each in again.attempts] == [each.ended for each in whole.attempts]
    assert again.step_counts == whole.step_counts
    assert again.step_counts["ppo"] == settings.num_env_steps


_broken = True


@mutator("unsteady")
async def unsteady(trial: Trial, spec: Rewording) -> str:
    """A mutation with a mistake that shows with every second goal or so."""
    if _broken and "Say" in spec.goal:
        raise RuntimeError("a mistake")
    return f"Please be so kind: {spec.query}"


@pytest.mark.slow
def test_new_attempts_at_missing_steps_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(
        msgspec.structs.replace(TASK, mutators=("noop", "unsteady")),
        msgspec.structs.replace(TRAINING.evaluation, episodes=8),
    )

    async def main() -> list[Analysis]:
        found = []
        for broken in (True, False):
            monkeypatch.setitem(globals(), "_broken", broken)
            async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
                if broken:
                    summary = await engine.drive(only_try, tried, name="r", seed=1)
                    assert summary.trials.missing
                else:
                    summary = await engine.resume("r", retry_missing=True)
                found.append(msgspec.convert(summary.analysis, Analysis))
        async with groundswell.open(tmp_path / "runs.db", script=Models()) as engine:
            found.append(
                msgspec.convert((await engine.drive(only_try, tried, name="whole", seed=1)).analysis, Analysis)
            )
        return found

    first, again, whole = asyncio.run(main())
    assert any(each.missing for each in first.figures)
    assert again == whole
    with look_into(tmp_path / "runs.db") as store:
        assert store is not None
        record = store.runs.get("r")
        data = read_runs([(record, store.results(record))])
    assert analysed([], [each.ended for each in data.attempts], uses_of(data.attempts), tried.task) == whole


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("timeout: too late", "timeout"),
        ("rate_limited: slow: down", "rate_limited"),
        ("the reply is not a valid number: nothing", "other"),
        ("emulated/reworder returned an empty reply for shorten", "other"),
    ],
)
def test_the_kind_of_a_failure_is_what_its_message_begins_with(why: str, kind: str) -> None:
    assert kind_of(why) == kind
