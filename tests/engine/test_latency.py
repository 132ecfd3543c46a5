"""The journal holds how long each request took."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import groundswell
from groundswell import Fault, FaultKind, Reply, Request, RetryPolicy, Run, RunOptions, Trial, program
from groundswell.engine.stored import StoredRun
from groundswell.program.trial import function
from groundswell.store.journal import Store
from groundswell.testing.clock import FakeClock, pause
from groundswell.transports.scripted import Scripted
from tests.engine.batch_stage import TAKES, Stage, talks, via
from tests.engine.stage import said

RETRY = RetryPolicy(attempts=2, first_wait=60.0)


@function("latency/double")
def double(number: int) -> int:
    return 2 * number


@program("latency/talk")
async def talk(trial: Trial, spec: str) -> str:
    await trial.call(double, 2)
    return (await trial.ask("m", spec.strip(), temperature=0, max_tokens=10)).text


class Slow:
    """A model that takes as many seconds as the request says, and fails at first if it says so."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._failed: set[str] = set()

    async def __call__(self, request: Request) -> Reply | Fault:
        words = said(request)
        seconds, *mishap = words.split()
        fails = bool(mishap) and words not in self._failed
        await pause(self._clock, 30.0 if fails else float(seconds))
        self._failed.add(words)
        return Fault(FaultKind.SERVER, "busy") if fails or mishap == ["always"] else Reply("done")


def seconds_of(store: Path, run: str) -> list[float | None]:
    """The seconds of all asks of a run, calls included, by trial and path."""
    opened = Store(store)
    record = opened.runs.get(run)
    results = opened.results(record)
    found = [entry.seconds for result in results for _, entry in sorted(results.recorded(result.row).items())]
    opened.close_reading()
    return found


def hold(store: Path, name: str, *specs: str) -> None:
    clock = FakeClock()

    async def main() -> None:
        async with groundswell.open(store, transport=Scripted(Slow(clock), cached=True), clock=clock) as engine:
            clock.watch(engine.store)  # type: ignore[arg-type]  # a store of ours has a writing thread
            async for _ in engine.run(name, options=RunOptions(retry=RETRY)).map(talk, specs):
                pass

    clock.run(main())


def test_each_request_has_its_own_time(tmp_path: Path) -> None:
    hold(tmp_path / "s.db", "r", "2.5", "0.25")
    assert seconds_of(tmp_path / "s.db", "r") == [None, 2.5, None, 0.25], "a call has none"


def test_only_the_attempt_that_was_answered_counts(tmp_path: Path) -> None:
    hold(tmp_path / "s.db", "r", "2.5 once", "4.0 always")
    assert seconds_of(tmp_path / "s.db", "r") == [None, pytest.approx(2.5), None, pytest.approx(4.0)], (
        "a fault has the time of its last attempt"
    )


def test_cache_hits_and_requests_that_joined_another_have_no_time(tmp_path: Path) -> None:
    hold(tmp_path / "s.db", "first", "2.5")
    hold(tmp_path / "s.db", "second", "2.5", "1.0", "1.0 ")
    assert seconds_of(tmp_path / "s.db", "second") == [None, None, None, 1.0, None, None]


def test_a_batch_counts_from_its_sending_also_in_another_session(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.session(talks(2, "m", "m"), at=[(TAKES / 4, _interrupt)])
    stage.now += 5 * TAKES
    assert stage.session(talks(2, "m", "m"), via()).error is None
    assert seconds_of(stage.path, "story") == [5.25 * TAKES, TAKES] * 2


def _interrupt(run: Run) -> None:
    run.stop("interrupted", "enough")


def test_transcripts_show_the_time(tmp_path: Path) -> None:
    hold(tmp_path / "s.db", "r", "2.5")
    store = Store(tmp_path / "s.db")
    record = store.runs.get("r")
    (result,) = results = store.results(record)
    assert [exchange.seconds for exchange in StoredRun(record, results).transcript(result.key).exchanges] == [None, 2.5]
    store.close_reading()


def test_verification_and_resume_do_not_depend_on_the_time(tmp_path: Path) -> None:
    """Rows of older releases have no time. Here, some have no checksum either."""
    store = tmp_path / "s.db"
    hold(store, "r", "2.5")
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE asks SET seconds = NULL, checksum = NULL")
    hold(store, "r", "2.5", "1.0")
    assert seconds_of(store, "r") == [None, None, None, 1.0]

    async def verify() -> int:
        async with groundswell.open(store) as engine:
            return (await engine.verify("r")).same

    assert asyncio.run(verify()) == 2
