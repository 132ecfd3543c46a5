"""The configuration: the numbers of its description, what follows from them, and what cannot be meant."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.config import PRESETS, AsyncEvolutionConfig, EvolutionConfig
from groundswell.experiments.prompt_evolution.problems import Sizes, generated
from groundswell.experiments.prompt_evolution.settings import Rules, Stops

FEW = generated(sizes=Sizes(4, 2, 2))
DESCRIBED = {
    "balanced": AsyncEvolutionConfig(
        # Population settings
        population_size=50,
        max_generations=100,
        # Async evaluation settings
        enable_async_evaluation=True,
        async_batch_size=20,  # Problems per batch
        max_concurrent_requests=10,  # Concurrent API calls per batch
        genome_batch_size=10,  # Genomes processed concurrently
        max_concurrent_genomes=5,  # Max concurrent genome evaluations
        rate_limit_per_minute=3500,  # OpenAI rate limit compliance
        # Performance monitoring
        detailed_performance_logging=True,
    ),
    "conservative": AsyncEvolutionConfig(
        async_batch_size=10,
        max_concurrent_requests=5,
        genome_batch_size=5,
        max_concurrent_genomes=3,
        rate_limit_per_minute=2000,
    ),
    "aggressive": AsyncEvolutionConfig(
        async_batch_size=30,
        max_concurrent_requests=15,
        genome_batch_size=15,
        max_concurrent_genomes=8,
        rate_limit_per_minute=3500,
    ),
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_those_of_the_description(name: str) -> None:
    assert AsyncEvolutionConfig.preset(name) == DESCRIBED[name]


def test_a_preset_can_be_changed() -> None:
    changed = AsyncEvolutionConfig.preset("conservative", max_concurrent_genomes=4, seed=3, problems=FEW)
    assert (changed.async_batch_size, changed.max_concurrent_genomes, changed.seed) == (10, 4, 3)
    assert changed.problems is FEW


@pytest.mark.parametrize(("name", "most"), [("balanced", 50), ("conservative", 15), ("aggressive", 120)])
def test_how_much_is_in_flight(name: str, most: int) -> None:
    assert AsyncEvolutionConfig.preset(name).most_in_flight == most
    assert AsyncEvolutionConfig.preset(name, enable_async_evaluation=False).most_in_flight == 1


def test_accounts_keep_what_nobody_speaks_of() -> None:
    assert EvolutionConfig(problems=FEW).account_settings == {}
    assert EvolutionConfig(problems=FEW).most_in_flight is None
    assert AsyncEvolutionConfig(problems=FEW).account_settings == {}
    said = AsyncEvolutionConfig(problems=FEW, rate_limit_per_minute=500, async_timeout=30)
    assert said.account_settings == {"rate_limit_per_minute": 500, "timeout": 30}


def test_what_the_driver_gets() -> None:
    settings = AsyncEvolutionConfig(
        model=("any/one", "any/other"),
        writer="any/writer",
        problems=FEW,
        seed_prompts=("Solve it.\n\nExample: 1 + 1 = 2",),
        population_size=1,
        async_batch_size=3,
        genome_batch_size=7,
        target_fitness=0.9,
        plateau_generations=None,
        max_asks=10,
        max_usd=0.5,
        fitness="composite",
    ).settings
    assert (settings.models, settings.by, settings.problems) == (("any/one", "any/other"), "any/writer", FEW)
    assert settings.seeds[0].examples == ("1 + 1 = 2",)
    assert (settings.elite, settings.genome_batch_size, settings.rules) == (0, 7, Rules(block=3))
    assert settings.stops == Stops(target=0.9, plateau=None, asks=10, usd=0.5)
    assert settings.fitness.consistency > 0


def test_the_old_configuration_means_the_same_as_the_new_one() -> None:
    new = AsyncEvolutionConfig(population_size=20, enable_async_evaluation=True)
    assert EvolutionConfig(population_size=20).settings == new.settings


def test_problems_are_drawn_by_the_seed() -> None:
    assert EvolutionConfig(seed=1).settings.problems == EvolutionConfig(seed=1).settings.problems
    assert EvolutionConfig(seed=1).settings.problems != EvolutionConfig(seed=2).settings.problems


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"population_size": 0}, "population_size 0: must be more than 0"),
        ({"population_size": "50"}, "population_size '50': expected int, got str"),
        ({"max_generations": -1}, "max_generations -1: must be more than 0"),
        ({"elite_size": -1}, "elite_size -1: must be 0 or more"),
        ({"tournament_size": 0}, "tournament_size 0: must be more than 0"),
        ({"model": ()}, "model: name at least one model"),
        ({"seed_prompts": ()}, "seed_prompts: give at least one seed prompt"),
        ({"seed_prompts": ("Solve it.", " ")}, "seed_prompts: a seed prompt is empty; write a prompt"),
        ({"seed_prompts": "Solve it."}, "seed_prompts 'Solve it.': expected array, got str"),
        ({"selection": "best"}, "selection 'best': must be one of thompson, tournament, roulette, rank"),
        ({"fitness": "beauty"}, "fitness 'beauty': must be one of accuracy, composite, pareto"),
        ({"operators": {"guess": 1.0}}, "operators: unknown operator 'guess'"),
        ({"target_fitness": 1.5}, "target_fitness 1.5: must be from 0 to 1"),
        ({"plateau_generations": 0}, "plateau_generations 0: must be more than 0"),
        ({"temperature": -1}, "temperature -1: must be 0 or more"),
        ({"max_usd": float("nan")}, "max_usd nan: must be more than 0"),
        ({"async_batch_size": 0}, "async_batch_size 0: must be more than 0"),
        ({"genome_batch_size": 0}, "genome_batch_size 0: must be more than 0"),
        ({"max_concurrent_requests": 0}, "max_concurrent_requests 0: must be more than 0"),
        ({"max_concurrent_genomes": 0}, "max_concurrent_genomes 0: must be more than 0"),
        ({"rate_limit_per_minute": 0}, "rate_limit_per_minute 0: must be more than 0"),
        ({"async_timeout": -3}, "async_timeout -3: must be more than 0"),
        ({"racing": "no"}, "racing 'no': expected bool, got str"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_what_cannot_be_meant_is_told_by_its_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        AsyncEvolutionConfig(problems=FEW, **given)
    assert str(error.value).startswith(said)
    assert error.value.field == next(iter(given))


def test_a_preset_that_nobody_knows() -> None:
    with pytest.raises(SettingsError, match="preset 'wild': must be one of balanced, conservative, aggressive"):
        AsyncEvolutionConfig.preset("wild")


def test_a_field_that_nobody_knows() -> None:
    with pytest.raises(TypeError, match="'batch_size'"):
        AsyncEvolutionConfig(batch_size=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'batch_size'"):
        AsyncEvolutionConfig.preset("balanced", batch_size=3)


def test_a_changed_copy_has_settings_of_its_own() -> None:
    config = AsyncEvolutionConfig(problems=FEW, max_generations=3)
    assert msgspec.structs.replace(config, max_generations=4).settings.max_generations == 4
