"""The experiment whose sessions are killed while its asks are in batches: conversations of two models, turn by turn.

No two asks are equal, so that the provider's books tell whether one was paid for twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from groundswell import Outcome, RetryPolicy, Run, RunOptions, Trial, program
from groundswell.compose import ByModel
from groundswell.engine.engine import Engine
from groundswell.engine.ports import LoopClock, Router, Store
from groundswell.providers.accounts.config import Accounts, load
from groundswell.store.journal import Store as FileStore
from tests.crash.points import Trap, WatchedRouter, WatchedStore
from tests.patience import PATIENCE
from tests.transports.scene import KEY, MODELS, environment

RUN = "batched"
POLL = 0.02
SETTLES = 0.5
"""Seconds to look for an order that nobody has, or for a batch that is not shown, before it is sent again."""
Pair = Literal["openai", "anthropic", "mixed"]
PAIRS: dict[Pair, tuple[str, str]] = {
    "openai": (MODELS["openai"], MODELS["openai"]),
    "anthropic": (MODELS["anthropic"], MODELS["anthropic"]),
    "mixed": (MODELS["openai"], MODELS["anthropic"]),
}


class Settings(msgspec.Struct, frozen=True):
    """How large the experiment is, and who talks to whom."""

    pair: Pair = "mixed"
    trials: int = 6
    turns: int = 3

    @property
    def asks(self) -> int:
        """How many asks it takes."""
        return self.trials * self.turns


class Spec(msgspec.Struct, frozen=True):
    number: int
    turns: int
    models: tuple[str, str]


class Job(msgspec.Struct, frozen=True):
    """One session: which experiment, where, and how it ends. `point` has a name and a number."""

    store: str
    url: str
    settings: Settings
    key: str = KEY
    via: Literal["live", "batch"] = "batch"
    batch_size: int | None = None
    point: tuple[str, int] | None = None


@program("tests/crash/batched")
async def conversation(trial: Trial, spec: Spec) -> list[str]:
    """Half of the conversations begin with the one model, half with the other, and each hears what was said last."""
    said: list[str] = []
    for turn in range(spec.turns):
        heard = said[-1] if said else "nothing yet"
        asked = f"talk {spec.number}, turn {turn}, heard: {heard}"
        said.append((await trial.ask(spec.models[(spec.number + turn) % 2], asked, max_tokens=12)).text)
    return said


async def driver(run: Run, settings: Settings) -> list[list[str] | None]:
    return [outcome.result for outcome in await outcomes(run, settings)]


async def outcomes(run: Run, settings: Settings) -> list[Outcome[list[str]]]:
    """What becomes of all conversations."""
    specs = [Spec(number, settings.turns, PAIRS[settings.pair]) for number in range(settings.trials)]
    return [outcome async for outcome in run.map(conversation, specs)]


def accounts(job: Job) -> Accounts:
    """Both providers at one address; they are looked at often."""
    fields = [f"batch_poll={POLL}", f"batch_patience={SETTLES}", f"timeout={PATIENCE}"]
    said = [f"{name}.{field}" for name in ("openai", "anthropic") for field in fields]
    folder = Path(job.store).parent
    return load(environment(job.url, job.key), folder, folder / "home", said)


async def session(job: Job, store: Store, router: Router | None = None) -> list[Outcome[list[str]]]:
    """One attempt to bring the run to its end."""
    way = router or ByModel(lambda: accounts(job), None, ())
    retry = RetryPolicy(first_wait=0.01, longest_wait=0.05)
    options = RunOptions(via=job.via, batch_size=job.batch_size, retry=retry, max_reorder_usd=None)  # no prices here
    async with Engine(store, way, LoopClock()) as engine:
        return await outcomes(engine.run(RUN, seed=7, options=options), job.settings)


async def doomed(job: Job) -> None:
    """A session that kills its own process at a point, if it gets there."""
    if job.point is None:
        await session(job, FileStore(job.store))
        return
    trap = Trap(*job.point, job.store)
    await session(job, WatchedStore(job.store, trap), WatchedRouter(lambda: accounts(job), trap))
