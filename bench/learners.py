"""Coverage of intervals for methods that are trained a few times: `python bench/learners.py` (some minutes; `--quick`).

Learners of two methods are evaluated on the same 80 episodes, whose secrets are drawn from 24 words. The log odds of
a leak are those of the method, with normal deviations by learner, by secret, and by learner and secret. The true
value is, for one learner, its own rate over all secrets; for several, the rate over all learners that a method may
produce.

  rate     the rate of the first method: `share`
  total    its mean return, a leak minus a varying cost: `mean`
  apart    its rate minus that of an untrained policy: `difference_of_shares`
  both     its rate minus that of another method, trained equally often episodes the rate with episodes as the only
           random factor, ignoring learners and secrets
  false    how often `both` finds a difference, at 5%, between methods that do not differ

Results are written to bench/out/learners.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundswell.stats.crossed import Cells, Found, cells, difference_of_shares, mean, share
from groundswell.stats.rates import wilson

OUT = Path(__file__).parent / "out"
SECRETS, EPISODES, MANY = 24, 80, 4000
LEARNERS = (1, 3, 5)
SPREADS = (0.0, 0.5, 1.0)
CENTRES = (0.5, 2.0)
"""Log odds of a leak: 62% and 88%."""
OF_SECRETS, OF_BOTH = 0.8, 0.4

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """Coverage of each interval, over trainings."""

    learners: int
    spread: float
    centre: float
    rate: float
    total: float
    apart: float
    both: float
    episodes: float
    false: float
    width: float


class Method(NamedTuple):
    """A trained method: the results of its learners, and the true values."""

    side: Cells
    totals: Cells
    rate: float


def chance(log_odds: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-log_odds))
    return found


@cache
def overall(centre: float, spread: float) -> float:
    """The rate over everything that varies."""
    draws = np.random.default_rng(1).normal(0, 1, 200_000)
    return float(chance(centre + draws * np.sqrt(spread**2 + OF_SECRETS**2 + OF_BOTH**2)).mean())


def trained(rng: np.random.Generator, learners: int, spread: float, centre: float, words: Floats) -> Method:
    """A method's learners on episodes that were drawn before; `words` is how easy the secret of each is."""
    secret, easy = words[:, 0].astype(int), words[:, 1]
    own = rng.normal(0, spread, learners)
    both = rng.normal(0, OF_BOTH, (learners, SECRETS))
    odds = centre + own[:, None] + both[:, secret] + easy
    leaks = (rng.random(odds.shape) < chance(odds)).astype(float)
    totals = leaks - rng.uniform(0, 0.3, odds.shape)
    who, what = np.repeat(np.arange(learners), EPISODES), np.tile(secret, learners)
    if learners > 1:
        truth = overall(centre, spread)
    else:
        draws = rng.normal(0, np.sqrt(OF_SECRETS**2 + OF_BOTH**2), MANY)
        truth = float(chance(centre + own[0] + draws).mean())
    return Method(
        cells(list(leaks.ravel()), list(who), list(what)), cells(list(totals.ravel()), list(who), list(what)), truth
    )


def holds(found: Found, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def tries(learners: int, spread: float, centre: float, runs: int) -> Iterator[tuple[float, ...]]:
    rng = np.random.default_rng([learners, int(10 * spread), int(10 * centre)])
    for _ in range(runs):
        easy = rng.normal(0, OF_SECRETS, SECRETS)
        secret = rng.integers(0, SECRETS, EPISODES)
        words = np.stack([secret, easy[secret]], axis=1)
        one, other = (trained(rng, learners, spread, centre, words) for _ in range(2))
        still = trained(rng, 1, 0.0, centre - 1, words)
        found, both = share(one.side), difference_of_shares(one.side, other.side)
        assert found.low is not None
        assert found.high is not None
        assert both.p is not None
        plain = wilson(int(one.side.values.sum()), len(one.side.values))
        yield (
            holds(found, one.rate),
            holds(mean(one.totals), one.rate - 0.15),
            holds(difference_of_shares(one.side, still.side), one.rate - still.rate),
            holds(both, one.rate - other.rate),
            plain.low <= one.rate <= plain.high,
            both.p < 0.05,
            found.high - found.low,
        )


def measured(runs: int) -> Iterator[Row]:
    for learners in LEARNERS:
        for spread in SPREADS:
            for centre in CENTRES:
                shares = np.array(list(tries(learners, spread, centre, runs)), dtype=float).mean(axis=0)
                yield Row(learners, spread, centre, *(round(float(each), 4) for each in shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few trainings: rough figures")
    runs = 100 if parser.parse_args().quick else 500
    rows = []
    print("learners spread  rate   rate  total  apart   both  episodes  false  width")
    for row in measured(runs):
        rows.append(row._asdict())
        told = [f"{row.learners:8} {row.spread:6.1f}  {float(chance(np.array(row.centre))):4.0%}"]
        told += [f"{each:5.1%}" for each in (row.rate, row.total, row.apart, row.both)]
        print("  ".join([*told, f"   {row.episodes:5.1%}", f"{row.false:5.1%}", f"{row.width:.2f}"]), flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "learners.json").write_text(json.dumps({"runs": runs, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
