"""Coverage of intervals where some words leak more easily: `python bench/words.py` (a minute; `--quick`).

A model plays 100 interactions against each of three others. Blocks of four interactions share two words, the same for
all three opponents. The log odds of a word's leak rate are normal around a mean, so that rates are 30% on average.

  plain      the interval for independent sides, which these are not
  clustered  the reported interval, with blocks as clusters: `Clusters` and `worth`
  wider      how much wider the second is, on average
  stopped    the interval of the stopping rule, at the width 0.2, when it stops, and the number of interactions
  unclustered  the same without blocks as clusters

Results are written to bench/out/words.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from math import exp
from pathlib import Path
from random import Random
from typing import NamedTuple

from groundswell.stats.clusters import Clusters
from groundswell.stats.rates import Interval, wilson, worth
from groundswell.stats.sequential import anytime

OUT = Path(__file__).parent / "out"
RATE, BLOCKS, OPPONENTS, WIDTH = 0.3, 25, 3, 0.2
SPREADS = (0.0, 0.5, 1.0, 2.0)


class Row(NamedTuple):
    """Coverage of each interval, for one spread of words."""

    spread: float
    plain: float
    clustered: float
    wider: float
    stopped: float
    interactions: float
    unclustered: float


def leak_rate(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))


def centre_of(spread: float) -> float:
    """The mean of log odds at which rates are RATE on average."""
    draws = [Random(number).gauss(0, spread) for number in range(4000)]
    low, high = -12.0, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        below = sum(leak_rate(middle + draw) for draw in draws) / len(draws) < RATE
        low, high = (middle, high) if below else (low, middle)
    return low


def sides(random: Random, centre: float, spread: float, blocks: int) -> Iterator[tuple[int, float]]:
    """Whether each side of a model leaks, with its block: two sides per word, against every opponent."""
    for block in range(blocks):
        rates = [leak_rate(centre + random.gauss(0, spread)) for _ in range(2)]
        for cell in range(4):
            for _ in range(OPPONENTS):
                yield block, float(random.random() < rates[cell // 2])


def holds(interval: Interval) -> bool:
    return interval.low <= RATE <= interval.high


def fixed(random: Random, centre: float, spread: float) -> tuple[Interval, Interval]:
    """The plain interval of a run of fixed length, and the reported one."""
    counts = Clusters()
    for block, leaked in sides(random, centre, spread, BLOCKS):
        counts.add(block, leaked)
    share = counts.total / counts.n
    return wilson(round(counts.total), counts.n), worth(share, counts.n / max(1.0, counts.effect or 1.0))


def watched(random: Random, centre: float, spread: float, *, clustered: bool) -> tuple[Interval, int]:
    """The interval at which a run stops, and the number of interactions."""
    counts, interval = Clusters(), Interval(0.0, 1.0)
    for block, leaked in sides(random, centre, spread, 400):
        counts.add(block, leaked)
        effect = max(1.0, counts.effect or 1.0) if clustered else 1.0
        if counts.count > 1:
            interval = anytime(counts.total / effect, counts.n / effect, aim=WIDTH)
        if interval.high - interval.low <= WIDTH:
            break
    return interval, counts.n


def measured(spread: float, runs: int, stops: int) -> Row:
    random, centre = Random(f"words/{spread}"), centre_of(spread)
    pairs = [fixed(random, centre, spread) for _ in range(runs)]
    with_blocks = [watched(random, centre, spread, clustered=True) for _ in range(stops)]
    without = [watched(random, centre, spread, clustered=False) for _ in range(stops)]
    widths = [sum(high - low for low, high in each) for each in zip(*pairs, strict=True)]
    return Row(
        spread,
        sum(holds(plain) for plain, _ in pairs) / runs,
        sum(holds(reported) for _, reported in pairs) / runs,
        widths[1] / widths[0] - 1,
        sum(holds(interval) for interval, _ in with_blocks) / stops,
        sum(n for _, n in with_blocks) / stops,
        sum(holds(interval) for interval, _ in without) / stops,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    quick = parser.parse_args().quick
    runs, stops = (200, 40) if quick else (2000, 400)
    print(f"95% intervals, {runs} runs of {BLOCKS} blocks; {stops} runs that stop at a width of {WIDTH}")
    print("spread    plain  clustered  wider   stopped  interactions  unclustered")
    rows = []
    for spread in SPREADS:
        rows.append(row := measured(spread, runs, stops))
        print(
            f"{row.spread:>6}   {row.plain:>6.1%}     {row.clustered:>6.1%}  {row.wider:>5.1%}    {row.stopped:>6.1%}"
            f"  {row.interactions:>12.0f}       {row.unclustered:>6.1%}",
            flush=True,
        )
    OUT.mkdir(exist_ok=True)
    (OUT / "words.json").write_text(json.dumps([row._asdict() for row in rows], indent=2))


if __name__ == "__main__":
    main()
