"""Looks batches up: what the store knows about them, and their current state at the provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from groundswell import compose
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
        sight = FoundBatch(wave.account, wave.transport, wave)
        way = self.way_of(wave)
        if isinstance(way, Problem):
            return sight._replace(problem=way)
        if wave.batch is None:
            return sight._replace(problem=NOT_KNOWN)
        found = await self._asked(wave.account, way.look(wave.batch))
        if isinstance(found, Problem):
            return sight._replace(problem=found)
        if found is None:
            return sight._replace(problem=_gone(wave.account, wave.batch))
        return sight._replace(info=found)

    async def cancel(self, sight: FoundBatch) -> FoundBatch:
        """Cancel a batch whose state is known, and query its new state."""
        assert sight.info is not None
        way = self.way(sight.transport, sight.account)
        if isinstance(way, Problem):
            raise RunError(way.message)
        await way.cancel(sight.info.id)
        return sight._replace(info=await way.look(sight.info.id))

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


NOT_ASKED = Problem("not asked", "")
NOT_KNOWN = Problem("not known yet", "it is unknown whether the batch was created; resuming its run finds out")


def _gone(account: str, batch: str) -> Problem:
    return Problem("not found", f"the current key of {account} sees no batch {batch}")


async def look_at(waves: Sequence[StoredWave], providers: Providers) -> list[FoundBatch]:
    """Waves with their current state at the providers."""
    return await asyncio.gather(*(providers.look(wave) for wave in waves))


async def look_around(
    sights: Sequence[FoundBatch], known: Iterable[str], providers: Providers
) -> tuple[list[FoundBatch], dict[str, Problem]]:
    """Adds batches that are not in the store. Also returns the accounts that could not be listed.

    A batch whose metadata names a wave without a known batch is merged into that wave.
    """
    seen = list(sights)
    unnamed = {(s.wave.run, s.wave.id): at for at, s in enumerate(sights) if s.wave and s.wave.batch is None}
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
                seen[place] = seen[place]._replace(info=info, problem=None)
            elif info.id not in ours:
                seen.append(FoundBatch(name, way.name, None, info))
    return seen, problems


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


def described(sight: FoundBatch, now: float) -> dict[str, Any]:
    """A batch as a JSON object."""
    wave, info = sight.wave, sight.info
    created = info.created_at if info is not None and info.created_at else None if wave is None else wave.at
    return {
        "run_id": wave.run if wave is not None else None if info is None else info.run,
        "run": None if wave is None else wave.name,
        "wave": None if wave is None else wave.number,
        "known": wave is not None,
        "account": sight.account,
        "transport": sight.transport,
        "model": None if wave is None else wave.about.model or None,
        "requests": wave.size if wave is not None else 0 if info is None else info.total,
        "batch": sight.batch,
        "state": None if info is None else info.state,
        "done": None if info is None else info.done,
        "failed": None if info is None else info.failed,
        "created_at": created,
        "age_seconds": None if created is None else round(now - created, 1),
        "expires_at": None if info is None else info.expires_at,
        "ended_at": None if info is None else info.ended_at,
        "usd": None if wave is None else wave.about.usd,
        "problem": None if sight.problem is None else sight.problem.message or sight.problem.short,
    }


def state(sight: FoundBatch) -> str:
    """The state of a batch in a few words."""
    info = sight.info
    if info is None:
        return "" if sight.problem is None else sight.problem.short
    words = info.state.replace("_", " ")
    if info.done:
        words += f", {info.done:,} of {info.total:,} done"
    if info.failed:
        words += f", {info.failed:,} failed"
    if not info.open and sight.wave is not None and sight.wave.ended_at is None:
        words += ", not collected yet"
    return words


def total(sights: Sequence[FoundBatch]) -> dict[str, Any]:
    """The totals of all batches. Batches of other stores have no known cost."""
    ours = [sight.wave for sight in sights if sight.wave is not None]
    known = [wave.about.usd for wave in ours if wave.about.usd is not None]
    return {
        "batches": len(sights),
        "requests": sum(s.wave.size if s.wave else s.info.total if s.info else 0 for s in sights),
        "usd": sum(known) if known else None,
        "unknown": len(sights) - len(known),
    }
