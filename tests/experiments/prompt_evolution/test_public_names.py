"""What `groundswell.experiments.prompt_evolution` offers, and nothing by accident."""

from __future__ import annotations

import subprocess
import sys

import pytest

from groundswell.experiments import prompt_evolution

PACKAGE = "groundswell.experiments.prompt_evolution"
NAMES = [
    "AsyncEvaluationPipeline",
    "AsyncEvolutionConfig",
    "AsyncEvolutionController",
    "AsyncLLMInterface",
    "Evolution",
    "EvolutionConfig",
    "EvolutionController",
    "Genome",
    "PerformanceBenchmark",
    "Problem",
    "Problems",
    "Sizes",
    "Task",
    "evolve",
    "generated",
    "metric",
    "read_jsonl",
    "read_problems",
    "shared_out",
]
LIGHT = f"""
import sys
import {PACKAGE} as package
assert set(package.__all__) <= set(dir(package))
assert "{PACKAGE}.evolving" not in sys.modules
package.AsyncEvolutionController, package.AsyncEvaluationPipeline
heavy = {{"polars", "matplotlib", "torch", "sqlalchemy"}} & set(sys.modules)
assert not heavy, heavy
"""


def test_the_public_names_are_these() -> None:
    assert sorted(prompt_evolution.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(prompt_evolution, name)
    assert thing.__doc__
    assert len(thing.__doc__.strip()) > 6


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Search'"):
        prompt_evolution.Search  # noqa: B018


@pytest.mark.slow
def test_it_is_imported_when_it_is_used() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=60)
