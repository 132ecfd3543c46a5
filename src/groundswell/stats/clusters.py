"""Values that come in clusters and may hang together there: how many independent ones they are worth."""

from __future__ import annotations


class Clusters:
    """Values cluster by cluster, one after the other. Sums alone are kept, however many there are."""

    def __init__(self) -> None:
        self.n = 0
        self.total = 0.0
        self.count = 0
        """How many clusters there are."""
        self._squares = 0.0
        self._at: int | None = None
        self._open_total, self._open_n = 0.0, 0
        self._totals = self._mixed = self._sizes = 0.0

    def add(self, cluster: int, *values: float) -> None:
        """Some more values of a cluster. Those of one cluster must come together."""
        if cluster != self._at:
            self._totals, self._mixed, self._sizes = self._sums()
            self._at, self._open_total, self._open_n = cluster, 0.0, 0
            self.count += 1
        total, n = sum(values), len(values)
        self.n += n
        self.total += total
        self._squares += sum(value * value for value in values) if n > 1 else total * total
        self._open_total += total
        self._open_n += n

    @property
    def effect(self) -> float | None:
        """The design effect: how many of these are worth one independent value. None where that cannot be told.

        The variance of the mean by how much clusters differ, over what it would be if no two values hung together:
        L. Kish, Survey Sampling (1965), chapter 5, with the variance of a ratio, since clusters may differ in size.
        """
        spread = self._squares - self.total * self.total / self.n if self.n else 0.0
        if self.count < 2 or spread <= 1e-9 * self.n:
            return None
        mean = self.total / self.n
        totals, mixed, sizes = self._sums()
        between = totals - 2 * mean * mixed + mean * mean * sizes
        return between * self.count / (self.count - 1) / (spread * self.n / (self.n - 1))

    def _sums(self) -> tuple[float, float, float]:
        """Over clusters: the squares of their totals, totals times sizes, squares of sizes."""
        total, n = self._open_total, self._open_n
        return self._totals + total * total, self._mixed + total * n, self._sizes + n * n
