"""Classes for your own programs: agent services, the game service, and batch services with their jobs.

A job is a run whose name is the id of the job. Its folder has `job.json`, which is written once and holds the settings
and the path of the store. Progress is recorded only in the store. `results.json` (all conversations) and
`analysis.json` (the figures) are written at the end. Progress is logged to the logger `groundswell.secret_game`; show
it with `logging.basicConfig(level=logging.INFO)`.
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
    """The embedded model, local/smollm2. It needs no key."""


class GameService(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a game, and the model for agents without their own.

        GameService(agent_service=GPT35Agent(), tier="encoded", judge="gpt-4o")

    agent_service  model and request settings; the embedded model by default
    points         points for each outcome
    prompt         prompt for agents without their own: plain, aggressive, cautious, or the path of a TOML file
    tier           tier of detection that the leak rate is based on
    seats          who speaks first: `balanced` alternates, `given` keeps the order of the agents
    thoughts       whether agents write a private thought before each message
    judge          model that decides whether a secret was revealed
    probe          number of guesses to ask for after each conversation
    words          sets of similar code words to draw secrets from, instead of the built-in ones
    memory         tournaments: `long` to remember all conversations, `short` for the current one only
    target         tournaments: id of the agent whose secret is the designated one
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
        """The settings of a run: a statistical batch in the standard mode, a tournament in the other modes."""
        told = tuple(
            agent if agent.prompt != PLAIN else msgspec.structs.replace(agent, prompt=self.prompt) for agent in agents
        )
        table = with_prompts(self.table(game_mode, messages_per_interaction), told)
        if game_mode.over_rounds:
            return Tournament(told, num_interactions, table, self.tier, self.words, self.memory, self.target)
        return Batch(told, num_interactions, table, self.tier, self.words)

    def table(self, game_mode: GameMode = GameMode.STANDARD, messages_per_interaction: int = 5) -> Table:
        """Settings that all interactions share."""
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
    """A table with the prompts of all agents."""
    prompts = {agent.prompt: load_prompt(agent.prompt) for agent in agents}
    known: dict[str, str] = {}
    for prompt in prompts.values():
        if known.setdefault(prompt.name, prompt.digest) != prompt.digest:
            raise SettingsError(
                f"prompt {prompt.name!r}: two different prompts have this name; rename one of the files"
            )
    return msgspec.structs.replace(table, prompts=prompts)


class TaskError(msgspec.Struct, frozen=True):
    """Why a task failed: kind of fault and error message."""

    kind: str
    message: str = ""


class BatchTask(msgspec.Struct):
    """One interaction of a job. Its agents are in seat order, with their secrets and models."""

    id: str
    agents: tuple[Agent, Agent]
    status: TaskStatus = "pending"
    error: TaskError | None = None


class BatchJob(msgspec.Struct):
    """A batch of interactions and its progress.

    The status is that of its run: pending, running, completed, partial (some tasks failed, or a limit was reached),
    stopped, interrupted or failed. `note` describes how requests are sent; `summary` has usage and cost.
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
        """Path of `analysis.json`."""
        return self.results_path.with_name(ANALYSIS)

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """Number of tasks by status."""
        found = Counter(task.status for task in self.tasks)
        return {status: found[status] for status in STATUSES}

    @property
    def completed_tasks(self) -> list[BatchTask]:
        """The completed tasks."""
        return [task for task in self.tasks if task.status == "completed"]

    @property
    def failed_tasks(self) -> list[BatchTask]:
        """The failed tasks, each with its error."""
        return [task for task in self.tasks if task.status == "failed"]


class JobRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The contents of `job.json`. The path of the store is relative to the folder of the job."""

    id: str
    created_at: datetime
    service: ServiceName
    seed: int
    store: str
    batch: Batch | None = None
    tournament: Tournament | None = None

    @property
    def settings(self) -> Batch | Tournament:
        """The settings of the run."""
        settings = self.batch or self.tournament
        assert settings is not None
        return settings

    def plan(self) -> list[BatchTask]:
        """Its tasks, all pending. Equal agents are shared objects, because there may be very many tasks."""
        known: dict[Agent, Agent] = {}
        tasks = []
        for spec in self._interactions():
            one, other = (known.setdefault(agent, agent) for agent in map(_player, spec.seats))
            tasks.append(BatchTask(_task_id(spec.number), (one, other)))
        return tasks

    def _interactions(self) -> Iterable[Duel]:
        """The interactions; those of a tournament without the memories of agents."""
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
    """The folder that holds the folders of jobs."""

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)

    def create(
        self, settings: Batch | Tournament, service: ServiceName, seed: int, store: str | Path, name: str | None
    ) -> JobRecord:
        """Create a job on disk."""
        now = datetime.now(UTC)
        job = name or f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        folder = self.folder(job)
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise SettingsError(
                f"job_id {job!r}: a job with this id already exists in {self.place}; use another id"
            ) from error
        except OSError as error:
            raise StoreError(f"Cannot create the folder {folder}: {error.strerror or error}") from error
        record = JobRecord(
            id=job,
            created_at=now,
            service=service,
            seed=seed,
            store=os.path.relpath(store, folder.resolve()) if isinstance(store, Path) else compose.shown_place(store),
            batch=settings if isinstance(settings, Batch) else None,
            tournament=settings if isinstance(settings, Tournament) else None,
        )
        with replacing(folder / JOB) as file:
            file.write(msgspec.json.format(msgspec.json.encode(record)))
        return record

    def read(self, job: str) -> JobRecord:
        """Read an existing job."""
        path = self.folder(job) / JOB
        try:
            record = msgspec.json.decode(path.read_bytes(), type=JobRecord)
        except FileNotFoundError as error:
            found = self.ids()
            there = f"existing jobs: {', '.join(found[:20])}" if found else "there are no jobs"
            raise RunNotFound(f"no batch job {job!r} in {self.place}; {there}") from error
        except (msgspec.DecodeError, SettingsError) as error:
            raise RunError(f"{path} is not a valid job file: {error}") from error
        if record.batch is None and record.tournament is None:
            raise RunError(f"{path} is not a valid job file: it has neither `batch` nor `tournament`")
        if record.id != job:
            raise RunError(f"{path} belongs to the job {record.id!r}; rename the folder to {record.id!r}")
        return record

    def ids(self) -> list[str]:
        """Ids of all jobs."""
        return sorted(path.parent.name for path in self.place.glob(f"*/{JOB}") if _ID.fullmatch(path.parent.name))

    def folder(self, job: str) -> Path:
        """The folder of a job."""
        if not _ID.fullmatch(job):
            raise SettingsError(
                f"job id {job!r}: must have 1 to 64 letters, digits, - and _, because it names a folder and a run"
            )
        return self.place / job

    def store(self, record: JobRecord, own: str | Path) -> str | Path:
        """The store of a job. Its path is relative to the folder of the job, so both can be moved together.

        A database on a server is never opened because a file says so: it must be the service's own.
        """
        if "://" not in record.store:
            return (self.folder(record.id).resolve() / record.store).resolve()
        if compose.shown_place(own) != record.store:
            raise SettingsError(f"job {record.id!r} is in the store {record.store}: open it with this store")
        return own


class _Numbered(msgspec.Struct):
    """The field of a stored interaction that identifies its task."""

    number: int = 0


class StoredJob(NamedTuple):
    """The stored run of a job."""

    store: Store
    run: RunRecord

    @property
    def analysis(self) -> Analysis | None:
        """The figures, if the run has ended."""
        return None if self.run.analysis is None else msgspec.json.decode(self.run.analysis, type=Analysis)


class BatchService:
    """Runs many interactions as a job, in up to `max_concurrent_tasks` groups of `batch_size`, with live requests.

        service = BatchService(GameService(agent_service=GPT35Agent()), batch_size=10)
        job = service.create_batch_job(agents, num_interactions=20)
        job = await service.run_batch_job(job.id)

    Jobs are stored on disk when they are created, and every reply is stored as soon as it arrives. Running an
    interrupted or killed job again, in any process, resumes it without paying for stored replies again. Services differ
    in grouping, transport and price, not in the conversations. Several jobs may run at the same time.

    max_concurrent_tasks  groups at once; for services with waves: live requests in flight
    batch_size            conversations per group, 10 by default; for services with waves: requests per provider batch,
                          by default as many as the provider accepts
    use_batch_api         for `conversation` and `anthropic-conversation`: send provider batches, not live requests
    store                 path of the store
    results               folder for the folders of jobs
    seed                  seed for secrets and seats of jobs that are created without a seed
    account               account settings, such as "openai.rate_limit_per_minute=3500"
    accounts              all accounts, instead of those from the settings file and the environment
    options               budget, retries and cache of runs; the service sets schedule, window, via and batch_size
    listeners             functions that are called with every event
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
        """Create a job. Sends nothing.

        In the standard mode, `num_interactions` is per pair of agents. The other modes play a tournament with
        `num_interactions` interactions in all.
        """
        settings = self.game_service.settings(agents, game_mode, num_interactions, messages_per_interaction)
        way = self._way(settings)
        drawn_from = self._seed if seed is None else seed
        record = self._folders.create(settings, way.service, drawn_from, compose.place_of(self._store), job_id)
        return self._fresh(record, way.note)

    async def run_batch_job(self, job_id: str, *, retry_failed: bool = False) -> BatchJob:
        """Run a job, or resume it. `retry_failed` also runs its failed tasks again.

        Failed tasks do not fail the job: its status is then `partial`, and its results list the errors. Running a
        completed job again sends nothing.
        """
        record = self._folders.read(job_id)
        if job_id in self._running:
            raise RunBusy(f"batch job {job_id!r} is already running in this service; wait until it ends")
        way = self._way(record.settings)
        job = self._running[job_id] = self._stored(record)
        try:
            await self._run(record, job, way, retry_failed)
        finally:
            del self._running[job_id]
        return job

    def get_batch_job(self, job_id: str) -> BatchJob:
        """The current state of a job."""
        record = self._folders.read(job_id)
        return self._running.get(job_id) or self._stored(record)

    def list_batch_jobs(self) -> list[BatchJob]:
        """All jobs, oldest first."""
        jobs = [self.get_batch_job(job) for job in self._folders.ids()]
        return sorted(jobs, key=lambda job: (job.created_at, job.id))

    def analyze_batch_results(self, job_id: str) -> Analysis:
        """The figures of a finished job: rates with intervals, comparisons, strengths."""
        with self._look(self._folders.read(job_id)) as found:
            if found is None or found.analysis is None:
                raise RunError(f"batch job {job_id!r} has no results yet; run it with run_batch_job")
            return found.analysis

    def _way(self, settings: Batch | Tournament) -> Way:
        """How requests are sent. Raises `SettingsError` if the models do not fit the service."""
        return way_of(
            self.service,
            {agent.id: agent.model or settings.table.service.model for agent in settings.agents},
            self.batch_size,
            self.max_concurrent_tasks,
            use_batch_api=self.use_batch_api,
            whose=lambda model: compose.provider_of(model, self._accounts, self._account),
        )

    async def _run(self, record: JobRecord, job: BatchJob, way: Way, retry_failed: bool) -> None:
        """Start or resume the run of a job and write its results."""
        progress = Progress(job)
        engine = progress.engine = compose.open(
            self._folders.store(record, self._store),
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
        """A job without progress."""
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
        """A job with its progress from the store."""
        job = self._fresh(record)
        self._refresh(record, job)
        return job

    def _refresh(self, record: JobRecord, job: BatchJob) -> None:
        """Update a job and its tasks from the store."""
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
        """The stored run of a job; None if it has not started."""
        with compose.look_into(self._folders.store(record, self._store)) as store:
            run = None if store is None else store.runs.find(record.id)
            yield None if store is None or run is None else StoredJob(store, run)

    def _write(self, record: JobRecord, job: BatchJob) -> None:
        """Write the results of a job. Runs in a thread, because they may be large."""
        with self._look(record) as found:
            if found is not None:
                write_results(job, interactions_of(found.store.results(found.run))(), record.settings)
                if found.analysis is not None:
                    write_analysis(job, found.analysis)


class OpenAIBatchService(BatchService):
    """`BatchService` with OpenAI's batch API: half the price, replies within 24 hours and usually much sooner.

    All agents must use models from OpenAI.
    """

    service: ClassVar[ServiceName] = "openai"


class AnthropicBatchService(BatchService):
    """`BatchService` with Anthropic's Message Batches API: half the price, replies within 24 hours.

    All agents must use models from Anthropic.
    """

    service: ClassVar[ServiceName] = "anthropic"


class ConversationBatchService(BatchService):
    """Runs all conversations at once, in waves: all first messages, then all second messages, and so on.

    Models may come from any provider, or from several. Requests are live, up to `max_concurrent_tasks` in flight. With
    `use_batch_api`, a wave is one provider batch per model, if the provider has a batch API.
    """

    service: ClassVar[ServiceName] = "conversation"


class OpenAIConversationBatchService(ConversationBatchService):
    """Waves with OpenAI's batch API: one batch per wave, or several of up to `batch_size` requests.

    A single request, and requests of failed batches, are sent live, up to `max_concurrent_tasks` in flight. All agents
    must use models from OpenAI.
    """

    service: ClassVar[ServiceName] = "openai-conversation"


class AnthropicConversationBatchService(ConversationBatchService):
    """Waves with live requests to Anthropic, up to `max_concurrent_tasks` in flight.

    With `use_batch_api`, waves are sent as Message Batches. All agents must use models from Anthropic.
    """

    service: ClassVar[ServiceName] = "anthropic-conversation"


class AutoBatchService(ConversationBatchService):
    """Waves, with the service that fits the providers of the models: theirs, or live requests if there are several.

    The `service` and `note` of a job, and the log, name the chosen service.
    """

    service: ClassVar[ServiceName] = "auto"


auto = AutoBatchService
"""Short name of `AutoBatchService`: `auto(game_service, ...)`."""


class Progress:
    """A listener that updates the tasks of a job and logs progress.

    Events name trials by key; the number of a task is known while its trial is open. Trials that send no request are
    not seen here; the final state is read from the store.
    """

    def __init__(self, job: BatchJob) -> None:
        self.job = job
        self.engine: Engine | None = None
        self._numbers: dict[str, int] = {}
        self._telling = EventLines(self._name)
        self._waves: set[int] = set()
        self._ended = sum(task.status in ("completed", "failed") for task in job.tasks)

    def __call__(self, event: Event) -> None:
        """Handle an event."""
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
        """Map the keys of open trials to task numbers, if one is unknown."""
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
        """Count an ended task; log at every 10%."""
        planned = len(self.job.tasks)
        tenths = self._ended * TENTHS // planned
        self._ended += 1
        if self._ended * TENTHS // planned > tenths:
            log.info("job %s: %d of %d tasks have ended", self.job.id, self._ended, planned)

    def _name(self, trial: str) -> str:
        number = self._numbers.get(trial)
        return trial if number is None else _task_id(number)


def tell_end(job: BatchJob) -> None:
    """Log how a job ended, with the number of failures by kind and an example of each."""
    failed = [(task.id, task.error) for task in job.failed_tasks if task.error is not None]
    for kind, many in Counter(error.kind for _, error in failed).items():
        first, why = next((id_, error.message) for id_, error in failed if error.kind == kind)
        log.warning("job %s: %d failed (%s), for example %s: %s", job.id, many, kind, first, visible(why))
    counted = ", ".join(f"{count} {status}" for status, count in job.counts.items() if count)
    log.info("job %s: %s: %s; %s", job.id, job.status, counted, job.results_path)


def write_results(job: BatchJob, played: Iterable[Interaction], settings: Batch | Tournament) -> None:
    """Write `results.json`, with one line per task."""
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
    """All tasks in order, each with its interaction, or None if it has not started."""
    done = 0
    for each in played:
        number = each.duel.number
        yield from ((task, None) for task in tasks[done:number])
        yield tasks[number], each
        done = number + 1
    yield from ((task, None) for task in tasks[done:])


def _task(task: BatchTask, found: Interaction | None, settings: Batch | Tournament) -> dict[str, Any]:
    """A task with its agents and messages. `trial` is its key for `groundswell runs show --trial`."""
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
    """Whether and in which turn an agent leaked, by tier, and its points in the standard mode."""
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
    """Write `analysis.json`: statistics per agent and overall, then the full analysis."""
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
    """A percentage; None if n is 0."""
    return None if figure.rate is None else 100 * figure.count / figure.n
