"""Intervals and tests where some words leak more easily: `python bench/words.py` (three minutes; `--quick`).

All models play each other, 4 interactions per pair and block. Each side may leak in each of three messages, with
the same probability for all models on average, so every difference that a test finds at 5% is false. `words` is the
standard deviation of the words' log odds, `by model` that of each model's own log odds for a word. In the last rows,
one model differs from the others (by 0.6 in log odds), so findings are true.

  log-rank    the test for independent sides, `logrank`, and the reported one, `ClusteredLogrank`
  comparison  of the first two models over all other models as opponents, or facing each other: McNemar's test for
              independent pairs, and the reported one

Then a model plays 100 interactions against each of three others. Blocks of four interactions share two words, the same
for all three opponents. The log odds of a word's leak rate are normal around a mean, so that rates are 30% on average.

  plain      the interval for independent sides, which these are not
  clustered  the reported interval, with blocks as clusters: `Clusters` and `worth`
  wider      how much wider the second is, on average

The intervals of the stopping rule are in bench/stopping.py. Results are written to bench/out/words.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from math import exp
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from groundswell.experiments.secret_game.figures import compared_by
from groundswell.experiments.secret_game.tally import Contrast
from groundswell.stats.clusters import Clusters
from groundswell.stats.compare import mcnemar
from groundswell.stats.rates import Interval, wilson, worth
from groundswell.stats.survival import ClusteredLogrank, logrank

OUT = Path(__file__).parent / "out"
RATE, BLOCKS, OPPONENTS = 0.3, 25, 3
SPREADS = (0.0, 0.5, 1.0, 2.0)
LOG_ODDS, MESSAGES = -1.7, 3


class Row(NamedTuple):
    """Coverage of each interval, for one spread of words."""

    spread: float
    plain: float
    clustered: float
    wider: float


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


def measured(spread: float, runs: int) -> Row:
    random, centre = Random(f"words/{spread}"), centre_of(spread)
    pairs = [fixed(random, centre, spread) for _ in range(runs)]
    widths = [sum(high - low for low, high in each) for each in zip(*pairs, strict=True)]
    return Row(
        spread,
        sum(holds(plain) for plain, _ in pairs) / runs,
        sum(holds(reported) for _, reported in pairs) / runs,
        widths[1] / widths[0] - 1,
    )


class Tests(NamedTuple):
    """The share of runs in which each test finds a difference."""

    models: int
    blocks: int
    words: float
    by_model: float
    apart: float
    logrank: float
    clustered: float
    mcnemar: float
    reported: float


def found_by(
    random: np.random.Generator, models: int, blocks: int, words: float, own: float, apart: float
) -> list[bool]:
    """Which tests find a difference in one run."""
    pairs = list(combinations(range(models), 2))
    log_odds = LOG_ODDS + random.normal(0, words, (blocks, 2, 1)) + random.normal(0, own, (blocks, 2, models))
    log_odds[:, :, 0] += apart
    word_of = np.arange(4)[:, None] // 2 ^ np.arange(2)
    rates = 1 / (1 + np.exp(-np.stack([log_odds[:, word_of, list(pair)] for pair in pairs], axis=1)))
    leaks = random.random((blocks, len(pairs), 4, 2, MESSAGES)) < rates[..., None]
    ends = np.any(leaks, axis=-1)
    times = np.where(ends, leaks.argmax(axis=-1) + 1, MESSAGES)
    test, contrast = ClusteredLogrank(), Contrast()
    lives = [(Counter[int](), Counter[int]()) for _ in range(models)]
    for block, (of_block, when) in enumerate(zip(ends.tolist(), times.tolist(), strict=True)):
        rows: dict[tuple[int, int], dict[int, bool]] = {}
        for (at, pair), cell, place in product(enumerate(pairs), range(4), range(2)):
            model, ended, time = pair[place], of_block[at][cell][place], when[at][cell][place]
            test.add(block, str(model), time, ended=ended)
            lives[model][not ended][time] += 1
            rows.setdefault((-1 if models == 2 else pair[1 - place], cell), {})[model] = ended
        for (opponent, _), leaked in rows.items():
            if 0 in leaked and 1 in leaked:
                contrast.add(block, leaked[0], leaked[1], str(opponent))
    ps = logrank(lives), test.p(), mcnemar(contrast.counts), compared_by(contrast).p
    return [p is not None and p <= 0.05 for p in ps]


def tests(models: int, blocks: int, words: float, own: float, apart: float, runs: int) -> Tests:
    random = np.random.default_rng([models, blocks, int(10 * words), int(10 * own), int(10 * apart)])
    found = np.mean([found_by(random, models, blocks, words, own, apart) for _ in range(runs)], axis=0)
    return Tests(models, blocks, words, own, apart, *found.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    quick = parser.parse_args().quick
    trials = 100 if quick else 1000
    print(f"share of {trials} runs in which tests find a difference at 5%")
    print("models  blocks  words  by model  differs   log-rank  clustered   McNemar  reported")
    found = []
    for words, own, apart in ((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 0.6)):
        for models, blocks in product((2, 4), (10, 25, 50)):
            found.append(each := tests(models, blocks, words, own, apart, trials))
            print(
                f"{each.models:>6}  {each.blocks:>6}  {each.words:>5}  {each.by_model:>8}  {each.apart:>7}   "
                f"{each.logrank:>8.1%}  {each.clustered:>9.1%}  {each.mcnemar:>8.1%}  {each.reported:>8.1%}",
                flush=True,
            )
    runs = 200 if quick else 2000
    print(f"\n95% intervals, {runs} runs of {BLOCKS} blocks")
    print("spread    plain  clustered  wider")
    rows = []
    for spread in SPREADS:
        rows.append(row := measured(spread, runs))
        print(f"{row.spread:>6}   {row.plain:>6.1%}     {row.clustered:>6.1%}  {row.wider:>5.1%}", flush=True)
    OUT.mkdir(exist_ok=True)
    result = {"intervals": [row._asdict() for row in rows], "tests": [each._asdict() for each in found]}
    (OUT / "words.json").write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
