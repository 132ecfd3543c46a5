"""The secret game in processes of their own, at an emulator: with memory measured, and ends that were not planned."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any

from groundswell.emulator.server import Threaded
from tests.shows.desk import Desk

MODELS = "openai/leaker:0.2,anthropic/trader"
MESSAGES = 6
POLL = 0.005


class Game(Desk):
    """A folder in which games of so many interactions are played, always the same ones."""

    def __init__(self, folder: Path, emulator: Threaded, interactions: int, *words: str, patience: float = 60) -> None:
        super().__init__(folder, emulator)
        self.interactions, self.patience = interactions, patience
        (folder / "words.txt").write_text(" ".join(islice(code_words(), 10 * interactions)))
        count = ["-n", str(interactions), "--messages", str(MESSAGES), "--secrets", "words.txt", "--seed", "7"]
        self.words = ["play", "-m", MODELS, *count, "--temperature", "0", "--out", "report", *words]
        self.peak = 0.0
        """Megabytes that the largest of the processes had."""

    @property
    def paid(self) -> int:
        """How many different requests were paid for until now."""
        books = self.books
        return int(books["requests"] + books["batch_requests"] - books["paid_again"])

    def play(self) -> Any:
        """The game to its end: the object that it prints."""
        with self._process("--json") as process:
            while process.poll() is None:
                self._look(process)
            out, err = process.communicate()
        assert process.returncode == 0, err
        return json.loads(out)

    def kill_when_paid_for(self, asks: int) -> None:
        """Begin with the game, or go on, and kill the process once so many different requests were paid for."""
        with self._process("--json") as process:
            while self.paid < asks:
                assert process.poll() is None, process.communicate()[1]
                self._look(process)

    @contextmanager
    def _process(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        process = self.start(*self.words, *more)
        self._until = time.monotonic() + self.patience
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def _look(self, process: subprocess.Popen[str]) -> None:
        """Wait a little, and note how much memory the process has had."""
        assert time.monotonic() < self._until
        time.sleep(POLL)
        self.peak = max(self.peak, peak_of(process.pid))

    def report(self) -> dict[str, bytes]:
        """What was written, but for the page, which tells of the run and not of its outcomes alone."""
        names = ("analysis.json", "interactions.csv", "interactions.json", "interactions.parquet")
        assert "</html>" in (self.folder / "report" / "report.html").read_text()
        return {name: (self.folder / "report" / name).read_bytes() for name in names}


def peak_of(pid: int) -> float:
    """The most memory that a process has had, in megabytes; nothing of one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return 0.0 if found is None else int(found[1]) / 1024


def code_words() -> Iterator[str]:
    """Made-up words, all alike: with as many, hardly two requests of a game are the same."""
    syllables = [f"{one}{other}" for one in "bdfgklmnprstvz" for other in "aeiou"]
    return ("".join(word) for word in product(syllables, repeat=4))
