"""Logs events of a run on standard error: all of them with -v, otherwise those that may need action."""

from __future__ import annotations

from collections.abc import Callable

from groundswell.cli.output import say
from groundswell.engine.event_lines import EventLines
from groundswell.engine.events import BatchHeldBack, BatchReordered, EndpointChanged, Event

LONG_WAIT = 5.0


class Log:
    """A listener that logs events."""

    def __init__(self, *, verbose: bool, say: Callable[[str], None] = say) -> None:
        self._verbose = verbose
        self._say = say
        self._telling = EventLines()

    def __call__(self, event: Event) -> None:
        """Log an event, if it matters."""
        if self._verbose or _matters(event):
            for line in self._telling.lines(event):
                self._say(line)


def _matters(event: Event) -> bool:
    if isinstance(event, EndpointChanged | BatchReordered):
        return True
    return isinstance(event, BatchHeldBack) and event.wait >= LONG_WAIT
