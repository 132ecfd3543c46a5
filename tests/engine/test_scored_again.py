"""Recorded replies that are scored again, attempts that are made again, trials that are submitted again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import (
    Fault,
    FaultKind,
    ReplayMismatch,
    Reply,
    Request,
    Run,
    RunOptions,
    RunStopped,
    SourceChanged,
    Summary,
    Trial,
)
from groundswell.engine.outcome import Outcome
from groundswell.program.trial import find_program
from tests.engine.editions import counted, edition, figures, status
from tests.engine.scenario import counters, run_async
from tests.engine.stage import said

COUNT = 10
NAME = "tests/again"


async def first(trial: Trial, spec: int) -> str:
    return "first " + (await trial.ask("any", f"{spec}")).text


async def second(trial: Trial, spec: int) -> str:
    """The same asks, other results, and half of them missing."""
    text = (await trial.ask("any", f"{spec}")).text
    if spec % 2:
        raise ValueError(text)
    return "second " + text


async def drifted(trial: Trial, spec: int) -> str:
    """Another request, in one trial of many."""
    words = "another" if spec == COUNT - 1 else f"{spec}"
    return "drifted " + (await trial.ask("any", words)).text


async def results(run: Run, settings: int) -> list[str | None]:
    made = find_program(f"{NAME}@{settings}")
    assert made is not None
    return [outcome.result async for outcome in run.map(made, range(COUNT))]


class Echo:
    """Says what it is told, and keeps count."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        self.asked.append(said(request))
        return f"<{said(request)}>"


def drive(store: Path, model: Echo, **options: Any) -> Summary:
    async def main() -> Summary:
        async with groundswell.open(store, script=model) as engine:
            return await engine.drive(results, 1, name="story", **options)

    return run_async(main())


def scripted(store: Path, made: Any, model: Echo, **options: Any) -> list[Outcome[Any]]:
    """A script that opens the run of its name and maps over it."""

    async def main() -> list[Outcome[Any]]:
        async with groundswell.open(store, script=model) as engine:
            return [outcome async for outcome in engine.run("story", **options).map(made, range(COUNT))]

    return run_async(main())


def texts(word: str) -> list[str]:
    return [f"{word} <{number}>" for number in range(COUNT)]


def test_another_version_of_a_program_is_refused_or_scores_the_recorded_replies(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(store, edition(monkeypatch, NAME, first), Echo())
    bumped, model = edition(monkeypatch, NAME, second, version=2), Echo()
    with pytest.raises(SourceChanged, match=r"tests/again@1.*tests/again@2"):
        scripted(store, bumped, model)
    found = scripted(store, bumped, model, accept_changes=True)
    assert [outcome.result for outcome in found[::2]] == texts("second")[::2]
    assert not any(outcome.ok for outcome in found[1::2])
    assert model.asked == []
    assert figures(store) == counted(store) == (5, 5)
    assert counters(store).planned == COUNT
    again = scripted(store, bumped, model)
    assert (again, model.asked) == (found, [])


@pytest.mark.parametrize("after", [1, 3, COUNT - 3])
def test_figures_are_those_of_the_outcomes_when_scoring_is_stopped_half_way(
    store: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The stop comes while a trial is being scored, when those beyond the window are not submitted yet."""
    edition(monkeypatch, NAME, first)
    drive(store, Echo())
    scored: list[int] = []

    async def stopped() -> Summary:
        async def stopping(trial: Trial, spec: int) -> str:
            scored.append(spec)
            if len(scored) == after:
                engine.runs[0].stop("interrupted", "enough")
            return await second(trial, spec)

        stopping.__name__ = second.__name__
        edition(monkeypatch, NAME, stopping)
        async with groundswell.open(store, script=Echo(), options=RunOptions(window=2)) as engine:
            return await engine.resume("story", accept_changes=True)

    assert run_async(stopped()).status == "interrupted"
    assert len(scored) < COUNT
    assert figures(store) == counted(store)
    assert counters(store).planned == COUNT
    edition(monkeypatch, NAME, second)
    model = Echo()
    whole = drive(store, model, accept_changes=True)
    assert [result for result in whole.analysis if result] == texts("second")[::2]
    assert figures(store) == counted(store) == (5, 5)
    assert (whole.trials.planned, whole.status, model.asked) == (COUNT, "partial", [])


@pytest.mark.sampled
@pytest.mark.parametrize("window", [1, 40])
@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(False, id="figures"),
        pytest.param(True, id="results"),
    ],
)
def test_a_program_that_drifted_is_restored(
    store: Path, monkeypatch: pytest.MonkeyPatch, window: int, recorded: bool
) -> None:
    edition(monkeypatch, NAME, first)
    drive(store, Echo())
    edition(monkeypatch, NAME, drifted)
    with pytest.raises(ReplayMismatch):
        drive(store, Echo(), accept_changes=True, options=RunOptions(window=window))
    assert figures(store) == counted(store)
    assert counters(store).planned == COUNT
    edition(monkeypatch, NAME, first)
    model = Echo()
    restored = drive(store, model, accept_changes=True)
    if recorded:
        assert restored.analysis == texts("first")
    assert (restored.status, model.asked) == ("completed", [])
    assert figures(store) == counted(store) == (COUNT, 0)


def test_trials_that_are_left_and_submitted_again_are_planned_once(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, model = edition(monkeypatch, NAME, first), Echo()

    async def session(enough: int, *, stop: bool) -> None:
        async with groundswell.open(store, script=model, options=RunOptions(window=4)) as engine:
            run, heard = engine.run("story"), 0
            async for _ in run.map(made, range(20)):
                heard += 1
                if heard >= enough and stop:
                    run.stop("interrupted", "enough")
                elif heard >= enough:
                    break

    run_async(session(3, stop=False))
    assert counters(store).planned == counters(store).usable == figures(store)[0]
    for enough in (6, 8, 10):
        with pytest.raises(RunStopped):
            run_async(session(enough, stop=True))
        assert (status(store), counted(store)) == ("interrupted", figures(store))
        assert figures(store)[0] <= counters(store).planned <= 20
    run_async(session(100, stop=False))
    assert (status(store), counters(store).planned, figures(store), counted(store)) == (
        "completed",
        20,
        (20, 0),
        (20, 0),
    )
    assert len(set(model.asked)) == 20


class Number(msgspec.Struct):
    number: int


async def numbered(trial: Trial, spec: int) -> str:
    return str((await trial.ask("any", f"{spec}", into=Number)).number)


def test_a_reply_that_could_not_be_read_is_asked_for_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edition(monkeypatch, NAME, numbered)
    words = ["no number"]

    async def main() -> None:
        async with groundswell.open(store, script=lambda _: words[0]) as engine:
            failed = await engine.drive(results, 1, name="story")
            assert (failed.status, failed.trials.missing) == ("failed", COUNT)
            words[0] = '{"number": 7}'
            again = await engine.resume("story", retry_missing=True)
            assert (again.status, again.trials.usable, again.trials.missing) == ("completed", COUNT, 0)
            assert again.analysis == ["7"] * COUNT

    run_async(main())


async def asks_another(trial: Trial, spec: int) -> str:
    return (await trial.ask("any", f"another {spec}")).text


def test_an_attempt_that_was_retried_and_is_complete_is_replayed_strictly(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edition(monkeypatch, NAME, first)
    answers: list[Reply | Fault] = [Fault(FaultKind.BAD_REQUEST, "no")]

    async def main() -> None:
        async with groundswell.open(store, script=lambda _: answers[0]) as engine:
            await engine.drive(results, 1, name="story")
            answers[0] = Reply("yes")
            done = await engine.resume("story", retry_missing=True)
            assert done.status == "completed"
            edition(monkeypatch, NAME, asks_another)
            with pytest.raises(ReplayMismatch):
                await engine.resume("story", accept_changes=True)
            assert engine.store.runs.get("story").counters.sent == done.asks.sent

    run_async(main())
