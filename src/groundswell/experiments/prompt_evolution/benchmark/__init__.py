"""Benchmark: how fast genomes are evaluated, by several methods that do the same work one after the other.

| method | |
|---|---|
| sequential | one request after the other; a sample, extrapolated to all requests |
| batches | batches of genomes and batches of problems, with a barrier after each |
| ours | every genome on every problem through the engine, with its journal; as many requests in flight as `batches` |
| ours, at 100 | the same with 100 requests in flight |
| client alone, at 100 | no barriers and no engine: the limit of client, server and machine; on the emulator only |
| ours, with races | the same genomes with racing: genomes that are probably worse are dropped early |

`sequential`, `batches` and `client alone` use only the HTTP client of the account, with persistent connections: no
journal, no cache, no retry. All methods use the same server in turn, and none sees the replies of another. The emulator
gives equal replies to equal requests, so all methods must find the same scores; this is checked.

`rate_limit_per_minute` applies to a model that is named. The benchmark's own emulator has no limit: 3,500 requests per
minute are 58 per second, which all methods but the first exceed, so the benchmark would measure the limit.

config.py     the configuration
server.py     an emulator in a separate process
ways.py       the methods
measuring.py  `PerformanceBenchmark`: runs and measures each method
rows.py       the resulting figures and the table
"""

from groundswell.experiments.prompt_evolution.benchmark.config import BenchmarkConfig
from groundswell.experiments.prompt_evolution.benchmark.measuring import PerformanceBenchmark

__all__ = ["BenchmarkConfig", "PerformanceBenchmark"]
