"""Estimates of the accuracy of all candidates of a search, from few problems each.

A candidate that was lucky on few problems looks better than it is. So an estimate uses more than its own scores:

- A child is usually about as good as its parent. The difference is taken to be normal, with a standard deviation of
  `CHANGE`. So the scores of relatives count too: those of parents and children most, those of distant ones less.
- Problems differ in difficulty. A score counts relative to those of other candidates on the same problem, so a child
  is not underestimated if it is evaluated on problems that its parent fails on.

This is a Gaussian model of a tree, and `Accuracies.of` is its exact posterior, given the difficulties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

CHANGE = 0.1
"""Standard deviation of the difference between the accuracies of a child and its parent."""
CAUTION = 8
"""The difficulty of a problem that n candidates have seen is shrunk by n / (n + this)."""
SUREST = 0.05
"""An accuracy is not assumed to be closer to 0 or 1 than this when the variance of scores is estimated."""


class Belief(NamedTuple):
    """A normal distribution: its precision, and its mean times the precision. Independent sources add up."""

    precision: float = 0.0
    weighted: float = 0.0

    @classmethod
    def of(cls, scores: Sequence[float]) -> Belief:
        """What the scores on some problems say about the accuracy."""
        if not scores:
            return cls()
        count, total = len(scores), sum(scores)
        likely = min(1 - SUREST, max(SUREST, (total + 1) / (count + 2)))
        precision = count / (likely * (1 - likely))
        return cls(precision, precision * total / count)

    @property
    def mean(self) -> float:
        """The mean. The precision must not be 0."""
        return self.weighted / self.precision

    def plus(self, other: Belief) -> Belief:
        """Both sources together."""
        return Belief(self.precision + other.precision, self.weighted + other.weighted)

    def minus(self, other: Belief) -> Belief:
        """Without one of the sources."""
        return Belief(self.precision - other.precision, self.weighted - other.weighted)

    def over(self, change: float) -> Belief:
        """What this says about a relative that differs by a deviate with this standard deviation."""
        if not self.precision:
            return self
        shrunk = 1 / (1 / self.precision + change**2)
        return Belief(shrunk, shrunk * self.mean)


FIRST = Belief(4.0, 2.0)
"""The accuracy of a seed prompt before it is evaluated: 0.5, with a standard deviation of 0.5."""


class Estimate(NamedTuple):
    """An estimated accuracy with its variance."""

    mean: float
    variance: float


def expected_accuracy(trained: float, error: float, validation: Sequence[float]) -> float:
    """The expected accuracy of a finalist, by its estimate from training with its standard error, and by validation.

    Training scores are those of a selection, so they count for little: about as much as 20 validation problems.
    """
    precision = 1 / (error**2 + CHANGE**2)
    return Belief(precision, precision * trained).plus(Belief.of(validation)).mean


class Accuracies:
    """The estimates of one search. Candidates are numbered in the order of their births."""

    def __init__(self) -> None:
        self._parents: list[int | None] = []
        self._own: list[Belief] = []
        self._below: list[Belief] = []
        """What a candidate and its descendants have scored, as evidence about the candidate."""
        self._seen: list[set[int]] = []
        """The problems with a score, by candidate."""
        self._problems: dict[int, tuple[int, float]] = {}
        """How many candidates have seen a problem, and the sum of their scores above their estimated accuracies."""

    def add(self, parent: int | None) -> int:
        """Add a candidate and return its number."""
        self._parents.append(parent)
        self._own.append(Belief())
        self._below.append(Belief())
        self._seen.append(set())
        return len(self._parents) - 1

    def learn(self, number: int, scores: Mapping[int, float]) -> None:
        """Take into account all scores that a candidate has so far, by problem."""
        own = Belief.of([score - self._ease(at) for at, score in scores.items()])
        change = own.minus(self._own[number])
        self._own[number] = own
        at: int | None = number
        while at is not None:
            before = self._below[at].over(CHANGE)
            self._below[at] = self._below[at].plus(change)
            change = self._below[at].over(CHANGE).minus(before)
            at = self._parents[at]
        mean = self.of(number)[0].mean
        for problem in scores.keys() - self._seen[number]:
            seen, above = self._problems.get(problem, (0, 0.0))
            self._problems[problem] = seen + 1, above + scores[problem] - mean
        self._seen[number].update(scores)

    def _ease(self, problem: int) -> float:
        seen, above = self._problems.get(problem, (0, 0.0))
        return above / (seen + CAUTION)

    def of(self, *numbers: int) -> list[Estimate]:
        """The estimates for candidates."""
        found: dict[int, Belief] = {}
        for number in numbers:
            path, at = list[int](), number
            while at not in found:
                path.append(at)
                parent = self._parents[at]
                if parent is None:
                    break
                at = parent
            for each in reversed(path):
                parent, below = self._parents[each], self._below[each]
                above = FIRST if parent is None else found[parent].minus(below.over(CHANGE)).over(CHANGE)
                found[each] = above.plus(below)
        return [Estimate(found[each].mean, 1 / found[each].precision) for each in numbers]
