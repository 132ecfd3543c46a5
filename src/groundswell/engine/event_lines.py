"""Events of a run as lines of text, for `-v` and logs.

A wave is described by its number of requests, its speakers, its conversations, and the time that it took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groundswell.engine.events import (
    AskRetried,
    BatchChanged,
    BatchHeldBack,
    BatchReordered,
    BatchSent,
    DriverReported,
    EndpointChanged,
    Event,
    RouteChosen,
    RunEnded,
    RunOpened,
    RunStopping,
    WaveEnded,
    WaveSent,
)
from groundswell.engine.records import NUMBER
from groundswell.reporting.words import cost, duration

SHOWN_LABELS, SHOWN_TRIALS = 3, 20


class EventLines:
    """Turns the events of a run into lines. `named` gives the name of a trial for its key."""

    def __init__(self, named: Callable[[str], str] = str) -> None:
        self._named = named
        self._numbers: dict[int, int] = {}
        self._last = 0
        self._states: dict[str, str] = {}

    def lines(self, event: Event) -> list[str]:
        """The lines for an event."""
        match event:
            case WaveSent():
                return self._sent(event) if event.whole else []
            case WaveEnded():
                return [self._ended(event)]
            case BatchChanged():
                return self._changed(event)
            case AskRetried(trial=trial, path=path, kind=kind, message=message, attempt=attempt, wait=wait):
                name = self._named(trial)
                return [f"trial {name}, request {path}: {kind}: {message}; attempt {attempt} in {wait:.1f} s"]
        return _lines(event)

    def _sent(self, event: WaveSent) -> list[str]:
        number = self._last = self._numbers[event.wave] = self._number(event)
        whose = _some(event.labels, SHOWN_LABELS) or event.account
        turn = "first messages" if event.first else "responses"
        trials = [self._named(trial) for trial in event.trials[: SHOWN_TRIALS + 1]]
        more = len(event.trials) - len(trials)
        return [
            f"Processing wave {number} with {event.size} requests for {whose} ({turn})",
            f"Wave {number} conversations: {_some(trials, SHOWN_TRIALS, more)}",
        ]

    def _number(self, event: WaveSent) -> int:
        """The number of a wave: of a batch as in `batches show RUN/WAVE`; live waves are counted."""
        return event.wave & NUMBER if event.transport.endswith("_batch") else self._last + 1

    def _ended(self, event: WaveEnded) -> str:
        number = self._numbers.get(event.wave)
        if number is None:
            requests = "1 request" if event.size == 1 else f"{event.size} requests"
            return f"wave {event.wave & NUMBER}: {requests}, {event.account}, {event.seconds:.2f} s"
        each = event.seconds / max(event.size, 1)
        return f"Wave {number} completed in {event.seconds:.2f} seconds, avg {each:.2f} sec per message"

    def _changed(self, event: BatchChanged) -> list[str]:
        if self._states.get(event.batch) == event.state:
            return []
        self._states[event.batch] = event.state
        failed = f", {event.failed} of them failed" * bool(event.failed)
        return [f"{event.account}: {event.batch}: {event.state}, {event.done} of {event.total} done{failed}"]


def _lines(event: Event) -> list[str]:
    match event:
        case EndpointChanged(account=account, endpoint=endpoint, what=what):
            return [f"{account} at {endpoint}: {what}"]
        case BatchHeldBack(account=account, size=size, why=why, wait=wait):
            again = f"; next attempt in {duration(wait)}" * bool(wait)
            return [f"{account}: {size} requests wait: {why}{again}"]
        case RunOpened(run=run, unfinished=unfinished):
            return [f"run {run}: opened" + (f", continuing {unfinished} unfinished trials" * bool(unfinished))]
        case RouteChosen(size=0, account=account, why=why):
            return [f"{account}: live, because {why}"]
        case RouteChosen(account=account, model=model, way=way, size=size, why=why):
            how = way if way == "live" else f"by {way}"
            return [f"{account}/{model}: {size} {'request' if size == 1 else 'requests'} {how}: {why}"]
        case BatchSent(account=account, batch=batch, size=size, usd=usd, found=found):
            what = "found again" if found else "sent"
            price = "" if usd is None else f", about {cost(usd, 0)}"
            return [f"{account}: {batch} {what}: {size} requests{price}"]
        case BatchReordered(account=account, batch=batch, size=size, usd=usd, why=why):
            price = "" if usd is None else f" (about {cost(usd, 0)})"
            lost = f"{account}: {batch or 'a batch'} is treated as lost: {why}"
            return [f"{lost}; its {size} requests{price} are sent again and may be billed twice"]
        case DriverReported(words=words):
            return [words] * bool(words)
        case RunStopping(run=run, why=why):
            return [f"run {run}: stopping: {why}"]
        case RunEnded(run=run, status=status):
            return [f"run {run}: {status}"]
    return []


def _some(names: Sequence[str], most: int, more: int = 0) -> str:
    """The first names, and how many more there are. `more` counts those that are not in `names`."""
    shown = ", ".join(name for name in names[:most] if name)
    left = len(names) + more - most
    return shown if left <= 0 else f"{shown} and {left} more"
