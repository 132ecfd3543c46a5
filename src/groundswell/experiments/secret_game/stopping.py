"""When there is enough: a run may end as soon as every model's leak rate is known well enough. Pure.

One value per interaction and model, the share of its secrets that leaked, so that the two sides of an interaction need
not be independent. Interactions are taken in trial order: which of them come back first must not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.analysis import Stopping, Watched
from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.tally import Leaked
from groundswell.stats.sequential import Running


class StoppingRule:
    """Looks at every interaction as it comes, and says when the widest interval is narrow enough."""

    def __init__(self, width: float, models: Sequence[str]) -> None:
        if not 0 < width < 1:
            raise SettingsError(f"stop_at_width {width:g}: must be between 0 and 1; 0.05 is five points wide")
        self._width = width
        self._arms = {model: Running(aim=width) for model in dict.fromkeys(models)}
        self._seen = 0
        self.reached = False

    def add(self, duel: Duel, leaked: Leaked) -> bool:
        """Whether it is enough, with one more interaction."""
        self._seen += 1
        for model in {seat.arm for seat in duel.seats}:
            told = [leaked[place] for place, seat in enumerate(duel.seats) if seat.arm == model]
            self._arms[model] = self._arms[model].add(sum(told) / len(told))
        self.reached = all(arm.width <= self._width for arm in self._arms.values())
        return self.reached

    def report(self) -> Stopping:
        """Where it stands."""
        arms = {}
        for model, arm in self._arms.items():
            low, high = arm.interval
            arms[model] = Watched(arm.n, arm.mean, low, high)
        return Stopping(self._width, self.reached, self._seen, arms)
