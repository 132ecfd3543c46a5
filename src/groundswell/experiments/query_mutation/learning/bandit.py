"""Bandits: they learn the reward of each mutation by Thompson sampling, and do not look ahead.

Bandit       the mean reward of each mutation; ignores observations
Contextual   a linear model of the reward per mutation, given the observation
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from math import sqrt
from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.query_mutation.episode import FEATURES, Episode, Floats
from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout

SPREAD = 0.5
"""Prior standard deviation of rewards. It makes the bandit try every mutation."""


class Arm(msgspec.Struct, frozen=True):
    """Rewards of one mutation."""

    pulls: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """Mean reward, with one prior observation of 0."""
        return self.total / (self.pulls + 1)

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        around = (self.squares + SPREAD**2) / (self.pulls + 1) - self.mean**2
        return sqrt(max(around, 1e-6) / (self.pulls + 1))


class Bandit(msgspec.Struct, frozen=True, tag=True):
    """One arm per mutation.

    It samples in the evaluation too, as a policy does. Always taking the best arm would repeat a query that the
    mutation no longer changes, and would make it an unfairly weak baseline.
    """

    arms: tuple[Arm, ...]

    @classmethod
    def new(cls, actions: int) -> Bandit:
        """An untrained bandit."""
        return cls((Arm(),) * actions)

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """The mutation with the highest sampled mean reward."""
        draw = Random(chance)
        worth = [arm.mean + arm.error * draw.gauss() for arm in self.arms]
        return Choice(max(range(len(worth)), key=worth.__getitem__))

    def value(self, seen: Floats) -> float:
        """Always 0: a bandit has no value estimate."""
        return 0.0

    def learn(self, rollouts: Sequence[Rollout]) -> Bandit:
        """The bandit after these steps."""
        arms = list(self.arms)
        for rollout in rollouts:
            for action, reward, usable in zip(rollout.actions, rollout.rewards, rollout.usable, strict=True):
                if usable:
                    arm = arms[action]
                    arms[action] = Arm(arm.pulls + 1, arm.total + reward, arm.squares + reward**2)
        return Bandit(tuple(arms))


PROJECTED = 16
"""To how many numbers the embeddings are reduced, by a fixed random projection."""
NOISE = 0.3
"""Assumed standard deviation of rewards around the linear model."""


class Line(msgspec.Struct, frozen=True):
    """The sums of a ridge regression of the reward of one mutation, as 64-bit floats."""

    squares: bytes
    products: bytes


class Contextual(msgspec.Struct, frozen=True, tag=True, dict=True):
    """Linear Thompson sampling (Agrawal and Goyal 2013). The embeddings are projected to few numbers."""

    lines: tuple[Line, ...]
    seen: int
    """Size of the observation."""

    @classmethod
    def new(cls, seen: int, actions: int) -> Contextual:
        """An untrained bandit."""
        many = len(_context(np.zeros(seen, np.float32), actions))
        line = Line(np.eye(many).astype("<f8").tobytes(), np.zeros(many).astype("<f8").tobytes())
        return cls((line,) * actions, seen)

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """The mutation with the highest sampled reward."""
        context, draw = _context(seen, len(self.lines)), np.random.default_rng(int(chance * 2**53))
        means, roots = self._posterior
        spread = np.linalg.norm(roots @ context, axis=1)
        return Choice(int(np.argmax(means @ context + NOISE * spread * draw.standard_normal(len(self.lines)))))

    def value(self, seen: Floats) -> float:
        """Always 0: a bandit has no value estimate."""
        return 0.0

    def learn(self, rollouts: Sequence[Rollout]) -> Contextual:
        """The bandit after these steps."""
        lines = [_sums(each) for each in self.lines]
        for rollout in rollouts:
            steps = zip(rollout.seen, rollout.actions, rollout.rewards, rollout.usable, strict=True)
            for seen, action, reward, usable in steps:
                if usable:
                    context = _context(seen, len(self.lines))
                    squares, products = lines[action]
                    lines[action] = squares + np.outer(context, context), products + reward * context
        packed = (Line(*(each.astype("<f8").tobytes() for each in sums)) for sums in lines)
        return Contextual(tuple(packed), self.seen)

    @cached_property
    def _posterior(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each mutation the mean of its weights, and a root of their covariance."""
        sums = [_sums(each) for each in self.lines]
        means = [np.linalg.solve(squares, products) for squares, products in sums]
        return np.stack(means), np.stack([np.linalg.inv(np.linalg.cholesky(squares)) for squares, _ in sums])


def _sums(line: Line) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    products = np.frombuffer(line.products, dtype="<f8")
    return np.frombuffer(line.squares, dtype="<f8").reshape(len(products), -1), products


def _context(seen: Floats, actions: int) -> NDArray[np.float64]:
    """A constant, the embeddings in few numbers, and the rest of the observation."""
    width = len(seen) - FEATURES - actions
    found: NDArray[np.float64] = np.concatenate([[1.0], _projection(width) @ seen[:width], seen[width:]])
    return found


@cache
def _projection(width: int) -> NDArray[np.float64]:
    drawn: NDArray[np.float64] = np.random.default_rng(0).standard_normal((PROJECTED, width))
    drawn /= PROJECTED**0.5
    return drawn
