"""What a job tells while it runs: its tasks move from status to status, and Python's logging hears of it.

The logger is `groundswell.secret_game`; `logging.basicConfig(level=logging.INFO)` shows its lines.
"""

from __future__ import annotations

import logging

from groundswell.engine.engine import Engine
from groundswell.engine.event_lines import EventLines
from groundswell.engine.events import Event, RunOpened, TrialEnded, WaveEnded, WaveSent
from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.services.jobs import (
    BatchJob,
    BatchTask,
    TaskError,
    TaskStatus,
    task_id,
)
from groundswell.shown.words import visible

log = logging.getLogger("groundswell.secret_game")
TENTHS = 10


class Progress:
    """A listener that keeps the tasks of a job up to date and logs what happens.

    A trial is known by its key; which task it is, it says itself as long as it is open. One that nothing was sent for
    is not seen here: what the store has in the end is what counts.
    """

    def __init__(self, job: BatchJob) -> None:
        self.job = job
        self.engine: Engine | None = None
        self._numbers: dict[str, int] = {}
        self._telling = EventLines(self._name)
        self._waves: set[int] = set()
        self._ended = sum(task.status in ("completed", "failed") for task in job.tasks)

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case RunOpened():
                self.job.status = "running"
            case WaveSent(trials=trials, wave=wave, whole=whole):
                self._look(trials)
                for trial in trials:
                    self._move(trial, "running")
                if whole:
                    self._waves.add(wave)
            case TrialEnded(trial=trial, fault=fault):
                self._move(trial, "completed" if fault is None else "failed", fault)
                self._count()
        if log.isEnabledFor(logging.INFO) and not (isinstance(event, WaveEnded) and event.wave not in self._waves):
            for line in self._telling.lines(event):
                log.info("%s", line)

    def _look(self, trials: tuple[str, ...]) -> None:
        """Find out which tasks open trials are, if there is one that is not known."""
        if self.engine is None or all(trial in self._numbers for trial in trials):
            return
        for run in self.engine.runs:
            for each in run.open.values():
                if isinstance(each.given, Duel):
                    self._numbers[each.key] = each.given.number

    def _move(self, trial: str, status: TaskStatus, fault: str | None = None) -> None:
        number = self._numbers.get(trial)
        if number is None:
            return
        task = self.job.tasks[number]
        task.status, task.error = status, None if fault is None else TaskError(fault)
        if fault is not None:
            log.warning("job %s: %s failed: %s", self.job.id, task.id, fault)

    def _count(self) -> None:
        """One more task has ended; every tenth part of them is told of."""
        planned = len(self.job.tasks)
        tenths = self._ended * TENTHS // planned
        self._ended += 1
        if self._ended * TENTHS // planned > tenths:
            log.info("job %s: %d of %d tasks have ended", self.job.id, self._ended, planned)

    def _name(self, trial: str) -> str:
        number = self._numbers.get(trial)
        return trial if number is None else task_id(number)


def tell_end(job: BatchJob) -> None:
    """Log how a job ended, and for each kind of failure how often and why."""
    kinds: dict[str, list[BatchTask]] = {}
    for task in job.failed_tasks:
        if task.error is not None:
            kinds.setdefault(task.error.kind, []).append(task)
    for kind, tasks in kinds.items():
        first = tasks[0]
        why = first.error.message if first.error is not None else ""
        log.warning("job %s: %d failed (%s), as %s: %s", job.id, len(tasks), kind, first.id, visible(why))
    counted = ", ".join(f"{count} {status}" for status, count in job.counts.items() if count)
    log.info("job %s: %s: %s; %s", job.id, job.status, counted, job.results_path)
