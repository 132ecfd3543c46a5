"""Reads the outcomes of a run from the journal, in the order of the specs, also if the run was stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import msgspec

from groundswell.engine.keys import Seen, spec_key
from groundswell.engine.outcome import decode_result, encode_spec
from groundswell.engine.records import TrialRow
from groundswell.engine.run import Run
from groundswell.errors import RunStopped
from groundswell.program.request import Fault
from groundswell.program.trial import Program

AT_ONCE = 500
T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")


async def carry_out(run: Run, program: Program[S, Any], specs: Iterable[S]) -> None:
    """Run all trials. If the run is stopped, return normally; its outcomes so far can still be read."""
    try:
        async for _ in run.map(program, specs):
            pass
    except RunStopped:
        return


async def settled(
    run: Run, program: Program[S, R], specs: Iterable[tuple[T, S]]
) -> AsyncIterator[tuple[T, str, R | Fault | None]]:
    """The outcome of each spec of the run's first `map`, with its label and the key of its trial.

    An outcome is a result, a fault, or None if the trial has not ended.
    """
    keyed = _keyed(program, specs)
    while some := list(islice(keyed, AT_ONCE)):
        found = await run.journal.find([key for _, key in some])
        for about, key in some:
            row = found.get(key)
            yield about, key, None if row is None else _settled(program, row)


def _keyed(program: Program[S, Any], specs: Iterable[tuple[T, S]]) -> Iterator[tuple[T, str]]:
    """The keys that `run.map` assigns to trials: a hash of the spec, and the number of the replicate."""
    seen = Seen()
    for about, spec in specs:
        key = spec_key(program.name, encode_spec(program, spec))
        again = seen.add(key)
        yield about, f"{key}#{again}" if again else key


def _settled(program: Program[Any, Any], row: TrialRow) -> Any:
    if row.outcome is None:
        return None
    if row.fault is not None:
        return msgspec.json.decode(row.outcome, type=Fault)
    return decode_result(program, row.outcome)
