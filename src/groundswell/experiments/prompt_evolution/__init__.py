"""Prompt evolution: a genetic search for a prompt that solves more problems, with a held-out test of the result.

The code calls a candidate prompt a genome, and its creation and evaluation a birth. Births of a search are numbered.

genome.py      a prompt, split into instruction, examples and answer format; or the texts of a program, by name
problems.py    problems in three sets; families.py generates problems; answers.py finds the answer in a reply;
               metrics.py scores it
solving.py     the main programs: one genome on one problem; programs.py: the user's programs, whose texts are evolved
breeding.py    a model writes a prompt; tokens.py: random edits
accuracy.py    estimates from few problems; population.py: survivors and parents; fitness.py; pareto.py
settings.py    the settings of the driver; config.py: the configuration for scripts, with presets; limits.py: the
               account settings that follow from it
examining.py   evaluates genomes on problems, each pair once; searching.py: the steady-state search
evolving.py    the driver: evolution, baselines, validation, held-out test; verdict.py: its statistics; costs.py: the
               cost of replies; expecting.py: the estimate
analysis.py    the result as data; reading.py reads it from the store; blocks.py makes the report, with drawings.py,
               lineage.py (ancestors of the winner), transcripts.py (the held-out test) and data.py (the data files)
experiment.py  options, settings and result files, for the command line and HTTP
evaluations.py the log of evaluations
documented.py  the classes of the Asynchronous Batch Evaluation System; controllers.py: another import path for them
benchmark/     how much faster this is than sequential requests

The names in `__all__` are public, and a test pins them. They are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark
    from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig, EvolutionConfig
    from groundswell.experiments.prompt_evolution.documented import (
        AsyncEvaluationPipeline,
        AsyncEvolutionController,
        AsyncLLMInterface,
        EvolutionController,
    )
    from groundswell.experiments.prompt_evolution.evolving import evolve
    from groundswell.experiments.prompt_evolution.genome import Genome
    from groundswell.experiments.prompt_evolution.metrics import metric
    from groundswell.experiments.prompt_evolution.problems import (
        Problem,
        Problems,
        Sizes,
        generated,
        read_jsonl,
        read_problems,
        shared_out,
    )
    from groundswell.experiments.prompt_evolution.programs import Task
    from groundswell.experiments.prompt_evolution.settings import Evolution

__all__ = [
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

_HOMES = {
    "benchmark": ("PerformanceBenchmark",),
    "config": ("AsyncEvolutionConfig", "EvolutionConfig"),
    "documented": ("AsyncEvaluationPipeline", "AsyncEvolutionController", "AsyncLLMInterface", "EvolutionController"),
    "evolving": ("evolve",),
    "genome": ("Genome",),
    "metrics": ("metric",),
    "problems": ("Problem", "Problems", "Sizes", "generated", "read_jsonl", "read_problems", "shared_out"),
    "programs": ("Task",),
    "settings": ("Evolution",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
