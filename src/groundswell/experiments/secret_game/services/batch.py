"""The batch services. Each is a name from ways.py over the same engine, the same drivers and the same jobs.

create_batch_job   what is to be played, on disk
run_batch_job      play it, or go on where it was left: engine.drive; then results.json and analysis.json
get_batch_job      how far it is, from the store
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from groundswell import compose
from groundswell.engine.driver import Driver
from groundswell.engine.engine import Engine
from groundswell.engine.events import Listener
from groundswell.engine.options import RunOptions
from groundswell.errors import RunBusy, RunError
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.modes import GameMode
from groundswell.experiments.secret_game.playing import Batch, Tournament, play, tournament
from groundswell.experiments.secret_game.services.game import GameService
from groundswell.experiments.secret_game.services.jobs import RESULTS, BatchJob, JobFolders, JobRecord
from groundswell.experiments.secret_game.services.progress import Progress, log, tell_end
from groundswell.experiments.secret_game.services.stored import StoredJob, refresh
from groundswell.experiments.secret_game.services.ways import MAX_CONCURRENT, ServiceName, Way, check_number, way_of
from groundswell.experiments.secret_game.services.written import Scoring, write_analysis, write_results

if TYPE_CHECKING:
    from groundswell.providers.accounts.config import Accounts


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
        record = self._folders.read(job_id)
        with self._look(record) as found:
            if found is None or found.run.analysis is None:
                raise RunError(f"batch job {job_id!r} has no results yet: run it with run_batch_job")
            return msgspec.json.decode(found.run.analysis, type=Analysis)

    def _way(self, settings: Batch | Tournament) -> Way:
        """How a job travels; raises `SettingsError` if it cannot with this service."""
        models = {agent.id: agent.model or settings.table.service.model for agent in settings.agents}
        return way_of(
            self.service,
            models,
            self.batch_size,
            self.max_concurrent_tasks,
            use_batch_api=self.use_batch_api,
            whose=lambda model: compose.provider_of(model, self._accounts, self._account),
        )

    async def _run(self, record: JobRecord, job: BatchJob, way: Way, retry_failed: bool) -> None:
        progress = Progress(job)
        engine = compose.open(
            self._folders.store(record),
            accounts=self._accounts,
            account=self._account,
            max_concurrent=way.max_concurrent,
            listeners=[progress, *self._listeners],
        )
        progress.engine = engine
        job.note = way.note
        log.info("job %s: %d tasks, %s", job.id, len(job.tasks), way.note)
        try:
            async with engine:
                await _drive(engine, record, self._options_of(way), retry_failed)
        finally:
            with self._look(record) as found:
                refresh(job, found)
        await asyncio.to_thread(self._write, record, job)
        tell_end(job)

    def _options_of(self, way: Way) -> RunOptions:
        """What the service says of routes and grouping, and what the user says of all else."""
        said = way.options
        return msgspec.structs.replace(
            self._options, schedule=said.schedule, window=said.window, via=said.via, batch_size=said.batch_size
        )

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
        with self._look(record) as found:
            refresh(job, found)
        return job

    @contextmanager
    def _look(self, record: JobRecord) -> Iterator[StoredJob | None]:
        """The run of a job; None if there is none yet."""
        with compose.look_into(self._folders.store(record)) as store:
            run = None if store is None else store.runs.find(record.id)
            yield None if store is None or run is None else StoredJob(run, store.runs.state(run), store.results(run))

    def _write(self, record: JobRecord, job: BatchJob) -> None:
        """Write what came of a job; off the loop, since it may be much."""
        with self._look(record) as found:
            if found is not None:
                write_results(job, found.results, Scoring.of(record.settings))
                if found.run.analysis is not None:
                    analysis = msgspec.json.decode(found.run.analysis, type=Analysis)
                    write_analysis(job.analysis_path, job.id, analysis)


async def _drive(engine: Engine, record: JobRecord, options: RunOptions, retry_failed: bool) -> None:
    """Start the run of a job, or go on with it; the name of the run is the id of the job."""
    if retry_failed and engine.store.runs.find(record.id) is not None:
        await engine.resume(record.id, retry_missing=True, options=options)
        return
    driver: Driver = play if record.batch is not None else tournament
    await engine.drive(driver, record.settings, name=record.id, seed=record.seed, options=options)


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
