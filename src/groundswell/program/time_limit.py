"""Limits the time that a program computes between two requests, so that an endless detector or metric is interrupted.

While a program computes, the event loop waits. A signal interrupts it, even during a regular expression search.
Signals only reach the main thread, so there is no limit in other threads (the server, `open_sync`). The limit counts
processor time and does not depend on how busy the machine is.
"""

from __future__ import annotations

import atexit
import signal
import threading
import time
from types import FrameType

from groundswell.errors import TimeLimitExceeded

SECONDS = 30.0
"""Limit on the processor time of one step, the code between two requests. A step may take up to `TICK` more."""
TICK = 5.0
"""Interval of the timer that checks the current step. A timer for each step would cost two system calls."""
AGAIN = 1.0
"""Seconds after which a program that catches the error and continues is interrupted again."""
_MAIN = threading.main_thread().ident
_OURS = ("groundswell.program.conductor", __name__)
_available: bool | None = None
_armed = False
_running = False
_step = 0
_seen, _since = 0, 0.0
"""The step that was running at the last check, and the time at which it was first seen."""


def begin() -> None:
    """Start the limit for a step that begins now. After the last of several steps, call `end`."""
    global _running, _step  # noqa: PLW0603  one step runs at a time in the main thread
    if threading.get_ident() != _MAIN:
        return
    _step += 1
    _running = True
    if not _armed:
        _arm()


def end() -> None:
    """The last step has ended."""
    global _running  # noqa: PLW0603
    if threading.get_ident() == _MAIN:
        _running = False


def _arm() -> None:
    global _armed, _available  # noqa: PLW0603
    if _available is None:
        _available = _install()
    _armed = True
    if _available:
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)


def _install() -> bool:
    """Install the signal handler. If the signal is already in use, there is no limit."""
    if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGVTALRM) is not signal.SIG_DFL:
        return False
    signal.signal(signal.SIGVTALRM, _interrupt)
    atexit.register(signal.setitimer, signal.ITIMER_VIRTUAL, 0.0)  # handlers are removed before the interpreter exits
    return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    # The timer counts the processor time of all threads, but the limit applies to the main thread.
    global _armed, _seen, _since  # noqa: PLW0603
    now = time.thread_time()
    if _step != _seen:
        _seen, _since = _step, now
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
    elif not _running:  # no step since the last look: the next one starts the timer again
        _armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    elif now - _since >= SECONDS and frame is not None and frame.f_globals.get("__name__") not in _OURS:
        signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN, AGAIN)
        raise TimeLimitExceeded(
            f"the program computed for more than {SECONDS:g} s without a request. "
            "Do long work in a function registered with @function"
        )
