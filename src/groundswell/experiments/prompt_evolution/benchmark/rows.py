"""The results of a benchmark, as figures and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from groundswell.experiments.prompt_evolution.benchmark.ways import Place, Scores

Row = dict[str, Any]
SEQUENTIAL = "sequential"
HEADS = (
    ("in flight", 11),
    ("seconds", 11),
    ("problems/s", 12),
    ("calls", 9),
    ("API efficiency", 16),
    ("speedup", 9),
    ("of ideal", 10),
    ("CPU ms", 8),
    ("server ms", 11),
)
WIDTH = 20


def sampled(places: Sequence[Place], many: int) -> list[Place]:
    """An evenly spread sample."""
    many = min(many, len(places))
    return [places[at * len(places) // many] for at in range(many)]


def compared(scores: Mapping[str, Scores]) -> Row:
    """Whether all methods found the same scores, for every pair of methods with the same genome and problem."""
    pairs = [
        (one[place], other[place]) for one, other in combinations(scores.values(), 2) for place in one if place in other
    ]
    return {
        "same_answers": all(one == other for one, other in pairs),
        "compared": len(pairs),
        "differing": sum(one != other for one, other in pairs),
    }


def judged(rows: Mapping[str, Row], asks: int, latency: float | None) -> dict[str, Row]:
    """Add derived figures to the rows.

    A sampled sequential run is extrapolated: `seconds` and `calls` are for all requests, `asked` is the number of
    requests made. If `latency` is None, the ideal is computed from the sequential latency.
    """
    first = rows[SEQUENTIAL]
    alone = first["seconds"] / first["asked"]
    whole, one = alone * asks, latency if latency is not None else alone
    found = dict[str, Row]()
    for name, row in rows.items():
        extrapolated = name == SEQUENTIAL and row["asked"] < asks
        seconds, calls = (whole, asks) if extrapolated else (row["seconds"], row["calls"])
        met = asks if extrapolated else row["asked"]
        found[name] = {
            **row,
            "seconds": seconds,
            "calls": calls,
            "extrapolated": extrapolated,
            "problems_per_second": met / seconds,
            "api_efficiency": calls / asks,
            "speedup": whole / seconds,
            "of_ideal": met * one / row["in_flight"] / seconds if one else None,
        }
    return found


def summary(results: Row) -> Iterator[str]:
    """The table, line by line."""
    config = results["config"]
    yield (
        f"{config['population_size']:,} genomes x {config['num_problems']:,} problems = {results['asks']:,} requests "
        f"to {results['model']}"
    )
    yield f"{'':{WIDTH}}" + "".join(f"{head:>{width}}" for head, width in HEADS)
    for name, row in results["ways"].items():
        yield f"{name:{WIDTH}}" + "".join(
            f"{text:>{width}}" for text, (_, width) in zip(_texts(row), HEADS, strict=True)
        )
    first = results["ways"][SEQUENTIAL]
    if first["extrapolated"]:
        yield f"* extrapolated from {first['asked']:,} requests"
    yield f"same answers: {_agreement(results)}"
    yield f"rate limit: {results['rate_limit']}"
    yield "API efficiency: requests sent, divided by those of a sequential evaluation without cache and racing"
    if failed := sum(row["failed"] for row in results["ways"].values()):
        yield f"failed: {failed:,} requests got no reply"


def _texts(row: Row) -> Iterator[str]:
    """The cells of a row."""
    yield f"{row['in_flight']:,}"
    yield f"{row['seconds']:,.2f}" + ("*" if row["extrapolated"] else "")
    yield f"{row['problems_per_second']:,.1f}"
    yield f"{row['calls']:,}"
    yield f"{row['api_efficiency']:.2f}"
    yield f"{row['speedup']:.1f}x"
    yield "-" if row["of_ideal"] is None else f"{row['of_ideal']:.2f}"
    for name in ("cpu_ms", "server_cpu_ms"):
        yield "-" if row[name] is None else f"{row[name]:.2f}"


def _agreement(results: Row) -> str:
    if results["same_answers"]:
        return f"yes, in {results['compared']:,} pairwise comparisons"
    return f"no: {results['differing']:,} of {results['compared']:,} pairwise comparisons differ"
