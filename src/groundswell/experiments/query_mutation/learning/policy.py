"""A policy as plain data: an actor and a critic network. It acts without torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundswell.experiments.chance import seed_of
from groundswell.experiments.query_mutation.episode import Episode, Floats
from groundswell.experiments.query_mutation.learning.choosing import Choice, drawn

SMALL_LAST = 0.01
"""Gain of the last layer of a new actor: all actions begin with about the same probability."""


class Layer(msgspec.Struct, frozen=True):
    """A linear layer: weights (row-major) and biases as 32-bit floats."""

    out: int
    into: int
    weights: bytes
    biases: bytes


class Policy(msgspec.Struct, frozen=True, dict=True, omit_defaults=True):
    """Actor and critic. A choice depends on a single observation only."""

    actor: tuple[Layer, ...]
    critic: tuple[Layer, ...]
    skips: int = 0
    """How many numbers at the beginning of the observation it does not see. The embeddings come first."""

    @classmethod
    def new(cls, seen: int, actions: int, hidden: int, seed: int, skips: int = 0) -> Policy:
        """An untrained policy."""
        shapes = ((hidden, seen - skips, 2**0.5), (hidden, hidden, 2**0.5))
        draw = np.random.default_rng(seed_of("weights", seed))
        actor = tuple(_orthogonal(*shape, draw) for shape in (*shapes, (actions, hidden, SMALL_LAST)))
        return cls(actor, tuple(_orthogonal(*shape, draw) for shape in (*shapes, (1, hidden, 1.0))), skips)

    def choose(self, seen: Floats, chance: float, episode: Episode | None = None) -> Choice:
        """Sample an action from the policy."""
        probabilities = self.probabilities(seen)
        action = drawn(probabilities, chance)
        return Choice(action, float(np.log(probabilities[action])), self.value(seen))

    def probabilities(self, seen: Floats) -> NDArray[np.float64]:
        """The probability of each action."""
        logits = _through(self._actor, seen[self.skips :]).astype(np.float64)
        likely = np.exp(logits - logits.max())
        return likely / likely.sum()  # type: ignore[no-any-return]

    def value(self, seen: Floats) -> float:
        """The value estimate of an observation."""
        return float(_through(self._critic, seen[self.skips :])[0])

    @cached_property
    def _actor(self) -> list[tuple[Floats, Floats]]:
        return arrays(self.actor)

    @cached_property
    def _critic(self) -> list[tuple[Floats, Floats]]:
        return arrays(self.critic)


def arrays(layers: Sequence[Layer]) -> list[tuple[Floats, Floats]]:
    """The layers as arrays."""
    return [
        (np.frombuffer(each.weights, dtype="<f4").reshape(each.out, each.into), np.frombuffer(each.biases, "<f4"))
        for each in layers
    ]


def layers(found: Sequence[tuple[Floats, Floats]]) -> tuple[Layer, ...]:
    """Arrays as layers."""
    return tuple(
        Layer(weights.shape[0], weights.shape[1], weights.astype("<f4").tobytes(), biases.astype("<f4").tobytes())
        for weights, biases in found
    )


def _through(found: list[tuple[Floats, Floats]], seen: Floats) -> Floats:
    for weights, biases in found[:-1]:
        seen = np.tanh(weights @ seen + biases)
    weights, biases = found[-1]
    return weights @ seen + biases


def _orthogonal(out: int, into: int, gain: float, draw: np.random.Generator) -> Layer:
    """Orthogonal initialisation."""
    whole = draw.standard_normal((max(out, into), min(out, into)))
    rotated, upper = np.linalg.qr(whole)
    rotated = rotated * np.sign(np.diag(upper))
    weights = (rotated if out >= into else rotated.T) * gain
    return layers([(weights.astype(np.float32), np.zeros(out, dtype=np.float32))])[0]
