"""Measure how fast genomes are evaluated: sequentially, in batches, and by Groundswell.

python examples/test_async_performance.py
python examples/test_async_performance.py --model openai/gpt-4o-mini
python examples/test_async_performance.py --model local/smollm2 --genomes 4 --problems 5

Without --model, an emulator on this machine is measured, which needs no key and costs nothing. With --model, the
maximum cost is printed first.
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
WITH_MODELS = "Use --model openai/gpt-4o-mini for a provider, or --model local/smollm2 for the embedded model."


def on_the_emulator() -> str:
    """The note if no model is given."""
    why = "No --model given" if os.environ.get(KEY) else f"{KEY} is not set"
    return f"{why}: measuring the emulator on this machine. {WITH_MODELS}"


async def benchmark_performance(config: dict[str, Any]) -> dict[str, Any]:
    """Run the benchmark, and print the table."""
    benchmark = PerformanceBenchmark(config)
    results = await benchmark.run_comprehensive_benchmark()
    benchmark.print_results_summary()
    return results


def main() -> None:
    """Read the options, and run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="model to measure (an emulator on this machine)")
    parser.add_argument("--genomes", type=int, default=CONFIG["population_size"], help="prompts (%(default)s)")
    parser.add_argument("--problems", type=int, default=CONFIG["num_problems"], help="problems (%(default)s)")
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
