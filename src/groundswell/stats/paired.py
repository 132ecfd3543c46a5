"""The same people in two conditions: how much what they say differs within each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundswell.stats.means import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def within_people(rows: Rows, first: Bools) -> Rows:
    """Rows whose mean is the mean over people of each one's mean in the first condition less that in the second.

    Every person counts the same, however often they were asked in either; those in one condition alone are left out.
    Values are so made that `mean` and `difference` of the result have the right variance: the values of a person add
    up to their difference, and companies of both conditions are clusters. What a person says in either condition is
    taken off first. It is in no difference, and would make companies differ that do not.
    """
    import numpy as np

    there, apart = of_people(rows, first)
    kept = np.isin(rows.who, there)
    rows, first = rows.among(kept), first[kept]
    if not len(there):
        return rows
    sides = (first, ~first)
    counts, means = [_counts(rows.among(side)) for side in sides], [_means(rows.among(side)) for side in sides]
    signs, many = np.where(first, 1.0, -1.0), np.where(first, counts[0][rows.who], counts[1][rows.who])
    own = np.where(first, means[0][rows.who], means[1][rows.who])
    middle = float(apart.mean())
    moved = ((means[0] - means[1])[rows.who] - middle) / 2
    within = (rows.values - own) * np.sqrt(many / np.maximum(many - 1, 1))  # means of few are nearer to them than truth
    return rows.of(middle + (moved + signs * within) * len(rows.values) / (len(there) * many))


def of_people(rows: Rows, first: Bools) -> tuple[Ints, Floats]:
    """Who is in both conditions, and the difference of each."""
    import numpy as np

    counts = [_counts(rows.among(side)) for side in (first, ~first)]
    there = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    return there, (_means(rows.among(first)) - _means(rows.among(~first)))[there]


def _means(rows: Rows) -> Floats:
    """The mean of each person; 0 of those who said nothing."""
    import numpy as np

    means: Floats = np.bincount(rows.who, rows.values, rows.links.people) / np.maximum(_counts(rows), 1)
    return means


def _counts(rows: Rows) -> Ints:
    import numpy as np

    return np.bincount(rows.who, minlength=rows.links.people)
