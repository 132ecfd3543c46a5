"""Coverage of intervals where the same entities answer repeatedly and influence each other.

`python bench/answers.py` (a minute; `--quick`). Entities have different opinions (standard deviation `spread`; single
answers to the same question have 1). They talk in combinations drawn without repeats, four conversations per entity
on average (`--talks`), and then answer. All answers of a conversation share a mood (0.5). Influence of the others:

  none    an entity answers by its own opinion
  pull    half the mean opinion of the others is added
  agree   everybody in a conversation answers by the mean of their opinions

How often 95% intervals contain the true value:

  plain    the interval for independent answers, which these are not
  one-way  with entities as clusters
  two-way  with entities and combinations as clusters (Cameron, Gelbach and Miller)
  ours     the reported intervals: `mean`, `share`, `difference` and `difference_of_shares`; shares are 30% and 5%
           here, and differences are between two halves of the entities that do not differ
  found    how often `bearing` finds a difference at 5%, although there is none

Results are written to bench/out/answers.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import product
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit  # type: ignore[import-untyped]

from groundswell.experiments.simulations.combinations import draw, possible
from groundswell.stats.clusters import Figure, Rows, difference, difference_of_shares, mean, rows, share
from groundswell.stats.compare import bearing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

OUT = Path(__file__).parent / "out"
ENTITIES, SIZES, SPREADS, OTHERS = (10, 20, 50), (2, 3), (0.5, 1.0), ("none", "pull", "agree")
MOOD, RATES = 0.5, (0.3, 0.05)
COLUMNS = ("plain", "one-way", "two-way", "ours", "share", "rare", "diff", "sharediff", "found")


class Scene(NamedTuple):
    """Who talks with whom, and how they influence each other."""

    entities: int
    size: int
    spread: float
    others: str
    talks: int


def answers(scene: Scene, random: np.random.Generator) -> Rows:
    """All answers; the true mean is 0."""
    count = min(possible(scene.entities, scene.size), scene.entities * scene.talks // scene.size)
    talks = np.array(list(draw(scene.entities, scene.size, count, int(random.integers(2**40)))))
    opinions = scene.spread * random.normal(size=scene.entities)[talks]
    rest = (opinions.sum(axis=1, keepdims=True) - opinions) / (scene.size - 1)
    if scene.others == "pull":
        opinions = opinions + rest / 2
    elif scene.others == "agree":
        opinions = np.repeat(opinions.mean(axis=1, keepdims=True), scene.size, axis=1)
    said = opinions + MOOD * random.normal(size=(count, 1)) + random.normal(size=talks.shape)
    company = np.repeat(np.arange(count), scene.size)
    return rows(said.ravel().tolist(), talks.ravel().tolist(), company.tolist(), talks.tolist())


def spread_of(scene: Scene) -> float:
    """The standard deviation of single answers."""
    factor = {"none": 1.0, "pull": 1 + 0.25 / (scene.size - 1), "agree": 1 / scene.size}[scene.others]
    return sqrt(scene.spread**2 * factor + MOOD**2 + 1)


def holds(figure: Figure, truth: float = 0.0) -> bool | None:
    """Whether an interval contains the true value; None without one, as with fewer than five entities per side."""
    if figure.low is None or figure.high is None:
        return None
    return figure.low <= truth <= figure.high


def usual(found: Rows) -> dict[str, bool]:
    """Whether the simpler intervals contain the true value."""
    n, middle = len(found.values), float(found.values.mean())
    scores = (found.values - middle) / n
    cells = found.company * found.links.people + found.who
    by_person, by_company, by_cell = (clustered(scores, each) for each in (found.who, found.company, cells))
    t = float(stdtrit(len(np.unique(found.who)) - 1, 0.975))
    return {
        "plain": abs(middle) <= float(stdtrit(n - 1, 0.975)) * sqrt(float((scores**2).sum()) * n / (n - 1)),
        "one-way": abs(middle) <= t * sqrt(by_person),
        "two-way": abs(middle) <= t * sqrt(max(by_person, by_company, by_person + by_company - by_cell)),
    }


def clustered(scores: Floats, clusters: NDArray[np.int64]) -> float:
    """The variance of a sum of scores from the sums of clusters."""
    _, numbers = np.unique(clusters, return_inverse=True)
    sums = np.bincount(numbers, scores)
    return float((sums**2).sum()) * len(sums) / (len(sums) - 1)


def tried(scene: Scene, random: np.random.Generator) -> dict[str, bool | None]:
    """Whether each interval of one batch contains the true value."""
    found = answers(scene, random)
    half = found.who < scene.entities // 2
    often, rare = (found.of((found.values > -ndtri(rate) * spread_of(scene)).astype(float)) for rate in RATES)
    totals, counts = np.bincount(found.who, found.values)[:, None].astype(float), np.bincount(found.who)
    labels = (np.arange(len(counts)) < scene.entities // 2).astype(int).tolist()
    p = bearing(totals, counts, labels)
    return {
        **usual(found),
        "ours": holds(mean(found)),
        "share": holds(share(often), RATES[0]),
        "rare": holds(share(rare), RATES[1]),
        "diff": holds(difference(found.among(half), found.among(~half))),
        "sharediff": holds(difference_of_shares(often.among(half), often.among(~half))),
        "found": None if p is None else p <= 0.05,
    }


def measured(scene: Scene, runs: int) -> dict[str, float]:
    """Coverage of each interval, over the runs that have it."""
    random, held, there = np.random.default_rng(11), Counter[str](), Counter[str]()
    for _ in range(runs):
        found = tried(scene, random)
        held.update(name for name in COLUMNS if found[name])
        there.update(name for name in COLUMNS if found[name] is not None)
    return {name: held[name] / there[name] for name in COLUMNS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--talks", type=int, default=4, help="conversations per entity, on average")
    parser.add_argument("--entities", type=int, nargs="*", default=ENTITIES)
    options = parser.parse_args()
    runs = 40 if options.quick else 300
    print(f"95% intervals, {runs} batches each; simulation error {sqrt(0.95 * 0.05 / runs):.1%}")
    print("entities  size  spread  others" + "".join(f"{name:>10}" for name in COLUMNS))
    kept = []
    for scene in (Scene(*each, options.talks) for each in product(options.entities, SIZES, SPREADS, OTHERS)):
        found = measured(scene, runs)
        kept.append({**scene._asdict(), **found})
        print(
            f"{scene.entities:>8}  {scene.size:>4}  {scene.spread:>6}  {scene.others:<6}"
            + "".join(f"{found[name]:>10.1%}" for name in COLUMNS),
            flush=True,
        )
    OUT.mkdir(exist_ok=True)
    (OUT / "answers.json").write_text(json.dumps(kept, indent=2))


if __name__ == "__main__":
    main()
