"""Choosers: the protocol, the rollouts that they learn from, and methods without training."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.query_mutation.episode import Episode, Floats


class Choice(NamedTuple):
    """An action, its log probability, and the value estimate of the state."""

    action: int
    log_probability: float = 0.0
    value: float = 0.0


class Chooser(Protocol):
    """Something that chooses actions."""

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """The action for an observation of an episode. `chance`, from 0 to 1, is the only source of randomness."""
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
    moves: list[tuple[Episode, Episode]] = msgspec.field(default_factory=list)
    """The episode before and after each step, for learners that do not learn from observations."""
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


class Script(msgspec.Struct, frozen=True):
    """Repeats a fixed sequence of actions, whatever happens."""

    actions: tuple[int, ...]

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """The action of this step."""
        step = 0 if episode is None else episode.step
        return Choice(self.actions[step % len(self.actions)])

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0


class Uniform(msgspec.Struct, frozen=True):
    """Chooses mutations uniformly at random."""

    actions: int

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """A random action."""
        return Choice(min(int(chance * self.actions), self.actions - 1))

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0


def drawn(probabilities: NDArray[np.float64], chance: float) -> int:
    """Sample an action by inverse transform of `chance`."""
    return min(int(np.searchsorted(np.cumsum(probabilities), chance, side="right")), len(probabilities) - 1)
