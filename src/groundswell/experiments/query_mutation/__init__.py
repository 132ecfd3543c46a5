"""Query mutation: train a policy that rewords queries until a guarded model reveals a planted secret.

task.py        the task: target, queries, guards.py, mutators.py, rewards.py, leaking.py, amounts.py
converters.py  mutators that encode a query; attackers.py: mutators whose model reads the responses
stepping.py    the program: one step of an environment
episode.py     episodes: state, observation and transition (pure)
targets.py     which targets may be tested
playing.py     environments in an async run; sessions.py: a run for synchronous code
learning/      PPO and the trained baselines; saving.py: policies as files
training.py    driver of `mutate train`; evaluating.py: evaluation of all methods; expecting.py: estimates
checks.py      checks for continuous integration: a threshold, and a comparison with an earlier run
usefulness.py  ordinary queries to guards; frontier.py: usefulness against security, and advice which guard to ship
guessing.py    a model that guesses the secret from the transcripts of an evaluation
analysis.py    results as plain data: figures.py computes statistics, verdict.py sentences, curves.py bands
reading.py     reads runs for reports; blocks.py, drawings.py and transcripts.py build them; data.py: data files
documented.py  Gymnasium environments: QueryMutationEnv and BatchedQueryMutationEnv
stable.py      adapter and masked rollout buffer for stable-baselines3
batching.py    batch functions: encode, mutate and query lists of texts
experiment.py  commands: options, settings and results; board.py: TensorBoard logs

The names in `__all__` are the public API and are pinned by a test. They are imported lazily: only the environments need
gymnasium.
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
        said = f"{name} needs {package}, which is not installed. Run: pip install 'groundswell[rl]'"
        raise ModuleNotFoundError(said, name=package) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
