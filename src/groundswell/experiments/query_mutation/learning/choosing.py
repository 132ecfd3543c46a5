"""Choosers: the protocol, the rollouts that they learn from, and the baselines."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.query_mutation.episode import Floats


class Choice(NamedTuple):
    """An action, its log probability, and the value estimate of the state."""

    action: int
    log_probability: float = 0.0
    value: float = 0.0


class Chooser(Protocol):
    """Something that chooses actions."""

    def choose(self, seen: Floats, chance: float) -> Choice:
        """The action for an observation. `chance`, from 0 to 1, is the only source of randomness."""
        ...

    def value(self, seen: Floats) -> float:
        """The value estimate of an observation."""
        ...


class Rollout(msgspec.Struct):
    """The steps of one environment between two updates."""

    seen: list[Floats] = msgspec.field(default_factory=list)
    actions: list[int] = msgspec.field(default_factory=list)
    log_probabilities: list[float] = msgspec.field(default_factory=list)
    values: list[float] = msgspec.field(default_factory=list)
    rewards: list[float] = msgspec.field(default_factory=list)
    ended: list[bool] = msgspec.field(default_factory=list)
    """Whether the episode ended with this step."""
    usable: list[bool] = msgspec.field(default_factory=list)
    """False if the step failed. Such a step is excluded from learning."""
    last_value: float = 0.0
    """Value estimate of the state after the last step."""

    def add(self, seen: Floats, choice: Choice, reward: float, *, ended: bool, usable: bool) -> None:
        """Add a step."""
        self.seen.append(seen)
        self.actions.append(choice.action)
        self.log_probabilities.append(choice.log_probability)
        self.values.append(choice.value)
        self.rewards.append(reward)
        self.ended.append(ended)
        self.usable.append(usable)


class Noop(msgspec.Struct, frozen=True):
    """Repeats the query without changes."""

    action: int = 0

    def choose(self, seen: Floats, chance: float) -> Choice:
        """The action without a change."""
        return Choice(self.action)

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0


class Uniform(msgspec.Struct, frozen=True):
    """Chooses mutations uniformly at random."""

    actions: int

    def choose(self, seen: Floats, chance: float) -> Choice:
        """A random action."""
        return Choice(min(int(chance * self.actions), self.actions - 1))

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0


def drawn(probabilities: NDArray[np.float64], chance: float) -> int:
    """Sample an action by inverse transform of `chance`."""
    return min(int(np.searchsorted(np.cumsum(probabilities), chance, side="right")), len(probabilities) - 1)
