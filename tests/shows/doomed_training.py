"""A training in a process of its own, which kills itself at a moment of its choice.

`python -m tests.shows.doomed_training MOMENT NUMBER`: at the NUMBER-th time, `learn` dies within an update, `keep` just
before a checkpoint is written, `kept` when it has just been; `never` does not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import count
from typing import Any

import groundswell
from groundswell import Run
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.learning import ppo
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.training import Training, train

NAME, STORE, CAP = "r", "runs.db", 16
SETTINGS = Training(
    task=Task(
        target="openai/guard:{strength}",
        mutator_model="openai/reworder",
        embedder="openai/text-embedding-3-small",
        dimensions=16,
    ),
    num_processes=4,
    num_steps=8,
    num_env_steps=160,
    evaluation=Evaluation(episodes=1),
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def doom(moment: str, number: int) -> None:
    """See to it that this process dies then."""
    calls, keep, loss = count(1), Run.keep, ppo._loss

    def learning(*given: Any) -> Any:
        if next(calls) == number:
            die()
        return loss(*given)

    async def keeping(run: Run, name: str, body: str) -> None:
        at = next(calls)
        if moment == "keep" and at == number:
            die()
        await keep(run, name, body)
        if moment == "kept" and at == number:
            die()

    if moment == "learn":
        ppo._loss = learning  # type: ignore[assignment]
    elif moment != "never":
        Run.keep = keeping  # type: ignore[assignment, method-assign]


async def session() -> None:
    """Train, or go on where the last session died."""
    async with groundswell.open(STORE, max_concurrent=CAP) as engine:
        await engine.drive(train, SETTINGS, name=NAME)


if __name__ == "__main__":
    doom(sys.argv[1], int(sys.argv[2]))
    asyncio.run(session())
