"""What to do about a fault: retry at a time, give up, or stop the run. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from groundswell.program.request import Fault, FaultKind


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and how patiently to retry.

    An ask that fails `attempts` times has failed. Being refused because there was too much to do is no failure of
    the ask: it is sent again until it was refused as often as that, and `patience` seconds have passed.
    """

    attempts: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0
    patience: float = 900.0


class RetryAt(NamedTuple):
    """Send it again, not before this time."""

    when: float


class GiveUp(NamedTuple):
    """The fault is final: the program gets it."""


class Stop(NamedTuple):
    """Nothing sent to this account succeeds: end the run, so that it can be resumed once this is mended."""


Decision = RetryAt | GiveUp | Stop

LOAD = frozenset({FaultKind.RATE_LIMITED, FaultKind.OVERLOADED})
PASSING = frozenset(
    {
        FaultKind.SERVER,
        FaultKind.TIMEOUT,
        FaultKind.CONNECTION,
        FaultKind.GARBLED,
        FaultKind.EXPIRED,
        FaultKind.UNSENT,
    }
)
LONGEST_RETRY_AFTER = 900.0
"""The most seconds that a provider may ask to wait, unless the policy has more patience; else the run stops."""
HOPELESS = frozenset({FaultKind.AUTH, FaultKind.QUOTA, FaultKind.UNREACHABLE, FaultKind.CANCELLED})


class Tried(NamedTuple):
    """What became of an ask so far: how often it failed, how often and for how long it was refused.

    `silent` says that its account has accepted nothing else since then either, `strange` that its model has never
    answered anything.
    """

    failures: int = 0
    refusals: int = 0
    refused_for: float = 0.0
    silent: bool = False
    strange: bool = False


def decide(fault: Fault, tried: Tried, now: float, policy: RetryPolicy, jitter: float) -> Decision:
    """Decide about a fault, which `tried` counts already; `jitter` is a random number in [0, 1)."""
    told = fault.retry_after or 0.0
    if fault.kind in LOAD | PASSING and told > max(policy.patience, LONGEST_RETRY_AFTER):
        return Stop()
    if fault.kind in HOPELESS or (fault.kind is FaultKind.NOT_FOUND and tried.strange):
        return Stop()
    if fault.kind in LOAD:
        if tried.refusals >= policy.attempts and tried.refused_for >= policy.patience:
            return Stop() if tried.silent else GiveUp()
        times = tried.refusals
    elif fault.kind in PASSING and tried.failures < policy.attempts:
        times = tried.failures
    else:
        return GiveUp()
    if fault.retry_after is not None:
        return RetryAt(now + fault.retry_after * (1 + 0.1 * jitter))
    ceiling = min(policy.longest_wait, policy.first_wait * 2 ** min(times - 1, 30))
    return RetryAt(now + ceiling * (0.5 + 0.5 * jitter))
