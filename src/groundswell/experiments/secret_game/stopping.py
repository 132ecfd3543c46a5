"""When there is enough: a run may end as soon as every model's leak rate is known well enough. Pure.

One value per interaction and model, the share of its secrets that leaked, so that the two sides of an interaction need
not be independent. Interactions of a block share their words, which may leak more easily than others: values count for
as many independent ones as they are worth by how much blocks differ, and never for more than they are. Interactions are
taken in trial order: which of them come back first must not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.analysis import Stopping, Watched
from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.tally import Leaked
from groundswell.stats.clusters import Clusters
from groundswell.stats.rates import Interval
from groundswell.stats.sequential import anytime


class StoppingRule:
    """Looks at every interaction as it comes, and says when the widest interval is narrow enough."""

    def __init__(self, width: float, models: Sequence[str]) -> None:
        if not 0 < width < 1:
            raise SettingsError(f"stop_at_width {width:g}: must be between 0 and 1; 0.05 is five points wide")
        self._width = width
        self._arms = {model: Clusters() for model in dict.fromkeys(models)}
        self._seen = 0
        self.reached = False

    def add(self, duel: Duel, leaked: Leaked) -> bool:
        """Whether it is enough, with one more interaction."""
        self._seen += 1
        for model in {seat.arm for seat in duel.seats}:
            told = [leaked[place] for place, seat in enumerate(duel.seats) if seat.arm == model]
            self._arms[model].add(duel.block, sum(told) / len(told))
        self.reached = all(high - low <= self._width for low, high in map(self._interval, self._arms.values()))
        return self.reached

    def _interval(self, arm: Clusters) -> Interval:
        """That of as many values as these are worth. Those of a single block tell nothing of other words."""
        if arm.count < 2:
            return Interval(0.0, 1.0)
        effect = max(1.0, arm.effect or 1.0)
        return anytime(arm.total / effect, arm.n / effect, aim=self._width)

    def report(self) -> Stopping:
        """Where it stands."""
        arms = {}
        for model, arm in self._arms.items():
            low, high = self._interval(arm)
            arms[model] = Watched(arm.n, arm.total / arm.n if arm.n else None, low, high)
        return Stopping(self._width, self.reached, self._seen, arms)
