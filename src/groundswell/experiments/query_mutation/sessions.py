"""Sessions: a run for synchronous code. Environments and batch functions send their requests through one."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from groundswell.engine.options import RunOptions
from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.errors import RunError
from groundswell.experiments.query_mutation.playing import World, opened_world, unpacked
from groundswell.experiments.query_mutation.stepping import Encode, encode
from groundswell.experiments.query_mutation.task import Task
from groundswell.portal import SyncEngine, SyncRun, open_sync
from groundswell.program.trial import Program

S = TypeVar("S")
R = TypeVar("R")


class Session:
    """An engine with one run. Without `store` it uses a temporary store that is deleted when the session is closed.

    With `store` and `name` it continues the run of that name: recorded steps are not requested again. `max_workers` is
    the maximum number of requests in flight (None: adaptive).
    """

    def __init__(
        self,
        *,
        store: str | Path | None = None,
        name: str | None = None,
        seed: int = 0,
        max_workers: int | None = None,
        account: Sequence[str] = (),
        options: RunOptions | None = None,
        **how: Any,
    ) -> None:
        self._worlds: dict[Task, World] = {}
        self._texts: dict[Encode, bytes] = {}
        self._begun: Counter[int] = Counter()
        self._engine: SyncEngine | None = None
        self._clear: Callable[[], object] | None = None
        if store is None:
            folder = tempfile.mkdtemp(prefix="groundswell-")
            self._clear = weakref.finalize(
                self, shutil.rmtree, folder, ignore_errors=True
            )  # also if it is never closed
            store = Path(folder) / "session.db"
        try:
            self._engine = open_sync(store, max_concurrent=max_workers, account=account, **how)
            self.run: SyncRun = self._engine.run(name, seed=seed, options=options)
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether the session is closed."""
        return self._engine is None

    def map(self, program: Program[S, R], specs: Sequence[S]) -> list[Outcome[R]]:
        """Run a program on all specs concurrently. Returns the outcomes in the order of the specs."""
        return list(self._open.map(program, specs))

    def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec."""
        return self._open.submit(program, spec, key=key)

    def submit_all(self, program: Program[S, R], work: Sequence[tuple[str, S]]) -> list[Outcome[R]]:
        """Run a program on specs with explicit keys, concurrently. Returns the outcomes in the order of the specs."""
        run = self._open
        return run.wait(_submitted(run.run, program, work))

    def world(self, task: Task) -> World:
        """A task in the run. The first call checks its models and embeds its queries in one request."""
        if task not in self._worlds:
            run = self._open
            self._worlds[task] = run.wait(opened_world(run.run, task, key=None))
        return self._worlds[task]

    def encoded(self, task: Task, text: str) -> bytes:
        """The embedding of any query. Known embeddings are not requested again."""
        known = self.world(task).encoded
        if text in known:
            return known[text]
        spec = Encode(task.embedder, task.width, (text,))
        if spec not in self._texts:
            self._texts[spec] = unpacked(spec.texts, self.submit(encode, spec).unwrap())[text]
        return self._texts[spec]

    def occurrence(self, seed: int) -> int:
        """Number of episodes begun with this seed, including this one. It is part of the trial keys."""
        self._begun[seed] += 1
        return self._begun[seed]

    def continued(self, seed: int, occurrence: int) -> None:
        """Note an episode that was begun in another session, so that its trial keys are not used again."""
        self._begun[seed] = max(self._begun[seed], occurrence)

    def close(self) -> None:
        """End the run. Closing twice is harmless."""
        engine, self._engine = self._engine, None
        try:
            if engine is not None:
                engine.close()
        finally:
            if self._clear is not None:
                self._clear()

    @property
    def _open(self) -> SyncRun:
        if self._engine is None:
            raise RunError("The session is closed. Open a new one; the same store and name continue its run.")
        return self.run

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _submitted(run: Run, program: Program[S, R], work: Sequence[tuple[str, S]]) -> list[Outcome[R]]:
    return list(await asyncio.gather(*(run.submit(program, spec, key=key) for key, spec in work)))
