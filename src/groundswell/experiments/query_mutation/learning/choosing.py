"""Choosers: what they are asked, what they learn from, and those that learn nothing."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.query_mutation.episode import Floats


class Choice(NamedTuple):
    """An action, how likely it was, and what the chooser expected of where it stood."""

    action: int
    log_probability: float = 0.0
    value: float = 0.0


class Chooser(Protocol):
    """Somebody who chooses actions."""

    def choose(self, seen: Floats, chance: float) -> Choice:
        """The action for what is seen; `chance`, from 0 to 1, is all the luck there is."""
        ...

    def value(self, seen: Floats) -> float:
        """What is expected from there on."""
        ...


class Rollout(msgspec.Struct):
    """What one environment went through between two updates, step by step."""

    seen: list[Floats] = msgspec.field(default_factory=list)
    actions: list[int] = msgspec.field(default_factory=list)
    log_probabilities: list[float] = msgspec.field(default_factory=list)
    values: list[float] = msgspec.field(default_factory=list)
    rewards: list[float] = msgspec.field(default_factory=list)
    ended: list[bool] = msgspec.field(default_factory=list)
    """Whether the episode was over after this step."""
    usable: list[bool] = msgspec.field(default_factory=list)
    """False: the step failed, and must not be learnt from."""
    last_value: float = 0.0
    """What is expected from where the rollout was cut."""

    def add(self, seen: Floats, choice: Choice, reward: float, *, ended: bool, usable: bool) -> None:
        """Take a step."""
        self.seen.append(seen)
        self.actions.append(choice.action)
        self.log_probabilities.append(choice.log_probability)
        self.values.append(choice.value)
        self.rewards.append(reward)
        self.ended.append(ended)
        self.usable.append(usable)


class Noop(msgspec.Struct, frozen=True):
    """Asks the same again and again."""

    action: int = 0

    def choose(self, seen: Floats, chance: float) -> Choice:
        """The mutator that changes nothing."""
        return Choice(self.action)

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0


class Uniform(msgspec.Struct, frozen=True):
    """Any mutator, each as likely as the others."""

    actions: int

    def choose(self, seen: Floats, chance: float) -> Choice:
        """One of them."""
        return Choice(min(int(chance * self.actions), self.actions - 1))

    def value(self, seen: Floats) -> float:
        """Nothing is expected."""
        return 0.0


def drawn(probabilities: NDArray[np.float64], chance: float) -> int:
    """The action that `chance` falls on."""
    return min(int(np.searchsorted(np.cumsum(probabilities), chance, side="right")), len(probabilities) - 1)
