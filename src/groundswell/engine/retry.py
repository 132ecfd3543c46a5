"""What to do after a fault: retry, give up, or stop the run. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from groundswell.program.request import Fault, FaultKind


class RetryPolicy(msgspec.Struct, frozen=True):
    """How failed requests are retried, with exponential backoff and jitter.

    Server errors, timeouts and broken connections count as attempts. A request that is refused because of a rate limit
    or an overload is retried until it was refused `attempts` times and `patience` seconds have passed.

    A `Retry-After` of the provider is obeyed up to 900 seconds, or up to `patience` if that is longer. If the provider
    asks for more, the run stops and can be resumed later.

    Attributes:
        attempts: Number of attempts before a request has failed.
        first_wait: Seconds before the first retry. The wait doubles with every further retry.
        longest_wait: Maximum seconds between two attempts, if the provider does not say how long to wait.
        patience: Seconds for which a request is retried that is refused because of load.
    """

    attempts: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0
    patience: float = 900.0


class RetryAt(NamedTuple):
    """Send the request again, not before this time."""

    when: float


class GiveUp(NamedTuple):
    """The fault is final. The program receives it."""


class Stop(NamedTuple):
    """No request to this account can succeed: stop the run. It can be resumed once the problem is fixed."""


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
"""Maximum `Retry-After` in seconds that is obeyed, unless `patience` is longer. If it is exceeded, the run stops."""
HOPELESS = frozenset({FaultKind.AUTH, FaultKind.QUOTA, FaultKind.UNREACHABLE, FaultKind.CANCELLED})


class Tried(NamedTuple):
    """The history of a request: how often it failed, and how often and for how long it was refused because of load.

    `silent`: the account has accepted nothing else since the first refusal. `strange`: the model has never answered.
    """

    failures: int = 0
    refusals: int = 0
    refused_for: float = 0.0
    silent: bool = False
    strange: bool = False


def decide(fault: Fault, tried: Tried, now: float, policy: RetryPolicy, jitter: float) -> Decision:
    """Decide what to do about a fault. `tried` includes it already; `jitter` is a random number in [0, 1)."""
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
