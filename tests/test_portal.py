"""The engine for code that is not async."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Reply, Request, RunBusy, RunError, RunStopped
from groundswell.portal import SyncEngine, SyncRun
from tests.engine.scenario import counters
from tests.engine.stage import Flaky, echo, one, said, until
from tests.engine.test_drives import Wanted, collect_all


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread.name for thread in threading.enumerate() if thread not in before]
    assert [name for name in left if name.startswith("groundswell")] == []


def test_map_and_submit(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        run = engine.run("story", seed=3)
        assert [outcome.result for outcome in run.map(one, ["a", "b"])] == ["a!", "b!"]
        assert run.submit(one, "c", key="mine").result == "c!"
    assert counters(store).usable == 3


def test_leaving_a_map_early(store: Path) -> None:
    with groundswell.open_sync(store, script=echo, max_concurrent=1) as engine:
        for outcome in engine.run("story").map(one, [str(number) for number in range(500)]):
            assert outcome.result == "0!"
            break
    assert counters(store).sent < 500
    assert counters(store).planned == counters(store).settled


def test_an_iterator_that_outlives_its_engine(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        outcomes = engine.run("story").map(one, ["a", "b", "c"])
        assert next(outcomes).result == "a!"
    del outcomes
    gc.collect()


def test_drive(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        assert engine.drive(collect_all, Wanted(["a"]), name="story").analysis == ["a!"]


def test_errors_are_raised_in_the_caller(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        engine.run("story")
        with pytest.raises(RunError, match="started with seed 0, not 1"):
            engine.run("story", seed=1)


def test_a_run_that_is_stopped(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        run = engine.run("story")
        run.run.loop.call_soon_threadsafe(run.run.stop, "budget", "spent")
        with pytest.raises(RunStopped, match="spent"):
            run.submit(one, "a")


def test_what_the_caller_raises_ends_the_run(store: Path) -> None:
    def break_off() -> None:
        with groundswell.open_sync(store, script=echo) as engine:
            for _ in engine.run("story").map(one, ["a", "b"]):
                raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        break_off()
    with groundswell.open_sync(store, script=echo) as engine:
        assert [outcome.result for outcome in engine.run("story").map(one, ["a", "b"])] == ["a!", "b!"]


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    with pytest.raises(groundswell.StoreError):
        groundswell.open_sync(tmp_path / "no" / "folder" / "runs.db")


WORDS = ["a", "b", "c", "d", "e"]


class Interrupting:
    """A model that raises Ctrl-C at its third request and answers afterwards.

    If it hangs, this request is never answered, and Ctrl-C is raised again.
    """

    def __init__(self, *, hangs: bool = False) -> None:
        self.asked: list[str] = []
        self.run: SyncRun | None = None
        self._hangs = hangs

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(said(request))
        if len(self.asked) == 3:
            press_ctrl_c()
            await until(lambda: self.run is not None and self.run.run.stopping)
            if self._hangs:
                press_ctrl_c()
                await asyncio.get_running_loop().create_future()
        return echo(request)


def press_ctrl_c() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def cell(engine: SyncEngine, model: Interrupting | None = None) -> list[str | None]:
    """The content of a notebook cell."""
    run = engine.run("story")
    if model is not None:
        model.run = run
    return [outcome.result for outcome in run.map(one, WORDS)]


@pytest.mark.parametrize(
    ("hangs", "asked"), [(False, WORDS), (True, ["a", "b", "c", "c", "d", "e"])], ids=["once", "twice"]
)
def test_a_cell_that_was_interrupted_goes_on_when_it_is_run_again(store: Path, hangs: bool, asked: list[str]) -> None:
    model = Interrupting(hangs=hangs)
    with groundswell.open_sync(store, script=model, max_concurrent=1) as engine:
        with pytest.raises(KeyboardInterrupt):
            cell(engine, model)
        assert engine.stored("story").record.status == "interrupted"
        assert cell(engine) == ["a!", "b!", "c!", "d!", "e!"]
    assert model.asked == asked
    assert counters(store).planned == counters(store).usable == 5


class Jumpy:
    """A loop that raises Ctrl-C at the moment when it is given work, the first and the third time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls = 0

    def call_soon_threadsafe(self, then: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(then)
        self._calls += 1
        if self._calls in (1, 3):
            raise KeyboardInterrupt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


def test_an_interrupt_while_work_is_handed_over_ends_it_too(store: Path) -> None:
    async def hang(request: Request) -> Reply:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    with groundswell.open_sync(store, script=hang) as engine:
        run = engine.run("story")
        engine._loop = Jumpy(engine._loop)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):  # the first ends the work, the second the wait for replies in flight
            run.submit(one, "a", key="a")
    assert counters(store).usable == 0


def test_an_interrupt_while_one_trial_is_waited_for(store: Path) -> None:
    model = Interrupting()
    with groundswell.open_sync(store, script=model) as engine:
        model.run = run = engine.run("story")
        for word in ("a", "b"):
            run.submit(one, word, key=word)
        with pytest.raises(KeyboardInterrupt):
            run.submit(one, "c", key="c")
        with pytest.raises(RunStopped, match="has ended: open it again"):
            run.submit(one, "d", key="d")
        assert engine.run("story").submit(one, "c", key="c").result == "c!"
    assert model.asked == ["a", "b", "c"]


def test_an_interrupted_block_leaves_the_run_to_the_next_engine(store: Path) -> None:
    model = Interrupting()

    def whole() -> list[str | None]:
        with groundswell.open_sync(store, script=model, max_concurrent=1) as engine:
            return cell(engine, model)

    with pytest.raises(KeyboardInterrupt):
        whole()
    assert whole() == ["a!", "b!", "c!", "d!", "e!"]
    assert model.asked == WORDS


def test_a_cell_that_is_run_again_asks_for_nothing(store: Path) -> None:
    model = Flaky()
    with groundswell.open_sync(store, script=model) as engine:
        assert cell(engine) == cell(engine) == ["a!", "b!", "c!", "d!", "e!"]
        assert engine.stored("story").record.status == "running"
    assert model.asked == WORDS
    assert counters(store).planned == 5


def test_a_cell_that_was_left_in_its_loop_goes_on_in_order(store: Path) -> None:
    with groundswell.open_sync(store, script=echo, max_concurrent=1) as engine:
        outcomes = engine.run("story").map(one, WORDS)
        assert next(outcomes).result == "a!"
        assert cell(engine) == ["a!", "b!", "c!", "d!", "e!"]
        with pytest.raises(RunStopped):
            list(outcomes)


def test_an_engine_that_was_never_closed_gives_its_runs_away(store: Path) -> None:
    forgotten = groundswell.open_sync(store, script=echo)
    run = forgotten.run("story")
    run.submit(one, "a", key="a")
    with groundswell.open_sync(store, script=lambda request: "new") as engine:
        assert engine.run("story").submit(one, "a", key="a").result == "a!"
    forgotten.close()
    forgotten.close()


def test_a_run_that_another_thread_waits_for_is_not_taken_away(store: Path) -> None:
    asked, answer = threading.Event(), threading.Event()

    async def slow(request: Request) -> Reply:
        asked.set()
        await until(answer.is_set)
        return echo(request)

    with groundswell.open_sync(store, script=slow) as engine:
        run = engine.run("story")
        worker = threading.Thread(target=lambda: run.submit(one, "a", key="a"))
        worker.start()
        asked.wait()
        with groundswell.open_sync(store, script=echo) as other, pytest.raises(RunBusy):
            other.run("story")
        with pytest.raises(RunBusy, match="is already open in this engine"):
            engine.run("story")
        answer.set()
        worker.join()
        assert run.summary.trials.usable == 1


def test_a_run_that_ends_with_its_block(store: Path) -> None:
    with groundswell.open_sync(store, script=echo) as engine:
        with engine.run("story") as run:
            run.submit(one, "a", key="a")
        assert run.summary.status == "completed"
        assert engine.stored("story").summary == run.summary
        with pytest.raises(RunStopped, match="has ended"):
            list(run.map(one, ["b"]))
    run.end()


def test_what_was_found_can_be_read_in_the_middle_and_afterwards(store: Path) -> None:
    pytest.importorskip("polars")
    with groundswell.open_sync(store, script=echo) as engine:
        run = engine.run("story", seed=5)
        for number, outcome in enumerate(run.map(one, WORDS), 1):
            results = run.frame().filter(key=outcome.key)["result"].to_list()
            assert (results, run.frame()["result"].count() >= number) == ([outcome.result], True)
        talk = run.transcript(outcome)
    assert run.frame()["spec"].to_list() == WORDS
    assert list(run.frame(pandas=True)["spec"]) == WORDS
    assert str(run.transcript(outcome.key[:12])) == str(talk)
    assert "user: e" in str(talk)
    assert repr(run) == "<run 'story': completed, 5 usable of 5 trials>"
    assert "5 usable of 5 planned" in run._repr_html_()
