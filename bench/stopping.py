"""What `--stop-at-width` costs, and whether its intervals hold: `python bench/stopping.py` (15 minutes; `--quick`).

The first table simulates one model against one other model, or five others. It plays blocks of four interactions with
each opponent that share two words. The table has the mean number of its interactions until the interval is narrow
enough, and how often the interval then misses the true rate.

  others  number of opponents
  words   none: all words leak equally often. 2: the log odds of a word's leak rate have a standard deviation of 2.
          all or none: a share of the blocks has words that always leak, and the others never do
  fixed   sample size of Wilson's interval if the rate is known beforehand, times the design effect of the words
  wald    the rule of earlier versions: Wald's bets on p - W/2 and p + W/2, with the effective sample size
  kelly   bets on blocks whose capital grows fastest (aGRAPA of Waudby-Smith and Ramdas), on the same grid
  ours    bets on blocks that reach the goal by a deadline (`Betting`), checked after every block
  paid    what the cohorts of the stopping rule release; ratio: paid / ours

The second table plays on the emulator, with all requests in batches of the provider's batch API. `met` is the number of
interactions after which the rule was met first, `used` how many the figures include. Results are written to
bench/out/stopping.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from math import inf, log, log1p
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import groundswell
from groundswell.emulator.server import running
from groundswell.emulator.settings import Settings
from groundswell.experiments.secret_game.played import Duel, Seat
from groundswell.experiments.secret_game.prompts import load_prompt
from groundswell.experiments.secret_game.stopping import VARIANCE, StoppingRule
from groundswell.stats.clusters import Clusters
from groundswell.stats.power import n_for_width
from groundswell.stats.rates import Interval
from groundswell.stats.sequential import Betting

OUT = Path(__file__).parent / "out"
WIDTHS, RATES, BLOCK, MOST = (0.2, 0.1), (0.02, 0.1, 0.3, 0.5), 4, 1500
WORDS = {"none": 0.0, "2": 2.0, "all or none": inf}
PAIRS = (("leaker:0.3", "keeper"), ("leaker:0.5", "leaker:0.1"), ("keeper", "keeper"))
FAST = ["--account", "openai.batch_poll=0.02", "--account", "anthropic.batch_poll=0.02"]
SEAT = Seat("1", "Agent 1", "m", "word", load_prompt("plain"))

Floats = NDArray[np.float64]
Values = NDArray[np.bool_]
"""Whether each interaction leaks: blocks by interactions."""
Stopped = tuple[int, Interval]
"""Number of interactions, and the interval."""


class Row(NamedTuple):
    """Interactions and misses of each rule."""

    words: str
    others: int
    width: float
    rate: float
    fixed: float
    wald: float
    wald_misses: float
    kelly: float
    ours: float
    misses: float
    paid: float
    paid_misses: float
    ratio: float
    cohorts: float


def leaks(random: np.random.Generator, rate: float, spread: float, centre: float, size: int) -> Values:
    """One run, with blocks of this size."""
    if spread == inf:
        return np.repeat(random.random((MOST, 1)) < rate, size, axis=1)
    odds = centre + spread * random.standard_normal((MOST, 2))
    return random.random((MOST, size)) < np.repeat(1 / (1 + np.exp(-odds)), size // 2, axis=1)


def centre_of(rate: float, spread: float) -> float:
    """The mean of log odds at which words leak at this rate on average."""
    draws = np.random.default_rng(0).standard_normal(20_000)
    low, high = -16.0, 16.0
    for _ in range(50):
        middle = (low + high) / 2
        below = (1 / (1 + np.exp(-middle - spread * draws))).mean() < rate
        low, high = (middle, high) if below else (low, middle)
    return low


def design_effect(rate: float, spread: float, centre: float, size: int) -> float:
    """How many interactions carry the information of one that is independent."""
    if spread == inf:
        return size
    rates = 1 / (1 + np.exp(-centre - spread * np.random.default_rng(1).standard_normal(20_000)))
    return 1 + (size // 2 - 1) * float(rates.var()) / (rate * (1 - rate))


def wald(values: Values, width: float) -> Stopped:
    """The rule of earlier versions, at block ends."""
    counts, interval = Clusters(), Interval(0.0, 1.0)
    for block, row in enumerate(values):
        counts.add(block, *(float(each) for each in row))
        effect = max(1.0, counts.effect or 1.0)
        total, n = counts.total / effect, counts.n / effect
        if counts.count > 1:
            interval = Interval(refuted(total, n, width / 2), 1 - refuted(n - total, n, width / 2))
        if interval.high - interval.low <= width:
            break
    return counts.n, interval


def refuted(total: float, n: float, ahead: float) -> float:
    """The largest mean that bets on a value `ahead` above it have refuted."""
    low, high = 0.0, total / n
    for _ in range(25 if total else 0):
        p = (low + high) / 2
        q = p + ahead
        won = total * log(q / p) + ((n - total) * (log1p(-q) - log1p(-p)) if total < n else 0.0) if q < 1 else -inf
        low, high = (p, high) if won >= log(40) else (low, p)
    return low


def kelly(values: Values, width: float) -> Stopped:
    """Bets of (mean - m) / (variance + (mean - m)^2) against every candidate m."""
    means = np.arange(1, round(50 / width)) * width / 50
    above, below = (np.full(len(means), log(1 / 40)) for _ in range(2))
    low, high, total, squares = 0.0, 1.0, 0.5, 2 * VARIANCE
    for n, row in enumerate(values):
        value, mean = float(row.mean()), total / (n + 1)
        variance = squares / (n + 2)
        for capital, side in ((above, 1), (below, -1)):
            ahead = np.maximum(side * (mean - means), 0)
            bets = np.minimum(ahead / (variance + ahead**2), 0.85 / (means if side > 0 else 1 - means))
            capital += np.where(capital < 0, np.log1p(side * bets * (value - means)), 0)
        total, squares = total + value, squares + (value - mean) ** 2
        low = max([low, *means[: np.argmin(np.append(above >= 0, False))]])
        high = min([high, *means[len(means) - np.argmin(np.append(below[::-1] >= 0, False)) :]])
        if high - low <= width + 1e-9:
            break
    return values.shape[1] * (n + 1), Interval(low, high)


def ours(values: Values, width: float) -> Stopped:
    betting = Betting(width, variance=VARIANCE)
    for row in values:
        if not betting.more:
            break
        betting.add(float(row.mean()))
    return round(values.shape[1] * betting.n), betting.interval


def cohorts(values: Values, width: float) -> tuple[int, Interval, int]:
    """What the stopping rule of the game releases, its interval, and the number of cohorts."""
    block, flat, at = values.shape[1], values.ravel(), 0
    rule = StoppingRule(width, {"m": block}, block, values.size)
    while size := rule.release():
        for number in range(at, at + size):
            rule.add(Duel((SEAT, SEAT), 2, "", number, number // block), (bool(flat[number]),) * 2)
        at += size
    arm = rule.report().arms["m"]
    return at, Interval(arm.low, arm.high), len(rule.cohorts)


def measured(words: str, opponents: int, width: float, rate: float, runs: int) -> Row:
    spread, size = WORDS[words], BLOCK * opponents
    random, centre = np.random.default_rng(17), 0.0 if spread == inf else centre_of(rate, spread)
    every = [leaks(random, rate, spread, centre, size) for _ in range(runs)]

    def mean(rule: Callable[[Values, float], Any]) -> tuple[float, float]:
        found = [rule(values, width) for values in every]
        return fmean(each[0] for each in found), fmean(not each[1].low <= rate <= each[1].high for each in found)

    released = [cohorts(values, width) for values in every]
    own = mean(ours)
    paid = fmean(each[0] for each in released)
    missed = fmean(not each[1].low <= rate <= each[1].high for each in released)
    fixed = n_for_width(rate, width) * design_effect(rate, spread, centre, size)
    many = fmean(each[2] for each in released)
    bets = mean(kelly)[0]
    return Row(words, opponents, width, rate, fixed, *mean(wald), bets, *own, paid, missed, paid / own[0], many)


def played(models: Sequence[str], seed: int, url: str) -> dict[str, Any]:
    """One `groundswell play` whose requests all go to the batch API."""
    said = subprocess.run(
        [
            *(sys.executable, "-m", "groundswell", "play", "-m", f"openai/{models[0]},anthropic/{models[1]}"),
            *("-n", "1000", "--messages", "2", "--stop-at-width", "0.2", "--seed", str(seed), "--via", "batch"),
            *(*FAST, "--json"),
        ],
        env=os.environ
        | {
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_BASE_URL": url,
            "OPENAI_API_KEY": "any",
            "ANTHROPIC_API_KEY": "any",
        }
        | {"PYTHONPATH": str(Path(groundswell.__file__).parents[1]), "NO_PROXY": "*", "no_proxy": "*"},
        stdout=subprocess.PIPE,
        check=True,
    )
    summary = json.loads(said.stdout)
    rule = summary["analysis"]["stopping"]
    return {
        "models": " / ".join(models),
        "seed": seed,
        "replies": summary["asks"]["sent"],
        "paid": summary["asks"]["sent"] / 2,
        "used": summary["analysis"]["interactions"]["usable"],
        "met": rule["met_after"],
        "cohorts": rule["cohorts"],
    }


def on_batches(seeds: int) -> Iterator[dict[str, Any]]:
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, running(Settings(speed=3600)) as server:
        os.chdir(folder)
        try:
            for models in PAIRS:
                for seed in range(1, seeds + 1):
                    yield played(models, seed, server.url)
        finally:
            os.chdir(here)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--part", choices=["simulated", "batches"], help="only one of the tables")
    choice = parser.parse_args()
    runs, seeds = (20, 2) if choice.quick else (200, 5)
    found: dict[str, list[dict[str, Any]]] = {"simulated": [], "batches": []}
    if choice.part != "batches":
        print(f"{runs} simulated runs; interactions until the interval is narrow enough, and misses")
        print(
            "words       others  width  rate  fixed   wald  misses  kelly   ours  misses   paid  misses  ratio  cohorts"
        )
        cases = [(words, 1, width, rate) for words in ("none", "2") for width in WIDTHS for rate in RATES]
        cases += [
            ("none", 5, 0.2, 0.3),
            ("2", 5, 0.2, 0.3),
            ("all or none", 1, 0.2, 0.1),
            ("all or none", 1, 0.2, 0.22),
        ]
        for case in cases:
            row = measured(*case, runs)
            found["simulated"].append(row._asdict())
            print(
                f"{row.words:<11} {row.others:>6}  {row.width:>5}  {row.rate:>4}  {row.fixed:>5.0f}  {row.wald:>5.0f}  "
                f"{row.wald_misses:>6.1%}  {row.kelly:>5.0f}  {row.ours:>5.0f}  {row.misses:>6.1%}  {row.paid:>5.0f}  "
                f"{row.paid_misses:>6.1%}  {row.ratio:>5.2f}  {row.cohorts:>7.1f}",
                flush=True,
            )
    if choice.part != "simulated":
        print("\nbatches on the emulator, width 0.2")
        print("models                     seed  replies   paid   used    met  paid/used  paid/met  cohorts")
        for each in on_batches(seeds):
            found["batches"].append(each)
            print(
                f"{each['models']:<25}  {each['seed']:>4}  {each['replies']:>7,}  {each['paid']:>5.0f}"
                f"  {each['used']:>5}"
                f"  {each['met']:>5}  {each['paid'] / each['used']:>9.2f}  {each['paid'] / each['met']:>8.2f}"
                f"  {', '.join(map(str, each['cohorts']))}",
                flush=True,
            )
        ratios = [each["paid"] / each["met"] for each in found["batches"]]
        print(f"mean of paid/met: {fmean(ratios):.2f}")
    OUT.mkdir(exist_ok=True)
    (OUT / "stopping.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
