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
    """A wave left. `labels` says whose messages it carries."""

    wave: int
    account: str
    transport: str
    size: int
    labels: tuple[str, ...]
    trials: tuple[str, ...]


class WaveEnded(Event, frozen=True):
    """Everything of a wave has come back."""

    wave: int
    account: str
    size: int
    seconds: float


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
