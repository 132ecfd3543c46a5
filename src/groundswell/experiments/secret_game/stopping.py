"""The stopping rule: a run ends when every model's leak rate has a narrow enough interval. Pure.

Interactions are released in cohorts of whole blocks, and the rule is checked when a cohort has ended. So every
interaction that was released counts. The size of a cohort is a forecast that depends only on results in trial order: a
resumed run releases the same cohorts.

The interactions of a block share their code words and may be correlated. So each block gives one value per model: the
mean over its interactions of the share of the model's secrets that leaked. Blocks draw their words independently, so
the expected value of a block, given the blocks before, is always the same.

Interactions may be missing because a request failed or the run ended. The rule assumes that a missing interaction would
have leaked as often as the others of its block. A block has the weight of the share of its interactions that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.analysis import Stopping, Watched
from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.tally import Leaked
from groundswell.stats.sequential import Betting, expected_n

VARIANCE = 0.0625
"""Variance of the mean of a block, expected beforehand: that of four independent interactions at a rate of 0.5."""
FIRST = 1.02
"""First cohort, as a multiple of the blocks that are needed if nothing leaks. Fewer could not meet the rule."""
LEAST = 0.1
"""Smallest cohort, as a share of what was released before, so that a run needs few cohorts."""


class Arm:
    """The leak rate of one model. `size` is the number of its interactions in a complete block."""

    def __init__(self, width: float, size: int) -> None:
        self._size = size
        self._block: list[float] = []
        self.interval = Betting(width, variance=VARIANCE)
        self.total, self.n = 0.0, 0

    def add(self, value: float) -> None:
        """Add the value of an interaction to the open block."""
        self._block.append(value)
        self.total += value
        self.n += 1

    def close(self) -> None:
        """The open block has ended."""
        if n := len(self._block):
            self.interval.add(sum(self._block) / n, n / self._size)
            self._block.clear()

    def report(self) -> Watched:
        """The rate and its interval."""
        low, high = self.interval.interval
        if not self.n:
            return Watched(0, None, low, high)
        rate = self.total / self.n
        return Watched(self.n, rate, min(low, rate), max(high, rate))


def first_blocks(width: float, level: float = 0.95) -> int:
    """The number of blocks in the first cohort: slightly more than are needed if nothing leaks."""
    return ceil(FIRST * expected_n(0.0, width, level, variance=0.0))


class StoppingRule:
    """Decides how many interactions to release, until every interval is at most `width` wide.

    sizes     number of interactions of every model in a complete block
    block     number of interactions of all pairings in a complete block
    planned   maximum number of interactions
    cohorts   what was released already
    """

    def __init__(
        self, width: float, sizes: Mapping[str, int], block: int, planned: int, cohorts: Sequence[int] = ()
    ) -> None:
        if not 0 < width < 1:
            raise SettingsError(
                f"stop_at_width {width:g}: must be between 0 and 1, such as 0.05 for five percentage points"
            )
        self._width = width
        self._size = block
        self._planned = planned
        self._arms = {model: Arm(width, size) for model, size in sizes.items()}
        self._block: int | None = None
        self._seen = 0
        self._met_after: int | None = None
        self.cohorts = list(cohorts)
        """Number of interactions in each cohort."""

    def add(self, duel: Duel, leaked: Leaked) -> None:
        """Add a usable interaction. Interactions come in trial order."""
        if duel.block != self._block:
            self._close()
            self._block = duel.block
        self._seen += 1
        for model in {seat.arm for seat in duel.seats}:
            told = [leaked[place] for place, seat in enumerate(duel.seats) if seat.arm == model]
            self._arms[model].add(sum(told) / len(told))

    def release(self) -> int:
        """The number of interactions in the next cohort, after all before have ended; 0 if none are needed or left."""
        self._close()
        size = min(self._blocks() * self._size, self._planned - sum(self.cohorts))
        self.cohorts += [size] if size else []
        return size

    def _blocks(self) -> int:
        """Blocks of the next cohort. Later cohorts than the first are expected to meet the rule."""
        released = sum(self.cohorts) / self._size
        if not released:
            return first_blocks(self._width)
        if not (more := max(self._needed(arm, released) for arm in self._arms.values())):
            return 0
        return max(more, ceil(LEAST * released))

    def _needed(self, arm: Arm, released: float) -> int:
        """The number of blocks that a model still needs, if as many interactions will be missing as so far."""
        return ceil(arm.interval.more * released / arm.interval.n) if arm.interval.n else ceil(released)

    def _close(self) -> None:
        for arm in self._arms.values():
            arm.close()
        if self._met_after is None and self.reached:
            self._met_after = self._seen

    @property
    def reached(self) -> bool:
        """Whether every interval is narrow enough."""
        return all(not arm.interval.more for arm in self._arms.values())

    def report(self) -> Stopping:
        """The state of the rule, with the intervals of all interactions that were added."""
        self._close()
        arms = {model: arm.report() for model, arm in self._arms.items()}
        return Stopping(self._width, self.reached, self._seen, arms, self.cohorts, self._met_after)
