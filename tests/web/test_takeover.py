"""Two servers on one PostgreSQL store: one goes on with the batches of the other when that is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from tests.stores import new_database, rows
from tests.web.scene import serving

pytestmark = pytest.mark.slow
PLAY = "/experiments/secret-game/play"
GAME: dict[str, Any] = {
    "models": ["openai/gpt-4o-mini"],
    "interactions": 3,
    "messages": 2,
    "seed": 3,
    "via": "batch",
    "name": "taken-over",
}


def test_batches_of_a_server_that_was_killed_are_collected_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_database()
    monkeypatch.setattr("groundswell.web.background.SEARCH_EVERY", 0.2)
    with running(Settings()) as emulator:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{emulator.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        with serving(tmp_path, store=store) as other:
            command = ["serve", "--port", "0", "--store", store]
            server = subprocess.Popen(
                [sys.executable, "-m", "groundswell", *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=dict(os.environ),
            )
            try:
                assert server.stdout is not None
                address = next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
                made = httpx.post(f"{address}/api{PLAY}", json=GAME)
                assert made.status_code == 201, made.text
                id_ = made.json()["data"]["run_id"]
                while not rows(store, "SELECT 1 FROM waves WHERE receipt IS NOT NULL"):
                    time.sleep(0.05)
            finally:
                os.kill(server.pid, signal.SIGKILL)
                server.communicate()
            while other("GET", f"/runs/{id_}")["status"] not in ("completed", "partial", "failed"):
                emulator.advance(300)
                time.sleep(0.2)
            shown = other("GET", f"/runs/{id_}")
        books = emulator.ledger()["totals"]
    assert (shown["status"], shown["trials"]["usable"]) == ("completed", 3)
    [(asks,)] = rows(store, "SELECT count(*) FROM asks WHERE wave IS NOT NULL")
    assert (books["batch_requests"], books["requests"]) == (asks, 0), "each request was sent, and paid, once"
