"""Import path for the controllers and `Results`, which are defined in documented.py."""

from groundswell.experiments.prompt_evolution.documented import AsyncEvolutionController, EvolutionController, Results

__all__ = ["AsyncEvolutionController", "EvolutionController", "Results"]
