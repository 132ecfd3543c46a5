"""A server whose store is deleted, damaged, or on a disk that is full: 503 in the envelope, and no paths."""

from __future__ import annotations

import errno
import gc
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from groundswell.errors import StoreRemoved
from groundswell.store import results as stored_results
from tests.patience import PATIENCE
from tests.web.scene import REQUEST, Api, gated, serving

ROUTES = [
    ("GET", "/batch-simulations"),
    ("GET", "/batch-simulations/batch-RUN"),
    ("GET", "/simulations?batch_id=batch-RUN"),
    ("GET", "/runs"),
    ("GET", "/runs/RUN"),
    ("GET", "/runs/RUN/export"),
    ("GET", "/runs/RUN/events"),
    ("DELETE", "/runs/RUN"),
    ("GET", "/entities"),
    ("GET", "/entities/entity-id-1"),
    ("GET", "/entity-types"),
    ("POST", "/batch-simulations"),
]


def check_refused(api: Api, method: str, path: str, store: Path) -> None:
    how: dict[str, Any] = {"json": REQUEST} if method == "POST" else {}
    told = api.http.request(method, f"/api{path}", **how)
    assert told.status_code == 503, f"{method} {path}: {told.status_code} {told.text}"
    assert told.json() == {
        "status": "error",
        "message": "the store is not available; see the server log for the reason",
        "errors": [],
    }
    assert str(store) not in told.text


def delete(store: Path) -> None:
    for each in store.parent.glob("runs.db*"):
        each.unlink()


def overwrite(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE runs SET settings = settings || ' '")
        connection.execute("UPDATE documents SET body = body || ' '")
        connection.commit()


@pytest.mark.sampled
@pytest.mark.parametrize("harm", [delete, overwrite], ids=["deleted", "damaged"])
def test_every_route_says_that_the_store_cannot_be_used(
    tmp_path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "runs.db"
    at_the_end = pytest.raises(StoreRemoved, match="were saved in") if harm is delete else nullcontext()
    with at_the_end, serving(tmp_path) as api:
        run = api.create().removeprefix("batch-")
        api.ended(f"batch-{run}")
        harm(store)
        for method, path in ROUTES:
            if harm is delete or path != "/entity-types":
                if harm is overwrite and method == "POST":
                    continue
                check_refused(api, method, path.replace("RUN", run), store)
        assert api("GET", "/health")["status"] == "ok"
        assert store.exists() == (harm is overwrite)
    del at_the_end, api  # the error would keep the tasks
    gc.collect()
    assert "Task was destroyed" not in caplog.text, "all tasks of the server have ended"


def test_a_run_and_its_events_end_when_the_store_is_deleted(tmp_path: Path) -> None:
    gate = gated("deleted-store")
    with suppress(StoreRemoved), serving(tmp_path) as api:  # raised at the end if nothing was left to write before
        id_ = api.create(model="scripted/waits-deleted-store")
        events = api.events(f"/batch-simulations/{id_}")
        next(events)
        delete(tmp_path / "runs.db")
        assert list(events)[-1] == (
            "end",
            {"status": "error", "message": "the store is not available; see the server log for the reason"},
        )
        gate.open()
        until_still(api)
    [saved] = tmp_path.glob("runs.db.rescued-*[0-9]")
    with closing(sqlite3.connect(saved)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def until_still(api: Api) -> None:
    """Nothing is worked on any more."""
    end = time.monotonic() + PATIENCE
    while api("GET", "/health")["running"]:
        assert time.monotonic() < end


def test_a_temporary_file_that_does_not_fit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/secret/tmp")

    run = api.create().removeprefix("batch-")
    api.ended(f"batch-{run}")
    monkeypatch.setattr(stored_results, "write_trials", full)
    check_refused(api, "GET", f"/runs/{run}/export?format=jsonl", Path("/secret"))
