"""A thousand conversations between two providers, in waves at half price: the same results as live."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from tests.shows.desk import Desk

DRIVER = f"{Path(__file__).with_name('exchange.py')}:exchange"
OFTEN = ["--account", "openai.batch_poll=0.1", "--account", "anthropic.batch_poll=0.1"]
TALKS, MESSAGES = 1000, 6
A_CENT = 0.01


@pytest.fixture(scope="module")
def _quick() -> Iterator[Threaded]:
    with running(Settings(speed=2000)) as emulator:
        yield emulator


@pytest.fixture
def emulator(_quick: Threaded) -> Threaded:
    """An emulator on whose clock a batch of ten minutes takes a third of a second."""
    _quick.reset()
    return _quick


def batches(desk: Desk) -> list[tuple[str, int]]:
    """The batches that were sent, in their order: by which transport, and of how many requests."""
    connection = sqlite3.connect(desk.folder / "runs.db")
    rows: list[tuple[str, int]] = connection.execute("SELECT transport, size FROM waves ORDER BY id").fetchall()
    connection.close()
    return rows


def run(desk: Desk, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.json("run", DRIVER, "--set", f"talks={TALKS}", *OFTEN, *words)
    assert found["trials"] == {"planned": TALKS, "usable": TALKS, "missing": 0}
    assert found["asks"]["sent"] == TALKS * MESSAGES
    return found


@pytest.mark.slow
def test_a_thousand_conversations_in_waves_cost_half_and_say_the_same(tmp_path: Path, emulator: Threaded) -> None:
    by_batch = Desk(tmp_path / "batch", emulator)
    half = run(by_batch, "--via", "batch")
    books = emulator.ledger()["totals"]
    assert (books["batch_requests"], books["requests"], books["paid_again"]) == (TALKS * MESSAGES, 0, 0)
    assert batches(by_batch) == [("openai_batch", TALKS), ("anthropic_batch", TALKS)] * (MESSAGES // 2)

    emulator.reset()
    live = Desk(tmp_path / "live", emulator)
    whole = run(live, "--via", "live")
    assert emulator.ledger()["totals"]["batch_requests"] == 0
    assert not batches(live)
    assert half["analysis"] == whole["analysis"]
    paid = emulator.ledger()["totals"]["dollars"]
    assert abs(books["dollars"] - paid / 2) < A_CENT / 2
    assert abs(half["cost"]["usd"] - whole["cost"]["usd"] / 2) < A_CENT / 2
    assert half["cost"]["usd"] == pytest.approx(books["dollars"])
    assert whole["cost"]["usd"] == pytest.approx(paid)
    assert paid > 0.5


def test_waves_are_logged_as_they_go(tmp_path: Path, emulator: Threaded) -> None:
    desk = Desk(tmp_path / "logged", emulator)
    said = desk("run", DRIVER, "--set", "talks=5", "--set", "messages=2", "--via", "batch", "-v", *OFTEN).stderr
    keys = re.search(r"^Wave 1 conversations: (\w+(?:, \w+){4})$", said, re.MULTILINE)
    assert keys is not None
    assert f"Wave 2 conversations: {keys[1]}\n" in said
    assert "Processing wave 1 with 5 requests for Agent 1 (first messages)\n" in said
    assert "Processing wave 2 with 5 requests for Agent 2 (responses)\n" in said
    ended = re.findall(r"^Wave (\d) completed in (\d+\.\d\d) seconds, avg (\d+\.\d\d) sec per message$", said, re.M)
    assert [number for number, _, _ in ended] == ["1", "2"]
    assert "openai/gpt-4o-mini: 5 requests by openai_batch: saves about" in said


def test_live_waves_are_logged_too(tmp_path: Path, emulator: Threaded) -> None:
    desk = Desk(tmp_path / "live waves", emulator)
    words = ["--set", "talks=9", "--set", "messages=3", "--schedule", "waves", "--max-concurrent", "2", "-v"]
    said = desk("run", DRIVER, *words).stderr
    begun = re.findall(r"^Processing wave (\d) with 9 requests for (Agent \d) \((.+)\)$", said, re.MULTILINE)
    assert begun == [("1", "Agent 1", "first messages"), ("2", "Agent 2", "responses"), ("3", "Agent 1", "responses")]
    assert re.findall(r"^Wave (\d) completed", said, re.MULTILINE) == ["1", "2", "3"]


@pytest.mark.slow
def test_groups_that_begin_with_different_models_go_on_side_by_side(tmp_path: Path, emulator: Threaded) -> None:
    desk = Desk(tmp_path / "balanced", emulator)
    words = ["--set", "talks=200", "--set", "balanced=true", "--via", "batch", "-v", *OFTEN]
    said = desk("run", DRIVER, *words).stderr
    assert batches(desk).count(("openai_batch", 100)) == batches(desk).count(("anthropic_batch", 100)) == MESSAGES
    turns = re.findall(r"^(Processing wave|Wave \d+ completed)", said, re.MULTILINE)
    assert turns[:2] == ["Processing wave"] * 2
    under_way, most = 0, 0
    for turn in turns:
        under_way += 1 if turn.startswith("Processing") else -1
        most = max(most, under_way)
    assert most == 2
