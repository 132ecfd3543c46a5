"""What to do about a fault: retry at a time, give up, or stop the run. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from groundswell.program.request import Fault, FaultKind


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and how patiently to retry."""

    attempts: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0


class RetryAt(NamedTuple):
    """Send it again, not before this time."""

    when: float


class GiveUp(NamedTuple):
    """The fault is final: the program gets it."""


class Stop(NamedTuple):
    """Nothing sent to this account can succeed: end the run, so that it can be resumed once this is mended."""


Decision = RetryAt | GiveUp | Stop

PASSING = frozenset(
    {
        FaultKind.RATE_LIMITED,
        FaultKind.OVERLOADED,
        FaultKind.SERVER,
        FaultKind.TIMEOUT,
        FaultKind.CONNECTION,
        FaultKind.GARBLED,
        FaultKind.EXPIRED,
    }
)
HOPELESS = frozenset({FaultKind.AUTH, FaultKind.QUOTA})


def decide(fault: Fault, attempt: int, now: float, policy: RetryPolicy, jitter: float) -> Decision:
    """Decide about the fault of the given attempt (the first is 1); `jitter` is a random number in [0, 1)."""
    if fault.kind in HOPELESS:
        return Stop()
    if fault.kind not in PASSING or attempt >= policy.attempts:
        return GiveUp()
    if fault.retry_after is not None:
        return RetryAt(now + fault.retry_after * (1 + 0.1 * jitter))
    ceiling = min(policy.longest_wait, policy.first_wait * 2 ** (attempt - 1))
    return RetryAt(now + ceiling * (0.5 + 0.5 * jitter))
