"""The event loop that everything here runs on, and the garbage collector beside it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop there is here."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


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
