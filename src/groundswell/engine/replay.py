"""Replays trials from their journals, to show transcripts and to verify that programs still give the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from groundswell.engine.outcome import decode_spec, encode_result, outcome_of
from groundswell.engine.ports import Journal
from groundswell.engine.records import Recorded, RunRecord, TrialRow
from groundswell.errors import ReplayMismatch, RunError
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import UNSENDABLE, Settlement, fingerprint
from groundswell.program.trial import Program, find_program
from groundswell.reporting.talk import Exchange

Witness = Callable[[Wait, Settlement | None], None]


def replay(
    program: Program[Any, Any],
    row: TrialRow,
    seed: int,
    recorded: Mapping[str, Recorded],
    witness: Witness | None = None,
) -> Conductor:
    """Run a trial as far as its journal goes.

    A request that differs from the recorded one raises `ReplayMismatch`. With a `witness`, that function receives every
    request with its settlement instead, or with None if there is none.
    """
    conductor = Conductor(program, decode_spec(program, row.spec), row.key, seed)
    waits = conductor.start()
    while waits:
        for wait in waits:
            known = recorded.get(wait.path)
            settlement: Settlement | None = None
            try:
                if fingerprint(wait.request) == (known and known[0]):
                    settlement = known and known[1]
            except UnicodeEncodeError:
                settlement = UNSENDABLE
            if witness is not None:
                witness(wait, settlement)
            if settlement is not None:
                conductor.settle(wait, settlement)
            elif known is not None and witness is None:
                conductor.close()
                raise ReplayMismatch(row.key, wait.path, f"{program} now makes another request than the recorded one")
        waits = conductor.advance()
    return conductor


def exchanges(
    program: Program[Any, Any] | None, row: TrialRow, seed: int, recorded: Mapping[str, Recorded]
) -> list[Exchange]:
    """The requests and replies of a trial, in the order of its program.

    Recorded requests that the program no longer makes come last. Without a program, these are all.
    """
    found: list[Exchange] = []

    def note(wait: Wait, settlement: Settlement | None) -> None:
        known = recorded.get(wait.path)
        seconds = known.seconds if known is not None and settlement is known.settlement else None
        found.append(Exchange(wait.path, wait.label, wait.request, settlement, seconds))

    if program is not None:
        replay(program, row, seed, recorded, note).close()
    label = "" if program is not None else "reply"
    used = {exchange.path for exchange in found if exchange.settlement is not None}
    left = [(path, known) for path, known in recorded.items() if path not in used]
    return found + [Exchange(path, label, None, known.settlement, known.seconds) for path, known in left]


AT_ONCE = 500
MOST_NAMED = 20


class Verification(msgspec.Struct):
    """Result of replaying every trial of a run. `differences` describes the first few differences."""

    trials: int = 0
    asks: int = 0
    same: int = 0
    unfinished: int = 0
    other_asks: int = 0
    other_results: int = 0
    differences: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether every finished trial makes the recorded requests and has the recorded result."""
        return not (self.other_asks or self.other_results)


async def verify(record: RunRecord, journal: Journal) -> Verification:
    """Replay all trials of a run. No request is sent and nothing is written."""
    found = Verification()
    after = record.span[0]
    while rows := await journal.trials(after, AT_ONCE):
        after = rows[-1].id
        recorded = await journal.recorded([row.id for row in rows])
        for row in rows:
            _verify_trial(record, row, recorded[row.id], found)
    return found


def _verify_trial(record: RunRecord, row: TrialRow, recorded: dict[str, Recorded], found: Verification) -> None:
    program = find_program(row.program)
    if program is None:
        raise RunError(f"program {row.program} is not registered: import the module that defines it, then verify")
    found.trials += 1
    found.asks += len(recorded)
    try:
        conductor = replay(program, row, record.seed, recorded)
    except ReplayMismatch as mismatch:
        found.other_asks += 1
        _name(found, str(mismatch))
        return
    if row.outcome is None or not conductor.ended:
        conductor.close()
        found.unfinished += 1
    elif _same(program, conductor, row):
        found.same += 1
    else:
        found.other_results += 1
        _name(found, f"trial {row.key!r}: its result differs from the recorded one")


def _same(program: Program[Any, Any], conductor: Conductor, row: TrialRow) -> bool:
    if conductor.error is None and row.fault is None:
        try:
            return encode_result(program, conductor.result) == row.outcome
        except UnicodeEncodeError:
            return False
    return outcome_of(program, row.key, None, conductor)[0] == row.outcome


def _name(found: Verification, difference: str) -> None:
    if len(found.differences) < MOST_NAMED:
        found.differences.append(difference)
