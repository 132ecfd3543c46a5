"""One model asked about many problems at once, outside an evolution."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from groundswell.experiments.prompt_evolution.config import EvolutionConfig
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.opening import Opened
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.solving import Attempt, Solved, solve
from groundswell.program.request import Fault, canonical


class AsyncLLMInterface(Opened):
    """Asks one model, as much at once as the configuration allows; limits, retries and the cache are the engine's.

        async with AsyncLLMInterface(config, store="runs.db") as llm:
            found = await llm.solve("Solve it step by step.", problems)

    `model` is the first of the configuration, unless named. What fails for good is a `Fault` in the place of an answer.
    """

    def __init__(self, config: EvolutionConfig | None = None, *, model: str | None = None, **how: Any) -> None:
        super().__init__(config, **how)
        self.model = self.config.models[0] if model is None else model

    async def solve(self, prompt: str | Genome, problems: Sequence[Problem]) -> list[Solved | Fault]:
        """What the model makes of these problems, told so, all at once; in the order of the problems."""
        return list(await asyncio.gather(*(self.solve_one(prompt, problem) for problem in problems)))

    async def solve_one(self, prompt: str | Genome, problem: Problem) -> Solved | Fault:
        """What it makes of one."""
        settings = self.config.settings
        spec = Attempt(self.model, str(prompt), problem, settings.metric, settings.temperature, settings.max_tokens)
        key = blake2b(canonical(spec), digest_size=12).hexdigest()
        run = self.run
        outcome = await self._once(key, lambda: run.submit(solve, spec, key=key))
        return outcome.unwrap() if outcome.fault is None else outcome.fault
