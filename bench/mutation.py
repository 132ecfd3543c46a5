"""Environment steps per second: `python bench/mutation.py` (about two minutes), `--quick` (a third of the steps).

The emulator answers as Ollama does, in its own process, each request after 50 ms. A step rewords the query, then the
target answers while the new query is embedded: 100 ms, if nothing waits. No reply is used twice.

  adaptive    as many requests at once as the account allows, as with `--use-batching`
  8 workers   at most 8, as specified
  sequential  one environment after the other, as with `--no-batching`
  document    the specified way, with threads and a plain HTTP client: 8 workers over all mutations, then over all
              targets, then every query encoded, one by one

For each way, at 1, 4, 16 and 64 environments: steps per second; the speed relative to one environment, step by step;
the share of the ideal, in which environments wait only for their own replies; requests per step (embeddings that wait
are sent together); CPU milliseconds per step, of the client and of the emulator; and the number of cores that were
busy with other work. Goals: 0.85 N at 16 and 0.5 N at 64 environments when adaptive, and 7 times as fast with 8
workers. Results are written to bench/out/mutation.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

import groundswell
from api import free_port, process
from groundswell import RunOptions
from groundswell.experiments.query_mutation.episode import begin, guard_of
from groundswell.experiments.query_mutation.learning.choosing import Uniform
from groundswell.experiments.query_mutation.mutators import BUILT_IN, described
from groundswell.experiments.query_mutation.playing import collect, opened_world
from groundswell.experiments.query_mutation.task import Task
from groundswell.loop import new_event_loop
from live import cpu_of_all

OUT = Path(__file__).parent / "out"
LATENCY, WORKERS, SIZES = 0.05, 8, (1, 4, 16, 64)
IDEAL = 1 / (2 * LATENCY)
"""Steps per second of one environment that waits only for its own replies."""
STEPS = 60
WARM = 5
ASKING = tuple(name for name in BUILT_IN if name != "noop")
"""Mutators that use a model, so every step has the same requests."""
TASK = Task(
    target="ollama/guard:{strength}",
    mutator_model="ollama/reworder",
    embedder="ollama/all-minilm",
    mutators=ASKING,
    temperature=0.7,
)
GOALS: dict[tuple[str, int], float] = {("adaptive", 16): 0.85 * 16, ("adaptive", 64): 0.5 * 64, ("8 workers", 64): 7.0}

Row = dict[str, Any]


class Meter:
    """The cost of a measurement: time, requests at the emulator, CPU of this process, the emulator and others."""

    def __init__(self, url: str, emulator: int) -> None:
        self._url, self._emulator = url, emulator
        self._before = self._read()

    def _read(self) -> tuple[float, ...]:
        books = httpx.get(f"{self._url}/emulator/ledger", trust_env=False).json()["totals"]
        there = cpu_of(self._emulator)
        return time.perf_counter(), books["requests"], time.process_time(), there, cpu_of_all()

    def begin(self) -> None:
        """Start measuring."""
        self._before = self._read()

    def row(self, steps: int) -> Row:
        """The figures of a number of steps."""
        seconds, requests, here, there, everywhere = (
            now - before for now, before in zip(self._read(), self._before, strict=True)
        )
        return {
            "per_second": steps / seconds,
            "requests": requests / steps,
            "cpu_ms": here / steps * 1000,
            "emulator_ms": there / steps * 1000,
            "others": max(0.0, everywhere - here - there) / seconds,
        }


def cpu_of(process_id: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ours(meter: Meter, environments: int, steps: int, workers: int | None, *, together: bool) -> Row:
    """Run a number of steps in each environment, after a few warm-up steps."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(cache=False)
        async with groundswell.open(Path(folder) / "runs.db", max_concurrent=workers, options=options) as engine:
            world = await opened_world(engine.run("bench"), TASK, together=together)
            chooser = Uniform(len(ASKING))
            seats = [world.opened("bench", number) for number in range(environments)]
            if together:
                seats = (await collect(world, "bench", seats, chooser, WARM)).seats
            meter.begin()
            found = await collect(world, "bench", seats, chooser, steps)
            measured = meter.row(environments * steps)
            assert all(each.transition.usable for each in found.told), "a step failed"
            return measured


class Document:
    """The specified functions, with threads and an HTTP client only."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def ask(self, model: str, messages: Sequence[tuple[str, str]]) -> str:
        said = [{"role": role, "content": content} for role, content in messages]
        body = {"model": model, "messages": said, "stream": False, "options": {"temperature": 0.7}}
        answer = self._client.post("/api/chat", json=body).raise_for_status().json()
        return str(answer["message"]["content"])

    def encode(self, text: str) -> list[float]:
        body = {"model": "all-minilm", "input": [text], "dimensions": TASK.width}
        answer = self._client.post("/api/embed", json=body).raise_for_status().json()
        return list(answer["embeddings"][0])

    def batch(self, work: Callable[[int], str], count: int) -> list[str]:
        """Send several requests with the specified 8 workers."""
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            return list(pool.map(work, range(count)))

    def close(self) -> None:
        self._client.close()


def by_the_document(meter: Meter, url: str, environments: int, rounds: int) -> Row:
    """All environments take a step, then the next one."""
    client, none = Document(url), dict.fromkeys(TASK.queries, b"")
    episodes = [begin(TASK, number, none) for number in range(environments)]
    queries = [episode.goal for episode in episodes]
    meter.begin()
    for at in range(rounds):

        def mutate(number: int, at: int = at, asked: list[str] = queries) -> str:
            wanted = described(ASKING[(number + at) % len(ASKING)])
            return client.ask("reworder", [("user", f"{wanted}\n\n<query>\n{asked[number]}\n</query>")])

        queries = client.batch(mutate, environments)

        def target(number: int, queries: list[str] = queries) -> str:
            guard, secret = guard_of(TASK, episodes[number]), episodes[number].secret
            told = [(message.role, str(message.content)) for message in guard.told(secret, queries[number])]
            return client.ask(guard.model("guard:{strength}"), told)

        client.batch(target, environments)
        for query in queries:
            client.encode(query)
    measured = meter.row(environments * rounds)
    client.close()
    return measured


def measured(meter: Meter, url: str, steps: int) -> dict[str, dict[int, Row]]:
    """Every way at every size."""
    found: dict[str, dict[int, Row]] = {"adaptive": {}, "8 workers": {}, "sequential": {}, "document": {}}
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        for size in SIZES:
            few = max(1, steps // size)
            found["adaptive"][size] = runner.run(ours(meter, size, steps, None, together=True))
            found["8 workers"][size] = runner.run(ours(meter, size, max(steps // 4, few), WORKERS, together=True))
            found["sequential"][size] = runner.run(ours(meter, size, few, None, together=False))
            found["document"][size] = by_the_document(meter, url, size, max(1, steps // 2 // size))
    return found


COLUMNS = (("environments", 13), ("steps/s", 9), ("times one", 10), ("of ideal", 9), ("requests", 9), ("CPU ms", 8))


def show(found: dict[str, dict[int, Row]]) -> None:
    """Print the table with its goals."""
    alone = found["sequential"][1]["per_second"]
    print(f"one environment, step by step: {alone:.2f} steps/s; the ideal is {IDEAL:.2f}\n")
    heads = (*COLUMNS, ("emulator", 10), ("others", 8))
    print(f"{'':11}" + "".join(f"{head:>{width}}" for head, width in heads))
    for way, rows in found.items():
        for size, each in rows.items():
            each |= {"times": each["per_second"] / alone, "share": each["per_second"] / (IDEAL * size)}
            print(f"{way:11}{size:>13}" + figures(each) + verdict(way, size, each["times"]))


def figures(each: Row) -> str:
    shown = f"{each['per_second']:>9.1f}{each['times']:>9.2f}x{each['share']:>9.0%}{each['requests']:>9.2f}"
    return shown + f"{each['cpu_ms']:>8.2f}{each['emulator_ms']:>10.2f}{each['others']:>8.2f}"


def verdict(way: str, size: int, times: float) -> str:
    goal = GOALS.get((way, size))
    return "" if goal is None else f"   goal {goal:g}x: {'met' if times >= goal else 'missed'}"


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a third of the steps")
    steps = STEPS // 3 if parser.parse_args().quick else STEPS
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    variables = {"PYTHONPATH": str(Path(groundswell.__file__).parents[1]), "NO_PROXY": "*", "no_proxy": "*"}
    emulate = ["emulate", "--port", str(port), "--latency", str(LATENCY), "--ollama-parallel", "512", "--for", "600"]
    os.environ |= {"OLLAMA_HOST": url, **variables}
    with ExitStack() as stack:
        emulator = stack.enter_context(process(emulate, dict(os.environ), url))
        found = measured(Meter(url, emulator.pid), url, steps)
    show(found)
    OUT.mkdir(exist_ok=True)
    (OUT / "mutation.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
