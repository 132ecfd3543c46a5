"""Batches as they are seen: what the store knows of them, and what their providers say now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from groundswell import compose
from groundswell.engine.ports import Batching, Router
from groundswell.engine.records import BatchInfo
from groundswell.errors import RunError, SettingsError, WaveError
from groundswell.providers.accounts.config import Accounts, load_here
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds within which a provider must answer somebody who waits at a terminal."""
AT_ONCE = 8
RECENT = 2 * 86_400.0
"""How old batches may be that `list --all` shows: they are worked on for a day at the most."""
SHOWN = 5


class Problem(NamedTuple):
    """Why a batch cannot be seen: in a few words, and in full."""

    short: str
    message: str


class Sight(NamedTuple):
    """A batch: the wave of this store that it is, if it is one, and how its provider shows it, or why it does not."""

    account: str
    transport: str
    wave: StoredWave | None = None
    info: BatchInfo | None = None
    problem: Problem | None = None

    @property
    def batch(self) -> str | None:
        """What the provider calls it, where that is known."""
        if self.info is not None:
            return self.info.id
        return None if self.wave is None else self.wave.batch


class Providers:
    """Asks providers about batches: `async with Providers() as providers`. Nothing is read before it is needed."""

    def __init__(self, router: Router | None = None) -> None:
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
            self._loaded = load_here()
        return self._loaded

    def way(self, transport: str, account: str) -> Batching | Problem:
        """How an account's batches are reached, or why they cannot be."""
        try:
            way = self._router.transport(transport, account)
        except SettingsError as error:
            return Problem("not set up", str(error))
        if isinstance(way, Batching):
            return way
        return Problem("not set up", f"{account} has no batch API of the kind {transport} as it is set up now")

    def way_of(self, wave: StoredWave) -> Batching | Problem:
        """The same for a wave, which must have been sent with the key that the account has now."""
        way = self.way(wave.transport, wave.account)
        if isinstance(way, Batching) and wave.about.owner not in ("", way.owner):
            return Problem(
                "another key",
                f"it was sent with another key, or to another address, than {wave.account} has now: use that one "
                f"again; if both belong to the same organisation, `groundswell batches adopt {wave.run}`",
            )
        return way

    def ready(self, only: str | None = None) -> Iterator[tuple[str, Batching]]:
        """The accounts with a batch API whose keys are here; those that share a key, once."""
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
                raise SettingsError(f"--account {only}: it has no batch API: `groundswell models list` shows accounts")

    async def look(self, wave: StoredWave) -> Sight:
        """A wave as its provider shows it now."""
        sight = Sight(wave.account, wave.transport, wave)
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

    async def listed(self, account: str, way: Batching, since: float) -> list[BatchInfo] | Problem:
        """The batches of an account that were made after a time."""

        async def all_of_them() -> list[BatchInfo]:
            return [info async for info in way.listed(since)]

        return await self._asked(account, all_of_them())

    async def search(self, batch: str, only: str | None) -> Sight | None:
        """A batch that no run of the store knows, on whichever account has it."""
        problems: list[str] = []
        for name, way in self.ready(only):
            found = await self._asked(name, way.look(batch))
            if isinstance(found, BatchInfo):
                return Sight(name, way.name, None, found)
            if isinstance(found, Problem):
                problems.append(f"{name}: {found.message}")
        if problems:
            raise RunError(f"batch {batch} was not found, but not all accounts could be asked: {'; '.join(problems)}")
        return None

    async def _asked(self, account: str, asking: Awaitable[T]) -> T | Problem:
        """What a provider answers, if it does in time."""
        try:
            async with self._gate, asyncio.timeout(PATIENCE):
                return await asking
        except TimeoutError:
            return Problem("no answer", f"{account} did not answer within {PATIENCE:.0f} s")
        except WaveError as error:
            return Problem("not reached", f"{account}: {error}")


NOT_ASKED = Problem("not asked", "")
NOT_KNOWN = Problem("not known yet", "it is not known yet whether it was sent: resuming its run finds that out")


def _gone(account: str, batch: str) -> Problem:
    return Problem("not there", f"{account} knows no batch {batch} with the key that it has now")


async def look_at(waves: Sequence[StoredWave], providers: Providers) -> list[Sight]:
    """Waves as their providers show them now."""
    return await asyncio.gather(*(providers.look(wave) for wave in waves))


async def look_around(
    sights: Sequence[Sight], known: Iterable[str], providers: Providers
) -> tuple[list[Sight], dict[str, Problem]]:
    """What the accounts have beside what the store knows; and the accounts that do not say.

    A batch that says which wave it is takes its place there.
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
                seen.append(Sight(name, way.name, None, info))
    return seen, problems


def named(store: Store, text: str) -> StoredWave | None:
    """The wave that somebody means: a provider's batch, or RUN/WAVE. None: no run knows such a batch."""
    wave = store.waves.of_batch(text)
    run, slash, number = text.rpartition("/")
    if wave is None and slash and (record := store.runs.find(run)) is not None:
        wave = store.waves.find(record, number_of(number))
        if wave is None:
            raise RunError(f"run {record.title!r} has no wave {number}; {in_flight(store)}")
    return wave


def number_of(text: str) -> int:
    """A wave's number as people write it; 0 for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else 0


def in_flight(store: Store) -> str:
    """What there is, for those who gave a wrong name."""
    waves = store.waves.open()
    if not waves:
        return "no run of this store has a batch in flight"
    some = ", ".join(wave.title + (f" ({wave.batch})" if wave.batch else "") for wave in waves[:SHOWN])
    more = f" and {len(waves) - SHOWN} more" if len(waves) > SHOWN else ""
    return f"in flight are {some}{more}"


def no_such(store: Store, text: str) -> RunError:
    """Nobody knows a batch of that name."""
    return RunError(
        f"there is no batch {text}, in this store or on an account that is set up: {in_flight(store)}; "
        "`groundswell batches list --all` shows what the accounts have"
    )
