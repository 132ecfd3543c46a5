"""Saying which batch a wave is, where its run does not know: looked for, named by somebody, or given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Literal, NamedTuple, cast

import msgspec

from groundswell.cli import output
from groundswell.cli.batch_views import SCRIPT
from groundswell.cli.looking import PATIENCE, Problem, Providers, number_of
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
"""What becomes of asks that the results of a batch do not mention."""

What = Literal["adopted", "absent", "undecided", "unseen", "given_up"]


class Wanted(NamedTuple):
    """What somebody said: a run, perhaps one of its waves, perhaps the batch that it is."""

    run: str
    wave: str | None
    batch: str | None
    lost: bool = False


class Finding(NamedTuple):
    """What became of a wave. `note` says what else there is to know, or to do."""

    wave: StoredWave
    what: What
    batch: str | None
    note: str

    @property
    def done(self) -> bool:
        """Whether resuming the run can go on with it."""
        return self.what in ("adopted", "given_up")

    def described(self) -> dict[str, Any]:
        """The same as JSON has it."""
        told = {"wave": self.wave.number, "account": self.wave.account, "requests": self.wave.size}
        return told | {"what": self.what, "batch": self.batch, "note": self.note}


async def choose(store: Store, record: RunRecord, wanted: Wanted, providers: Providers) -> list[StoredWave]:
    """The waves that are meant: the one that was named, or all whose batch is not known or cannot be seen."""
    waves = store.waves.open(record)
    if wanted.wave is not None:
        return [_named(store, record, wanted.wave, waves)]
    lacking = [wave for wave in waves if wave.batch is None or isinstance(providers.way_of(wave), Problem)]
    if wanted.batch is not None and len(lacking) != 1:
        numbers = ", ".join(str(wave.number) for wave in lacking)
        which = f"give the wave too, one of {numbers}" if lacking else "every wave in flight is known to be a batch"
        raise SettingsError(f"run {record.title!r}: {which}, as in `groundswell batches adopt {record.id} WAVE BATCH`")
    return lacking


def _named(store: Store, record: RunRecord, number: str, waves: Sequence[StoredWave]) -> StoredWave:
    for wave in waves:
        if wave.number == number_of(number):
            return wave
    if store.waves.find(record, number_of(number)) is not None:
        raise SettingsError(f"run {record.title!r}: wave {number} has ended, and its results are in the store")
    there = ", ".join(str(wave.number) for wave in waves) or "none"
    raise SettingsError(f"run {record.title!r} has no wave {number} in flight; in flight: {there}")


def question(record: RunRecord, waves: Sequence[StoredWave]) -> str:
    """What to ask before waves are given up."""
    size = sum(wave.size for wave in waves)
    which = ", ".join(str(wave.number) for wave in waves)
    return (
        f"Give up wave {which} of run {record.title}? Resuming it sends what has no reply of their {size:,} requests "
        "again. If the batch was made after all, they are paid for twice."
    )


async def carry_out(store: Store, waves: Sequence[StoredWave], wanted: Wanted, providers: Providers) -> list[Finding]:
    """Do what was asked for, wave by wave."""
    found: list[Finding] = []
    for wave in waves:
        if wanted.lost:
            left = store.waves.give_up(wave)
            found.append(Finding(wave, "given_up", wave.batch, f"{left:,} requests are sent again"))
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
        return Finding(wave, "unseen", wave.batch, f"{wave.account} cannot be asked now: {error}")


async def _search(store: Store, wave: StoredWave, way: Batching) -> Finding:
    """Look for a wave among the account's batches."""
    found = await way.adopt(store.waves.intent(wave))
    if isinstance(found, Found):
        return _written(store, wave, way, found.receipt, "it was found by what it carries")
    if isinstance(found, Absent) and wave.about.owner in ("", way.owner):
        return Finding(wave, "absent", None, "no batch of the account is it: resuming the run sends its requests again")
    if isinstance(found, Absent):
        why = f"with the key that {wave.account} has now, no batch is it: use the key that it was sent with"
        return Finding(wave, "absent", None, f"{why}, or give it up with --lost")
    why = "it cannot be told yet: its batch may be under way still, or one that may be it has not ended"
    return Finding(wave, "undecided", None, f"{why}. Resuming the run goes on looking, and sends nothing twice")


async def _check(store: Store, wave: StoredWave, way: Batching, batch: str) -> Finding:
    """Take a batch for a wave, if it can be."""
    info = await way.look(batch)
    if info is None:
        there = await _candidates(way, wave)
        why = f"{wave.account} knows no batch {batch} with the key that it has now"
        raise RunError(f"{why}; {there}") if wave.batch != batch else RunError(f"{why}: use the key that sent it")
    misfit = _misfit(store, wave, info)
    if misfit is not None:
        raise RunError(f"batch {batch} is not wave {wave.number}: {misfit}; {await _candidates(way, wave)}")
    receipt = wave.receipt if wave.receipt is not None and wave.batch == batch else None
    receipt = receipt or receipt_of(info)
    if info.run is not None:
        return _written(store, wave, way, receipt, "it says itself that it is this wave")
    if info.open:
        note = "whether it is the right one can only be told by its results, when it has ended"
        return _written(store, wave, way, receipt, note)
    if await _holds(store, wave, way, receipt):
        return _written(store, wave, way, receipt, "its results are of the requests of this wave")
    if info.state == "completed":
        raise RunError(f"batch {batch} is not wave {wave.number}: its results are of other requests")
    return _written(store, wave, way, receipt, "it has no results that tell whether it is the right one")


def _misfit(store: Store, wave: StoredWave, info: BatchInfo) -> str | None:
    """Why a batch cannot be a wave, if so."""
    other = store.waves.of_batch(info.id)
    if other is not None and other.id != wave.id:
        return f"it is {other.title}"
    if info.run is not None and (info.run, info.wave) != (wave.run, wave.id):
        return f"it says that it is of run {info.run}"
    batch = BATCH_FORMATS.get(wave.transport)
    if info.run is None and batch is not None and batch.tagged:
        return "it does not name a run, as all of ours do"
    if info.total and info.total != wave.size:
        return f"it has {info.total:,} requests, and the wave {wave.size:,}"
    if info.created_at and info.created_at < wave.at - SKEW:
        return f"it was made {output.age(wave.at - info.created_at)} before the wave"
    return None


async def _candidates(way: Batching, wave: StoredWave) -> str:
    """What there is, for somebody who gave a wrong id."""
    found = [info.id async for info in way.listed(wave.at - SKEW) if info.total in (0, wave.size)]
    if not found:
        return f"since the wave was sent, {wave.account} has no batch of {wave.size:,} requests"
    more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
    return f"of {wave.size:,} requests there are {', '.join(found[:CANDIDATES])}{more}"


async def _holds(store: Store, wave: StoredWave, way: Batching, receipt: Receipt) -> bool:
    """Whether a batch that has ended has results of asks of a wave."""
    results = cast(AsyncGenerator[Settled, None], way.collect(store.waves.intent(wave), receipt))
    try:
        async with asyncio.timeout(PATIENCE), aclosing(results) as settled:
            async for one in settled:
                if one.settlement not in NOTHING_CAME:
                    return True
    except TimeoutError:
        why = f"the results of batch {receipt.data.get('batch')} could not be had within {PATIENCE:.0f} s"
        raise WaveOutOfReach(Fault(FaultKind.TIMEOUT, why)) from None
    return False


def _written(store: Store, wave: StoredWave, way: Batching, receipt: Receipt, note: str) -> Finding:
    store.waves.set_receipt(wave, receipt, msgspec.structs.replace(wave.about, owner=way.owner))
    batch = receipt.data.get("batch")
    return Finding(wave, "adopted", batch if isinstance(batch, str) else None, note)


def report(record: RunRecord, found: Sequence[Finding], store: str) -> None:
    """Say what became of each wave, and what to do next."""
    if not found:
        output.line(f"run {record.title}: every wave in flight is known to be a batch, and can be seen")
    for one in found:
        words = {"adopted": f"is batch {one.batch}", "given_up": "given up"}.get(one.what, one.what)
        output.line(f"run {record.title}, wave {one.wave.number}: {words}: {one.note}")
    if any(one.what != "unseen" for one in found):
        resume = SCRIPT if record.driver is None else output.command(f"runs resume {record.id}", store)
        output.say(f"to go on: {resume}")
