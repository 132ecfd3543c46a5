"""The same on the command line: what is said, the exit status, and what the file holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.emulator.faults import Rule
from groundswell.emulator.server import Threaded
from tests.shows.desk import ANTHROPIC, OPENAI, Desk
from tests.troubles.table import every_line, line, order

ROWS = 12
MAP = ["map", "t.csv", "-p", "Say {word}", "--temperature", "0", "--name", "rows"]
QUICK = [word for name in ("openai", "anthropic") for word in ("--account", f"{name}.batch_poll=0.02")]


@pytest.fixture
def whole(tmp_path: Path, emulator: Threaded) -> dict[str, bytes]:
    """What a live run writes, by the model."""
    written = {}
    for model in (OPENAI, ANTHROPIC):
        desk = Desk(tmp_path / model.partition("/")[0], emulator, ROWS)
        desk(*MAP, "-m", model)
        written[model] = desk.written
    emulator.reset()
    return written


def test_an_account_without_batches(tmp_path: Path, emulator: Threaded, whole: dict[str, bytes]) -> None:
    emulator.set_faults(*order("404", None))
    desk = Desk(tmp_path / "here", emulator, ROWS)
    said = desk(*MAP, "-m", OPENAI, "--via", "batch", "-v", *QUICK)
    assert "accepts no batches" in said.stderr
    assert desk.written == whole[OPENAI]
    assert (desk.books["requests"], desk.books["batch_requests"], desk.books["paid_again"]) == (ROWS, 0, 0)


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_no_credit_while_a_batch_is_worked_on(
    tmp_path: Path, emulator: Threaded, whole: dict[str, bytes], model: str
) -> None:
    emulator.set_faults(*every_line("low-balance", 4))
    desk = Desk(tmp_path / "here", emulator, ROWS)
    said = desk.json(*MAP, "-m", model, "--via", "batch", *QUICK, status=1)
    assert said["status"] == "failed"
    assert "Fix this, then resume the run" in said["error"]
    assert desk.books["batch_requests"] == ROWS - 4
    said = desk.json("runs", "resume", "rows", *QUICK)
    assert (said["status"], said["trials"]["usable"]) == ("completed", ROWS)
    assert (desk.books["requests"] + desk.books["batch_requests"], desk.books["paid_again"]) == (ROWS, 0)
    desk(*MAP, "-m", model, "--via", "batch", *QUICK)
    assert desk.written == whole[model]
    assert desk.books["requests"] + desk.books["batch_requests"] == ROWS, "the file costs nothing"


def test_two_rows_are_missing(tmp_path: Path, emulator: Threaded, whole: dict[str, bytes]) -> None:
    emulator.set_faults(*line("line-400"), Rule(fault="batch-failed", times=1))
    desk = Desk(tmp_path / "here", emulator, ROWS)
    said = desk.json(*MAP, "-m", OPENAI, "--via", "batch", *QUICK, status=3)
    assert said["trials"] == {"planned": ROWS, "usable": ROWS - 2, "missing": 2}
    assert (said["asks"]["sent"], said["asks"]["failed"]) == (ROWS, 2)
    assert len(set(desk.written.splitlines()) - set(whole[OPENAI].splitlines())) == 2
    assert (desk.books["batch_requests"], desk.books["paid_again"]) == (ROWS - 2, 0)
