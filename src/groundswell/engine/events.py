"""What happened, for progress displays and logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all events."""

    run: str
    at: float


class RunOpened(Event, frozen=True):
    """A run takes work; `unfinished` trials of an earlier session go on first."""

    unfinished: int


class WaveSent(Event, frozen=True):
    """A wave left. `labels` says whose messages it carries, and `first` that these are the first of their trials.

    `whole` says that it holds all that could travel together.
    """

    wave: int
    account: str
    transport: str
    size: int
    labels: tuple[str, ...]
    trials: tuple[str, ...]
    whole: bool = False
    first: bool = False


class WaveEnded(Event, frozen=True):
    """Everything of a wave has come back."""

    wave: int
    account: str
    size: int
    seconds: float


class RouteChosen(Event, frozen=True):
    """Asks that could travel in a batch do so, or go live, and why; `way` is the transport."""

    account: str
    model: str
    way: str
    size: int
    why: str


class BatchSent(Event, frozen=True):
    """A provider has taken a batch, or one that was sent earlier was found there. `usd` is what it may cost."""

    wave: int
    account: str
    batch: str
    model: str
    size: int
    usd: float | None
    found: bool = False


class BatchChanged(Event, frozen=True):
    """A batch has come further at its provider. `run` is empty: only the provider spoke."""

    account: str
    batch: str
    state: str
    done: int
    failed: int
    total: int


class BatchHeldBack(Event, frozen=True):
    """There is no room in the provider's queue, or it cannot be told yet what became of a batch; look again later."""

    account: str
    model: str
    size: int
    why: str
    wait: float


class BatchReordered(Event, frozen=True):
    """A batch that its provider does not show any more counts as lost, and its asks are sent again.

    They may be paid for twice. `usd` is about what they cost, if that is known.
    """

    wave: int
    account: str
    batch: str | None
    model: str
    size: int
    usd: float | None
    why: str


class AskRetried(Event, frozen=True):
    """An ask failed and will be sent again."""

    trial: str
    path: str
    kind: str
    message: str
    attempt: int
    wait: float


class TrialEnded(Event, frozen=True):
    """A trial has an outcome; `fault` says why it is missing, if it is."""

    trial: str
    fault: str | None


class DriverReported(Event, frozen=True):
    """How far a driver is, in its own terms: an update of a learner, a generation. Told again when it resumes."""

    done: int
    figures: dict[str, float]
    who: str = ""
    words: str = ""


class EndpointChanged(Event, frozen=True):
    """An endpoint of an account is out, or works again. `run` is empty: it is everyone's."""

    account: str
    endpoint: str
    what: str


class RunStopping(Event, frozen=True):
    """No more is sent; what is in flight is still journalled."""

    reason: str
    why: str


class RunEnded(Event, frozen=True):
    """The run was closed in this state."""

    status: str


Listener = Callable[[Event], None]


def tell(listeners: Sequence[Listener], event: Event) -> None:
    """Tell everyone; a display that fails is reported and does not fail the run."""
    for listener in listeners:
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001  the edge of somebody else's code
            asyncio.get_running_loop().call_exception_handler({"message": "a listener failed", "exception": error})
