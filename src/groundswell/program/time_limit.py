"""A limit on how long a program computes between two asks, so that a detector or metric that never ends is given up.

Everything else waits while a program computes. A signal interrupts it, also in the middle of a search by a regular
expression. Signals reach the main thread alone: in other threads (the server, `open_sync`) there is no such limit.
Processor time counts, so that the limit does not depend on how busy the machine is.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

from groundswell.errors import TimeLimitExceeded

SECONDS = 30.0
"""Processor time of one step of a program: its code between two asks."""
AGAIN = 1.0
"""A program that catches the error and goes on is interrupted again after so many seconds."""
_MAIN = threading.main_thread().ident
_OURS = ("groundswell.program.conductor", __name__)
_available: bool | None = None
_running = False
_began = 0.0


def begin() -> None:
    """Start the limit for a step that begins now. Every `begin` needs an `end`."""
    global _available, _began, _running  # noqa: PLW0603  one step runs at a time in the main thread
    if threading.get_ident() != _MAIN:
        return
    if _available is None:
        _available = _install()
    if _available:
        _began, _running = time.thread_time(), True
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, AGAIN)


def end() -> None:
    """The step has ended."""
    global _running  # noqa: PLW0603
    if _running and threading.get_ident() == _MAIN:
        _running = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _install() -> bool:
    """Take the signal, unless somebody else uses it: then there is no limit."""
    if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGVTALRM) is not signal.SIG_DFL:
        return False
    signal.signal(signal.SIGVTALRM, _interrupt)
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    # The timer counts the processor time of all threads, and the limit is for the main thread's.
    over = _running and time.thread_time() - _began >= SECONDS
    if over and frame is not None and frame.f_globals.get("__name__") not in _OURS:
        raise TimeLimitExceeded(
            f"it computed for more than {SECONDS:g} s without an ask; "
            "do long work in a function that is registered with @function"
        )
