"""Events of a run, for progress displays and logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all events."""

    run: str
    at: float


class RunOpened(Event, frozen=True):
    """A run was opened. `unfinished` trials of an earlier session are continued first."""

    unfinished: int


class WaveSent(Event, frozen=True):
    """A wave was sent. `labels` are those of its requests; `first`: these are the first requests of their trials.

    `whole`: it contains all requests that could be sent together.
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
    """All requests of a wave have ended."""

    wave: int
    account: str
    size: int
    seconds: float


class RouteChosen(Event, frozen=True):
    """Requests that could be batched are sent by batch or live, and why. `way` is the transport."""

    account: str
    model: str
    way: str
    size: int
    why: str


class BatchSent(Event, frozen=True):
    """A provider accepted a batch, or a batch that was sent earlier was found. `usd` is its estimated cost."""

    wave: int
    account: str
    batch: str
    model: str
    size: int
    usd: float | None
    found: bool = False


class BatchChanged(Event, frozen=True):
    """The state of a batch changed at its provider. `run` is empty."""

    account: str
    batch: str
    state: str
    done: int
    failed: int
    total: int


class BatchHeldBack(Event, frozen=True):
    """The provider's queue is full, or the state of a batch is unknown. The engine checks again later."""

    account: str
    model: str
    size: int
    why: str
    wait: float


class BatchReordered(Event, frozen=True):
    """A batch that its provider no longer shows is treated as lost, and its requests are sent again.

    They may be billed twice. `usd` is their estimated cost, if known.
    """

    wave: int
    account: str
    batch: str | None
    model: str
    size: int
    usd: float | None
    why: str


class AskRetried(Event, frozen=True):
    """A request failed and will be sent again."""

    trial: str
    path: str
    kind: str
    message: str
    attempt: int
    wait: float


class TrialEnded(Event, frozen=True):
    """A trial has ended. `fault` is the kind of fault if it is missing."""

    trial: str
    fault: str | None


class DriverReported(Event, frozen=True):
    """A driver reported progress, such as a generation. Reports are repeated when a run is resumed.

    `texts` are results so far, by name, such as the best prompt.
    """

    done: int
    figures: dict[str, float]
    who: str = ""
    words: str = ""
    texts: dict[str, str] = {}


class EndpointChanged(Event, frozen=True):
    """An endpoint of an account failed or recovered. `run` is empty, because runs share endpoints."""

    account: str
    endpoint: str
    what: str


class RunStopping(Event, frozen=True):
    """The run stops: nothing more is sent, and replies in flight are still journalled."""

    reason: str
    why: str


class RunEnded(Event, frozen=True):
    """The run was closed with this status."""

    status: str


Listener = Callable[[Event], None]


def tell(listeners: Sequence[Listener], event: Event) -> None:
    """Call all listeners. If one raises, that is reported and does not fail the run."""
    for listener in listeners:
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001  code of the listener
            asyncio.get_running_loop().call_exception_handler({"message": "a listener failed", "exception": error})
