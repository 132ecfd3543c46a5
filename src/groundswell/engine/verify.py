"""Whether the programs of a run still ask and find what was recorded."""

from __future__ import annotations

from typing import Any

import msgspec

from groundswell.engine.outcome import encode_result, outcome_of
from groundswell.engine.ports import Journal
from groundswell.engine.records import Recorded, RunRecord, TrialRow
from groundswell.engine.replay import replay
from groundswell.errors import ReplayMismatch, RunError
from groundswell.program.conductor import Conductor
from groundswell.program.trial import Program, find_program

AT_ONCE = 500
MOST_NAMED = 20


class Verification(msgspec.Struct):
    """What replaying every trial of a run showed. `differences` names the first few that are not the same."""

    trials: int = 0
    asks: int = 0
    same: int = 0
    unfinished: int = 0
    other_asks: int = 0
    other_results: int = 0
    differences: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether every finished trial asks and results in what was recorded."""
        return not (self.other_asks or self.other_results)


async def verify(record: RunRecord, journal: Journal) -> Verification:
    """Replay all trials of a run. No model is called and nothing is written."""
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
        raise RunError(f"program {row.program} is not known: import the module that has it, then verify")
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
        _name(found, f"trial {row.key!r}: another result than was recorded")


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
