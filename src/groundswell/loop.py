"""The event loop that everything here runs on, the garbage collector beside it, and the signals that stop it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop there is here."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that stop what runs in the foreground. SIGHUP stays ignored where it is, as `nohup` has it."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hangup)


@contextlib.contextmanager
def on_stop_signals(callback: Callable[[], object]) -> Iterator[None]:
    """Let the running loop call this at every signal that stops. A uvloop that is closed leaves its handlers behind."""
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
    """Let the garbage collector run rarely: there are many objects that live long, and few cycles.

    What is there already is left alone, and not even looked at once: with a million objects that takes half a second.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
