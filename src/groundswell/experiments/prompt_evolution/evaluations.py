"""The log of evaluations: one record per evaluated genome, in a JSON Lines file."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from groundswell.engine.events import DriverReported, Event, RunEnded

COUNTS = ("birth", "problems", "asks", "asks_in_all", "saved_by_racing", "saved_as_known", "from_cache")
"""Figures that are integers."""
log = logging.getLogger("groundswell.prompt_evolution")


class Evaluations:
    """A listener that writes the figures of each birth to `<folder>/<run>.jsonl`, or to `<folder>/<name>`.

    When a run is resumed, records that the file already has are kept, with their original timing. A disk error is
    logged once, and the evolution continues.
    """

    def __init__(self, folder: Path, name: str = "") -> None:
        self._folder = folder
        self._name = name
        self._file: IO[bytes] | None = None
        self._had: set[tuple[str, str, float]] = set()
        self._failed = False

    def path(self, run: str) -> Path:
        """The file of a run."""
        return self._folder / (self._name or f"{run}.jsonl")

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        if isinstance(event, RunEnded):
            self.close()
        if not isinstance(event, DriverReported) or "birth" not in event.figures or self._failed:
            return
        try:
            self._take(event)
        except OSError as error:
            self._failed = True
            log.warning(
                "%s: cannot write evaluations: %s. The evolution continues without them.", self.path(event.run), error
            )
            self.close()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _take(self, event: DriverReported) -> None:
        if self._file is None:
            self._file = self._opened(self.path(event.run))
        which = (event.run, event.who, event.figures["birth"])
        if which not in self._had:
            self._had.add(which)
            figures = {name: round(value) if name in COUNTS else value for name, value in event.figures.items()}
            _add(self._file, {"run": event.run, "search": event.who, "at": event.at, **figures})

    def _opened(self, path: Path) -> IO[bytes]:
        """Open the file, remove an incomplete last line, and read which records it has."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()  # a link may point anywhere
        file = open(path, "a+b", buffering=0, opener=_not_following)  # noqa: SIM115  it stays open
        file.seek(0)
        held = file.read()
        whole = held[: held.rfind(b"\n") + 1]
        file.truncate(len(whole))
        for line in whole.splitlines():
            with suppress(msgspec.DecodeError):  # lines of other programs stay as they are
                had = msgspec.json.decode(line, type=_Which)
                self._had.add((had.run, had.search, had.birth))
        return file


def _not_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


class _Which(msgspec.Struct):
    run: str
    search: str
    birth: float


def _add(file: IO[bytes], record: dict[str, object]) -> None:
    """Write a complete line, or nothing."""
    line = msgspec.json.encode(record) + b"\n"
    before = file.seek(0, 2)
    try:
        if file.write(line) != len(line):
            raise OSError("no space left on the device")
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise
