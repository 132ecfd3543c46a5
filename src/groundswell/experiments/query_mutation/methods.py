"""The methods that are compared: PPO, and baselines that could win. A method is named as in `--baselines`.

Trained baselines get as many queries in the training as PPO. All methods play the same episodes of the evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.episode import action_of, embedded_size, size_of
from groundswell.experiments.query_mutation.learning.bandit import Bandit, Contextual
from groundswell.experiments.query_mutation.learning.choosing import Chooser, Script, Uniform
from groundswell.experiments.query_mutation.learning.policy import Policy
from groundswell.experiments.query_mutation.learning.rules import Rules, State
from groundswell.experiments.query_mutation.learning.search import Search
from groundswell.experiments.query_mutation.learning.table import Table
from groundswell.experiments.query_mutation.mutators import AFRESH, NOOP
from groundswell.experiments.query_mutation.task import Task

Learnt = State | Bandit | Contextual | Search | Table
"""The state of a method with training."""

PPO = "ppo"
TRAINED = ("sequence", "single", "bandit", "contextual", "q-learning", "ppo-blind")
"""Baselines with training: the best fixed sequence of mutations, the best single mutation, a bandit, a bandit that sees
the observation, Q-learning without embeddings, and PPO without embeddings."""
SCRIPTS = {NOOP: NOOP, "best-of-n": AFRESH, "pair": "pair", "tap": "tap", "crescendo": "crescendo"}
"""Methods that always use one mutation. The last three are attackers that read the responses."""
RANDOM = "random"
BASELINES = (NOOP, RANDOM, "best-of-n", *TRAINED, "pair", "tap", "crescendo")
USUAL = (NOOP, RANDOM, "single", "sequence", "contextual")
"""The baselines of a training if none are named."""
PROBING = (NOOP, RANDOM, "pair")
"""The methods of a test without training if none are named."""


def baselines_named(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of baselines. `all` stands for all of them, and `none` for none."""
    names = [name for given in names for name in {"all": BASELINES, "none": ()}.get(given, (given,))]
    if unknown := [name for name in names if name not in BASELINES]:
        raise SettingsError(
            f"baselines: unknown baseline {unknown[0]!r}; known: {', '.join(BASELINES)}, all, none", field="baselines"
        )
    return tuple(name for name in BASELINES if name in names)


def trained(names: Sequence[str]) -> tuple[str, ...]:
    """Those of these baselines that are trained."""
    return tuple(name for name in names if name in TRAINED)


def fixed(names: Sequence[str]) -> tuple[str, ...]:
    """The mutations of those of these baselines that always use the same one."""
    return tuple(SCRIPTS[name] for name in names if name in SCRIPTS)


def untrained(task: Task, names: Sequence[str]) -> dict[str, Sequence[Chooser]]:
    """The choosers of those of these baselines that are not trained."""
    found: dict[str, Sequence[Chooser]] = {
        name: (Script((action_of(task, SCRIPTS[name]),)),) for name in names if name in SCRIPTS
    }
    return found | ({RANDOM: (Uniform(len(task.mutators)),)} if RANDOM in names else {})


def new(method: str, task: Task, width: int, rules: Rules, updates: int, seed: int) -> Learnt:
    """A method before its training. `width` is the size of an embedding."""
    size, actions = size_of(task, width), len(task.mutators)
    match method:
        case "sequence" | "single":
            return Search.new(actions, task.max_steps, updates, seed, single=method == "single")
        case "bandit":
            return Bandit.new(actions)
        case "contextual":
            return Contextual.new(size, actions)
        case "q-learning":
            return Table(actions, updates)
        case _:
            skips = embedded_size(task, width) if method == "ppo-blind" else 0
            return State(Policy.new(size, actions, rules.hidden, seed, skips))


def training(state: Learnt) -> Chooser:
    """What chooses during the training."""
    return state.policy if isinstance(state, State) else state


def ready(state: Learnt) -> Chooser:
    """What chooses after the training."""
    match state:
        case State():
            return state.policy
        case Search() | Table():
            return state.best
        case _:
            return state
