"""Exact coverage of 95% intervals of shares of few people who answered once and alone.

`python bench/shares.py` (a few seconds). The probabilities of all possible outcomes are added up, so there is no
simulation error. For n people, on average over shares from 10% to 90% and at the worst of them:

  one        the interval of a share: Wilson's with the normal quantile (reported), with Student's, and the exact one
  two        the difference of two groups of n people, 0, 10 or 25 percentage points: Newcombe's from these intervals
  pairs      the same difference within n people, with correlations of 0 to 0.8: with Newcombe's shrinkage of the
             correlation (reported) and without; `alarms` is how often the interval excludes a difference of 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import sqrt

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from groundswell.stats.rates import Interval, Paired, apart, exact, quantile, score, wilson

SHARES, EFFECTS, CORRELATIONS = np.linspace(0.1, 0.9, 17), (0.0, 0.1, 0.25), (0.0, 0.3, 0.6, 0.8)
PEOPLE = (8, 10, 16, 20, 30)
LEVEL = 0.95
Bounds = Callable[[int, int], Interval]


def student(passed: int, n: int) -> Interval:
    """Wilson's interval with Student's quantile."""
    return score(passed / n, n, float(stats.t.ppf((1 + LEVEL) / 2, n - 1)))


KINDS: dict[str, Bounds] = {"Wilson": wilson, "Student": student, "exact": exact}


def holds(interval: Interval, truth: float) -> bool:
    return interval.low - 1e-12 <= truth <= interval.high + 1e-12


def of_one(n: int, bounds: Bounds) -> list[float]:
    """The coverage at each share."""
    found = [bounds(passed, n) for passed in range(n + 1)]
    chances = stats.binom.pmf(np.arange(n + 1)[:, None], n, SHARES)
    held = np.array([[holds(each, share) for share in SHARES] for each in found])
    return list((held * chances).sum(axis=0))


def of_two(n: int, bounds: Bounds) -> Iterator[tuple[float, float]]:
    """The difference and the coverage, for each share and difference."""
    found = [bounds(passed, n) for passed in range(n + 1)]
    tables = [[apart(i / n, found[i], j / n, found[j]) for j in range(n + 1)] for i in range(n + 1)]
    for share, effect in product(SHARES, EFFECTS):
        if effect < share:
            one, other = (stats.binom.pmf(np.arange(n + 1), n, each) for each in (share, share - effect))
            held = np.array([[holds(each, effect) for each in row] for row in tables])
            yield effect, float(one @ held @ other)


def of_pairs(n: int, *, shrunk: bool) -> Iterator[tuple[float, float]]:
    """The same within people, also for each correlation that is possible."""
    tables = [table for table in product(range(n + 1), repeat=4) if sum(table) == n]
    bounds = [Paired(*table).interval(LEVEL) if shrunk else unshrunk(Paired(*table)) for table in tables]
    for share, effect, rho in product(SHARES, EFFECTS, CORRELATIONS):
        other = share - effect
        both = share * other + rho * sqrt(share * (1 - share) * max(0.0, other * (1 - other)))
        if effect < share and both <= other:
            rates = np.array([both, share - both, other - both, 1 - share - other + both]).clip(0)
            chances = stats.multinomial.pmf(tables, n, rates / rates.sum())
            yield effect, float(chances @ [holds(each, effect) for each in bounds])


def unshrunk(table: Paired) -> Interval:
    """The interval with Pearson's phi."""
    both, first, second, neither = table
    n, one, other = table.n, both + first, both + second
    below = one * (n - one) * other * (n - other)
    rho = (both * neither - first * second) / sqrt(below) if below else 0.0
    z = quantile(LEVEL)
    return apart(one / n, score(one / n, n, z), other / n, score(other / n, n, z), rho)


def shown(found: list[tuple[float, float]]) -> str:
    """The mean and lowest coverage, and the highest share of false alarms."""
    covered = [each for _, each in found]
    alarms = max(1 - each for effect, each in found if not effect)
    return f"{100 * np.mean(covered):6.1f}%{100 * min(covered):8.1f}%{100 * alarms:8.1f}%"


def main() -> None:
    print("                    n   average  lowest  alarms")
    for n in PEOPLE:
        for name, bounds in KINDS.items():
            one = of_one(n, bounds)
            print(f"one    {name:<10}{n:>4}  {100 * np.mean(one):6.1f}%{100 * min(one):8.1f}%")
        for name, bounds in KINDS.items():
            print(f"two    {name:<10}{n:>4}  {shown(list(of_two(n, bounds)))}")
        for name, shrunk in (("Newcombe", True), ("phi", False)):
            print(f"pairs  {name:<10}{n:>4}  {shown(list(of_pairs(n, shrunk=shrunk)))}")


if __name__ == "__main__":
    main()
