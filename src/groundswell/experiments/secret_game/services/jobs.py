"""Batch jobs and their tasks: as callers see them, and as they are kept on disk.

A job's folder has `job.json`, written once: what is to be played, and in which store its run is. How far the run is
stands in the store alone, so that nothing can disagree with it. `results.json` and `analysis.json` come at the end.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

import msgspec

from groundswell.engine.records import Status
from groundswell.engine.summary import Summary
from groundswell.errors import RunError, RunNotFound, SettingsError, StoreError
from groundswell.experiments.replacing import replacing
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.played import Duel, Seat
from groundswell.experiments.secret_game.playing import Batch, Scene, Tournament, schedule_of
from groundswell.experiments.secret_game.services.ways import ServiceName

TaskStatus = Literal["pending", "running", "completed", "failed"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
JOB, RESULTS, ANALYSIS = "job.json", "results.json", "analysis.json"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class TaskError(msgspec.Struct, frozen=True):
    """Why a task failed: the kind of fault, and what was said of it."""

    kind: str
    message: str = ""


class BatchTask(msgspec.Struct):
    """One interaction of a job. Its agents are in the order of their seats, with the secrets and models they play."""

    id: str
    agents: tuple[Agent, Agent]
    status: TaskStatus = "pending"
    error: TaskError | None = None


class BatchJob(msgspec.Struct):
    """Interactions that are played as one job, and how far they are.

    The status is that of its run: pending, running, completed, partial (some tasks failed, or a limit ended it),
    stopped, interrupted or failed. `note` says how its requests travel, `summary` what they took and cost.
    """

    id: str
    service: ServiceName
    game_mode: GameMode
    num_interactions: int
    messages_per_interaction: int
    seed: int
    created_at: datetime
    results_path: Path
    tasks: list[BatchTask]
    status: Status = "pending"
    error: str | None = None
    note: str = ""
    summary: Summary | None = None

    @property
    def analysis_path(self) -> Path:
        """Where the figures are."""
        return self.results_path.with_name(ANALYSIS)

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """How many tasks are in which status."""
        found = Counter(task.status for task in self.tasks)
        return {status: found[status] for status in STATUSES}

    @property
    def completed_tasks(self) -> list[BatchTask]:
        """The tasks that were played to the end."""
        return [task for task in self.tasks if task.status == "completed"]

    @property
    def failed_tasks(self) -> list[BatchTask]:
        """The tasks that are missing, each with its error."""
        return [task for task in self.tasks if task.status == "failed"]


class JobRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A job as it is kept: all that its run is made of. The store is named as seen from the job's folder."""

    id: str
    created_at: datetime
    service: ServiceName
    seed: int
    store: str
    batch: Batch | None = None
    tournament: Tournament | None = None

    @property
    def settings(self) -> Batch | Tournament:
        """What is played."""
        settings = self.batch or self.tournament
        assert settings is not None
        return settings

    def plan(self) -> list[BatchTask]:
        """Its tasks, none of them begun."""
        known: dict[tuple[str, str, str], Agent] = {}
        return [
            BatchTask(task_id(spec.number), (_player(spec.seats[0], known), _player(spec.seats[1], known)))
            for spec in interactions(self.settings, self.seed)
        ]


def task_id(number: int) -> str:
    """What the task of an interaction is called."""
    return f"task_{number}"


def interactions(settings: Batch | Tournament, seed: int) -> Iterator[Duel]:
    """Who will play whom with which secrets; in a tournament, without what they will remember."""
    if isinstance(settings, Batch):
        yield from schedule_of(settings, seed)
    else:
        scene = Scene(settings, seed)
        for number in range(settings.rounds):
            yield from scene.round(number)


def _player(seat: Seat, known: dict[tuple[str, str, str], Agent]) -> Agent:
    """A seat as an agent; the same one for all tasks with that agent and secret, since there may be very many."""
    key = (seat.agent, seat.name, seat.secret)
    if key not in known:
        known[key] = Agent(seat.agent, seat.name, seat.secret, seat.model, seat.prompt.name)
    return known[key]


class JobFolders:
    """The folders of jobs, all in one place."""

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)

    def create(
        self, settings: Batch | Tournament, service: ServiceName, seed: int, store: Path, name: str | None
    ) -> JobRecord:
        """A new job, on disk."""
        now = datetime.now(UTC)
        job = name or f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        folder = self.folder(job)
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise SettingsError(f"job_id {job!r}: there is a job of this id in {self.place}; give another") from error
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror or error}") from error
        record = JobRecord(
            id=job,
            created_at=now,
            service=service,
            seed=seed,
            store=os.path.relpath(store, folder.resolve()),
            batch=settings if isinstance(settings, Batch) else None,
            tournament=settings if isinstance(settings, Tournament) else None,
        )
        with replacing(folder / JOB) as file:
            file.write(msgspec.json.format(msgspec.json.encode(record)))
        return record

    def read(self, job: str) -> JobRecord:
        """A job that is there."""
        path = self.folder(job) / JOB
        try:
            record = msgspec.json.decode(path.read_bytes(), type=JobRecord)
        except FileNotFoundError as error:
            raise RunNotFound(f"no batch job {job!r} in {self.place}: {self._those_there_are()}") from error
        except (msgspec.DecodeError, SettingsError) as error:
            raise RunError(f"{path} is not the file of a batch job: {error}") from error
        if record.batch is None and record.tournament is None:
            raise RunError(f"{path} is not the file of a batch job: it does not say what is played")
        if record.id != job:
            raise RunError(f"{path} is not the file of a batch job of this id, but of {record.id!r}: rename the folder")
        return record

    def ids(self) -> list[str]:
        """The jobs there are."""
        return sorted(path.parent.name for path in self.place.glob(f"*/{JOB}") if _ID.fullmatch(path.parent.name))

    def folder(self, job: str) -> Path:
        """Where a job is kept."""
        if not _ID.fullmatch(job):
            raise SettingsError(
                f"job id {job!r}: must be up to 64 letters, digits, - and _, since it names a folder and a run"
            )
        return self.place / job

    def store(self, record: JobRecord) -> Path:
        """Where the replies of a job are kept: where they were when it was created, or wherever both were moved."""
        return (self.folder(record.id).resolve() / record.store).resolve()

    def _those_there_are(self) -> str:
        found = self.ids()
        return f"there are {', '.join(found[:20])}" if found else "there are none"
