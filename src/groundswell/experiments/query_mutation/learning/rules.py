"""How PPO learns, and what it knows between two updates. Plain data; ppo.py does the learning."""

from __future__ import annotations

from math import isfinite

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.learning.policy import Policy

FINITE = ("lr", "gamma", "gae_lambda", "clip_param", "entropy_coef", "value_loss_coef", "max_grad_norm")
WIDEST = 1024
"""Of an inner layer: every checkpoint holds all weights three times."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How PPO learns."""

    ppo_epoch: int = 4
    num_mini_batch: int = 4
    lr: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_param: float = 0.2
    entropy_coef: float = 0.01
    value_loss_coef: float = 0.5
    max_grad_norm: float = 0.5
    hidden: int = 64
    """The width of the two inner layers."""
    anneal: bool = True
    """Whether the learning rate falls to nothing by the end."""

    def __post_init__(self) -> None:
        for name in FINITE:
            if not isfinite(getattr(self, name)):
                raise SettingsError(f"{name} {getattr(self, name):g}: must be a finite number", field=name)
        for name in ("ppo_epoch", "num_mini_batch", "hidden"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least 1", field=name)
        if self.hidden > WIDEST:
            raise SettingsError(f"hidden {self.hidden}: must be at most {WIDEST}", field="hidden")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be from 0 to 1", field=name)
        for name in ("lr", "clip_param", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be above 0", field=name)
        for name in ("entropy_coef", "value_loss_coef"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} {getattr(self, name):g}: must not be below 0", field=name)


class Moments(msgspec.Struct, frozen=True):
    """What Adam remembers of one array: how far it moved on average, and how much that varied."""

    mean: bytes
    square: bytes


class State(msgspec.Struct, frozen=True, tag=True):
    """A policy that learns, whole: with it alone learning goes on as if it had never stopped."""

    policy: Policy
    updates: int = 0
    steps: int = 0
    """Of Adam."""
    moments: tuple[Moments, ...] = ()


class Losses(msgspec.Struct, frozen=True):
    """What an update saw, as means over its minibatches."""

    policy: float
    value: float
    entropy: float
    clipped: float
    """The share of steps whose probability had moved as far as it may."""
