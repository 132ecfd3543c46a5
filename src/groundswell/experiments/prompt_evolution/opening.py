"""How an engine is opened as a configuration says, and a run on it for those who ask without a driver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from groundswell import compose
from groundswell.engine.events import Listener
from groundswell.engine.options import RunOptions
from groundswell.engine.run import Run
from groundswell.errors import RunError
from groundswell.experiments.named import trust_named
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig, EvolutionConfig
from groundswell.experiments.prompt_evolution.limits import accounts_of
from groundswell.experiments.prompt_evolution.metrics import find_metric
from groundswell.experiments.prompt_evolution.solving import solve

R = TypeVar("R")
T = TypeVar("T", bound="Opened")
ELSEWHERE = ("script", "transport", "router", "accounts")
"""Options of `groundswell.open` that stand in the place of the accounts of this folder."""


def engine_options(config: EvolutionConfig, account: Sequence[str], how: Mapping[str, Any]) -> dict[str, Any]:
    """What `groundswell.open` is told: how much may be in flight, and what is said of the accounts that are asked.

    `account` has settings of accounts in the form of flags, which come last, and `how` other options of `open`.
    """
    said = [] if any(how.get(name) is not None for name in ELSEWHERE) else accounts_of(config, account)
    return {"max_concurrent": config.most_in_flight, **how, "account": [*said, *account]}


class Opened:
    """An engine and one run on it, for as long as its block lasts.

    Without a `name` the run is a new one: replies that the store has are not asked for again, and what failed before
    gets another chance. With one it goes on with the run of that name, and has from it what failed too.
    `how` is what else `groundswell.open` takes.
    """

    def __init__(
        self,
        config: EvolutionConfig | None = None,
        *,
        store: str | Path = "groundswell.db",
        name: str | None = None,
        account: Sequence[str] = (),
        listeners: Sequence[Listener] = (),
        options: RunOptions | None = None,
        **how: Any,
    ) -> None:
        self.config = AsyncEvolutionConfig() if config is None else config
        self._store = store
        self._name = name
        self._account = account
        self._options = options
        self._how = {**how, "listeners": listeners}
        self._begun: dict[str, asyncio.Future[Any]] = {}
        self._stack: AsyncExitStack | None = None
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The run that everything is asked in."""
        if self._run is None:
            raise RunError(f"{type(self).__name__}: it is not open; use it as `async with {type(self).__name__}(...)`")
        return self._run

    async def _begin(self, run: Run) -> None:
        """Make ready what the run is used with."""

    async def _once(self, key: str, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Do what has this key, or wait for it where it has begun. One who waits no longer leaves it to the others."""
        if key not in self._begun:
            self._begun[key] = asyncio.ensure_future(work())
        found: R = await asyncio.shield(self._begun[key])
        return found

    async def __aenter__(self: T) -> T:
        if self._stack is not None:
            raise RunError(f"{type(self).__name__}: it is open already")
        trust_named([self.config.metric])
        metric, how = find_metric(self.config.metric), engine_options(self.config, self._account, self._how)
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(compose.open(self._store, **how))
            run = engine.run(self._name, seed=self.config.seed, options=self._options)
            await stack.enter_async_context(run)
            run.relies_on(solve, [metric])
            await self._begin(run)
            self._run, self._stack = run, stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack, self._run = self._stack, None, None
        for each in self._begun.values():
            each.cancel()
        self._begun = {}
        if stack is not None:
            await stack.__aexit__(kind, error, trace)
