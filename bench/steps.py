"""Function calls per live request on the main thread: `python bench/steps.py`.

Times depend on the load of the machine; these counts do not. The conversations are those of `bench/live.py`, 100 in
flight. `--functions` lists functions instead of modules.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from types import FrameType
from typing import Any

import uvloop

from live_clients import CLIENTS, Job
from live_servers import emulator, has_nginx, nginx

IN_FLIGHT, CONVERSATIONS, TURNS = 100, 500, 6
BUILT_IN = "built-in functions"


async def count(job: Job, calls: Counter[tuple[str, str]]) -> int:
    """Hold conversations, count calls by module and function, and return how many requests there were."""

    def called(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            calls[code.co_filename.rpartition("/src/")[2], code.co_qualname] += 1
        elif event == "c_call":
            calls[BUILT_IN, getattr(argument, "__qualname__", str(argument))] += 1

    async with CLIENTS[job.client].open(job) as converse:
        await converse(range(10_000_000, 10_000_000 + IN_FLIGHT), 3)
        sys.setprofile(called)
        try:
            return int(await converse(range(CONVERSATIONS), TURNS))
        finally:
            sys.setprofile(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="list functions")
    parser.add_argument("--top", type=int, default=40, help="number of rows (40)")
    options = parser.parse_args()
    calls: Counter[tuple[str, str]] = Counter()
    with nginx() if has_nginx() else emulator() as server, tempfile.TemporaryDirectory() as folder:
        job = Job("groundswell", server.url, IN_FLIGHT, 0, CONVERSATIONS, 600.0, f"{folder}/steps.db")
        requests = uvloop.run(count(job, calls))
    rows: Counter[str] = Counter()
    for (module, function), many in calls.items():
        rows[f"{module} {function}" if options.functions else module] += many
    own = sum(many for (module, _), many in calls.items() if module != BUILT_IN)
    print(f"{requests:,} requests; per request {own / requests:.0f} Python calls,", end=" ")
    print(f"{(sum(calls.values()) - own) / requests:.0f} calls of {BUILT_IN}")
    for name, many in rows.most_common(options.top):
        print(f"{many / requests:8.2f}  {name}")


if __name__ == "__main__":
    main()
