"""Turns the specs of a driver into open trials, and returns their outcomes: keys, window, and earlier sessions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Sized
from itertools import islice, repeat
from typing import Any, Protocol, TypeVar

from groundswell.engine.context import Deliver, OpenTrial, RunContext
from groundswell.engine.dispatch import Dispatch
from groundswell.engine.head import Head
from groundswell.engine.keys import Seen, spec_key
from groundswell.engine.outcome import Outcome, encode_spec, past_outcome, plain_text
from groundswell.engine.ports import Journal
from groundswell.engine.records import Recorded, RunRecord, TrialRow
from groundswell.engine.scheduler import trial_window
from groundswell.errors import DuplicateKey, ReplayMismatch, SettingsError, SourceChanged
from groundswell.program.request import Fault
from groundswell.program.source import same_code
from groundswell.program.trial import Program


class Outcomes:
    """The outcomes of one `map`, handed out in the order of its specs or as they come."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._ready: deque[Outcome[Any]] = deque()
        self._early: dict[int, Outcome[Any]] = {}
        self._next = 0
        self._placed = 0
        self._taken = 0
        self._exhausted = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def due(self) -> int:
        """Number of outcomes that are due and not taken yet."""
        return self._placed - self._taken

    def expect(self) -> Deliver:
        """Reserve a place for the next trial. Returns a function that takes its outcome."""
        place, self._placed = self._placed, self._placed + 1
        return Place(self, place)

    def put(self, place: int, outcome: Outcome[Any]) -> None:
        """Set the outcome of a place."""
        if not self._ordered:
            self._ready.append(outcome)
        elif place == self._next:
            self._ready.append(outcome)
            self._next += 1
            while self._early and (following := self._early.pop(self._next, None)) is not None:
                self._ready.append(following)
                self._next += 1
        else:
            self._early[place] = outcome
            return
        self._wake()

    def exhaust(self) -> None:
        """No more trials will follow."""
        self._exhausted = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """There will be no more outcomes."""
        self._error = self._error or error
        self._wake()

    async def next(self) -> Outcome[Any] | None:
        """The next outcome, or None after the last."""
        while not self._ready:
            if self._error is not None:
                raise self._error
            if self._exhausted and self._taken == self._placed:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._taken += 1
        return self._ready.popleft()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Place:
    """The place of one trial in a `map`."""

    __slots__ = ("_number", "arrivals")

    def __init__(self, arrivals: Outcomes, number: int) -> None:
        self.arrivals = arrivals
        self._number = number

    def __call__(self, outcome: Outcome[Any]) -> None:
        self.arrivals.put(self._number, outcome)


S = TypeVar("S")
R = TypeVar("R")

AT_ONCE = 256
START = 256
MOST_BACKLOG = 20_000


class Start(Protocol):
    """Opens a trial and runs it up to its first requests."""

    def __call__(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        deliver: Deliver | None,
        recorded: dict[str, Recorded] | None = None,
        inherited: dict[str, Recorded] | None = None,
    ) -> OpenTrial: ...


class Admission:
    """Opens trials for one run, as many as its window holds."""

    def __init__(
        self,
        context: RunContext,
        dispatch: Dispatch,
        *,
        start: Start,
        recovered: Callable[[], Awaitable[None]],
        last_trial: int,
        parent: Journal | None,
        save_sources: Callable[[RunRecord], None],
        accept_changes: bool,
        head: Head | None,
    ) -> None:
        self._context = context
        self._head = head
        self._dispatch = dispatch
        self._start = start
        self._recover = recovered
        self._number = last_trial
        self._parent = parent
        self._save_sources = save_sources
        self._accept_changes = accept_changes
        self._named = Seen()
        self._checked: set[str] = set()
        self._rescored: dict[str, str] = {}
        self.maps: set[Outcomes] = set()
        self._futures: set[asyncio.Future[Any]] = set()
        self._room: deque[asyncio.Future[None]] = deque()
        self._submitted = Seen()
        self._ordinal = 0
        self._mapped = Seen(), ""
        self._entering = 0
        self._woken = 0
        self.admitting = 0
        self.cut_short = False
        self.past = last_trial - context.record.span[0]
        self.recovered: dict[str, OpenTrial] = {}

    @property
    def window(self) -> int:
        """How many trials are kept open."""
        if self._head is not None:
            return self._head.room
        options, lanes = self._context.options, self._context.lanes
        barrier = options.schedule == "waves" or self._dispatch.barrier
        known, expected = lanes.slots, self._context.expected
        unopened = expected - self._context.counters.planned if known and expected is not None else None
        most = options.window or trial_window(known or START, barrier=barrier, unopened=unopened)
        return most if barrier else self._dispatch.spending.trials(most)

    @property
    def busy(self) -> bool:
        """Whether trials are being opened, or are about to be."""
        return bool(self.admitting or self._woken)

    @property
    def _left(self) -> int:
        """How many trials may be opened now, besides those that are already being opened."""
        return self.window - len(self._context.open) - self._entering - self._woken

    async def feed(
        self, program: Program[S, R], specs: Iterable[S], replicates: int, arrivals: Outcomes, *, goes_on: bool
    ) -> None:
        """Read specs as there is room, and open their trials. `goes_on`: number the trials as a continuation of the
        last `map`."""
        if not (goes_on and self._ordinal):
            self._mapped = Seen(), f"@{self._ordinal}" if self._ordinal else ""
            self._ordinal += 1
        seen, suffix = self._mapped
        if isinstance(specs, Sized):
            self._context.expected = (self._context.expected or 0) + len(specs) * replicates
        self.admitting += 1
        try:
            await self._recover()
            self._check(program)
            source = (spec for each in specs for spec in repeat(each, replicates))
            while True:
                room = await self._find_room(arrivals)
                bodies = [encode_spec(program, spec) for spec in islice(source, min(room, AT_ONCE))]
                if not bodies:
                    break
                keys = [_default_key(program, body, suffix, seen) for body in bodies]
                await self._admit(program, bodies, keys, [arrivals.expect() for _ in bodies])
                await asyncio.sleep(0)
            arrivals.exhaust()
        except Exception as error:  # noqa: BLE001  whatever the specs raised is the driver's to see
            arrivals.fail(error)
        finally:
            self.admitting -= 1
            self.made_room()
            self._context.schedule()

    async def submit(self, program: Program[S, R], spec: S, key: str | None) -> Outcome[R]:
        """Admit one trial and wait for its outcome."""
        await self._recover()
        self._check(program)
        while self._left <= 0:
            await self._wait_for_room()
        await self._raise_if_over()
        body = encode_spec(program, spec)
        if key is None:
            key = _default_key(program, body, "~", self._submitted)
        else:
            self._check_key(key)
        future: asyncio.Future[Outcome[R]] = self._future()
        await self._admit(program, [body], [key], [lambda outcome: _resolve(future, outcome)])
        return await future

    def abandon(self, arrivals: Outcomes) -> None:
        """A driver left a `map`: send nothing more for it. Replies in flight are still journalled."""
        context = self._context
        if context.over is not None:
            return  # the run ended first: what is unfinished goes on when it is resumed
        self._give_up(
            [t for t in context.open.values() if isinstance(t.deliver, Place) and t.deliver.arrivals is arrivals]
        )

    def _give_up(self, trials: list[OpenTrial]) -> None:
        context = self._context
        for trial in trials:
            trial.drop()
            del context.open[trial.id]
            context.counters.planned -= 1
            context.journal.abandon(trial.id)
            if self._head is not None:
                self._head.withdraw(trial)
        self._dispatch.forget_dropped()
        self.made_room()

    def close(self) -> None:
        """Look back no more."""
        if self._parent is not None:
            self._parent.close()

    def fail(self, error: Exception) -> None:
        """Raise an error for everyone who waits for an outcome."""
        for future in [*self._futures, *self._room]:
            if not future.done():
                future.set_exception(error)
                self.cut_short = True
        self.cut_short = self.cut_short or bool(self.maps)
        self._room.clear()
        for arrivals in list(self.maps):
            arrivals.fail(error)

    def made_room(self) -> None:
        """A trial ended: wake those who wait for room, in order."""
        while self._room and self._left > 0:
            future = self._room.popleft()
            if not future.done():
                self._woken += 1
                future.set_result(None)

    def driver_ended(self) -> None:
        """The driver has returned: trials that are open, or were not submitted again, no longer belong to the run.

        The sources of changed programs are stored only now, so that a run that stops halfway does not pass as scored
        again.
        """
        if self._rescored:
            self._context.record.sources.update(self._rescored)
            self._save_sources(self._context.record)
        self._give_up(list(self._context.open.values()))

    def readmit(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        recorded: dict[str, Recorded],
        inherited: dict[str, Recorded] | None,
    ) -> None:
        """Continue a trial of an earlier session before the driver submits it again."""
        self.past -= 1
        self.recovered[row.key] = self._start(row, program, None, recorded, inherited)

    async def _find_room(self, arrivals: Outcomes) -> int:
        """Wait until trials may be opened. Returns how many."""
        while (room := min(self._left, MOST_BACKLOG + self.window - arrivals.due)) <= 0:
            self.admitting -= 1
            self._context.schedule()
            try:
                await self._wait_for_room()
            finally:
                self.admitting += 1
        await self._raise_if_over()
        return room

    async def _wait_for_room(self) -> None:
        await self._raise_if_over()
        future: asyncio.Future[None] = self._context.loop.create_future()
        self._room.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # its turn had come: the next one's turn comes instead
                self._woken -= 1
                self.made_room()
            raise
        self._woken -= 1

    async def _admit(
        self, program: Program[Any, Any], bodies: Sequence[bytes], keys: Sequence[str], deliver: Sequence[Deliver]
    ) -> None:
        """Start trials, or deliver the outcomes of those that ended in an earlier session."""
        context = self._context
        self._entering += len(keys)
        try:
            rows, recorded, inherited = await self._look_back(program, keys)
        finally:
            self._entering -= len(keys)
        for body, key, then in zip(bodies, keys, deliver, strict=True):
            spec = body.decode()
            row = rows.get(key)
            if key in self.recovered:
                self._claim(program, self.recovered.pop(key), spec, then)
            elif row is None:
                self._number += 1
                context.counters.planned += 1
                new = TrialRow(self._number, key, program.id, spec, 0)
                self._start(new, program, then, None, inherited.get(key))
            else:
                _check_spec(key, row.spec, spec)
                self._check_version(program, row.program)
                self.past -= 1
                if row.outcome is not None and program.id not in self._rescored:
                    then(past_outcome(program, row))
                else:
                    self._start_again(row, program, then, recorded.get(row.id), inherited.get(key))
        self.made_room()

    def _check_key(self, key: str) -> None:
        """Refuse an invalid key."""
        if not key or "\0" in key or plain_text(key) != key:
            raise SettingsError(f"trial key {key!r}: must be valid Unicode text without NUL characters, and not empty")
        if self._named.add(key):
            raise DuplicateKey(f"trial key {key!r} was submitted twice in run {self._context.record.title!r}")

    async def _look_back(
        self, program: Program[Any, Any], keys: Sequence[str]
    ) -> tuple[Mapping[str, TrialRow], Mapping[int, dict[str, Recorded]], Mapping[str, dict[str, Recorded]]]:
        """What earlier sessions and the parent of a fork have stored of these trials."""
        journal = self._context.journal
        rows: Mapping[str, TrialRow] = {}
        recorded: Mapping[int, dict[str, Recorded]] = {}
        if self.past > 0:
            rows = await journal.find([key for key in keys if key not in self.recovered])
            again = [
                row.id
                for row in rows.values()
                if row.outcome is None or row.program != program.id or program.id in self._rescored
            ]
            if again:
                recorded = await journal.recorded(sorted(again))
        unfinished = [key for key in keys if key not in self.recovered and _unfinished(rows.get(key))]
        return rows, recorded, await self.inherited(unfinished)

    async def inherited(self, keys: Sequence[str]) -> Mapping[str, dict[str, Recorded]]:
        """What the parent of a fork has stored of these trials, before the cut."""
        if self._parent is None:
            return {}
        parents = await self._parent.find(keys)
        theirs = await self._parent.recorded(sorted(row.id for row in parents.values()))
        return {key: _before(self._context.record.cut, theirs[row.id]) for key, row in parents.items()}

    def _claim(self, program: Program[Any, Any], trial: OpenTrial, spec: str, deliver: Deliver) -> None:
        """The driver submitted a trial that was recovered."""
        _check_spec(trial.key, trial.spec, spec)
        self._check_version(program, trial.program.id)
        if trial.outcome is not None:
            deliver(trial.outcome)
        else:
            trial.deliver = deliver

    def _start_again(
        self,
        row: TrialRow,
        program: Program[Any, Any],
        deliver: Deliver,
        recorded: dict[str, Recorded] | None,
        inherited: dict[str, Recorded] | None,
    ) -> None:
        """Continue a trial that was left to the driver, or score it again."""
        if row.abandoned or row.program != program.id:
            self._context.counters.planned += row.abandoned
            row = row._replace(program=program.id, abandoned=False)
            self._context.journal.add_trial(row)
        self._start(row, program, deliver, recorded, inherited)

    def _check_version(self, program: Program[Any, Any], recorded: str) -> None:
        """Refuse trials of another version of a program, unless changes were accepted."""
        if recorded != program.id:
            if not self._accept_changes:
                raise SourceChanged(
                    f"run {self._context.record.title!r} has trials of {recorded}, but {program} was submitted. Start "
                    "a new run with another name, or score the recorded replies again with "
                    "`groundswell runs resume --accept-changes`"
                )
            self._rescore(program)

    def _rescore(self, program: Program[Any, Any]) -> None:
        """Score a program's trials again. Until that is done, the run has no valid source for it."""
        self._rescored[program.id] = program.source
        self._context.record.sources[program.id] = "being scored anew"
        self._save_sources(self._context.record)

    def unchanged(self, program: Program[Any, Any]) -> bool:
        """Whether a program's source is the one that the run was started with."""
        stored = self._context.record.sources.get(program.id)
        return stored is None or same_code(stored, program.source)

    def _check(self, program: Program[Any, Any]) -> None:
        """Refuse a changed program. If changes were accepted, score its trials again."""
        if not isinstance(program, Program):
            raise SettingsError(
                f"{program!r} is not a program: decorate an `async def f(trial, spec)` with @program('a/name')"
            )
        if program.id in self._checked:
            return
        record = self._context.record
        if not self.unchanged(program):
            if not self._accept_changes:
                raise SourceChanged(
                    f"{program} has changed since run {record.title!r} was started. Restore it, start a new run, or "
                    "score the recorded replies again with `groundswell runs resume --accept-changes`"
                )
            self._rescore(program)
        elif record.sources.get(program.id) != program.source:
            record.sources[program.id] = program.source
            self._save_sources(record)
        self._checked.add(program.id)

    def relies_on(self, program: Program[Any, Any], parts: Sequence[Program[Any, Any]]) -> None:
        """Include the code of called programs in the identity of a program."""
        for part in parts:
            self._check(part)
        if any(part.id in self._rescored for part in parts):
            self._rescore(program)

    def check_alias(self, alias: str, model: str) -> None:
        """Refuse another model under the same alias, unless changes were accepted."""
        name, sources = f"model {alias}", self._context.record.sources
        if sources.get(name, model) != model and not self._accept_changes:
            raise SourceChanged(
                f"alias {alias} stood for {sources[name]} when run {self._context.record.title!r} was started, and now "
                f"stands for {model}. Change it back in groundswell.toml, start a new run, or resume with "
                "--accept-changes"
            )
        if sources.get(name) != model:
            sources[name] = model
            self._save_sources(self._context.record)

    async def _raise_if_over(self) -> None:
        """Raise after a stop, once the replies in flight have arrived."""
        context = self._context
        if context.error is not None:
            raise context.error
        if context.stopping is not None:
            stopped: asyncio.Future[None] = self._future()
            context.halt_when_still()
            await stopped

    def _future(self) -> asyncio.Future[Any]:
        """A future that fails when the run does."""
        future: asyncio.Future[Any] = self._context.loop.create_future()
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future


def _check_spec(key: str, recorded: str, now: str) -> None:
    if recorded != now:
        raise ReplayMismatch(key, "-", f"the run recorded this key with another spec: {recorded[:200]}")


def _default_key(program: Program[Any, Any], body: bytes, suffix: str, seen: Seen) -> str:
    """A hash of the spec; which `map` of the run it is in, if not the first; and the number of its replicate there.

    Counted per `map`, since how far ahead an earlier one had read when it was left depends on timing.
    """
    key = spec_key(program.name, body)
    replicate = seen.add(key)
    return f"{key}{suffix}#{replicate}" if replicate else key + suffix


def _unfinished(row: TrialRow | None) -> bool:
    return row is None or row.outcome is None


def _before(cut: str | None, recorded: dict[str, Recorded]) -> dict[str, Recorded]:
    """The replies that a fork may reuse: those before the cut, a position of the program itself."""
    kept = {path: known for path, known in recorded.items() if type(known[1]) is not Fault}
    if cut is None:
        return kept
    return {path: known for path, known in kept.items() if int(path.partition(".")[0]) < int(cut)}


def _resolve(future: asyncio.Future[Any], outcome: Outcome[Any]) -> None:
    if not future.done():
        future.set_result(outcome)
