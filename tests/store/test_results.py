"""Reading what a run found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Fault, FaultKind, Limits, Request, RunOptions, Trial, program
from groundswell.errors import RunError
from groundswell.program.request import Reply
from groundswell.store import results as module
from groundswell.store.journal import Store


class Spec(msgspec.Struct, frozen=True):
    number: int


class Half(msgspec.Struct, frozen=True):
    value: float


@program("results/halve", version=1)
async def halve(trial: Trial, spec: Spec) -> Half:
    await trial.ask("any/model", f"number {spec.number}")
    if spec.number == 5:
        raise ZeroDivisionError("five")
    return Half(spec.number / 2)


def some_refused(request: Request) -> Reply | Fault:
    number = int(request.messages[0].content.split()[1])  # type: ignore[union-attr]
    return Fault(FaultKind.FILTERED, f"no {number}") if number in (1, 3) else Reply("fine")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A run of seven trials, of which three are missing, between two other runs."""

    async def fill() -> None:
        async with groundswell.open(tmp_path / "s.db", script=some_refused) as engine:
            for name, count in (("before", 2), ("r", 7), ("after", 2)):
                run = engine.run(name)
                async for _ in run.map(halve, [Spec(number) for number in range(count)]):
                    pass

    asyncio.run(fill())
    opened = Store(tmp_path / "s.db")
    yield opened
    opened.close_reading()


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_trials_come_in_their_order_whatever_the_chunk(
    store: Store, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    found = list(store.results(store.runs.get("r")))
    assert [result.spec(Spec).number for result in found] == list(range(7))
    assert [result.status for result in found] == [
        "usable", "missing", "usable", "missing", "usable", "missing", "usable"
    ]  # fmt: skip
    assert found[4].result(Half) == Half(2.0)
    assert found[4].result() == {"value": 2.0}
    assert found[1].result() is None
    assert found[1].fault == Fault(FaultKind.FILTERED, "no 1")
    assert {result.program for result in found} == {"results/halve@1"}


def test_reasons_are_counted_with_their_first_example(store: Store) -> None:
    results = store.results(store.runs.get("r"))
    listed = list(results)
    filtered, failed = results.fault_counts()
    assert filtered == ("content_filter", 2, listed[1].key, "no 1")
    assert failed[:3] == ("program_error", 1, listed[5].key)
    assert failed.message.startswith("ZeroDivisionError: five (in ")
    assert store.results(store.runs.get("before")).fault_counts() == [("content_filter", 1, listed[1].key, "no 1")]


def test_one_trial_is_found_by_its_key_or_the_beginning_of_it(store: Store) -> None:
    results = store.results(store.runs.get("r"))
    third = list(results)[2]
    assert results.trial(third.key) == third
    assert results.trial(third.key[:10]) == third
    assert list(results.recorded(third)) == ["0"]
    assert results.recorded(third)["0"][1] == Reply("fine")
    with pytest.raises(RunError, match="has no trial 'nobody'"):
        results.trial("nobody")
    with pytest.raises(RunError, match="several trials begin with ''"):
        results.trial("")


def test_unfinished_trials_are_there_too(tmp_path: Path) -> None:
    async def stop_early() -> None:
        async with groundswell.open(tmp_path / "s.db", script=lambda request: "fine") as engine:
            run = engine.run("r", options=RunOptions(limits=Limits(calls=2)))
            with pytest.raises(groundswell.RunStopped):
                async for _ in run.map(halve, [Spec(number) for number in range(4)]):
                    pass

    asyncio.run(stop_early())
    store = Store(tmp_path / "s.db")
    found = list(store.results(store.runs.get("r")))
    store.close_reading()
    assert [result.status for result in found] == ["usable", "usable", "unfinished", "unfinished"]
    assert found[3].result() is None
    assert found[3].fault is None
