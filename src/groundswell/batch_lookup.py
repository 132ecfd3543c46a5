"""Looks batches up: what the store knows about them, and their current state at the provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundswell import compose
from groundswell.engine.events import BatchChanged, Event
from groundswell.engine.ports import Batching, Router
from groundswell.engine.records import BatchInfo
from groundswell.errors import RunError, SettingsError, WaveError
from groundswell.providers.accounts.config import Accounts, load_here
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave

T = TypeVar("T")

PATIENCE = 30.0
"""Timeout in seconds for a provider, while somebody waits."""
AT_ONCE = 8
RECENT = 2 * 86_400.0
"""Maximum age of the batches that `list --all` shows. A batch ends after one day at most."""
SHOWN = 5
MOST_ENDED = 100
"""The state of a batch that has ended is forgotten after so many others."""


class Problem(NamedTuple):
    """Why the state of a batch is unknown: in a few words, and in full."""

    short: str
    message: str


class FoundBatch(NamedTuple):
    """A batch: its wave, if it is in this store, and its state at the provider or why that is unknown."""

    account: str
    transport: str
    wave: StoredWave | None = None
    info: BatchInfo | None = None
    problem: Problem | None = None

    @property
    def batch(self) -> str | None:
        """The provider's id, if it is known."""
        if self.info is not None:
            return self.info.id
        return None if self.wave is None else self.wave.batch


class Providers:
    """Queries providers about batches: `async with Providers() as providers`. Settings are read when needed."""

    def __init__(self, router: Router | None = None, overrides: Sequence[str] = ()) -> None:
        """`overrides` are account settings from the command line."""
        self._overrides = overrides
        self._loaded: Accounts | None = None
        self._router: Router = router or compose.ByModel(lambda: self.accounts, None, ())
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def __aenter__(self) -> Providers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._router.close()

    @property
    def accounts(self) -> Accounts:
        """The accounts of this process."""
        if self._loaded is None:
            self._loaded = load_here(self._overrides)
        return self._loaded

    def way(self, transport: str, account: str) -> Batching | Problem:
        """The batch API of an account, or why there is none."""
        try:
            way = self._router.transport(transport, account)
        except SettingsError as error:
            return Problem("not set up", str(error))
        if isinstance(way, Batching):
            return way
        return Problem("not set up", f"account {account}, as configured now, has no batch API of type {transport}")

    def way_of(self, wave: StoredWave) -> Batching | Problem:
        """The batch API for a wave, which must have been sent with the current key of the account."""
        way = self.way(wave.transport, wave.account)
        if isinstance(way, Batching) and wave.about.owner not in ("", way.owner):
            return Problem(
                "another key",
                f"it was sent with a different key or address than {wave.account} has now: use the former one; if "
                f"both belong to the same organisation: groundswell batches adopt {wave.run}",
            )
        return way

    def ready(self, only: str | None = None) -> Iterator[tuple[str, Batching]]:
        """The accounts with a batch API and a key. Accounts that share a key appear once."""
        owners: set[str] = set()
        for name in self.accounts.names if only is None else (only,):
            try:
                batch = self.accounts.account(name).batch_format
            except SettingsError:
                if only is not None:
                    raise
                continue
            way = None if batch is None else self.way(batch.name, name)
            if isinstance(way, Batching) and way.owner not in owners:
                owners.add(way.owner)
                yield name, way
            elif only is not None:
                raise SettingsError(f"--account {only}: it has no batch API; list accounts: groundswell models list")

    async def look(self, wave: StoredWave) -> FoundBatch:
        """A wave with its current state at the provider."""
        found = FoundBatch(wave.account, wave.transport, wave)
        way = self.way_of(wave)
        if isinstance(way, Problem):
            return found._replace(problem=way)
        if wave.batch is None:
            return found._replace(problem=NOT_KNOWN)
        info = await self._asked(wave.account, way.look(wave.batch))
        if isinstance(info, Problem):
            return found._replace(problem=info)
        if info is None:
            return found._replace(problem=_gone(wave.account, wave.batch))
        return found._replace(info=info)

    async def cancel(self, found: FoundBatch) -> FoundBatch:
        """Cancel a batch whose state is known, and query its new state."""
        assert found.info is not None
        way = self.way(found.transport, found.account)
        if isinstance(way, Problem):
            raise RunError(way.message)
        await way.cancel(found.info.id)
        return found._replace(info=await way.look(found.info.id))

    async def listed(self, account: str, way: Batching, since: float) -> list[BatchInfo] | Problem:
        """The batches of an account that were created after a time."""

        async def all_of_them() -> list[BatchInfo]:
            return [info async for info in way.listed(since)]

        return await self._asked(account, all_of_them())

    async def search(self, batch: str, only: str | None) -> FoundBatch | None:
        """A batch that is not in the store, on any account."""
        problems: list[str] = []
        for name, way in self.ready(only):
            found = await self._asked(name, way.look(batch))
            if isinstance(found, BatchInfo):
                return FoundBatch(name, way.name, None, found)
            if isinstance(found, Problem):
                problems.append(f"{name}: {found.message}")
        if problems:
            raise RunError(f"batch {batch} was not found; some accounts could not be queried: {'; '.join(problems)}")
        return None

    async def _asked(self, account: str, asking: Awaitable[T]) -> T | Problem:
        """The answer of a provider, or why there is none in time."""
        try:
            async with self._gate, asyncio.timeout(PATIENCE):
                return await asking
        except TimeoutError:
            return Problem("no answer", f"{account} did not answer within {PATIENCE:.0f} s")
        except WaveError as error:
            return Problem("not reached", f"{account}: {error}")


class BatchStates:
    """The last known states of batches: from the events of runs of this process, or from when a user asked."""

    def __init__(self) -> None:
        self._infos: dict[str, BatchInfo] = {}

    def on_event(self, event: Event) -> None:
        """Record the state in an event of a run."""
        if isinstance(event, BatchChanged):
            known = self._infos.get(event.batch) or BatchInfo(event.batch, "in_progress", 0, 0, 0, 0.0)
            values: Any = {"state": event.state, "done": event.done, "failed": event.failed, "total": event.total}
            self.record(msgspec.structs.replace(known, **values))

    def record(self, info: BatchInfo) -> None:
        """Record a state."""
        self._infos.pop(info.id, None)
        self._infos[info.id] = info  # at the end: the most recent
        for old in [id_ for id_, each in list(self._infos.items())[:-MOST_ENDED] if not each.open]:
            del self._infos[old]

    def batch_of(self, wave: StoredWave) -> FoundBatch:
        """A wave with the last known state of its batch."""
        info = self._infos.get(wave.batch or "")
        return FoundBatch(wave.account, wave.transport, wave, info, None if info is not None else NOT_ASKED)


NOT_ASKED = Problem("not asked", "")
NOT_KNOWN = Problem("not known yet", "it is unknown whether the batch was created; resuming its run finds out")


def _gone(account: str, batch: str) -> Problem:
    return Problem("not found", f"the current key of {account} sees no batch {batch}")


async def look_at(waves: Sequence[StoredWave], providers: Providers) -> list[FoundBatch]:
    """Waves with their current state at the providers."""
    return await asyncio.gather(*(providers.look(wave) for wave in waves))


async def with_unknown_batches(
    found: Sequence[FoundBatch], known: Iterable[str], providers: Providers
) -> tuple[list[FoundBatch], dict[str, Problem]]:
    """Adds batches that are not in the store. Also returns the accounts that could not be listed.

    A batch whose metadata names a wave without a known batch is merged into that wave.
    """
    batches = list(found)
    unnamed = {
        (each.wave.run, each.wave.id): at for at, each in enumerate(found) if each.wave and each.wave.batch is None
    }
    problems: dict[str, Problem] = {}
    ours = set(known)
    for name, way in list(providers.ready()):
        listed = await providers.listed(name, way, time.time() - RECENT)
        if isinstance(listed, Problem):
            problems[name] = listed
            continue
        for info in listed:
            place = unnamed.get((info.run or "", info.wave or 0))
            if place is not None:
                batches[place] = batches[place]._replace(info=info, problem=None)
            elif info.id not in ours:
                batches.append(FoundBatch(name, way.name, None, info))
    return batches, problems


def named(store: Store, text: str) -> StoredWave | None:
    """The wave with a provider's batch id, or RUN/WAVE; None if it is not in the store."""
    wave = store.waves.of_batch(text)
    run, slash, number = text.rpartition("/")
    if wave is None and slash and (record := store.runs.find(run)) is not None:
        wave = store.waves.find(record, number_of(number))
        if wave is None:
            raise RunError(f"run {record.title!r} has no wave {number}; {in_flight(store)}")
    return wave


def number_of(text: str) -> int:
    """The number of a wave; 0 if the text is not a number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else 0


def in_flight(store: Store) -> str:
    """The batches in flight, for an error about a wrong name."""
    waves = store.waves.open()
    if not waves:
        return "this store has no batches in flight"
    some = ", ".join(wave.title + (f" ({wave.batch})" if wave.batch else "") for wave in waves[:SHOWN])
    more = f" and {len(waves) - SHOWN} more" if len(waves) > SHOWN else ""
    return f"in flight: {some}{more}"


def no_such(store: Store, text: str) -> RunError:
    """The error for an unknown batch."""
    return RunError(
        f"there is no batch {text} in this store or on a configured account; {in_flight(store)}; "
        "to list the batches of all accounts: groundswell batches list --all"
    )


def described(found: FoundBatch, now: float) -> dict[str, Any]:
    """A batch as a JSON object."""
    wave, info = found.wave, found.info
    created = info.created_at if info is not None and info.created_at else None if wave is None else wave.at
    return {
        "run_id": wave.run if wave is not None else None if info is None else info.run,
        "run": None if wave is None else wave.name,
        "wave": None if wave is None else wave.number,
        "known": wave is not None,
        "account": found.account,
        "transport": found.transport,
        "model": None if wave is None else wave.about.model or None,
        "requests": wave.size if wave is not None else 0 if info is None else info.total,
        "batch": found.batch,
        "state": None if info is None else info.state,
        "done": None if info is None else info.done,
        "failed": None if info is None else info.failed,
        "created_at": created,
        "age_seconds": None if created is None else round(now - created, 1),
        "expires_at": None if info is None else info.expires_at,
        "ended_at": None if info is None else info.ended_at,
        "usd": None if wave is None else wave.about.usd,
        "problem": None if found.problem is None else found.problem.message or found.problem.short,
    }


def state(found: FoundBatch) -> str:
    """The state of a batch in a few words."""
    info = found.info
    if info is None:
        return "" if found.problem is None else found.problem.short
    words = info.state.replace("_", " ")
    if info.done:
        words += f", {info.done:,} of {info.total:,} done"
    if info.failed:
        words += f", {info.failed:,} failed"
    if not info.open and found.wave is not None and found.wave.ended_at is None:
        words += ", not collected yet"
    return words


def total(batches: Sequence[FoundBatch]) -> dict[str, Any]:
    """The totals of all batches. Batches of other stores have no known cost."""
    ours = [each.wave for each in batches if each.wave is not None]
    known = [wave.about.usd for wave in ours if wave.about.usd is not None]
    return {
        "batches": len(batches),
        "requests": sum(b.wave.size if b.wave else b.info.total if b.info else 0 for b in batches),
        "usd": sum(known) if known else None,
        "unknown": len(batches) - len(known),
    }
