"""Hyperparameters of PPO and the state of a learner, as plain data. ppo.py does the learning."""

from __future__ import annotations

from math import isfinite

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.learning.policy import Policy

FINITE = ("lr", "gamma", "gae_lambda", "clip_param", "entropy_coef", "value_loss_coef", "max_grad_norm")
WIDEST = 1024
"""Maximum width of a hidden layer: every checkpoint contains all weights three times."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Hyperparameters of PPO."""

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
    """Width of the two hidden layers."""
    anneal: bool = True
    """Whether the learning rate decreases linearly to 0."""

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
                raise SettingsError(f"{name} {getattr(self, name):g}: must be between 0 and 1", field=name)
        for name in ("lr", "clip_param", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be greater than 0", field=name)
        for name in ("entropy_coef", "value_loss_coef"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be at least 0", field=name)


class Moments(msgspec.Struct, frozen=True):
    """First and second moment of Adam for one array."""

    mean: bytes
    square: bytes


class State(msgspec.Struct, frozen=True, tag=True):
    """The complete state of a learning policy. Training continues from it exactly."""

    policy: Policy
    updates: int = 0
    steps: int = 0
    """Steps of Adam."""
    moments: tuple[Moments, ...] = ()


class Losses(msgspec.Struct, frozen=True):
    """Losses of an update, as means over its mini-batches."""

    policy: float
    value: float
    entropy: float
    clipped: float
    """Share of steps whose probability ratio was clipped."""
