"""Many tests at once: adjusted p-values, in the order in which they were given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def holm(ps: Sequence[float]) -> list[float]:
    """For the chance of a single false finding among all: S. Holm, Scand. J. Stat. 6 (1979) 65-70."""
    order = _ascending(ps)
    raised = ((len(ps) - rank) * ps[i] for rank, i in enumerate(order))
    return _back(order, [min(1.0, p) for p in accumulate(raised, max)])


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """For the share of false ones among findings: Y. Benjamini, Y. Hochberg, J. R. Stat. Soc. B 57 (1995) 289-300."""
    order = _ascending(ps)[::-1]
    raised = (len(ps) / (len(ps) - rank) * ps[i] for rank, i in enumerate(order))
    return _back(order, [min(1.0, p) for p in accumulate(raised, min)])


def _ascending(ps: Sequence[float]) -> list[int]:
    for p in ps:
        if not 0 <= p <= 1:
            raise ValueError(f"p {p}: must be between 0 and 1")
    return sorted(range(len(ps)), key=ps.__getitem__)


def _back(order: Sequence[int], adjusted: Sequence[float]) -> list[float]:
    placed = dict(zip(order, adjusted, strict=True))
    return [placed[i] for i in range(len(order))]
