"""What the loggers for MLflow and Weights & Biases share: a listener that logs the runs of an engine.

A thread does the logging, because a tracking server may be slow or away. If logging fails, that is reported once, and
the runs go on without it.
"""

from __future__ import annotations

import atexit
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from groundswell import compose
from groundswell.engine.events import DriverReported, Event, RunEnded, TrialEnded
from groundswell.engine.records import Counters, RunRecord
from groundswell.experiments.results import remembered_folder

log = logging.getLogger("groundswell.bridges")
EVERY = 5.0
"""Seconds between two records of the progress of a run."""
PATIENCE = 60.0
"""Seconds that `close` waits for a slow server."""
LONGEST = 250
"""Characters of a parameter. Longer texts are cut, and of longer lists only the length is logged."""


class Log(Protocol):
    """One run in an experiment tracker."""

    def last(self, key: str) -> float:
        """The last value of a metric, from an earlier session too; 0 if there is none."""

    def metrics(self, values: Mapping[str, float], steps: str, at: float) -> None:
        """Log metrics. The one that is called `steps` counts the steps of the others."""

    def text(self, name: str, text: str) -> None:
        """Store a text as a file."""

    def folder(self, path: Path) -> None:
        """Store the files of a folder."""

    def end(self, status: str, at: float) -> None:
        """The run has this status."""


class Tracker(ABC):
    """A listener that logs runs. Give it to `groundswell.open(listeners=[...])`, and close it at the end.

    It logs the settings as parameters; what drivers report, for example each candidate of an evolution, and the
    progress and cost of a run as metrics; and at the end the analysis and the files in the results folder. A run that
    is resumed is continued.

    Args:
        store: The store of the runs.
        every: Seconds between two records of the progress of a run.
    """

    def __init__(self, store: str | Path = "groundswell.db", *, every: float = EVERY) -> None:
        self._store = compose.place_of(store)
        self._every = every
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._runs: dict[str, _Run] = {}
        self._failed = False

    @abstractmethod
    def begin(self, record: RunRecord, parameters: Mapping[str, str]) -> Log:
        """Begin to log a run, or continue."""

    def __call__(self, event: Event) -> None:
        """Hear an event."""
        if not isinstance(event, DriverReported | TrialEnded | RunEnded) or self._failed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="groundswell-tracker", daemon=True)
            self._thread.start()
            atexit.register(self.close)
        self._events.put(event)

    def close(self) -> None:
        """Log the files of the runs, and end. At the exit of the process this happens by itself."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        atexit.unregister(self.close)
        self._events.put(None)
        thread.join(PATIENCE)
        if thread.is_alive():
            log.warning("%s: logging takes too long, and is left unfinished.", type(self).__name__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        """Handle events until there are no more."""
        try:
            while (event := self._events.get()) is not None:
                self._take(event)
            for run in self._runs.values():
                run.end()
            self._runs.clear()
        except Exception as error:  # noqa: BLE001  whatever a tracker raises must not matter to the runs
            self._failed = True
            log.warning("%s: %s. The runs go on without it.", type(self).__name__, error)

    def _take(self, event: Event) -> None:
        run = self._runs.get(event.run)
        if run is None:
            record = _record(self._store, event.run)
            if record is None:
                return
            run = self._runs[event.run] = _Run(self._store, self.begin(record, parameters_of(record)))
        if isinstance(event, DriverReported):
            run.report(event)
        if isinstance(event, RunEnded) or event.at - run.noted >= self._every:
            run.note(event)


class _Run:
    """One run that is being logged."""

    def __init__(self, store: str | Path, log: Log) -> None:
        self._store = store
        self._log = log
        self._done: dict[str, float] = {}
        self._ended: RunEnded | None = None
        self.noted = 0.0
        """When its progress was last logged."""

    def report(self, event: DriverReported) -> None:
        """Log what a driver reported, unless an earlier session has."""
        head = f"{event.who}/" if event.who else ""
        steps = f"{head}done"
        if steps not in self._done:
            self._done[steps] = self._log.last(steps)
        if event.figures and event.done > self._done[steps]:
            self._done[steps] = event.done
            values = {f"{head}{name}": value for name, value in event.figures.items()}
            self._log.metrics({**values, steps: event.done}, steps, event.at)

    def note(self, event: Event) -> None:
        """Log the progress and the cost of the run so far. After its end, also the analysis."""
        self.noted = event.at
        record = _record(self._store, event.run)
        if record is None:
            return
        self._log.metrics(figures_of(record.counters), "run/trials", event.at)
        if isinstance(event, RunEnded):
            self._ended = event
            if record.analysis is not None:
                self._log.text("analysis.json", record.analysis)

    def end(self) -> None:
        """Log the files, which are written after the run has ended."""
        if self._ended is None:
            self._log.end("interrupted", self.noted)
            return
        with compose.look_into(self._store) as held:
            folder = None if held is None else remembered_folder(held, held.runs.get(self._ended.run))
        if folder is not None:
            self._log.folder(folder)
        self._log.end(self._ended.status, self._ended.at)


def _record(store: str | Path, run: str) -> RunRecord | None:
    with compose.look_into(store) as held:
        return None if held is None else held.runs.find(run)


def figures_of(counters: Counters) -> dict[str, float]:
    """The progress of a run: trials, requests, tokens and, if prices are known, dollars."""
    found: dict[str, float] = {
        "run/trials": counters.settled,
        "run/missing": counters.missing,
        "run/requests": counters.sent,
        "run/cache_hits": counters.cached,
        "run/input_tokens": counters.input_tokens,
        "run/output_tokens": counters.output_tokens,
    }
    return found if counters.unknown_cost and not counters.usd else {**found, "run/usd": counters.usd}


def parameters_of(record: RunRecord) -> dict[str, str]:
    """The settings of a run as names and texts. Names of inner fields have dots."""
    settings = {} if record.settings is None else msgspec.json.decode(record.settings)
    options = {"seed": record.seed, "driver": record.driver or "", "options": record.options}
    return dict(_flat("", settings if isinstance(settings, dict) else {"settings": settings})) | dict(
        _flat("", options)
    )


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else key, each)
    elif isinstance(value, list):
        plain = not any(isinstance(each, dict | list) for each in value)
        text = ", ".join(map(str, value)) if plain else msgspec.json.encode(value).decode()
        yield name, text if len(text) <= LONGEST else f"{len(value):,} items"
    elif value is not None:
        text = str(value)
        yield name, text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
