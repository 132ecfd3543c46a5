"""A run for code that is not async: what environments and the batch functions ask through."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from groundswell.engine.outcome import Outcome
from groundswell.engine.run import RunOptions
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
        self._folder = tempfile.mkdtemp(prefix="groundswell-") if store is None else None
        path = Path(self._folder) / "session.db" if self._folder is not None else store
        self._engine: SyncEngine | None = None
        try:
            self._engine = open_sync(path, max_concurrent=max_workers, account=account, **how)
            self.run: SyncRun = self._engine.run(name, seed=seed, options=options)
        except BaseException:
            self.close()
            raise

    def map(self, program: Program[S, R], specs: Sequence[S]) -> list[Outcome[R]]:
        """Run a program on every spec at once; the outcomes in the order of the specs."""
        return list(self.run.map(program, specs))

    def submit(self, program: Program[S, R], spec: S, *, key: str | None = None) -> Outcome[R]:
        """Run a program on one spec."""
        return self.run.submit(program, spec, key=key)

    def close(self) -> None:
        """End the run. To close again does nothing."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
