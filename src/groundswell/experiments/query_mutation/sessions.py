"""A run for code that is not async: what environments and the batch functions ask through."""

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
    """An engine and one run on it. Without a store it is kept in a temporary one, which goes when it is closed.

    With a store and a name it goes on with the run of that name: steps that it has are not asked for again.
    `max_workers` is how many asks are in flight at once; None: as many as the account bears, found out on the way.
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
            self._clear = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)  # even if nobody closes it
            store = Path(folder) / "session.db"
        try:
            self._engine = open_sync(store, max_concurrent=max_workers, account=account, **how)
            self.run: SyncRun = self._engine.run(name, seed=seed, options=options)
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked through it any more."""
        return self._engine is None

    def map(self, program: Program[S, R], specs: Sequence[S]) -> list[Outcome[R]]:
        """Run a program on every spec at once; the outcomes in the order of the specs."""
        return list(self._open.map(program, specs))

    def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec."""
        return self._open.submit(program, spec, key=key)

    def submit_all(self, program: Program[S, R], work: Sequence[tuple[str, S]]) -> list[Outcome[R]]:
        """Run a program on specs with keys of their own, all at once; the outcomes in the order of the specs."""
        run = self._open
        return run.wait(_submitted(run.run, program, work))

    def world(self, task: Task) -> World:
        """A task within the run. The first time its models are looked for, and its queries embedded, in one call."""
        if task not in self._worlds:
            run = self._open
            self._worlds[task] = run.wait(opened_world(run.run, task, key=None))
        return self._worlds[task]

    def encoded(self, task: Task, text: str) -> bytes:
        """The embedding of a query, be it one of the task's or not; what is known is not asked for again."""
        known = self.world(task).encoded
        if text in known:
            return known[text]
        spec = Encode(task.embedder, task.width, (text,))
        if spec not in self._texts:
            self._texts[spec] = unpacked(spec.texts, self.submit(encode, spec).unwrap())[text]
        return self._texts[spec]

    def occurrence(self, seed: int) -> int:
        """How often an episode of this seed has been begun here, this one included: what its trials' keys go by."""
        self._begun[seed] += 1
        return self._begun[seed]

    def close(self) -> None:
        """End the run. To close again does nothing."""
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
            raise RunError("session: it is closed; open another one, with the same store and name to go on with it")
        return self.run

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _submitted(run: Run, program: Program[S, R], work: Sequence[tuple[str, S]]) -> list[Outcome[R]]:
    return list(await asyncio.gather(*(run.submit(program, spec, key=key) for key, spec in work)))
