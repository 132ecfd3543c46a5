"""A recorded trial, run again over its journal: no model is asked and nothing is written. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groundswell.engine.outcome import decode_spec
from groundswell.engine.records import Recorded, TrialRow
from groundswell.errors import ReplayMismatch
from groundswell.program.conductor import Conductor, Wait
from groundswell.program.request import UNSENDABLE, Settlement, fingerprint
from groundswell.program.trial import Program
from groundswell.shown.talk import Exchange

Witness = Callable[[Wait, Settlement | None], None]


def replay(
    program: Program[Any, Any],
    row: TrialRow,
    seed: int,
    recorded: Mapping[str, Recorded],
    witness: Witness | None = None,
) -> Conductor:
    """Run a trial as far as its journal goes.

    An ask that differs from what was recorded raises `ReplayMismatch`; a `witness` is shown every ask with its
    settlement instead, or with None where there is none for it.
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
                raise ReplayMismatch(row.key, wait.path, f"{program} now makes another request than was recorded")
        waits = conductor.advance()
    return conductor


def exchanges(
    program: Program[Any, Any] | None, row: TrialRow, seed: int, recorded: Mapping[str, Recorded]
) -> list[Exchange]:
    """What was said in a trial, in the order in which its program asks.

    What the program, as it is now, does not ask comes last; that is everything if there is no program.
    """
    found: list[Exchange] = []

    def note(wait: Wait, settlement: Settlement | None) -> None:
        found.append(Exchange(wait.path, wait.label, wait.request, settlement))

    if program is not None:
        replay(program, row, seed, recorded, note).close()
    label = "" if program is not None else "reply"
    used = {exchange.path for exchange in found if exchange.settlement is not None}
    return found + [Exchange(path, label, None, known[1]) for path, known in recorded.items() if path not in used]
