"""How fast genomes are evaluated: one ask after the other, in batches, and as this project does it.

python examples/test_async_performance.py
python examples/test_async_performance.py --model openai/gpt-4o-mini
python examples/test_async_performance.py --model local/smollm2 --genomes 4 --problems 5

Nobody named: an emulator on this machine is asked, which needs no key and is not paid. With a model, what it may cost
is told first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Any

from groundswell.errors import GroundswellError
from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark
from groundswell.loop import new_event_loop

CONFIG: dict[str, Any] = {
    "population_size": 30,
    "num_problems": 50,
    "async_batch_size": 20,
    "max_concurrent_requests": 10,
    "genome_batch_size": 10,
    "max_concurrent_genomes": 5,
    "rate_limit_per_minute": 3500,
}
KEY = "OPENAI_API_KEY"
WITH_MODELS = "--model openai/gpt-4o-mini asks a provider, and --model local/smollm2 the embedded model"


def on_the_emulator() -> str:
    """What is said where nobody is named."""
    why = "no --model is given" if os.environ.get(KEY) else f"{KEY} is not set"
    return f"{why}: measuring on the emulator on this machine; {WITH_MODELS}"


async def benchmark_performance(config: dict[str, Any]) -> dict[str, Any]:
    """Measure, and print the table."""
    benchmark = PerformanceBenchmark(config)
    results = await benchmark.run_comprehensive_benchmark()
    benchmark.print_results_summary()
    return results


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="who is asked; the emulator on this machine, if nobody is named")
    parser.add_argument("--genomes", type=int, default=CONFIG["population_size"])
    parser.add_argument("--problems", type=int, default=CONFIG["num_problems"])
    given = parser.parse_args()
    if not given.model:
        print(on_the_emulator(), file=sys.stderr)
    config = CONFIG | {"model": given.model, "population_size": given.genomes, "num_problems": given.problems}
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(benchmark_performance(config))
    except GroundswellError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
