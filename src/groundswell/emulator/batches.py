"""The progress of batches, as a function of the emulator's clock.

A batch is opened, its lines are processed at times that are drawn when it is opened, and it is closed: completed,
expired or cancelled. Nothing here waits: whenever a request arrives, the agenda does everything that is due, in order
of time. So a clock that is moved forward by a day gives the same batches as one that ran for a day.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf, isfinite
from typing import Any, Protocol, TypeVar

from groundswell.emulator.chance import draw
from groundswell.emulator.clock import EmulatedClock
from groundswell.emulator.desks.desk import Desk, Made, Visit
from groundswell.emulator.faults import LINE, Struck
from groundswell.emulator.wire import Incoming, Rejected
from groundswell.emulator.world import Account

_log = logging.getLogger(__name__)
SLICE = 64
FAILING = ("line-400", "line-429", "line-500", "line-529", "line-bare", "low-balance")
Action = Callable[[float], None]


class Listed(Protocol):
    """An item of a list."""

    id: str


L = TypeVar("L", bound=Listed)


class Agenda:
    """Actions and their times, by the emulator's clock."""

    def __init__(self, clock: EmulatedClock) -> None:
        self._clock = clock
        self._entries: list[tuple[float, int, Action]] = []
        self._number = 0
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()

    def at(self, when: float, action: Action) -> None:
        """Schedule an action; an infinite time means never."""
        if isfinite(when):
            self._number += 1
            heappush(self._entries, (when, self._number, action))
            self._changed.set()

    def forget(self) -> None:
        """Drop all actions."""
        self._entries.clear()

    def moved(self) -> None:
        """The clock was moved: check again."""
        self._changed.set()

    async def catch_up(self) -> None:
        """Do everything that is due, letting other requests through in between."""
        async with self._lock:
            now, done = self._clock.now(), 0
            while self._entries and self._entries[0][0] <= now:
                when, _, action = heappop(self._entries)
                self._do(action, when)
                done += 1
                if done % SLICE == 0:
                    await asyncio.sleep(0)

    def _do(self, action: Action, when: float) -> None:
        """Do an action as of its scheduled time."""
        try:
            with self._clock.as_of(when):
                action(when)
        except Exception:  # noqa: BLE001  # the outer edge: an error in one batch must not end all others
            _log.exception("the action due at %s failed", when)

    async def keep(self) -> None:
        """Run actions when they are due, until cancelled."""
        while True:
            self._changed.clear()
            await self.catch_up()
            wait = self._clock.real_seconds_until(self._entries[0][0]) if self._entries else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._changed.wait()


class Line:
    """One request of a batch."""

    __slots__ = ("custom_id", "data", "due", "incoming", "rejected", "tokens")

    def __init__(self, custom_id: str, data: Any) -> None:
        self.custom_id = custom_id
        self.data = data
        self.incoming: Incoming | None = None
        self.rejected: Rejected | None = None
        self.tokens = 0
        self.due = inf


class Batch:
    """A batch and its progress. `stamps` has the time of each status."""

    def __init__(self, id: str, account: Account, created: float, window: float) -> None:
        self.id = id
        self.account = account
        self.created = created
        self.expires = created + window
        self.status = "validating"
        self.stamps: dict[str, float] = {}
        self.lines: list[Line] = []
        self.done = 0
        self.outcomes: dict[str, int] = {}
        self.struck: Struck | None = None

    @property
    def open(self) -> bool:
        """Whether it is still being processed."""
        return self.status in ("validating", "in_progress", "finalizing", "cancelling")

    @property
    def left(self) -> Sequence[Line]:
        """The lines that were not processed."""
        return self.lines[self.done :]

    def become(self, status: str, when: float) -> None:
        """Change the status."""
        self.status = status
        self.stamps[status] = when

    def count(self, outcome: str, number: int = 1) -> None:
        """Count lines that ended."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + number


class Clerk(ABC):
    """Processes the batches of one provider."""

    def __init__(self, desk: Desk, agenda: Agenda) -> None:
        self.desk = desk
        self.world = desk.world
        self.agenda = agenda
        self.batches: dict[str, Batch] = {}

    @abstractmethod
    def path_of(self, batch: Any) -> str:
        """The path that a fault rule's `path` is matched with for a line."""

    @abstractmethod
    def write_reply(self, batch: Any, line: Line, made: Made) -> bytes:
        """A line of results with a reply."""

    @abstractmethod
    def write_failure(self, batch: Any, line: Line, rejected: Rejected | None) -> bytes:
        """A line of results with an error, with or without a response."""

    @abstractmethod
    def write_left(self, batch: Any, line: Line, why: str) -> bytes:
        """A line of results for a request that was not processed: `expired` or `cancelled`."""

    @abstractmethod
    def put(self, batch: Any, written: bytes, *, failed: bool) -> None:
        """Add a line to the results."""

    @abstractmethod
    def closed(self, batch: Any, status: str, when: float) -> None:
        """A batch has ended."""

    @abstractmethod
    def fault_of_line(self, name: str) -> Rejected | None:
        """The error that an injected fault gives a line; None for an error without a response."""

    def forget(self) -> None:
        """Drop all batches."""
        self.batches.clear()

    # The life of a batch.

    def begin(self, batch: Batch, when: float) -> None:
        """Start a batch: every line has its time, in no particular order."""
        batch.become("in_progress", when)
        working, seed = self.world.settings.batch.working, self.world.settings.seed
        for number, line in enumerate(batch.lines):
            line.due = when + working * draw(seed, "due", line.custom_id, number)
        batch.lines.sort(key=_due)
        name = batch.struck.name if batch.struck else ""
        never = {"batch-stalls": len(batch.lines) // 2, "batch-stuck": 0}.get(name, len(batch.lines))
        for line in batch.lines[never:]:
            line.due = inf
        self.agenda.at(max(when, batch.expires), lambda at: self._expire(batch, at))
        self._go_on(batch, when)

    def _go_on(self, batch: Batch, when: float) -> None:
        if batch.done < len(batch.lines):
            self.agenda.at(batch.lines[batch.done].due, lambda at: self._work(batch, at))
        else:
            self.agenda.at(when, lambda at: self._worked(batch, at))

    def _work(self, batch: Batch, when: float) -> None:
        if batch.status != "in_progress":
            return
        line = batch.lines[batch.done]
        batch.done += 1
        self._answer(batch, line)
        line.data = line.incoming = None
        self._go_on(batch, when)

    def _answer(self, batch: Batch, line: Line) -> None:
        """Process one line: it ends as a reply or as an error, and is recorded accordingly."""
        name = line.incoming.request.model if line.incoming else ""
        visit = Visit(batch.account, name, self.path_of(batch), self.world.ledger.entry(batch.account.name, name))
        struck = self.desk.strike(visit, LINE)
        fault = struck.name if struck else ""
        if fault in FAILING:
            self._fail(batch, line, self.fault_of_line(fault))
            return
        try:
            made = self._make(visit, line, struck)
        except Rejected as rejected:
            self._fail(batch, line, rejected)
            return
        except Exception:  # noqa: BLE001  # the outer edge: an error in one line must not end all batches
            _log.exception("processing %s of %s failed", line.custom_id, batch.id)
            self._fail(batch, line, self.fault_of_line("line-500"))
            return
        batch.count("succeeded")
        self.earned(batch, made)
        for written in self._written(batch, line, made, fault):
            self.put(batch, written, failed=False)

    def _written(self, batch: Batch, line: Line, made: Made, fault: str) -> list[bytes]:
        """The line of results with a reply, or what a fault makes of it."""
        written = self.write_reply(batch, line, made)
        match fault:
            case "line-lost":
                return []
            case "line-twice":
                return [written, written]
            case "line-garbled":
                return [written[: len(written) // 2].decode("utf-8", "ignore").encode() + b"\n"]
            case "line-stranger":
                return [written, self.write_reply(batch, Line(self.world.new_id("stranger-"), None), made)]
        return [written]

    def _make(self, visit: Visit, line: Line, struck: Struck | None) -> Made:
        if line.rejected is not None:
            raise line.rejected
        assert line.incoming is not None
        self.desk.check(line.incoming)
        return self.desk.make(visit, line.incoming, line.data, struck, batch=True)

    def _fail(self, batch: Batch, line: Line, rejected: Rejected | None) -> None:
        batch.count("errored")
        self.put(batch, self.write_failure(batch, line, rejected), failed=True)

    def earned(self, batch: Any, made: Made) -> None:  # noqa: B027  # most have nothing to add
        """A reply was made."""

    def _worked(self, batch: Batch, when: float) -> None:
        if batch.status == "in_progress":
            batch.become("finalizing", when)
            finalizing = self.world.settings.batch.finalizing
            self.agenda.at(when + finalizing, lambda at: self._complete(batch, at))

    def _complete(self, batch: Batch, when: float) -> None:
        if batch.status == "finalizing":
            self._close(batch, "completed", when)

    def cancel(self, batch: Batch, when: float) -> None:
        """Stop processing a batch; it ends a while later."""
        if batch.status in ("validating", "in_progress", "finalizing"):
            batch.become("cancelling", when)
            cancelling = self.world.settings.batch.cancelling
            self.agenda.at(when + cancelling, lambda at: self._close(batch, "cancelled", at))

    def _expire(self, batch: Batch, when: float) -> None:
        if batch.status == "in_progress":
            self._close(batch, "expired", when)

    def _close(self, batch: Batch, status: str, when: float) -> None:
        if not batch.open:
            return
        for line in batch.left:
            self.put(batch, self.write_left(batch, line, status), failed=True)
            line.data = line.incoming = None
        batch.count(status, len(batch.left))
        batch.become(status, when)
        self.closed(batch, status, when)


def _due(line: Line) -> float:
    return line.due


def page(
    found: Sequence[L], query: dict[str, str], most: int, *names: str, unless_told: int = 20
) -> tuple[list[L], bool]:
    """One page of a list. `names` are the query parameters for "after" and, if any, "before"."""
    limit = _limit(query.get("limit", str(unless_told)), most)
    ids = [listed.id for listed in found]
    after, before = query.get(names[0]), query.get(names[1]) if len(names) > 1 else None
    if after is not None:
        start = ids.index(after) + 1 if after in ids else len(ids)
        return list(found[start : start + limit]), len(found) > start + limit
    if before is not None:
        end = ids.index(before) if before in ids else 0
        return list(found[max(0, end - limit) : end]), end - limit > 0
    return list(found[:limit]), len(found) > limit


def listing(data: list[dict[str, Any]], more: bool) -> dict[str, Any]:
    """A page of a list, in the format of both providers."""
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"data": data, "first_id": first, "last_id": last, "has_more": more}


def _limit(text: str, most: int) -> int:
    # A number too long to parse is too large anyway; and not every Unicode digit is a number.
    if not text.isdecimal() or len(text) > 10 or not 1 <= int(text) <= most:
        message = f"Invalid 'limit': expected a value between 1 and {most}, but got {text!r} instead."
        raise Rejected(400, message, kind="invalid_request_error", param="limit", code="integer_out_of_range")
    return int(text)
