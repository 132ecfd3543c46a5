"""The classes that the source document of the game names: agents, games, and batch services with their jobs.

All of it is a way to call the drivers of the game. A job is a run whose name is the id of the job. Its folder has
`job.json`, written once: what is to be played, and in which store the run is. How far the run is stands in the store
alone, so that nothing can disagree with it. `results.json`, every conversation, and `analysis.json`, the figures, come
at the end. What happens meanwhile is told to the logger `groundswell.secret_game`; `logging.basicConfig(level=
logging.INFO)` shows its lines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import msgspec

from groundswell import compose
from groundswell.engine.driver import Driver
from groundswell.engine.engine import Engine
from groundswell.engine.event_lines import EventLines
from groundswell.engine.events import Event, Listener, RunOpened, TrialEnded, WaveEnded, WaveSent
from groundswell.engine.options import RunOptions
from groundswell.engine.records import RunRecord, Status
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import RunBusy, RunError, RunNotFound, SettingsError, StoreError
from groundswell.experiments.secret_game.agents import Agent, AgentService
from groundswell.experiments.secret_game.analysis import AgentFigures, Analysis, Overall, RateFigure
from groundswell.experiments.secret_game.modes import GameMode, Points, ServiceName, interaction_points
from groundswell.experiments.secret_game.played import HEADLINE, TIERS, Duel, Played, Seat, Tier
from groundswell.experiments.secret_game.playing import Scene, play, schedule_of, tournament
from groundswell.experiments.secret_game.prompts import PLAIN, load_prompt
from groundswell.experiments.secret_game.reading import Interaction, interactions_of
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.ways import MAX_CONCURRENT, Way, check_number, way_of
from groundswell.experiments.secret_game.words import Pool
from groundswell.providers.accounts.config import Accounts
from groundswell.reporting.words import visible
from groundswell.store.atomic import replacing

if TYPE_CHECKING:
    from groundswell.store.journal import Store  # brings SQLAlchemy, which is slow to import

TaskStatus = Literal["pending", "running", "completed", "failed"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
JOB, RESULTS, ANALYSIS = "job.json", "results.json", "analysis.json"
TENTHS = 10
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
log = logging.getLogger("groundswell.secret_game")


class GPT35Agent(AgentService, frozen=True, omit_defaults=True):
    """GPT-3.5 Turbo."""

    DEFAULT: ClassVar[str] = "gpt35"


class GPT4oAgent(AgentService, frozen=True, omit_defaults=True):
    """GPT-4o."""

    DEFAULT: ClassVar[str] = "gpt-4o"


class GPT4oMiniAgent(AgentService, frozen=True, omit_defaults=True):
    """GPT-4o mini."""

    DEFAULT: ClassVar[str] = "gpt4o_mini"


class GPT4TurboAgent(AgentService, frozen=True, omit_defaults=True):
    """GPT-4 Turbo."""

    DEFAULT: ClassVar[str] = "gpt-4-turbo"


class ClaudeOpusAgent(AgentService, frozen=True, omit_defaults=True):
    """Claude Opus."""

    DEFAULT: ClassVar[str] = "claude_opus"


class ClaudeSonnetAgent(AgentService, frozen=True, omit_defaults=True):
    """Claude Sonnet."""

    DEFAULT: ClassVar[str] = "claude_sonnet"


class ClaudeHaikuAgent(AgentService, frozen=True, omit_defaults=True):
    """Claude 3 Haiku."""

    DEFAULT: ClassVar[str] = "claude-3-haiku"


class LocalAgent(AgentService, frozen=True, omit_defaults=True):
    """The small model that comes with Groundswell; needs no key."""


class GameService(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a game, and who speaks for agents without a model of their own.

        GameService(agent_service=GPT35Agent(), tier="encoded", judge="gpt-4o")

    agent_service  a model with its settings; the small local one where none is given
    points         what things are worth
    prompt         the variant of the prompt for agents that have no other: plain, aggressive, cautious, or a file
    tier           by which of the detectors' tiers a leak counts
    seats          who speaks first: everybody equally often, or as agents are given
    thoughts       whether agents write a private thought before they speak
    judge, probe   a model that says whether a secret came out; how many guesses are asked for afterwards
    words          sets of like code words that secrets are drawn from, in place of those that come with the game
    memory, target of a tournament: what agents remember, and the agent whose secret is the designated one
    """

    agent_service: AgentService = AgentService()
    points: Points = Points()
    prompt: str = PLAIN
    tier: Tier = HEADLINE
    seats: Literal["balanced", "given"] = "balanced"
    thoughts: bool = False
    judge: str | None = None
    probe: int = 0
    words: Pool | None = None
    memory: Literal["long", "short"] = "long"
    target: str | None = None

    def settings(
        self,
        agents: Sequence[Agent],
        game_mode: GameMode = GameMode.STANDARD,
        num_interactions: int = 100,
        messages_per_interaction: int = 5,
    ) -> Batch | Tournament:
        """What a driver plays: a statistical batch in the standard mode, a tournament in the others."""
        told = tuple(
            agent if agent.prompt != PLAIN else msgspec.structs.replace(agent, prompt=self.prompt) for agent in agents
        )
        table = with_prompts(self.table(game_mode, messages_per_interaction), told)
        if game_mode.over_rounds:
            return Tournament(told, num_interactions, table, self.tier, self.words, self.memory, self.target)
        return Batch(told, num_interactions, table, self.tier, self.words)

    def table(self, game_mode: GameMode = GameMode.STANDARD, messages_per_interaction: int = 5) -> Table:
        """What all interactions have in common."""
        return Table(
            messages_per_interaction,
            game_mode,
            self.points,
            self.agent_service,
            self.seats,
            self.thoughts,
            self.judge,
            self.probe,
        )


def with_prompts(table: Table, agents: Sequence[Agent]) -> Table:
    """A table that holds all that its agents are told."""
    prompts = {agent.prompt: load_prompt(agent.prompt) for agent in agents}
    known: dict[str, str] = {}
    for prompt in prompts.values():
        if known.setdefault(prompt.name, prompt.digest) != prompt.digest:
            raise SettingsError(
                f"prompt {prompt.name!r}: two files of this name say different things; rename one of them"
            )
    return msgspec.structs.replace(table, prompts=prompts)


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
        """Its tasks, none of them begun. They share their agents, since there may be very many."""
        known: dict[Agent, Agent] = {}
        tasks = []
        for spec in self._interactions():
            one, other = (known.setdefault(agent, agent) for agent in map(_player, spec.seats))
            tasks.append(BatchTask(_task_id(spec.number), (one, other)))
        return tasks

    def _interactions(self) -> Iterable[Duel]:
        """Who will play whom with which secrets; in a tournament, without what they will remember."""
        settings = self.settings
        if isinstance(settings, Batch):
            return schedule_of(settings, self.seed)
        scene = Scene(settings, self.seed)
        return (spec for number in range(settings.rounds) for spec in scene.round(number))


def _task_id(number: int) -> str:
    return f"task_{number}"


def _player(seat: Seat) -> Agent:
    return Agent(seat.agent, seat.name, seat.secret, seat.model, seat.prompt.name)


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
            found = self.ids()
            there = f"there are {', '.join(found[:20])}" if found else "there are none"
            raise RunNotFound(f"no batch job {job!r} in {self.place}: {there}") from error
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


class _Numbered(msgspec.Struct):
    """As much of an interaction as tells which task it is."""

    number: int = 0


class StoredJob(NamedTuple):
    """The run of a job, in its store."""

    store: Store
    run: RunRecord

    @property
    def analysis(self) -> Analysis | None:
        """The figures, if it came to that."""
        return None if self.run.analysis is None else msgspec.json.decode(self.run.analysis, type=Analysis)


class BatchService:
    """Plays many interactions as a job, in groups: up to `max_concurrent_tasks` groups of `batch_size`, live.

        service = BatchService(GameService(agent_service=GPT35Agent()), batch_size=10)
        job = service.create_batch_job(agents, num_interactions=20)
        job = await service.run_batch_job(job.id)

    Jobs are on disk from their creation on, and every reply is in the store as soon as it comes: a job that was
    interrupted, or killed, goes on when it is run again, in whichever process, and pays for nothing that it has.
    Services differ in route, grouping and price, never in what is said. Several jobs may run side by side.

    max_concurrent_tasks  groups at once; of the services over waves: live requests at once
    batch_size            conversations of a group, 10 unless given; of the services over waves: the most requests of a
                          provider's batch, as many as it takes unless given
    use_batch_api         of `conversation` and `anthropic-conversation`: batches in place of live requests
    store, results        where replies are kept, and the folders of jobs
    seed                  what secrets and seats are drawn from, in jobs that are given no seed of their own
    account, accounts     settings of accounts, as "openai.rate_limit_per_minute=3500"; or all accounts, in place of
                          those of this folder and environment
    options               budget, retries and cache of runs; how requests travel is what the service is about
    listeners             are told what happens
    """

    service: ClassVar[ServiceName] = "default"

    def __init__(
        self,
        game_service: GameService,
        max_concurrent_tasks: int = MAX_CONCURRENT,
        batch_size: int | None = None,
        *,
        use_batch_api: bool = False,
        store: str | Path = "groundswell.db",
        results: str | Path = "results/batch_jobs",
        seed: int = 0,
        account: Sequence[str] = (),
        accounts: Accounts | None = None,
        options: RunOptions | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.game_service = game_service
        self.max_concurrent_tasks = max_concurrent_tasks
        self.batch_size = batch_size
        self.use_batch_api = use_batch_api
        self._store = store
        self._folders = JobFolders(results)
        self._seed = seed
        self._account = account
        self._accounts = accounts
        self._options = options or RunOptions()
        self._listeners = listeners
        self._running: dict[str, BatchJob] = {}
        check_number("max_concurrent_tasks", max_concurrent_tasks)
        check_number("batch_size", batch_size)

    def create_batch_job(
        self,
        agents: Sequence[Agent],
        game_mode: GameMode = GameMode.STANDARD,
        num_interactions: int = 100,
        messages_per_interaction: int = 5,
        *,
        job_id: str | None = None,
        seed: int | None = None,
    ) -> BatchJob:
        """A job of so many interactions: of every two agents in the standard mode, in all in the others.

        Sends nothing. The other modes play a tournament: rounds, until there are so many interactions.
        """
        settings = self.game_service.settings(agents, game_mode, num_interactions, messages_per_interaction)
        way = self._way(settings)
        drawn_from = self._seed if seed is None else seed
        record = self._folders.create(settings, way.service, drawn_from, compose.store_path(self._store), job_id)
        return self._fresh(record, way.note)

    async def run_batch_job(self, job_id: str, *, retry_failed: bool = False) -> BatchJob:
        """Play a job, or go on with it where it was left; `retry_failed` gives its failed tasks another chance.

        Tasks that fail do not fail the job: it is `partial` then, and its results say which and why. A job that is
        over is not played again.
        """
        record = self._folders.read(job_id)
        if job_id in self._running:
            raise RunBusy(f"batch job {job_id!r} is running in this service already: wait for that")
        way = self._way(record.settings)
        job = self._running[job_id] = self._stored(record)
        try:
            await self._run(record, job, way, retry_failed)
        finally:
            del self._running[job_id]
        return job

    def get_batch_job(self, job_id: str) -> BatchJob:
        """A job as it stands: the one that runs here, or what the store has of it."""
        record = self._folders.read(job_id)
        return self._running.get(job_id) or self._stored(record)

    def list_batch_jobs(self) -> list[BatchJob]:
        """All jobs, the oldest first."""
        jobs = [self.get_batch_job(job) for job in self._folders.ids()]
        return sorted(jobs, key=lambda job: (job.created_at, job.id))

    def analyze_batch_results(self, job_id: str) -> Analysis:
        """The figures of a job that has ended: rates with intervals, comparisons, strengths."""
        with self._look(self._folders.read(job_id)) as found:
            if found is None or found.analysis is None:
                raise RunError(f"batch job {job_id!r} has no results yet: run it with run_batch_job")
            return found.analysis

    def _way(self, settings: Batch | Tournament) -> Way:
        """How a job travels; raises `SettingsError` if it cannot with this service."""
        return way_of(
            self.service,
            {agent.id: agent.model or settings.table.service.model for agent in settings.agents},
            self.batch_size,
            self.max_concurrent_tasks,
            use_batch_api=self.use_batch_api,
            whose=lambda model: compose.provider_of(model, self._accounts, self._account),
        )

    async def _run(self, record: JobRecord, job: BatchJob, way: Way, retry_failed: bool) -> None:
        """Start the run of a job, or go on with it, and write what came of it."""
        progress = Progress(job)
        engine = progress.engine = compose.open(
            self._folders.store(record),
            accounts=self._accounts,
            account=self._account,
            max_concurrent=way.max_concurrent,
            listeners=[progress, *self._listeners],
        )
        job.note = way.note
        log.info("job %s: %d tasks, %s", job.id, len(job.tasks), way.note)
        said = {name: getattr(way.options, name) for name in ("schedule", "window", "via", "batch_size")}
        options = msgspec.structs.replace(self._options, **said)
        try:
            async with engine:
                if retry_failed and engine.store.runs.find(record.id) is not None:
                    await engine.resume(record.id, retry_missing=True, options=options)
                else:
                    driver: Driver = play if record.batch is not None else tournament
                    await engine.drive(driver, record.settings, name=record.id, seed=record.seed, options=options)
        finally:
            self._refresh(record, job)
        await asyncio.to_thread(self._write, record, job)
        tell_end(job)

    def _fresh(self, record: JobRecord, note: str = "") -> BatchJob:
        """A job of which nothing is known but what it is."""
        settings = record.settings
        return BatchJob(
            record.id,
            record.service,
            settings.table.mode,
            settings.interactions,
            settings.table.messages,
            record.seed,
            record.created_at,
            self._folders.folder(record.id) / RESULTS,
            record.plan(),
            note=note,
        )

    def _stored(self, record: JobRecord) -> BatchJob:
        """A job as the store has it."""
        job = self._fresh(record)
        self._refresh(record, job)
        return job

    def _refresh(self, record: JobRecord, job: BatchJob) -> None:
        """Bring a job and its tasks up to what the store has."""
        with self._look(record) as found:
            if found is None:
                job.status = "pending"
                return
            job.status, job.error = found.store.runs.state(found.run), found.run.error
            job.summary = summarise(found.run)
            for row in found.store.results(found.run):
                task = job.tasks[row.spec(_Numbered).number]
                task.error = None if row.fault is None else TaskError(row.fault.kind.value, row.fault.message)
                if row.status == "unfinished":
                    task.status = "running" if job.status == "running" else "pending"
                else:
                    task.status = "completed" if row.fault is None else "failed"

    @contextmanager
    def _look(self, record: JobRecord) -> Iterator[StoredJob | None]:
        """The run of a job; None if there is none yet."""
        with compose.look_into(self._folders.store(record)) as store:
            run = None if store is None else store.runs.find(record.id)
            yield None if store is None or run is None else StoredJob(store, run)

    def _write(self, record: JobRecord, job: BatchJob) -> None:
        """Write what came of a job; off the loop, since it may be much."""
        with self._look(record) as found:
            if found is not None:
                write_results(job, interactions_of(found.store.results(found.run))(), record.settings)
                if found.analysis is not None:
                    write_analysis(job, found.analysis)


class OpenAIBatchService(BatchService):
    """As `BatchService`, over OpenAI's batch API: half the price, and an answer within 24 hours, mostly much sooner.

    All agents must speak with models of OpenAI.
    """

    service: ClassVar[ServiceName] = "openai"


class AnthropicBatchService(BatchService):
    """As `BatchService`, over Anthropic's Message Batches: half the price, an answer within 24 hours.

    All agents must speak with models of Anthropic.
    """

    service: ClassVar[ServiceName] = "anthropic"


class ConversationBatchService(BatchService):
    """Plays all conversations at once in waves: all first messages, then all second ones, and so on.

    Models may be of any provider, and of several. Requests are live, `max_concurrent_tasks` at once; with
    `use_batch_api`, a wave is one batch for each model, where its provider takes batches.
    """

    service: ClassVar[ServiceName] = "conversation"


class OpenAIConversationBatchService(ConversationBatchService):
    """Waves over OpenAI's batch API, a wave to a batch, or to several of `batch_size` requests.

    A single request goes live, and so does what batches fail to bring: up to `max_concurrent_tasks` requests at once.
    All agents must speak with models of OpenAI.
    """

    service: ClassVar[ServiceName] = "openai-conversation"


class AnthropicConversationBatchService(ConversationBatchService):
    """Waves over live requests to Anthropic, `max_concurrent_tasks` at once; with `use_batch_api`, over its batches.

    All agents must speak with models of Anthropic.
    """

    service: ClassVar[ServiceName] = "anthropic-conversation"


class AutoBatchService(ConversationBatchService):
    """Waves, by the way that suits the models of a job: their provider's, or live ones where there are several.

    A job's `service` and `note` say what was chosen, and the log does.
    """

    service: ClassVar[ServiceName] = "auto"


auto = AutoBatchService
"""A service that goes by the providers of the models: `auto(game_service, ...)`."""


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
        return trial if number is None else _task_id(number)


def tell_end(job: BatchJob) -> None:
    """Log how a job ended, and for each kind of failure how often and why."""
    failed = [(task.id, task.error) for task in job.failed_tasks if task.error is not None]
    for kind, many in Counter(error.kind for _, error in failed).items():
        first, why = next((id_, error.message) for id_, error in failed if error.kind == kind)
        log.warning("job %s: %d failed (%s), as %s: %s", job.id, many, kind, first, visible(why))
    counted = ", ".join(f"{count} {status}" for status, count in job.counts.items() if count)
    log.info("job %s: %s: %s; %s", job.id, job.status, counted, job.results_path)


def write_results(job: BatchJob, played: Iterable[Interaction], settings: Batch | Tournament) -> None:
    """Write every task, in the order of the job. A line for each: there may be very many."""
    head = {
        "job_id": job.id,
        "status": job.status,
        "error": job.error,
        "game_mode": job.game_mode,
        "messages_per_interaction": job.messages_per_interaction,
        "seed": job.seed,
        "tier": settings.tier,
        "counts": job.counts,
        "failed_tasks": [task.id for task in job.failed_tasks],
    }
    with replacing(job.results_path) as file:
        file.write(msgspec.json.encode(head)[:-1] + b',\n"tasks": [')
        for number, (task, found) in enumerate(_in_order(job.tasks, played)):
            file.write((b",\n" if number else b"\n") + msgspec.json.encode(_task(task, found, settings)))
        file.write(b"\n]}\n")


def _in_order(
    tasks: Sequence[BatchTask], played: Iterable[Interaction]
) -> Iterator[tuple[BatchTask, Interaction | None]]:
    """All tasks; interactions are started in that order too, and some tasks may have none yet."""
    done = 0
    for each in played:
        number = each.duel.number
        yield from ((task, None) for task in tasks[done:number])
        yield tasks[number], each
        done = number + 1
    yield from ((task, None) for task in tasks[done:])


def _task(task: BatchTask, found: Interaction | None, settings: Batch | Tournament) -> dict[str, Any]:
    """A task with its agents and messages; `trial` is the key by which `groundswell runs show --trial` knows it."""
    agents = task.agents if found is None else [_player(seat) for seat in found.duel.seats]
    played = None if found is None else found.played
    said = () if played is None else played.lines
    return {
        "id": task.id,
        "status": task.status,
        "error": task.error,
        "agents": [
            {
                "seat": place,
                "id": agent.id,
                "name": agent.name,
                "model": agent.model,
                "secret": agent.secret,
                **_leak(place, played, settings),
            }
            for place, agent in enumerate(agents)
        ],
        "messages": [
            {
                "turn": turn,
                "agent": agents[line.seat].id,
                "speaker": agents[line.seat].name,
                "text": line.text,
                **({"thought": line.thought} if line.thought else {}),
                **({"cut": line.cut} if line.cut else {}),
            }
            for turn, line in enumerate(said)
        ],
        "trial": None if found is None else found.key,
    }


def _leak(place: int, played: Played | None, settings: Batch | Tournament) -> dict[str, Any]:
    """By each tier whether an agent gave its secret away, and in which turn; what it got, unless rounds decide that."""
    if played is None:
        return {"revealed": None, "first_leak": None, "points": None}
    table, tier = settings.table, settings.tier
    turns = {each: played.leak(place, each) for each in TIERS if each != "judged" or played.judged(place)}
    scored = not table.mode.over_rounds and played.tells(tier)
    return {
        "revealed": {each: turn is not None for each, turn in turns.items()},
        "first_leak": turns,
        "points": interaction_points(played.leaked(tier), table.points)[place] if scored else None,
    }


def write_analysis(job: BatchJob, analysis: Analysis) -> None:
    """Write the figures: those of every agent and of all interactions by their plain names, then everything."""
    shown = {
        "job_id": job.id,
        "tier": analysis.tier,
        "agent_statistics": {agent.id: _of_agent(agent) for agent in analysis.agents},
        "overall_statistics": _of_all(analysis.overall),
        "analysis": analysis,
    }
    with replacing(job.analysis_path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(shown)) + b"\n")


def _of_agent(agent: AgentFigures) -> dict[str, Any]:
    return {
        "name": agent.name,
        "model": agent.model,
        "interactions": agent.interactions,
        **_counted("revealed", agent.revealed),
        **_counted("obtained", agent.obtained),
        **_counted("optimal", agent.optimal),
        "points": agent.points,
        "score": agent.score,
    }


def _of_all(overall: Overall) -> dict[str, Any]:
    return {
        "total_interactions": overall.total_interactions,
        "total_secrets_revealed": overall.total_secrets_revealed,
        "secrets_revealed_percentage": _percentage(overall.secrets_revealed),
        **_counted("both_revealed", overall.both_revealed),
        **_counted("one_sided", overall.one_sided),
        **_counted("none_revealed", overall.none_revealed),
    }


def _counted(name: str, figure: RateFigure) -> dict[str, int | float | None]:
    return {name: figure.count, f"{name}_percentage": _percentage(figure)}


def _percentage(figure: RateFigure) -> float | None:
    """So many of a hundred; None of nothing."""
    return None if figure.rate is None else 100 * figure.count / figure.n
