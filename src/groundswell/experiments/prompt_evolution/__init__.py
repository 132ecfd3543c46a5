"""Prompt evolution: prompts are born, tried on problems, and bred from; which is the best, and is it really better?

genome.py      a prompt with its parts told apart
problems.py    problems in three sets; families.py makes fresh ones; answers.py finds the answer in a reply,
               metrics.py says what it is worth
solving.py     THE program: one genome on one problem; breeding.py: a model writes a prompt; tokens.py: chance does
racing.py      who goes on meeting problems (pure); population.py who lives, fitness.py who is worth what, pareto.py
settings.py    the settings of an evolution; config.py: the same as one configures it, flat, with presets, and what it
               says of accounts
examining.py   genomes meet problems, each pair once; searching.py: births in a steady state; telling.py: how it stands
evolving.py    the driver: evolve, compare at the same budget, choose, open the sealed test; verdict.py: its statistics;
               costs.py what replies cost; expecting.py what all of it would use
analysis.py    what was found; reading.py reads it from the store; blocks.py makes the report, with drawings.py,
               lineage.py (ancestors of the winner), transcripts.py (the sealed test) and data.py (the files beside it)
experiment.py  options, the settings made of them, and results: what `evolve` and a request over HTTP begin with
evaluations.py records of evaluations
documented.py  the classes that the description of asynchronous evolution names: controllers, an interface to one
               model, a pipeline that evaluates populations; controllers.py: a path that scripts import from
benchmark/     how much faster than one ask after the other

What is named here is public, and a test pins it. It is imported when it is used.
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
    "settings": ("Evolution",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
