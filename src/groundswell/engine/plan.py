"""When queued asks leave, and in waves of what size; how many trials are open. Pure."""

from __future__ import annotations

from math import ceil
from typing import Literal

Schedule = Literal["stream", "waves"]
WHOLE_WAVE = 50_000
CALLS_AT_ONCE = 4
"""Where a wave is one call: how many may be under way, so that the next one gathers what comes up meanwhile."""


def sendable(queued: int, released: int, *, quiet: bool) -> int:
    """How many queued asks should leave through a barrier, as far as limits allow.

    It waits until the run is quiet, when no program can go on and nothing comes in, and then releases everything: one
    wave holds all that can travel together, even if limits let it leave only piece by piece. Batches that are at their
    providers have their own time: trials that wait for them are other ones than those whose asks are queued.
    """
    return released or (queued if quiet else 0)


def cut(count: int, max_wave: int) -> list[int]:
    """Split asks into the fewest waves of nearly equal size."""
    waves = ceil(count / max_wave)
    return [count * (index + 1) // waves - count * index // waves for index in range(waves)]


def unsure(cap: int) -> int:
    """How many replies may have come and not be durable yet before no more is sent: with what is in flight, these are
    what a crash loses.
    """
    return cap // 2 + 2


def window(slots: int, *, barrier: bool, unopened: int | None = None) -> int:
    """How many trials to keep open; `unopened` is how many there are besides, if that is known.

    A stream keeps twice as many as there are slots: that hides the time that commits take. When no more than that are
    left, they are opened all at once: what begins late ends late, with most of the slots idle (bench/waves.py). Barrier
    waves want every trial, up to what a provider's batch holds.
    """
    if barrier:
        return WHOLE_WAVE
    return 4 * slots if unopened is not None and unopened <= 2 * slots else 2 * slots
