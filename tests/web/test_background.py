"""Runs in the background: what another process holds, what has changed since, and what a stop leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from groundswell import compose
from groundswell.engine.engine import _ending
from groundswell.engine.run import Run
from groundswell.errors import RunNotFound, SettingsError, StoreError, StoreFull
from groundswell.store.runs import Runs
from groundswell.web.background import Background
from tests.web.scene import Api, gated, serving


def run_of(batch: str) -> str:
    return batch.removeprefix("batch-")


@contextmanager
def stored(folder: Path) -> Iterator[Runs]:
    """The runs of a store that no server has open."""
    with compose.look_into(folder / "runs.db") as store:
        assert store is not None
        yield store.runs


def test_what_another_process_leaves_is_taken_over(tmp_path: Path) -> None:
    gate = gated("held")
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = api.create(model="scripted/waits-held")
        api.until(id_, "in_progress")
    gate.open()
    with stored(tmp_path) as runs:
        lock = runs.lock(runs.get(run_of(id_)))  # as another server has it that has yet to stop
    try:
        with serving(tmp_path) as api:
            assert "in progress" in api("POST", f"/batch-simulations/{id_}/resume", 409)["message"]
            assert "in progress" in api("DELETE", f"/batch-simulations/{id_}", 409)["message"]
            lock.release()
            assert api.ended(id_)["status"] == "completed"
    finally:
        lock.release()


def test_what_another_process_cancelled_or_deleted_while_it_waited_is_not_begun(tmp_path: Path) -> None:
    gate = gated("in-line")
    with serving(tmp_path, max_running=1) as api:
        first, cancelled, deleted = (api.create(model="scripted/waits-in-line") for _ in range(3))
        last = api.create()
        api.until(first, "in_progress")
        with stored(tmp_path) as runs:  # as another process has them
            runs.request_cancel(runs.get(run_of(cancelled)))
            runs.delete(runs.get(run_of(deleted)))
        gate.open()
        assert api.ended(last)["status"] == "completed"
        found = api.batch(cancelled)
        assert (found["status"], found["simulations"], found["metadata"]["cancelled"]) == ("failed", [], True)


def test_a_stop_is_in_the_store_before_it_is_acknowledged(tmp_path: Path) -> None:
    """Whatever the run does: here its replies never come, so that it cannot end."""
    gated("never")
    with serving(tmp_path, max_running=1, stop_patience=0.01) as api:
        running, waiting = (api.create(model="scripted/waits-never") for _ in range(2))
        api.until(running, "in_progress")
        for id_ in (running, waiting):
            api("POST", f"/batch-simulations/{id_}/cancel")
        with stored(tmp_path) as runs:
            assert (runs.get(run_of(running)).cancel, runs.get(run_of(waiting)).status) == (True, "stopped")


@pytest.mark.sampled
@pytest.mark.parametrize("status", ["pending", "running", "interrupted"])
def test_a_server_that_is_started_again_does_not_go_on_with_what_was_cancelled(tmp_path: Path, status: str) -> None:
    gate = gated("left")
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = api.create(model="scripted/waits-left")
        while not gate.asked:
            api("GET", "/health")
    asked = gate.asked
    gate.open()
    with stored(tmp_path) as runs:  # as a server leaves it that is killed after it was asked to stop the run
        runs.change(runs.get(run_of(id_)), status=status, cancel=True)
    with serving(tmp_path) as api:
        assert api.ended(id_)["status"] == "failed"
        api.ended(api.create())  # by now the first would have been taken up
        found = api.batch(id_)
        assert (found["cancelled"], found["error"], gate.asked) == (True, "it was cancelled", asked)
        assert {each["status"] for each in found["simulations"]} == {"cancelled"}
        assert api("GET", f"/runs/{run_of(id_)}")["status"] == "stopped"
        api("POST", f"/batch-simulations/{id_}/resume")
        assert api.ended(id_)["status"] == "completed"
        assert api.batch(id_)["cancelled"] is False


def test_a_run_that_another_process_was_asked_to_stop_is_not_taken_over(tmp_path: Path) -> None:
    gate = gated("their-stop")
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = api.create(model="scripted/waits-their-stop")
        while not gate.asked:
            api("GET", "/health")
    asked = gate.asked
    gate.open()
    with stored(tmp_path) as runs:
        lock = runs.lock(runs.get(run_of(id_)))  # another server works on it
        with serving(tmp_path) as api:
            api.until(id_, "in_progress")
            api("POST", f"/batch-simulations/{id_}/cancel")
            assert runs.get(run_of(id_)).cancel
            lock.release()  # it is killed before it stops the run
            assert api.ended(id_)["status"] == "failed"
            while runs.get(run_of(id_)).status != "stopped":
                api("GET", "/health")
            assert gate.asked == asked


def test_a_deletion_that_was_cut_short_is_finished_by_the_next_server(tmp_path: Path) -> None:
    gate = gated("cut-off")
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = api.create(model="scripted/waits-cut-off")
        while not gate.asked:
            api("GET", "/health")
    asked = gate.asked
    gate.open()
    with stored(tmp_path) as runs:
        runs.request_delete(runs.get(run_of(id_)))
    with serving(tmp_path) as api:
        while api("GET", "/batch-simulations"):
            pass
        api.ended(api.create())
        assert gate.asked == asked


def test_a_run_that_is_being_deleted_cannot_be_resumed(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        id_ = api.create()
        api.ended(id_)
        runs = api.server.services.store.runs
        runs.request_delete(runs.get(run_of(id_)))
        told = api("POST", f"/batch-simulations/{id_}/resume", 404, json={"accept_changes": True})
        assert "was deleted" in told["message"]


@pytest.mark.slow
def test_clients_that_delete_the_same_batch_wait_together(tmp_path: Path) -> None:
    gated("together")
    with serving(tmp_path, stop_patience=0.01) as api, ThreadPoolExecutor(8) as clients:
        id_ = api.create(model="scripted/waits-together")
        api.until(id_, "in_progress")
        answers = [clients.submit(api.http.delete, f"/api/batch-simulations/{id_}") for _ in range(8)]
        assert {each.result().status_code for each in answers} <= {200, 404}
        assert api("GET", "/batch-simulations") == []


def test_a_run_whose_code_has_changed_says_so_and_can_be_accepted(tmp_path: Path) -> None:
    gate = gated("changed")
    with serving(tmp_path, stop_patience=0.01) as api:
        id_ = api.create(model="scripted/waits-changed")
        api.until(id_, "in_progress")
    gate.open()
    with stored(tmp_path) as runs:
        record = runs.get(run_of(id_))
        assert record.sources
        runs.change(record, sources=dict.fromkeys(record.sources, "something else"))
    with serving(tmp_path) as api:
        assert api.ended(id_)["status"] == "failed"
        assert "has changed" in api.batch(id_)["error"]
    with serving(tmp_path) as api:
        assert api("GET", f"/runs/{run_of(id_)}")["status"] == "failed"
        api("POST", f"/batch-simulations/{id_}/resume", json={"accept_changes": True})
        assert api.ended(id_)["status"] == "completed"


def test_a_budget_that_is_used_up_ends_a_batch_and_can_be_seen(api: Api) -> None:
    id_ = api.create(deadline=1e-6)
    assert api.ended(id_)["status"] in ("failed", "partial")
    assert "time limit" in api.batch(id_)["error"]


def test_the_same_seed_finds_the_same(api: Api) -> None:
    found = []
    for seed in (1, 1, 2):
        id_ = api.create(seed=seed)
        api.ended(id_)
        found.append([(each["entity_ids"], each["content"]) for each in api.batch(id_)["simulations"]])
    assert found[0] == found[1] != found[2]


def test_runs_of_a_command_are_not_taken_up(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        runs = api.server.services.store.runs
        planned = runs.create(None, 0, driver="nowhere.at:all", settings="{}")
    with serving(tmp_path) as api:
        assert api("GET", f"/runs/{planned.id}")["status"] == "pending"
        assert api("GET", "/health")["running"] == 0


def test_a_store_of_somebody_else_runs_no_code_when_a_server_takes_up_its_runs(tmp_path: Path) -> None:
    mark, script = tmp_path / "mark", tmp_path / "evil.py"
    script.write_text(f"open({str(mark)!r}, 'w')\nasync def driver(run, settings): ...\n")
    with serving(tmp_path) as api:
        runs = api.server.services.store.runs
        planned = runs.create(None, 0, driver=f"{script}:driver", settings="{}", options={"unattended": True})
    with serving(tmp_path) as api:
        assert list(api.events(f"/runs/{planned.id}"))[-1][1]["status"] == "failed"
        assert f"groundswell trust {script}" in api("GET", f"/runs/{planned.id}")["error"]
    assert not mark.exists()


def test_a_store_that_cannot_be_opened_is_told_to_whoever_starts(tmp_path: Path) -> None:
    background = Background(lambda: compose.open("mysql://nowhere"), running=1, waiting=1)
    with pytest.raises(SettingsError, match="--store"):
        background.start()


@pytest.mark.parametrize("error", [StoreError("/srv/runs.db: disk I/O error"), StoreFull("no space for /srv/runs.db")])
def test_what_the_engine_writes_down_does_not_say_where_the_store_is(error: StoreError) -> None:
    status, told = _ending(cast(Run, None), error)
    assert (status, "/srv" in str(told), "store" in str(told)) == ("failed", False, True)


def test_where_the_store_is_is_not_told(tmp_path: Path) -> None:
    gate = gated("no-place")
    with serving(tmp_path) as api:
        background = api.server.services.background
        id_ = api.create(model="scripted/waits-no-place")
        api.until(id_, "in_progress")
        background._write_down(run_of(id_), StoreError(f"{tmp_path}/runs.db: disk I/O error"))
        assert "the store could not be read or written" in api.batch(id_)["error"]
        gone = background.store.runs.get(run_of(api.create()))
        api("DELETE", f"/batch-simulations/batch-{gone.id}")
        with pytest.raises(RunNotFound) as found:
            asyncio.run(background.resume(gone))
        assert str(tmp_path) not in str(found.value)
        gate.open()
