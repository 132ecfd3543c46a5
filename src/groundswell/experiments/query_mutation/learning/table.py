"""Tabular Q-learning (Watkins 1989): learns the worth of each mutation in each situation, without embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from groundswell.experiments.query_mutation.episode import Episode, Floats
from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout

T = TypeVar("T")

GAMMA = 0.99
LEAST = 0.05
"""Share of random choices in the second half of the training."""
DECAY = 0.7
"""The n-th visit of a cell moves it by n to the power of minus this."""


class Row(msgspec.Struct, frozen=True):
    """The worth of each mutation in one situation, and how often it was tried."""

    worth: tuple[float, ...]
    tries: tuple[int, ...]


class Table(msgspec.Struct, frozen=True, tag=True):
    """Q-learning. A situation is the step, the last mutation, and whether the last response refused or told a part."""

    size: int
    updates: int
    rows: dict[str, Row] = {}
    done: int = 0
    explore: float = 1.0
    """Share of random choices."""

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """The best mutation, or a random one."""
        assert episode is not None
        if chance < self.explore:
            return Choice(min(int(chance / self.explore * self.size), self.size - 1))
        worth = self._row(episode).worth
        return Choice(max(range(self.size), key=worth.__getitem__))

    def value(self, seen: Floats) -> float:
        """Always 0: nothing is bootstrapped from it."""
        return 0.0

    def learn(self, rollouts: Sequence[Rollout]) -> Table:
        """The table after these steps."""
        rows = dict(self.rows)
        for rollout in rollouts:
            for (before, after), reward, usable in zip(rollout.moves, rollout.rewards, rollout.usable, strict=True):
                if not usable:
                    continue
                row, action = rows.get(_situation(before)) or self._row(before), after.previous
                later = 0.0 if after.end else max((rows.get(_situation(after)) or self._row(after)).worth)
                tries = row.tries[action] + 1
                moved = row.worth[action] + (reward + GAMMA * later - row.worth[action]) / tries**DECAY
                rows[_situation(before)] = Row(_with(row.worth, action, moved), _with(row.tries, action, tries))
        done = self.done + 1
        explore = max(LEAST, 1 - 2 * done / self.updates)
        return msgspec.structs.replace(self, rows=rows, done=done, explore=explore)

    @property
    def best(self) -> Table:
        """The table without random choices."""
        return msgspec.structs.replace(self, explore=0.0)

    def _row(self, episode: Episode) -> Row:
        return self.rows.get(_situation(episode)) or Row((0.0,) * self.size, (0,) * self.size)


def _situation(episode: Episode) -> str:
    return f"{episode.step}/{episode.previous}/{episode.refused:d}/{episode.best > 0:d}"


def _with(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])
