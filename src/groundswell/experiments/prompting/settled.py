"""What a run holds of its trials, whether it has ended or was stopped: read from the journal, in the order of specs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from groundswell.engine.keys import Seen, spec_key
from groundswell.engine.outcome import encode_spec
from groundswell.engine.records import TrialRow
from groundswell.engine.run import Run
from groundswell.errors import RunStopped
from groundswell.experiments.prompting.program import Answer, Prompt, reply
from groundswell.program.request import Fault

AT_ONCE = 500
T = TypeVar("T")

Settled = Answer | Fault | None
"""What became of a trial: an answer, a fault, or nothing yet."""


async def carry_out(run: Run, specs: Iterable[Prompt]) -> None:
    """Run all trials. A run that is stopped ends so; what it has is read as if it had ended."""
    try:
        async for _ in run.map(reply, specs):
            pass
    except RunStopped:
        return


async def settled(run: Run, specs: Iterable[tuple[T, Prompt]]) -> AsyncIterator[tuple[T, str, Settled]]:
    """What came of each spec, with what it was about and the key of its trial."""
    keyed = _keyed(specs)
    while some := list(islice(keyed, AT_ONCE)):
        found = dict(await run.journal.find([key for _, key in some]))
        open_once = [key for key, row in found.items() if row.outcome is None]
        found |= await run.journal.find(open_once)  # the journal reads ahead, and may have read before these ended
        for about, key in some:
            yield about, key, _settled(found.get(key))


def _keyed(specs: Iterable[tuple[T, Prompt]]) -> Iterator[tuple[T, str]]:
    """The keys that `run.map` gives to trials: a hash of the spec, and the number of its replicate."""
    seen = Seen()
    for about, spec in specs:
        key = spec_key(reply.name, encode_spec(reply, spec))
        again = seen.add(key)
        yield about, f"{key}#{again}" if again else key


def _settled(row: TrialRow | None) -> Settled:
    if row is None or row.outcome is None:
        return None
    if row.fault is not None:
        return msgspec.json.decode(row.outcome, type=Fault)
    return msgspec.json.decode(row.outcome, type=Answer)
