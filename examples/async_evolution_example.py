"""Evolve a prompt for word problems, and compare it with the seed prompt on a held-out test.

python examples/async_evolution_example.py
python examples/async_evolution_example.py --model emulated/gpt-4o-mini --preset aggressive

The first command uses OpenAI, with the key in OPENAI_API_KEY. It is a small run, and prints an estimate first. Running
the same command again continues the run, or shows its results if it is complete.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import groundswell
from groundswell import GroundswellError, Usage
from groundswell.engine.events import DriverReported, Event
from groundswell.errors import KeyMissing
from groundswell.experiments.prompt_evolution import AsyncEvolutionConfig, AsyncEvolutionController, Sizes, generated
from groundswell.experiments.prompt_evolution.config import PRESETS
from groundswell.experiments.prompt_evolution.documented import Results

SIZES = Sizes(train=40, validation=40, test=100)
TYPICAL = Usage(100, 100)
"""Typical tokens of a request and of a reply."""
WITHOUT_KEYS = """\
To try it without a key:
  with the embedded model, which is slow: --model local/smollm2
  with an emulated model, at no cost: --model emulated/gpt-4o-mini"""


class Progress:
    """Prints the progress of the search after each generation."""

    def __init__(self, births: int) -> None:
        self._births = births

    def __call__(self, event: Event) -> None:
        if isinstance(event, DriverReported) and event.figures and event.done % self._births == 0:
            print(event.words, file=sys.stderr)


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="openai/gpt-4o-mini", help="provider/model (%(default)s)")
    parser.add_argument("--preset", choices=PRESETS, default="balanced", help="concurrency preset (%(default)s)")
    parser.add_argument("--population-size", type=int, default=8, metavar="N", help="candidates kept (8)")
    parser.add_argument("--max-generations", type=int, default=4, metavar="N", help="generations (4)")
    parser.add_argument("--store", default="groundswell.db", metavar="FILE", help="file with the runs (%(default)s)")
    return parser.parse_args(words)


def config_of(options: argparse.Namespace) -> AsyncEvolutionConfig:
    """A small evolution without baselines: it is compared with the seed prompt only."""
    return AsyncEvolutionConfig.preset(
        options.preset,
        model=options.model,
        population_size=options.population_size,
        max_generations=options.max_generations,
        problems=generated(sizes=SIZES),
        baselines=(),
        ablation=False,
    )


async def evolve(config: AsyncEvolutionConfig, store: str) -> Results:
    """Print an estimate, then run the evolution."""
    settings = config.settings
    births = settings.births or 0
    asks = births * (SIZES.train + 1) + settings.reserved + 2 * SIZES.test
    async with groundswell.open(store) as engine:
        usd = engine.cost(config.models[0], TYPICAL)
    price = "price unknown" if usd is None else f"about ${usd * asks:,.2f}"
    print(f"{births} candidates on {config.models[0]}: at most {asks:,} requests, {price}", file=sys.stderr)
    controller = AsyncEvolutionController(config, store=store, listeners=[Progress(settings.shape.population_size)])
    results = await controller.run_evolution_async()
    print(controller.performance, file=sys.stderr)
    return results


def print_results(results: Results) -> None:
    """Print the best prompt and its result on the held-out test."""
    print(f"Best prompt:\n{results['best_prompt']}\n")
    print(f"Best fitness: {results['best_fitness']:.3f} ({results['stopped']})")
    print(f"Total time: {results['total_time']:.2f}s")
    gain, (low, high) = results["gain"], results["test_interval"]
    if results["test_accuracy"] is None or gain.value is None:
        print("Held-out test: too many problems are missing")
        return
    print(f"Held-out test: {results['test_accuracy']:.1%} (95%: {low:.1%} to {high:.1%})")
    verdict = {"ahead": "better", "behind": "worse", "open": "no significant difference"}
    said = f"{gain.value:+.1%} (95%: {gain.low:+.1%} to {gain.high:+.1%}), p = {gain.p:.2g}"
    print(f"Gain over the seed prompt: {said}: {verdict[results['analysis'].standing(gain.over)]}")
    if results["evaluations"] is not None:
        print(f"Evaluations saved to {results['evaluations']}")


def main() -> int:
    options = parse_options()
    try:
        results = asyncio.run(evolve(config_of(options), options.store))
    except GroundswellError as error:
        hint = f"\n{WITHOUT_KEYS}" if isinstance(error, KeyMissing) else ""
        print(f"error: {error}{hint}", file=sys.stderr)
        return 2
    print_results(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
