"""`groundswell evolve bench`: measure how fast prompts are evaluated."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import Json
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag, fields_of, spelled_as
from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark
from groundswell.experiments.prompt_evolution.experiment import FIGURES, config_of
from groundswell.experiments.prompt_evolution.options import Speed
from groundswell.loop import new_event_loop


class Bench(Speed, frozen=True, kw_only=True):
    """Options of `evolve bench`."""

    model: Annotated[
        str | None,
        Meta(
            description="Model to measure, at its usual price. (An emulator on this machine that answers after 50 ms.)"
        ),
        Flag("-m", metavar="MODEL", usual=True, completes="models"),
    ] = None
    population_size: Annotated[
        int, Meta(ge=1, description="Number of prompts to evaluate."), Flag(metavar="N", usual=True)
    ] = 30
    problems: Annotated[
        int,
        Meta(ge=1, description="Number of problems per prompt."),
        Flag(metavar="N", usual=True, also=["num_problems"]),
    ] = 50
    json: Json = False


def bench(flags: Bench) -> None:
    """Measure how fast prompts are evaluated: sequentially, in batches, and as `evolve` does it."""
    try:
        benchmark = PerformanceBenchmark(told(flags))
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            results = runner.run(benchmark.run_comprehensive_benchmark())
    except SettingsError as error:
        raise spelled_as(error, fields_of(Bench), {}, flags=True) from error
    if flags.json:
        output.print_json(results)
    else:
        benchmark.print_results_summary()


def told(flags: Bench) -> dict[str, Any]:
    """The configuration of the benchmark."""
    speed = config_of(flags)
    found: dict[str, Any] = {"async_batch_size": 20, "genome_batch_size": 10}
    found |= {name: value for name in FIGURES if (value := getattr(speed, name)) is not None}
    found |= {"population_size": flags.population_size, "num_problems": flags.problems}
    return found if flags.model is None else {**found, "model": flags.model}
