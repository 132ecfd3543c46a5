"""How far a job is, as the store has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from groundswell.engine.records import RunRecord, Status
from groundswell.engine.summary import summarise
from groundswell.experiments.secret_game.services.jobs import BatchJob, TaskError, TaskStatus

if TYPE_CHECKING:
    from groundswell.store.results import Results
    from groundswell.store.tables import TrialResult


class StoredJob(NamedTuple):
    """The run of a job, the status that it is in, and its trials."""

    run: RunRecord
    status: Status
    results: Results


def refresh(job: BatchJob, found: StoredJob | None) -> None:
    """Bring a job and its tasks up to what the store has."""
    if found is None:
        job.status = "pending"
        return
    job.status, job.error = found.status, found.run.error
    job.summary = summarise(found.run)
    for row in found.results:
        task = job.tasks[number_of(row)]
        task.status, task.error = outcome_of(row, going_on=found.status == "running")


class _Numbered(msgspec.Struct):
    """As much of an interaction as tells which task it is."""

    number: int = 0


def number_of(row: TrialResult) -> int:
    """The number of the task that a trial is."""
    number: int = row.spec(_Numbered).number
    return number


def outcome_of(row: TrialResult, *, going_on: bool = False) -> tuple[TaskStatus, TaskError | None]:
    """How a trial stands, as a task."""
    if row.fault is not None:
        return "failed", TaskError(row.fault.kind.value, row.fault.message)
    if row.status == "usable":
        return "completed", None
    return ("running" if going_on else "pending"), None
