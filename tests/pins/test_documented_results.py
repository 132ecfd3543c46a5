"""What the Python classes of the source documents return and write: files of batch jobs, results, infos of steps."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundswell.experiments import prompt_evolution, query_mutation, secret_game
from tests.pins.expectations import check
from tests.pins.folders import contents
from tests.pins.shapes import shape


@pytest.mark.usefixtures("cli")
def test_the_files_of_a_batch_job() -> None:
    agents = [secret_game.Agent(id=str(at), name=f"Agent{at}", secret=f"SECRET{at}") for at in (1, 2)]
    game = secret_game.GameService(agent_service=secret_game.AgentService("emulated/leaker:0.3"))
    service = secret_game.BatchService(game_service=game, max_concurrent_tasks=2, batch_size=2)
    job = service.create_batch_job(
        agents=agents, game_mode=secret_game.GameMode.STANDARD, num_interactions=2, messages_per_interaction=2
    )
    ended = asyncio.run(service.run_batch_job(job.id))
    assert str(ended.results_path) == f"results/batch_jobs/{job.id}/results.json"
    mappings = (
        "forms",
        "prompts",
        "missing[].kinds",
        "tiers",
        "models[].tiers",
        "agent_statistics",
        "analysis.prompts",
    )
    folder = Path("results/batch_jobs") / job.id
    figures = service.analyze_batch_results(job.id)
    statistics = json.loads((folder / "analysis.json").read_bytes())
    del statistics["analysis"]
    check(
        {
            "python/batch_job_statistics.txt": shape(statistics, mappings),
            "folders/batch-job.txt": contents(folder, mappings),
            "python/analyze_batch_results.txt": shape(plain(figures), mappings),
        }
    )


@pytest.mark.usefixtures("cli")
def test_the_results_of_an_evolution() -> None:
    problems = prompt_evolution.generated(sizes=prompt_evolution.Sizes(4, 2, 2), seed=7)
    config = prompt_evolution.AsyncEvolutionConfig(
        model="emulated/gpt-4o-mini", problems=problems, population_size=2, max_generations=1, baselines=()
    )
    results = asyncio.run(prompt_evolution.AsyncEvolutionController(config=config).run_evolution_async())
    lines = sorted(f"{name}: {type(value).__name__}" for name, value in results.items())
    check({"python/run_evolution_async.txt": lines})


@pytest.mark.usefixtures("cli")
def test_the_infos_of_an_environment() -> None:
    env = query_mutation.QueryMutationEnv()
    try:
        _, first = env.reset(seed=1)
        *_, info = env.step(1)
    finally:
        env.close()
    check({"python/env_reset_info.txt": shape(plain(first)), "python/env_step_info.txt": shape(plain(info))})


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(msgspec.json.encode(value))
