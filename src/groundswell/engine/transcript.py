"""What was said in one trial: its program is run again over its journal. No model is asked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groundswell.engine.outcome import decode_spec
from groundswell.engine.records import Recorded, TrialRow
from groundswell.program.conductor import Conductor
from groundswell.program.request import Invoke, Request, Settlement, fingerprint
from groundswell.program.trial import Program


class Exchange(NamedTuple):
    """One ask or call and its end. Without a request: the program no longer asks this; without a settlement: open."""

    path: str
    label: str
    request: Request | Invoke | None
    settlement: Settlement | None


def replay(
    program: Program[Any, Any] | None, row: TrialRow, seed: int, recorded: Mapping[str, Recorded]
) -> Iterator[Exchange]:
    """The exchanges of a trial, in the order in which the program made them.

    What the program, as it is now, does not ask comes last; that is everything if there is no program.
    """
    left = dict(recorded)
    if program is not None:
        yield from _follow(Conductor(program, decode_spec(program, row.spec), row.key, seed), left)
    for path, (_, settlement) in left.items():
        yield Exchange(path, "", None, settlement)


def _follow(conductor: Conductor, left: dict[str, Recorded]) -> Iterator[Exchange]:
    """Run a program as far as its journal goes, taking what it uses out of `left`."""
    waits = conductor.start()
    while waits:
        for wait in waits:
            known = left.get(wait.path)
            if known is not None and known[0] == fingerprint(wait.request):
                del left[wait.path]
                conductor.settle(wait, known[1])
                yield Exchange(wait.path, wait.label, wait.request, known[1])
            else:
                yield Exchange(wait.path, wait.label, wait.request, None)
        waits = conductor.advance()
    if not conductor.ended:
        conductor.close()
