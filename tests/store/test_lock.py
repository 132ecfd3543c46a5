"""A lock per run, which dies with its process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groundswell.errors import RunBusy, StoreError
from groundswell.store.lock import RunLock, is_held

HOLD = """
import sys
from pathlib import Path
from groundswell.store.lock import RunLock
lock = RunLock(Path(sys.argv[1]), "abc", "the run")
print("held", flush=True)
sys.stdin.readline()
lock.release()
"""


@contextmanager
def holder(database: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock, until it reads a line."""
    command = [sys.executable, "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_another_process_is_refused_and_told_who_works_on_it(tmp_path: Path) -> None:
    database = tmp_path / "s.db"
    with holder(database) as process:
        with pytest.raises(RunBusy, match=rf"'the run' is open in process {process.pid}: .*cancel abc"):
            RunLock(database, "abc", "the run")
        assert is_held(database, "abc")
        RunLock(database, "other", "another run of the same store").release()
        process.communicate("go\n")
    assert process.returncode == 0
    assert not is_held(database, "abc")
    RunLock(database, "abc", "the run").release()


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    database = tmp_path / "s.db"
    with holder(database) as process:
        process.kill()
        process.wait()
    assert (tmp_path / "s.db.abc.lock").exists(), "a killed process cannot tidy up"
    assert not is_held(database, "abc")
    lock = RunLock(database, "abc", "the run")
    assert (tmp_path / "s.db.abc.lock").read_text() == str(os.getpid())
    lock.release()


def test_a_stale_file_does_not_matter(tmp_path: Path) -> None:
    stale = tmp_path / "s.db.abc.lock"
    stale.write_text("4194304123")
    assert not is_held(tmp_path / "s.db", "abc")
    lock = RunLock(tmp_path / "s.db", "abc", "the run")
    assert stale.read_text() == str(os.getpid())
    lock.release()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / "s.db.abc.lock"
    mine.write_text("mine")
    link.symlink_to(mine)
    assert not is_held(tmp_path / "s.db", "abc")
    with pytest.raises(StoreError, match="is a symbolic link, not a lock file: remove it"):
        RunLock(tmp_path / "s.db", "abc", "the run")
    assert mine.read_text() == "mine"


def test_a_released_lock_leaves_nothing_and_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(3):
        lock = RunLock(tmp_path / "s.db", "abc", "the run")
        with pytest.raises(RunBusy):
            RunLock(tmp_path / "s.db", "abc", "the run")
        lock.release()
        lock.release()
        assert list(tmp_path.iterdir()) == []


def test_looking_whether_a_lock_is_held_does_not_keep_others_from_taking_it(tmp_path: Path) -> None:
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            is_held(tmp_path / "s.db", "abc")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(200):
            RunLock(tmp_path / "s.db", "abc", "the run").release()
    finally:
        over.set()
        looking.join()


def test_a_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / "s.db", "abc", "the run")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.release()
        RunLock(tmp_path / "s.db", "abc", "the run").release()
        child.communicate(b"\n")
