"""How fast genomes are evaluated, and what that saves: several ways of doing the same work, one after the other.

| way | |
|---|---|
| sequential | one ask after the other; some of them, and from these what all would take |
| batches | genomes in batches and problems in batches, each with a barrier after it |
| ours | every genome on every problem through the engine, journal and all; as much in flight as batches have |
| ours, at 100 | the same with 100 asks in flight |
| client alone, at 100 | no barriers and no engine: what client, server and machine bear; on the emulator only |
| ours, with races | the same genomes as an evolution meets them: who is plainly behind meets no more problems |

Sequential, batches and the client alone use nothing but the HTTP client of the account, which keeps its connections: no
journal, no cache, no second attempt. All ask the same server, one way after the other, and none sees the replies of
another. The emulator answers the same to the same, so all ways must come to the same scores, and that is checked.

`rate_limit_per_minute` is kept for a model that is named. The emulator that a benchmark starts for itself sets no
limit, and none is applied: 3,500 requests a minute are 58 a second, which every way but the first reaches, so that what
would be measured is the limit.

config.py     what a benchmark is told
server.py     an emulator in a process of its own
ways.py       the ways
measuring.py  `PerformanceBenchmark`: each way in its turn, and what it takes
rows.py       figures from that, and the table (pure)
"""

from groundswell.experiments.prompt_evolution.benchmark.config import BenchmarkConfig
from groundswell.experiments.prompt_evolution.benchmark.measuring import PerformanceBenchmark

__all__ = ["BenchmarkConfig", "PerformanceBenchmark"]
