"""Whether what people are has a bearing on what they say: a test by giving their labels to others.

If it has none, any of them could as well have had the label of another. That is all that is assumed: values may hang
together in whatever way, among those of a person and of those who were together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FEWEST = 5
"""Of fewer people, no arrangement is rare enough to mean anything."""
ALL = 5_000
"""Up to so many different arrangements of labels are gone through one by one."""
MOST = 9_999
ENOUGH = 50
"""Drawing ends when so many arrangements did as well as the real one: the p-value is not small then."""
FIRST = 500
ROOM = 20_000_000
"""Fewer are drawn where people and labels are so many that it would take long."""


def bearing(totals: Floats, counts: Ints, labels: Sequence[int]) -> float | None:
    """The p-value of no bearing: rows of totals and counts of each person's values, and the label of each.

    Values may have several columns, such as one for every option of a choice: their means are then compared together,
    each by its own scale. Exact where all arrangements can be tried. Else they are drawn, by a fixed seed, and no more
    than it takes (J. Besag, P. Clifford, Sequential Monte Carlo p-values, Biometrika 78 (1991) 301-304). None where
    there is nothing to compare.
    """
    import numpy as np

    numbers = np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)
    centred = totals - counts[:, None] * totals.sum(axis=0) / max(1, counts.sum())
    scale = np.sqrt((centred**2).sum(axis=0))
    telling = scale > 1e-9 * (1 + np.abs(totals).max(initial=0.0))
    sizes = np.bincount(numbers)
    if len(numbers) < FEWEST or len(sizes) < 2 or not telling.any():
        return None
    centred = centred[:, telling] / scale[telling]
    found = _apart(centred, counts, numbers[None, :], len(sizes))[0] * (1 - 1e-9)
    if _ways(sizes.tolist()) <= ALL:
        every = np.array(list(_arrangements(sizes.tolist())), dtype=np.int64)
        return float((_apart(centred, counts, every, len(sizes)) >= found).mean())
    return _drawn(centred, counts, numbers, found)


def _drawn(centred: Floats, counts: Ints, numbers: Ints, found: float) -> float:
    """The share of drawn arrangements, the real one among them, that are as far apart as the real one."""
    import numpy as np

    random, groups = np.random.default_rng(20_011), int(numbers.max()) + 1
    most = max(FIRST, min(MOST, ROOM // (len(numbers) * groups * centred.shape[1])))
    drawn = passed = 0
    while drawn < most and passed < ENOUGH:
        some = min(FIRST, most - drawn)
        shuffled = random.permuted(np.tile(numbers, (some, 1)), axis=1)
        passed += int((_apart(centred, counts, shuffled, groups) >= found).sum())
        drawn += some
    return (1 + passed) / (1 + drawn)


def _apart(centred: Floats, counts: Ints, arrangements: Ints, groups: int) -> Floats:
    """How far apart the means of groups are, for each arrangement: their sum of squares."""
    import numpy as np

    apart = np.zeros(len(arrangements))
    for group in range(groups):
        mine = (arrangements == group).astype(float)
        n = mine @ counts
        apart += ((mine @ centred) ** 2).sum(axis=1) / np.maximum(n, 1)
    return apart


def _ways(sizes: Sequence[int]) -> int:
    """How many different arrangements there are of labels that so many people have."""
    ways, left = 1, sum(sizes)
    for size in sizes:
        ways *= comb(left, size)
        left -= size
    return ways


def _arrangements(sizes: Sequence[int]) -> Iterator[list[int]]:
    """All of them: for each group in turn, who of those left has its label."""
    labels = [0] * sum(sizes)

    def fill(group: int, left: list[int]) -> Iterator[list[int]]:
        if group == len(sizes):
            yield list(labels)
            return
        for chosen in combinations(left, sizes[group]):
            for place in chosen:
                labels[place] = group
            yield from fill(group + 1, [place for place in left if place not in set(chosen)])

    yield from fill(0, list(range(len(labels))))
