"""The path that scripts import `Results` and the controllers from. They are defined in documented.py."""

from groundswell.experiments.prompt_evolution.documented import AsyncEvolutionController, EvolutionController, Results

__all__ = ["AsyncEvolutionController", "EvolutionController", "Results"]
