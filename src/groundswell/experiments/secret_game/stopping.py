"""The stopping rule: a run may end as soon as every model's leak rate has a narrow enough interval. Pure.

The rule uses one value per interaction and model, the leaked share of its secrets, because the two sides of an
interaction need not be independent. Interactions of a block share their code words and may be correlated, so intervals
use the effective sample size, which never exceeds the number of values. Interactions are taken in trial order: the
order in which replies arrive does not matter.
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
    """Checks after every interaction whether the widest interval is narrow enough."""

    def __init__(self, width: float, models: Sequence[str]) -> None:
        if not 0 < width < 1:
            raise SettingsError(
                f"stop_at_width {width:g}: must be between 0 and 1, such as 0.05 for five percentage points"
            )
        self._width = width
        self._arms = {model: Clusters() for model in dict.fromkeys(models)}
        self._seen = 0
        self.reached = False

    def add(self, duel: Duel, leaked: Leaked) -> bool:
        """Add an interaction; return whether the rule is met."""
        self._seen += 1
        for model in {seat.arm for seat in duel.seats}:
            told = [leaked[place] for place, seat in enumerate(duel.seats) if seat.arm == model]
            self._arms[model].add(duel.block, sum(told) / len(told))
        self.reached = all(high - low <= self._width for low, high in map(self._interval, self._arms.values()))
        return self.reached

    def _interval(self, arm: Clusters) -> Interval:
        """The interval for the effective sample size. With a single block it is 0 to 1."""
        if arm.count < 2:
            return Interval(0.0, 1.0)
        effect = max(1.0, arm.effect or 1.0)
        return anytime(arm.total / effect, arm.n / effect, aim=self._width)

    def report(self) -> Stopping:
        """The state of the rule."""
        arms = {}
        for model, arm in self._arms.items():
            low, high = self._interval(arm)
            arms[model] = Watched(arm.n, arm.total / arm.n if arm.n else None, low, high)
        return Stopping(self._width, self.reached, self._seen, arms)
