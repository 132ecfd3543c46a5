"""One record for each evaluation of a genome, in a file of lines of JSON; and how fast a run was."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from groundswell.engine.events import DriverReported, Event
from groundswell.engine.summary import Summary
from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.settings import Evolution

COUNTS = ("birth", "problems", "asks", "asks_in_all", "saved_by_racing", "saved_as_known", "from_cache")
"""Figures that are whole numbers."""
log = logging.getLogger("groundswell.prompt_evolution")


class Evaluations:
    """A listener that writes what a search tells after each birth: `<folder>/<run>.jsonl`.

    When a run goes on, what the file has of it already is not written again, so that the seconds of an evaluation are
    those that it took. A disk that fails is told once, and the evolution goes on.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._had: set[tuple[str, str, float]] = set()
        self._failed = False

    def path(self, run: str) -> Path:
        """The file of a run."""
        return self._folder / f"{run}.jsonl"

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        if not isinstance(event, DriverReported) or "birth" not in event.figures or self._failed:
            return
        try:
            self._take(event)
        except OSError as error:
            self._failed = True
            log.warning(
                "%s: evaluations are not written any more: %s; the evolution goes on", self.path(event.run), error
            )
            self.close()

    def close(self) -> None:
        """Let go of the file."""
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
        """The file, without a last line that is not whole, and what it has."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()  # it may be somebody else's, and lead anywhere
        file = open(path, "a+b", buffering=0, opener=_not_following)  # noqa: SIM115  it stays open
        file.seek(0)
        held = file.read()
        whole = held[: held.rfind(b"\n") + 1]
        file.truncate(len(whole))
        for line in whole.splitlines():
            with suppress(msgspec.DecodeError):  # somebody else's line stays as it is
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
    """Write a line, all of it or nothing."""
    line = msgspec.json.encode(record) + b"\n"
    before = file.seek(0, 2)
    try:
        if file.write(line) != len(line):
            raise OSError("there is no room for it")
    except OSError:
        with suppress(OSError):
            file.truncate(before)
        raise


class Performance(msgspec.Struct, frozen=True):
    """How fast a run was, and what it could do without. Asks and savings are those of the evolution itself."""

    seconds: float
    """Of all sessions of the run."""
    problems: int
    """That prompts met, in all searches and on all sets."""
    problems_per_second: float
    api_calls: int
    api_efficiency: float
    """Its asks, over those of a run that tries every genome on every problem, known or not."""
    saved_by_racing: int
    saved_as_known: int
    cache_hits: int
    """Replies of the whole run that the store had from other runs."""
    sent: int
    """Asks of the whole run that were sent."""

    def speedup(self, other: Performance) -> float:
        """How many times as many problems a second as another run."""
        return self.problems_per_second / other.problems_per_second if other.problems_per_second else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.problems:,} problems in {self.seconds:.1f} s ({self.problems_per_second:,.1f}/s); "
            f"{self.api_calls:,} asks, {self.api_efficiency:.0%} of those without races and memory "
            f"({self.saved_by_racing:,} saved by races, {self.saved_as_known:,} as known); "
            f"{self.cache_hits:,} replies from the cache"
        )


def performance_of(analysis: Analysis, summary: Summary, settings: Evolution) -> Performance:
    """How fast a run was that came to this."""
    main, met = analysis.evolution, _met(analysis, settings)
    return Performance(
        seconds=summary.seconds,
        problems=met,
        problems_per_second=met / summary.seconds if summary.seconds else 0.0,
        api_calls=main.asks,
        api_efficiency=1.0 if main.efficiency is None else main.efficiency,
        saved_by_racing=main.savings.racing,
        saved_as_known=main.savings.known,
        cache_hits=summary.asks.cached,
        sent=summary.asks.sent,
    )


def _met(analysis: Analysis, settings: Evolution) -> int:
    """How many problems prompts met: what one has met is not counted again where it turns up again."""
    trained: dict[str, int] = {}
    for each in (member for search in analysis.searches for member in search.members):
        trained[each.genome.text] = max(len(each.scores), trained.get(each.genome.text, 0))
    tested = {each.genome.text for each in analysis.tested}
    validated = tested | {each.genome.text for search in analysis.searches for each in search.finalists}
    sets = settings.problems
    return sum(trained.values()) + len(validated) * len(sets.validation) + len(tested) * len(sets.test)
