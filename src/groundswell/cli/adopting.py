"""`groundswell batches adopt`: assign a provider batch to a wave, or mark the wave as lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Literal, NamedTuple, cast

import msgspec

from groundswell.batch_lookup import PATIENCE, Problem, Providers, number_of
from groundswell.cli import output
from groundswell.cli.batch_views import SCRIPT
from groundswell.engine.ports import Batching
from groundswell.engine.records import Absent, BatchInfo, Found, Receipt, RunRecord, Settled
from groundswell.errors import RunError, SettingsError, WaveError, WaveOutOfReach
from groundswell.program.request import Fault, FaultKind
from groundswell.providers.registry import BATCH_FORMATS
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave
from groundswell.transports.batch import LEFT, NO_RESULT, SKEW, receipt_of

CANDIDATES = 5
NOTHING_CAME = (NO_RESULT, *LEFT.values())
"""Settlements of requests that the results of a batch do not contain."""

What = Literal["adopted", "absent", "undecided", "unseen", "given_up"]


class Wanted(NamedTuple):
    """The arguments of the command: a run, and optionally one of its waves and the batch of that wave."""

    run: str
    wave: str | None
    batch: str | None
    lost: bool = False


class Finding(NamedTuple):
    """What happened to a wave. `note` explains it or says what to do."""

    wave: StoredWave
    what: What
    batch: str | None
    note: str

    @property
    def done(self) -> bool:
        """Whether the run can be resumed with this wave."""
        return self.what in ("adopted", "given_up")

    def described(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        told = {"wave": self.wave.number, "account": self.wave.account, "requests": self.wave.size}
        return told | {"what": self.what, "batch": self.batch, "note": self.note}


async def choose(store: Store, record: RunRecord, wanted: Wanted, providers: Providers) -> list[StoredWave]:
    """The selected waves: the named one, or all whose batch is unknown or cannot be queried."""
    waves = store.waves.open(record)
    if wanted.wave is not None:
        return [_named(store, record, wanted.wave, waves)]
    lacking = [wave for wave in waves if wave.batch is None or isinstance(providers.way_of(wave), Problem)]
    if wanted.batch is not None and len(lacking) != 1:
        numbers = ", ".join(str(wave.number) for wave in lacking)
        if not lacking:
            raise SettingsError(f"run {record.title!r}: the batch of every wave in flight is already known")
        raise SettingsError(
            f"run {record.title!r} has several waves without a known batch ({numbers}); name one: "
            f"`groundswell batches adopt {record.id} WAVE {wanted.batch}`"
        )
    return lacking


def _named(store: Store, record: RunRecord, number: str, waves: Sequence[StoredWave]) -> StoredWave:
    for wave in waves:
        if wave.number == number_of(number):
            return wave
    if store.waves.find(record, number_of(number)) is not None:
        raise SettingsError(f"run {record.title!r}: wave {number} has ended; its results are in the store")
    there = ", ".join(str(wave.number) for wave in waves) or "none"
    raise SettingsError(f"run {record.title!r} has no wave {number} in flight; in flight: {there}")


def question(record: RunRecord, waves: Sequence[StoredWave]) -> str:
    """The question to confirm before waves are marked as lost."""
    size = sum(wave.size for wave in waves)
    which = ", ".join(str(wave.number) for wave in waves)
    return (
        f"Mark wave {which} of run {record.title} as lost? Resuming the run then sends the unanswered ones of its "
        f"{size:,} requests again. If the provider did create the batch, you pay for them twice."
    )


async def carry_out(store: Store, waves: Sequence[StoredWave], wanted: Wanted, providers: Providers) -> list[Finding]:
    """Adopt or give up each wave."""
    found: list[Finding] = []
    for wave in waves:
        if wanted.lost:
            left = store.waves.give_up(wave)
            found.append(Finding(wave, "given_up", wave.batch, f"{left:,} requests will be sent again"))
        else:
            found.append(await _adopt(store, wave, wanted.batch, providers))
    return found


async def _adopt(store: Store, wave: StoredWave, batch: str | None, providers: Providers) -> Finding:
    way = providers.way(wave.transport, wave.account)
    if isinstance(way, Problem):
        return Finding(wave, "unseen", wave.batch, way.message)
    try:
        if batch is not None or wave.batch is not None:
            return await _check(store, wave, way, batch or wave.batch or "")
        return await _search(store, wave, way)
    except WaveError as error:
        return Finding(wave, "unseen", wave.batch, f"{wave.account} could not be queried: {error}")


async def _search(store: Store, wave: StoredWave, way: Batching) -> Finding:
    """Search the account's batches for a wave."""
    found = await way.adopt(store.waves.intent(wave))
    if isinstance(found, Found):
        return _written(store, wave, way, found.receipt, "identified by its requests")
    if isinstance(found, Absent) and wave.about.owner in ("", way.owner):
        return Finding(wave, "absent", None, "the account has no such batch; resuming the run sends its requests again")
    if isinstance(found, Absent):
        why = f"the current key of {wave.account} sees no such batch; use the key that the wave was sent with"
        return Finding(wave, "absent", None, f"{why}, or mark the wave as lost with --lost")
    why = "not decidable yet: the batch may not be listed yet, or a possible match has not ended"
    return Finding(wave, "undecided", None, f"{why}. Resuming the run keeps searching and sends nothing twice")


async def _check(store: Store, wave: StoredWave, way: Batching, batch: str) -> Finding:
    """Assign a batch to a wave, unless it cannot be the right one."""
    info = await way.look(batch)
    if info is None:
        there = await _candidates(way, wave)
        why = f"the current key of {wave.account} sees no batch {batch}"
        raise RunError(f"{why}; {there}") if wave.batch != batch else RunError(f"{why}; use the key that sent it")
    misfit = _misfit(store, wave, info)
    if misfit is not None:
        raise RunError(f"batch {batch} is not wave {wave.number}: {misfit}; {await _candidates(way, wave)}")
    receipt = wave.receipt if wave.receipt is not None and wave.batch == batch else None
    receipt = receipt or receipt_of(info)
    if info.run is not None:
        return _written(store, wave, way, receipt, "its metadata names this wave")
    if info.open:
        note = "not verified: that is only possible once the batch has ended and has results"
        return _written(store, wave, way, receipt, note)
    if await _holds(store, wave, way, receipt):
        return _written(store, wave, way, receipt, "its results match the requests of this wave")
    if info.state == "completed":
        raise RunError(f"batch {batch} is not wave {wave.number}: its results belong to other requests")
    return _written(store, wave, way, receipt, "not verified: the batch has no results")


def _misfit(store: Store, wave: StoredWave, info: BatchInfo) -> str | None:
    """Why a batch cannot belong to a wave; None if it can."""
    other = store.waves.of_batch(info.id)
    if other is not None and other.id != wave.id:
        return f"it belongs to {other.title}"
    if info.run is not None and (info.run, info.wave) != (wave.run, wave.id):
        return f"its metadata names run {info.run}"
    batch = BATCH_FORMATS.get(wave.transport)
    if info.run is None and batch is not None and batch.tagged:
        return "its metadata names no run, so Groundswell did not create it"
    if info.total and info.total != wave.size:
        return f"it has {info.total:,} requests, but the wave has {wave.size:,}"
    if info.created_at and info.created_at < wave.at - SKEW:
        return f"it was created {output.age(wave.at - info.created_at)} before the wave"
    return None


async def _candidates(way: Batching, wave: StoredWave) -> str:
    """The batches that are possible, for an error about a wrong id."""
    found = [info.id async for info in way.listed(wave.at - SKEW) if info.total in (0, wave.size)]
    if not found:
        return f"{wave.account} has no batch of {wave.size:,} requests since the wave was sent"
    more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
    return f"batches with {wave.size:,} requests: {', '.join(found[:CANDIDATES])}{more}"


async def _holds(store: Store, wave: StoredWave, way: Batching, receipt: Receipt) -> bool:
    """Whether the results of an ended batch contain requests of a wave."""
    results = cast(AsyncGenerator[Settled, None], way.collect(store.waves.intent(wave), receipt))
    try:
        async with asyncio.timeout(PATIENCE), aclosing(results) as settled:
            async for one in settled:
                if one.settlement not in NOTHING_CAME:
                    return True
    except TimeoutError:
        why = f"timed out after {PATIENCE:.0f} s while downloading the results of batch {receipt.data.get('batch')}"
        raise WaveOutOfReach(Fault(FaultKind.TIMEOUT, why)) from None
    return False


def _written(store: Store, wave: StoredWave, way: Batching, receipt: Receipt, note: str) -> Finding:
    store.waves.set_receipt(wave, receipt, msgspec.structs.replace(wave.about, owner=way.owner))
    batch = receipt.data.get("batch")
    return Finding(wave, "adopted", batch if isinstance(batch, str) else None, note)


def report(record: RunRecord, found: Sequence[Finding], store: str) -> None:
    """Print what happened to each wave, and what to do next."""
    if not found:
        output.line(f"run {record.title}: the batch of every wave in flight is already known")
    for one in found:
        words = {"adopted": f"batch {one.batch}", "given_up": "lost"}.get(one.what, one.what)
        output.line(f"run {record.title}, wave {one.wave.number}: {words}: {one.note}")
    if any(one.what != "unseen" for one in found):
        resume = SCRIPT if record.driver is None else output.command(f"runs resume {record.id}", store)
        output.say(f"to resume: {resume}")
