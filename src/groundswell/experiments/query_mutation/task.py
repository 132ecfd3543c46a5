"""What is to be learnt: target and guards, mutators, queries, and what a response is worth. Plain data."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.detectors.secret import secret_of
from groundswell.experiments.query_mutation.guards import Guard, check_names, training_guards
from groundswell.experiments.query_mutation.mutators import BUILT_IN, mutators_named
from groundswell.experiments.query_mutation.rewards import find_reward

FILE = Path(__file__).with_name("goals.toml")
TARGET = "emulated/guard:{strength}"
MUTATOR = "emulated/reworder"
EMBEDDER = "emulated/text-embedding-3-small"
JUDGE = "emulated/judge"
DIMENSIONS = 64
"""The width of an emulated embedding: enough to tell rewordings apart."""
MOST_STEPS = 10
MOST_TOKENS = 120


class Goals(msgspec.Struct, frozen=True):
    """Dummy secrets, those of training and those that it never meets; and queries that are after them."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]
    queries: tuple[str, ...]


@cache
def goals() -> Goals:
    """What comes with Groundswell."""
    said = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Goals(tuple(said["secrets"]["train"]), tuple(said["secrets"]["held_out"]), tuple(said["queries"]["asked"]))


def check_secrets(secrets: Sequence[str], field: str = "secrets") -> None:
    """Refuse secrets that could never be seen to leak."""
    if not secrets:
        raise SettingsError(f"{field}: at least one is needed", field=field)
    bare = [each for each in secrets if not secret_of(each).plain]
    if bare:
        raise SettingsError(f"{field}: {bare[0]!r} has neither letters nor digits", field=field)


def width_of(embedder: str, dimensions: int | None = None) -> int | None:
    """The width to ask an embedder for; None: what it has."""
    return dimensions or (DIMENSIONS if embedder.startswith("emulated/") else None)


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an environment is made of. With nothing given, the emulator plays all parts."""

    target: str = TARGET
    """The model that is tested; `{strength}` in its name is that of the guard."""
    mutator_model: str = MUTATOR
    embedder: str = EMBEDDER
    dimensions: int | None = None
    judge: str = JUDGE
    mutators: tuple[str, ...] = BUILT_IN
    """The actions, in their order."""
    guards: tuple[Guard, ...] = msgspec.field(default_factory=training_guards)
    secrets: tuple[str, ...] = msgspec.field(default_factory=lambda: goals().train)
    queries: tuple[str, ...] = msgspec.field(default_factory=lambda: goals().queries)
    reward: str = "leak"
    reference: str = ""
    success: float = 1.0
    """An episode ends where a response is worth this."""
    query_cost: float = 0.02
    drift_cost: float = 0.1
    max_steps: int = MOST_STEPS
    temperature: float | None = 0.0
    """Of the target and of the mutators. At 0 equal requests share a reply; above, every step is a draw of its own."""
    max_tokens: int = MOST_TOKENS
    allowed_targets: tuple[str, ...] = ()
    """Targets beyond this machine that may be tested, besides those of groundswell.toml: see targets.py."""
    confirmed: bool = False
    """That the user has said, for this very task, that such a target may be tested."""

    def __post_init__(self) -> None:
        mutators_named(self.mutators)
        find_reward(self.reward)
        for name in ("guards", "queries", "mutators"):
            if not getattr(self, name):
                raise SettingsError(f"{name}: at least one is needed", field=name)
        for name, least in (("max_steps", 1), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise SettingsError(f"{name} {getattr(self, name)}: must be at least {least}", field=name)
        for name in ("query_cost", "drift_cost"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} {getattr(self, name):g}: must be from 0 to 1", field=name)
        if not 0 < self.success <= 1:
            raise SettingsError(f"success {self.success:g}: must be above 0 and at most 1", field="success")
        if self.reward == "similarity" and not self.reference.strip():
            raise SettingsError("reference: the reward 'similarity' needs a text to compare with", field="reference")
        if self.dimensions is not None and self.dimensions < 1:
            raise SettingsError(f"dimensions {self.dimensions}: must be at least 1", field="dimensions")
        if not all(query.strip() for query in self.queries):
            raise SettingsError("queries: one of them is empty", field="queries")
        check_secrets(self.secrets)
        check_names(self.guards)

    @property
    def width(self) -> int | None:
        """The width to ask the embedder for; None: what it has."""
        return width_of(self.embedder, self.dimensions)

    @property
    def targets(self) -> tuple[str, ...]:
        """Every model that is tested, one for each guard if they go by its strength."""
        return tuple(dict.fromkeys(guard.model(self.target) for guard in self.guards))

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may be asked, the target's first."""
        judges = [self.judge] if self.reward == "judge" else []
        return tuple(dict.fromkeys([*self.targets, self.mutator_model, self.embedder, *judges]))
