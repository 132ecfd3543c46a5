"""Whether asks that could travel in a batch do so, or go live, and why. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

Via = Literal["live", "batch", "auto"]

USUALLY = 3600.0
"""Seconds that a batch takes, as long as none was seen: most are done within an hour."""
FEW = 0.02
"""The part of a batch that failed and is so small that the rest should not fall a turn behind it, or wait for it."""
LAST_PART = 0.25
LAST_MINUTES = 900.0
"""Before a deadline, no batch is waited for any longer: so much of the time, but no more than this many seconds."""
WORTH_IT = 0.01
"""Dollars that a batch must save for `auto` to wait for it."""
TRIES, ORDERS = 2, 5
"""How often an ask may fail in batches before it goes live, and how often there may be no batch made of it at all."""


class Case(NamedTuple):
    """What is known when asks are about to leave.

    size     how many they are
    shut     why batches do not work, if so
    seconds  how long batches take here, as far as is known
    left     seconds until the deadline, of `whole`, if there is one
    saved    dollars that a batch would save, if known
    """

    via: Via
    size: int
    shut: str | None = None
    seconds: float | None = None
    left: float | None = None
    whole: float = 0.0
    saved: float | None = None


def last_call(whole: float) -> float:
    """How many seconds before a deadline no batch is waited for any longer."""
    return min(LAST_MINUTES, LAST_PART * whole)


def why_live(case: Case) -> str | None:
    """Why asks go live, or None if they travel in a batch."""
    if case.shut is not None:
        return case.shut
    if case.size == 1:
        return "a single request gains nothing from a batch but its price, and would be waited for"
    if case.left is not None and (late := _too_late(case, case.left)) is not None:
        return late
    if case.via == "auto" and case.saved is not None and case.saved < WORTH_IT:
        return f"a batch would save ${max(case.saved, 0.0):.4f}, less than a cent"
    return None


def few(failed: int, among: int) -> str | None:
    """Why those that failed in a batch go live, if they are so few of it."""
    if failed > FEW * among:
        return None
    return f"they are the {failed} of {among} in a batch that failed; the others need not wait for another"


def _too_late(case: Case, left: float) -> str | None:
    if left <= last_call(case.whole):
        return f"a batch may not be back before the deadline, which is in {left:.0f} s"
    takes = USUALLY if case.seconds is None else case.seconds
    if case.via == "auto" and 2 * takes > left:
        known = "usually" if case.seconds is None else "lately"
        return f"batches take {takes:.0f} s {known}, and the deadline is in {left:.0f} s"
    return None


def why_batch(case: Case) -> str:
    """What speaks for a batch."""
    price = "half the price" if case.saved is None else f"saves about ${case.saved:.4f}"
    if case.left is None:
        return f"{price}, and there is no deadline"
    return f"{price}, and the deadline is {case.left:.0f} s away"
