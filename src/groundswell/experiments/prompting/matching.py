"""Regular expressions that end: some, as `(a+)+$`, would search a long text for years, and nothing else could go on."""

from __future__ import annotations

import re
import signal
import threading
from types import FrameType

PATIENCE = 1.0
"""Seconds that one search may take."""


class TooSlow(Exception):
    """A search was given up."""


def is_found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether an expression is found in a text; raises `TooSlow`.

    Only signals get through to a search, and they come to the main thread alone: in others it takes what it takes.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return pattern.search(text) is not None
    searching = True

    def give_up(number: int, frame: FrameType | None) -> None:
        if searching:
            raise TooSlow(f"{pattern.pattern!r} takes longer than {PATIENCE:g} s to search")

    before = signal.signal(signal.SIGALRM, give_up)
    left = (0.0, 0.0)
    try:
        left = signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        return pattern.search(text) is not None
    finally:
        searching = False
        signal.setitimer(signal.ITIMER_REAL, *left)
        signal.signal(signal.SIGALRM, before)
