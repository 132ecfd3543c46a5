"""The event loop, the garbage collector settings, and the signals that stop a command."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop: uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that stop a foreground command. SIGHUP stays ignored if it is, as under `nohup`."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hangup)


@contextlib.contextmanager
def on_stop_signals(callback: Callable[[], object]) -> Iterator[None]:
    """Call a function on every stop signal. Handlers are restored explicitly, because uvloop leaves them behind."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in stop_signals()}
    for number in before:
        loop.add_signal_handler(number, callback)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextlib.contextmanager
def tuned_collector() -> Iterator[None]:
    """Run the garbage collector rarely: there are many long-lived objects and few cycles.

    Existing objects are frozen and never scanned: with a million of them, one scan takes half a second.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
