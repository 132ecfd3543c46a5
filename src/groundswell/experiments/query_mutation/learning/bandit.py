"""A bandit: learns the mean reward of each mutation, and ignores observations. Thompson sampling, normal posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random

import msgspec

from groundswell.experiments.query_mutation.episode import Floats
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

    def choose(self, seen: Floats, chance: float) -> Choice:
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
