"""Evaluating candidates on problems in several ways: `python bench/evolution.py` (two or three minutes), `--quick`.

The emulator answers each request after 50 ms, in its own process; client and server share this machine's cores. The
sizes are those for which the specification gives figures: 30 candidates on 50 problems, 50 on 100 and 100 on 100,
with 10 requests in flight for each of 5 candidates. groundswell.experiments.prompt_evolution.benchmark describes the
ways.

For each way: seconds, problems per second, calls, API efficiency, the speed relative to one request at a time
(extrapolated from 60 requests), the share of the ideal (as many requests in flight as allowed, at all times), CPU
milliseconds per problem of client and emulator, and how many cores were busy with other work, which makes figures
unreliable. Goals: 50 times as fast with 100 in flight (the specification promises 3.8 to 5.0 times), and 0.9 of the
ideal. Results are written to bench/out/evolution.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from groundswell.experiments.prompt_evolution.benchmark import PerformanceBenchmark
from groundswell.loop import new_event_loop, tuned_collector
from live import cpu_of_all

OUT = Path(__file__).parent / "out"
SIZES = ((30, 50), (50, 100), (100, 100))
PROMISED = {(30, 50): 3.8, (50, 100): 4.3, (100, 100): 5.0}
"""The speed-up that the specification promises."""
IN_FLIGHT, TIMES, SHARE = 100, 50.0, 0.9
WAY = f"ours, at {IN_FLIGHT}"
CONFIG = {
    "async_batch_size": 20,
    "max_concurrent_requests": 10,
    "genome_batch_size": 10,
    "max_concurrent_genomes": 5,
    "rate_limit_per_minute": 3500,
    "latency": 0.05,
    "max_in_flight": IN_FLIGHT,
}


def measured(genomes: int, problems: int) -> dict[str, Any]:
    """Measure all ways at one size."""
    config = {"population_size": genomes, "num_problems": problems, **CONFIG}
    bench = PerformanceBenchmark(config, readings=lambda: {"all_cpu": cpu_of_all()})
    with tuned_collector(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        found = runner.run(bench.run_comprehensive_benchmark())
    bench.print_results_summary()
    for row in found["ways"].values():
        took = row["asked"] * row["seconds"] / found["asks"] if row["extrapolated"] else row["seconds"]
        own = row["asked"] * (row["cpu_ms"] + (row["server_cpu_ms"] or 0.0)) / 1000
        row["others"] = max(0.0, row["all_cpu"] - own) / took
    print("cores busy with other work: " + ", ".join(f"{n} {r['others']:.2f}" for n, r in found["ways"].items()))
    return found


def goals(size: tuple[int, int], ways: dict[str, Any]) -> list[str]:
    """The goals and the measured values."""
    times, share = ways[WAY]["speedup"], ways[WAY]["of_ideal"]
    alone = ways[f"client alone, at {IN_FLIGHT}"]["of_ideal"]
    return [
        f"  {WAY}: {times:.1f} times sequential; goal {TIMES:g}, {said(times >= TIMES)}; promised {PROMISED[size]:g}",
        f"  {WAY}: {share:.2f} of the ideal; goal {SHARE:g}, {said(share >= SHARE)}; the client alone: {alone:.2f}",
    ]


def said(met: bool) -> str:
    return "met" if met else "missed"


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the smallest size")
    found = dict[str, Any]()
    for size in SIZES[:1] if parser.parse_args().quick else SIZES:
        results = found[f"{size[0]} x {size[1]}"] = measured(*size)
        print("\n".join(goals(size, results["ways"])), end="\n\n", flush=True)
        assert results["same_answers"], "two ways came to different scores"
    OUT.mkdir(exist_ok=True)
    (OUT / "evolution.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
