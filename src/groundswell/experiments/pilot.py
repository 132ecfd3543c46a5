"""Estimates of runs. What a run of the same name has already used makes its estimate narrower.

A pilot is the beginning of the run: `pilot_options` limits it to a few requests, and the run continues from there. So
its requests are part of what the run spends, and are never paid for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from groundswell.engine.driver import driver_name
from groundswell.engine.options import RunOptions
from groundswell.engine.records import RunRecord
from groundswell.engine.replay import exchanges
from groundswell.engine.summary import summarise
from groundswell.errors import SettingsError
from groundswell.estimate.bill import Bill
from groundswell.estimate.billing import billed
from groundswell.estimate.measured import Measured, Sent
from groundswell.experiments.experiment import Ready
from groundswell.program.request import Chat, Embed, Embedding, Reply, canonical
from groundswell.program.trial import find_program
from groundswell.store.journal import Store

MOST = 2_000
"""Maximum number of trials that are read to measure a run."""
TOO_SMALL = "pilot: this run is too small for one; run it, or estimate it without a pilot"


def estimate_run(ready: Ready, held: Store | None, account: Sequence[str] = (), most: int | None = None) -> Bill:
    """Estimate a run, with what it has measured so far if it is in the store. Sends nothing and needs no key."""
    measured = None if held is None else measured_run(ready, held)
    return billed(
        ready.driver, ready.settings, seed=ready.seed, account=account, max_concurrent=most, measured=measured
    )


def pilot_options(ready: Ready, bill: Bill) -> RunOptions:
    """The options of a pilot: the first requests of the run, sent live."""
    if bill.pilot is None:
        raise SettingsError(TOO_SMALL, field="pilot")
    limits = ready.run_options.limits
    calls = min(bill.pilot.requests, limits.calls or bill.pilot.requests)
    return msgspec.structs.replace(ready.run_options, via="live", limits=msgspec.structs.replace(limits, calls=calls))


def measured_run(ready: Ready, held: Store) -> Measured | None:
    """What a run has used so far; None if it is not in the store, or has finished no trial."""
    record = None if ready.name is None else held.runs.find(ready.name)
    if record is None or (record.driver, record.settings, record.seed) != (
        driver_name(ready.driver),
        canonical(ready.settings).decode(),
        ready.seed,
    ):
        return None
    return measured_in(held, record)


def measured_in(held: Store, record: RunRecord) -> Measured | None:
    """What a stored run has used so far; None if it has finished no trial."""
    sent, seconds = _sent(held, record)
    if not sent:
        return None
    seconds = min(seconds, record.counters.seconds)  # a run may have been resumed after a while
    paid = min(record.counters.sent, len(sent))
    return Measured(record.title, sent, paid, summarise(record).cost.usd, seconds)


def _sent(held: Store, record: RunRecord) -> tuple[list[Sent], float]:
    """The requests of the first trials that have a result, and the seconds from the first of these to the last."""
    found, ended, results = list[Sent](), list[float](), held.results(record)
    for trial in islice(results, MOST):
        if trial.status != "usable":
            continue
        row = trial.row
        ended.append(row.ended_at or 0.0)
        for each in exchanges(find_program(row.program), row, record.seed, results.recorded(row)):
            if isinstance(each.request, Chat | Embed) and isinstance(each.settlement, Reply | Embedding):
                used = each.settlement.usage
                found.append(
                    Sent(row.key, row.program, row.spec, each.request.model, used.input_tokens, used.output_tokens)
                )
    return found, max(ended, default=0.0) - min(ended, default=0.0)
