"""A store and the provider's books in a folder, what is crashed there, and what must hold afterwards."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from groundswell import Outcome
from groundswell.engine.rate_limit import most_uncommitted
from groundswell.engine.records import AskId, Counters
from groundswell.store.journal import Store
from groundswell.store.open import exists
from groundswell.testing.batch import ProviderBooks
from groundswell.testing.clock import FakeClock
from groundswell.testing.crash import CrashingStore, CrashPoint
from tests.crash.experiment import CAP, RUN, Found, session, transport
from tests.stores import new_store, rows

Outcomes = list[Outcome[Found]]
SLOW = 100.0


class Scene:
    """One run, through as many sessions as it takes."""

    def __init__(self, folder: Path, kind: str, schedule: str, database: str = "sqlite") -> None:
        self.path = new_store(database, folder)
        self.books = ProviderBooks(folder / "books.jsonl")
        self.kind = kind
        self.schedule = schedule
        self.kills = 0
        self._kept: dict[AskId, str] = {}
        self._entries = 0

    def session(self, point: CrashPoint, *, undecided: int = 0, interrupt_at: float | None = None) -> Outcomes:
        """One session in this process, on a clock that jumps; as Ctrl-C does, `interrupt_at` cancels it at a time."""
        clock = FakeClock()

        async def main() -> Outcomes:
            if interrupt_at is not None:
                clock.call_at(interrupt_at, _canceller())
            store = Store(self.path, around=point.around)
            clock.watch(store)
            way = transport(self.kind, self.books, clock, slow=SLOW, undecided=undecided)
            return await session(CrashingStore(store, point), way, clock, self.schedule)

        return clock.run(main())

    def finish(self, *, undecided: int = 0) -> Outcomes:
        """The last session: nothing goes wrong in it."""
        return self.session(CrashPoint(0, "before"), undecided=undecided)

    def note_crash(self) -> None:
        """After a crash: everything that was journalled before it is still there; from now on it must stay."""
        self.kills += 1
        journalled = self.journalled()
        self._check_kept(journalled)
        self._kept = journalled
        self._entries = len(self.books.entries())

    def check(self, outcomes: Outcomes) -> None:
        """What must hold once the run has finished, however often it was killed."""
        expected, counted = uninterrupted(self.kind, self.schedule)
        assert outcomes == expected
        journalled = self.journalled()
        self._check_kept(journalled)
        counters = self.counters()
        assert _figures(counters) == _figures(counted)
        paid = self.books.paid()
        assert set(paid) >= {ask for ask, text in journalled.items() if '"type":"reply"' in text}
        extra = sum((paid - Counter(set(paid))).values())
        if self.kind == "batch":
            assert (extra, counters.resent) == (0, 0), "a batch ask was paid for twice"
        else:
            assert extra <= counters.resent <= (CAP + most_uncommitted(CAP)) * self.kills

    def journalled(self) -> dict[AskId, str]:
        """Every settlement in the store; each is there once."""
        if not exists(self.path):
            return {}
        settled = rows(self.path, "SELECT trial, path, settlement FROM asks")
        found = {AskId(trial, path): text for trial, path, text in settled}
        assert len(found) == len(settled), "an ask was journalled twice"
        return found

    def counters(self) -> Counters:
        """The figures of the run, as the store holds them."""
        [(text,)] = rows(self.path, "SELECT counters FROM runs WHERE name = ?", RUN)
        return msgspec.json.decode(text, type=Counters)

    def _check_kept(self, journalled: dict[AskId, str]) -> None:
        """No settlement that was durable at the last crash was lost, changed, or asked for again."""
        assert self._kept.items() <= journalled.items()
        for entry in self.books.entries()[self._entries :]:
            assert not self._kept.keys() & {order.ask for order in entry.orders}


def _canceller() -> Callable[[], None]:
    """What cancels the task that asks for it."""
    task = asyncio.current_task()
    assert task is not None

    def cancel() -> None:
        task.cancel()

    return cancel


def _figures(counters: Counters) -> tuple[int, ...]:
    c = counters
    return c.planned, c.usable, c.missing, c.failed, c.input_tokens, c.output_tokens


@cache
def uninterrupted(kind: str, schedule: str) -> tuple[Outcomes, Counters]:
    """What the run gives when nothing happens to it."""
    with TemporaryDirectory() as folder:
        scene = Scene(Path(folder), kind, schedule)
        return scene.finish(), scene.counters()
