"""What happens in a run, line by line, on standard error: all of it with -v, else what somebody may have to act on.

Waves are told as they are: how many requests, whose messages, which conversations, and how long they took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groundswell.cli.output import cost, duration, say
from groundswell.engine.events import (
    AskRetried,
    BatchChanged,
    BatchHeldBack,
    BatchSent,
    EndpointChanged,
    Event,
    RouteChosen,
    RunEnded,
    RunOpened,
    RunStopping,
    WaveEnded,
    WaveSent,
)
from groundswell.store.waves import NUMBER

SHOWN_LABELS, SHOWN_TRIALS = 3, 20
LONG_WAIT = 5.0


class Log:
    """A listener that tells what happens."""

    def __init__(self, *, verbose: bool, say: Callable[[str], None] = say) -> None:
        self._verbose = verbose
        self._say = say
        self._numbers: dict[int, int] = {}
        self._last = 0
        self._states: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Tell of an event, if it is worth it."""
        for line in self._lines(event):
            self._say(line)

    def _lines(self, event: Event) -> list[str]:
        if isinstance(event, EndpointChanged):
            return [f"{event.account} at {event.endpoint}: {event.what}"]
        if isinstance(event, BatchHeldBack):
            return [_held_back(event)] if self._verbose or event.wait >= LONG_WAIT else []
        if not self._verbose:
            return []
        if isinstance(event, WaveSent):
            return self._sent(event) if event.whole else []
        if isinstance(event, WaveEnded):
            return [self._ended(event)]
        if isinstance(event, BatchChanged):
            return self._changed(event)
        return _line(event)

    def _sent(self, event: WaveSent) -> list[str]:
        number = self._last = self._numbers[event.wave] = self._number(event)
        whose = _some(event.labels, SHOWN_LABELS) or event.account
        turn = "first messages" if event.first else "responses"
        return [
            f"Processing wave {number} with {event.size} requests for {whose} ({turn})",
            f"Wave {number} conversations: {_some(event.trials, SHOWN_TRIALS)}",
        ]

    def _number(self, event: WaveSent) -> int:
        """A batch has the number by which `batches show RUN/WAVE` knows it; live waves are counted."""
        return event.wave & NUMBER if event.transport.endswith("_batch") else self._last + 1

    def _ended(self, event: WaveEnded) -> str:
        number = self._numbers.get(event.wave)
        if number is None:
            asks = "1 ask" if event.size == 1 else f"{event.size} asks"
            return f"wave {event.wave & NUMBER}: {asks}, {event.account}, {event.seconds:.2f} s"
        each = event.seconds / max(event.size, 1)
        return f"Wave {number} completed in {event.seconds:.2f} seconds, avg {each:.2f} sec per message"

    def _changed(self, event: BatchChanged) -> list[str]:
        if self._states.get(event.batch) == event.state:
            return []
        self._states[event.batch] = event.state
        failed = f", {event.failed} of them failed" * bool(event.failed)
        return [f"{event.account}: {event.batch}: {event.state}, {event.done} of {event.total} done{failed}"]


def _line(event: Event) -> list[str]:
    match event:
        case RunOpened(run=run, unfinished=unfinished):
            return [f"run {run}: opened" + (f", {unfinished} trials of an earlier session go on" * bool(unfinished))]
        case RouteChosen(size=0, account=account, why=why):
            return [f"{account}: live, since {why}"]
        case RouteChosen(account=account, model=model, way=way, size=size, why=why):
            how = way if way == "live" else f"by {way}"
            return [f"{account}/{model}: {size} {'ask' if size == 1 else 'asks'} {how}: {why}"]
        case BatchSent(account=account, batch=batch, size=size, usd=usd, found=found):
            what = "found again" if found else "sent"
            price = "" if usd is None else f", about {cost(usd, 0)}"
            return [f"{account}: {batch} {what}: {size} requests{price}"]
        case AskRetried(trial=trial, path=path, kind=kind, message=message, attempt=attempt, wait=wait):
            return [f"trial {trial}, ask {path}: {kind}: {message}; attempt {attempt} in {wait:.1f} s"]
        case RunStopping(run=run, why=why):
            return [f"run {run}: stopping, {why}"]
        case RunEnded(run=run, status=status):
            return [f"run {run}: {status}"]
    return []


def _held_back(event: BatchHeldBack) -> str:
    wait = f"; looking again in {duration(event.wait)}" * bool(event.wait)
    return f"{event.account}: {event.size} requests wait: {event.why}{wait}"


def _some(names: Sequence[str], most: int) -> str:
    """The first of many names, and how many more there are."""
    shown = ", ".join(name for name in names[:most] if name)
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
