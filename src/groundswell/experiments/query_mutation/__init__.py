"""Query mutation: which rewording of a query gets a guarded model to give a planted secret away? A policy learns it.

task.py        what is to be learnt: target, guards.py, mutators.py, queries, rewards.py with leaking.py
stepping.py    THE program: one step of an environment
episode.py     episodes: where one stands, what is seen of it, what a step does to it (pure)
targets.py     who may be tested
playing.py     environments in a run, each by itself; sessions.py: a run without async
learning/      who chooses: policies, how they learn, baselines; saving.py: policies as files
training.py    the driver of a training; evaluating.py: everybody on the same episodes; expecting.py: what that takes
analysis.py    what was found: figures.py has its statistics, verdict.py its words, curves.py bands
reading.py     runs as their report reads them; blocks.py makes it, with drawings.py and transcripts.py; data.py: files
documented.py  the environments that the description of query mutation names, for Gymnasium: one, and many at once
stable.py      the same for stable-baselines3, and a buffer that leaves failed steps out
batching.py    queries encoded, mutated and asked in lists
experiment.py  the commands: options, settings and results; board.py: curves for TensorBoard

What is named here is public, and a test pins it. It is imported when it is used: only environments need gymnasium.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell.experiments.query_mutation.batching import (
        batch_encode_queries,
        batch_mutate_queries,
        batch_query_target_model,
    )
    from groundswell.experiments.query_mutation.documented import BatchedQueryMutationEnv, QueryMutationEnv
    from groundswell.experiments.query_mutation.evaluating import Evaluation
    from groundswell.experiments.query_mutation.guards import Guard
    from groundswell.experiments.query_mutation.mutators import mutator
    from groundswell.experiments.query_mutation.rewards import reward
    from groundswell.experiments.query_mutation.sessions import Session
    from groundswell.experiments.query_mutation.stable import MaskedRolloutBuffer, QueryMutationVecEnv
    from groundswell.experiments.query_mutation.stepping import DEFAULT_REFUSAL
    from groundswell.experiments.query_mutation.task import Task
    from groundswell.experiments.query_mutation.training import Training, train

__all__ = [
    "DEFAULT_REFUSAL",
    "BatchedQueryMutationEnv",
    "Evaluation",
    "Guard",
    "MaskedRolloutBuffer",
    "QueryMutationEnv",
    "QueryMutationVecEnv",
    "Session",
    "Task",
    "Training",
    "batch_encode_queries",
    "batch_mutate_queries",
    "batch_query_target_model",
    "mutator",
    "reward",
    "train",
]

_HOMES = {
    "batching": ("batch_encode_queries", "batch_mutate_queries", "batch_query_target_model"),
    "documented": ("BatchedQueryMutationEnv", "QueryMutationEnv"),
    "evaluating": ("Evaluation",),
    "guards": ("Guard",),
    "mutators": ("mutator",),
    "rewards": ("reward",),
    "sessions": ("Session",),
    "stable": ("MaskedRolloutBuffer", "QueryMutationVecEnv"),
    "stepping": ("DEFAULT_REFUSAL",),
    "task": ("Task",),
    "training": ("Training", "train"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_OPTIONAL = ("gymnasium", "stable_baselines3", "torch")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _OPTIONAL:
            raise
        said = f"{name} needs {package}, which is not installed: pip install 'groundswell[rl]'"
        raise ModuleNotFoundError(said, name=package) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
