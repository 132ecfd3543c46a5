"""A bandit: which mutator pays most on average, whatever is seen. Thompson sampling on normal posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random

import msgspec

from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.learning.choosing import Choice, Rollout

SPREAD = 0.5
"""How far rewards are thought to lie apart before any was seen: then every mutator is tried."""


class Arm(msgspec.Struct, frozen=True):
    """What one mutator brought."""

    pulls: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """The reward on average, drawn towards nothing by one step that brought nothing."""
        return self.total / (self.pulls + 1)

    @property
    def error(self) -> float:
        """How far the mean may be off."""
        around = (self.squares + SPREAD**2) / (self.pulls + 1) - self.mean**2
        return sqrt(max(around, 1e-6) / (self.pulls + 1))


class Bandit(msgspec.Struct, frozen=True, tag=True):
    """What is known of every mutator.

    It is tried as it learns, drawing, as a policy does: always to take the best would be to say the same again and
    again where a mutator has nothing left to change, and a baseline that is held down makes whoever beats it look good.
    """

    arms: tuple[Arm, ...]

    @classmethod
    def new(cls, actions: int) -> Bandit:
        """A bandit that knows nothing yet."""
        return cls((Arm(),) * actions)

    def choose(self, seen: Floats, chance: float) -> Choice:
        """The mutator whose reward, as far as it is known, comes out highest."""
        draw = Random(chance)
        worth = [arm.mean + arm.error * draw.gauss() for arm in self.arms]
        return Choice(max(range(len(worth)), key=worth.__getitem__))

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0

    def learn(self, rollouts: Sequence[Rollout]) -> Bandit:
        """What is known after these steps."""
        arms = list(self.arms)
        for rollout in rollouts:
            for action, reward, usable in zip(rollout.actions, rollout.rewards, rollout.usable, strict=True):
                if usable:
                    arm = arms[action]
                    arms[action] = Arm(arm.pulls + 1, arm.total + reward, arm.squares + reward**2)
        return Bandit(tuple(arms))
