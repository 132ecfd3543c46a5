"""What happens in a run, line by line, on standard error: all of it with -v, else what somebody may have to act on."""

from __future__ import annotations

from collections.abc import Callable

from groundswell.cli.output import say
from groundswell.engine.event_lines import EventLines
from groundswell.engine.events import BatchHeldBack, BatchReordered, EndpointChanged, Event

LONG_WAIT = 5.0


class Log:
    """A listener that tells what happens."""

    def __init__(self, *, verbose: bool, say: Callable[[str], None] = say) -> None:
        self._verbose = verbose
        self._say = say
        self._telling = EventLines()

    def __call__(self, event: Event) -> None:
        """Tell of an event, if it is worth it."""
        if self._verbose or _matters(event):
            for line in self._telling.lines(event):
                self._say(line)


def _matters(event: Event) -> bool:
    if isinstance(event, EndpointChanged | BatchReordered):
        return True
    return isinstance(event, BatchHeldBack) and event.wait >= LONG_WAIT
