"""Raking: factors for the values of some dimensions, so that weighted profiles have given shares.

Iterative proportional fitting: the weight of a profile is the product of the factors of its values. One margin after
the other is fitted by multiplying the factor of each group with its wanted share over its present share, until all
shares are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.entities import Value, ValueSet

MOST_ITERATIONS = 500
CLOSE = 1e-4
"""Largest difference between a wanted and a fitted share."""


class Margin(NamedTuple):
    """A dimension, its groups of values with their wanted shares, and the factors of the groups, at most 1."""

    name: str
    labels: tuple[str, ...]
    groups: tuple[ValueSet, ...]
    shares: tuple[float, ...]
    factors: tuple[float, ...]

    def place(self, value: Value) -> int:
        """The group of a value: the first one that has it, or -1."""
        return next((at for at, group in enumerate(self.groups) if group.has(value)), -1)

    def factor(self, value: Value) -> float:
        """The factor of a value: 0 if no group has it."""
        return self.factors[at] if (at := self.place(value)) >= 0 else 0.0


def rake(
    margins: Sequence[Margin], columns: Sequence[Sequence[int]], draws: int
) -> tuple[list[tuple[float, ...]], float]:
    """The factors of the margins, and the share of `draws` that is accepted with them.

    `columns` has the group of each plausible profile in each margin. Raises `SettingsError` if a wanted group does not
    occur or the shares cannot be reached together.
    """
    import numpy as np

    places = np.array(columns, dtype=np.int64).reshape(len(margins), -1)
    places = places[:, (places >= 0).all(axis=0)]
    wanted = [np.array(margin.shares) for margin in margins]
    for margin, column in zip(margins, places, strict=True):
        found = np.bincount(column, minlength=len(margin.labels))
        lacking = [
            label for label, share, n in zip(margin.labels, margin.shares, found, strict=True) if share and not n
        ]
        if lacking:
            raise SettingsError(
                f"margins.{margin.name}: {lacking[0]!r} is set to "
                f"{margin.shares[margin.labels.index(lacking[0])]:.1%}, but none of {draws:,} sampled profiles has it; "
                "the tables, weights and other margins exclude it",
                field="margins",
            )
    factors = [(shares > 0).astype(float) for shares in wanted]
    for _ in range(MOST_ITERATIONS):
        furthest = 0.0
        for at, shares in enumerate(wanted):
            found = _shares(places, factors, at)
            furthest = max(furthest, float(abs(found - shares).max()))
            factors[at] *= np.divide(shares, found, out=np.zeros_like(shares), where=found > 0)
            factors[at] /= max(factors[at].max(), np.finfo(float).tiny)
        if furthest < CLOSE:
            break
    for at, (margin, shares) in enumerate(zip(margins, wanted, strict=True)):
        found = _shares(places, factors, at)
        worst = int(abs(found - shares).argmax())
        if not abs(found[worst] - shares[worst]) < 10 * CLOSE:
            raise SettingsError(
                f"margins.{margin.name}: {margin.labels[worst]!r} is set to {shares[worst]:.1%}, but raking reaches "
                f"{found[worst]:.1%}; the margins contradict each other or the tables",
                field="margins",
            )
    weights = _weights(places, factors)
    return [tuple(map(float, each)) for each in factors], float(weights.sum()) / draws


def _shares(places: Any, factors: Sequence[Any], at: int) -> Any:
    """The present shares of the groups of one margin."""
    import numpy as np

    found = np.bincount(places[at], weights=_weights(places, factors), minlength=len(factors[at]))
    return found / max(found.sum(), np.finfo(float).tiny)


def _weights(places: Any, factors: Sequence[Any]) -> Any:
    import numpy as np

    return np.prod([factor[column] for factor, column in zip(factors, places, strict=True)], axis=0)
