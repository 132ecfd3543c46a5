"""What a run has measured so far, for narrower estimates. Pure.

A pilot is the beginning of a run: its first requests are sent, and the run continues from there later. What they used
replaces assumptions about tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import msgspec

from groundswell.engine.spending import Range
from groundswell.estimate.figures import Estimate, Load
from groundswell.estimate.terms import Terms

SURE = 3.0
"""Standard errors by which a measured mean may be off ..."""
ALWAYS = 0.1
"""... in addition to this share of it: the first trials differ from the rest."""
ONE_TRIAL = 0.5
"""Share by which the mean of a single trial may be off."""
TRIALS = 8
"""Number of trials of a pilot, if the estimate of a driver does not say how many requests it needs."""
WORTH_IT = 8
"""A pilot is offered if the run may send at least this many times its requests."""


class Sent(NamedTuple):
    """A request of a finished trial: the trial, its program and spec as they are stored, and the tokens used."""

    trial: str
    program: str
    spec: str
    model: str
    input_tokens: int
    output_tokens: int


class Measured(NamedTuple):
    """The requests of a run so far, with what they cost and how long they took.

    `seconds` begins with the first reply, because loading code and connecting happens once.
    """

    run: str
    requests: Sequence[Sent]
    sent: int
    usd: float | None
    seconds: float

    @property
    def pace(self) -> float | None:
        """Seconds per request; None if all replies came from the cache."""
        return self.seconds / self.sent if self.sent and self.seconds else None


class Known(NamedTuple):
    """What an estimate can be based on besides the settings: prices and limits of models, and measured requests."""

    terms: Callable[[str], Terms]
    measured: Measured | None = None


def narrowed(estimate: Estimate, measured: Measured) -> Estimate:
    """An estimate with the measured tokens per request. Models that were not asked yet stay as they are."""
    loads = tuple(_narrowed(load, measured) for load in estimate.loads)
    return msgspec.structs.replace(estimate, loads=loads)


def _narrowed(load: Load, measured: Measured) -> Load:
    trials: dict[str, list[Sent]] = {}
    for each in measured.requests:
        if each.model == load.model:
            trials.setdefault(each.trial, []).append(each)
    if not trials:
        return load
    read = [[each.input_tokens for each in some] for some in trials.values()]
    written = [[each.output_tokens for each in some] for some in trials.values()]
    return msgspec.structs.replace(
        load,
        input_tokens=_within(load.input_tokens, load.calls, read),
        output_tokens=_within(load.output_tokens, load.calls, written),
    )


def _within(figure: Range, calls: Range, trials: Sequence[Sequence[int]]) -> Range:
    """The measured tokens of all requests, within the range that is possible."""
    every = [tokens for some in trials for tokens in some]
    mean = sum(every) / len(every)
    doubt = ONE_TRIAL * mean
    if (n := len(trials)) > 1:
        spread = sum((sum(some) / len(some) - mean) ** 2 for some in trials) / (n - 1)
        doubt = ALWAYS * mean + SURE * sqrt(spread / n)
    low, high = calls.low * max(0.0, mean - doubt), calls.high * (mean + doubt)
    low = min(max(low, figure.low), figure.high)
    return Range(low, max(low, min(high, figure.high)))


def pilot_size(estimate: Estimate) -> int:
    """The number of requests of a pilot; 0 if the run is too small for one."""
    calls = sum(load.calls.high for load in estimate.loads)
    size = estimate.pilot or round(TRIALS * calls / max(1.0, estimate.trials.high))
    return size if calls >= WORTH_IT * size else 0
