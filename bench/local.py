"""The embedded model compared with the bare library: `python bench/local.py` (full size), `--quick` (a quarter of it).

All clients hold the same conversations with the same small model (local/smollm2: `groundswell models add smollm2`): 8
conversations of 4 turns, every reply with 10 tokens. Each measurement has its own process, which loads the model and
warms up before the clock starts. With `--rounds`, rounds are interleaved and medians reported. The clients:

  groundswell x4    the engine with its journal (SQLite, synced) and cache, four requests at once, its maximum
  groundswell w4    the same with a window of four: a conversation starts only when another has ended
  bare x4           xllamacpp with the settings that Groundswell gives it: four threads and no engine
  http x4           the same over HTTP, with four threads
  defaults x4       xllamacpp with its default settings, and room for four requests
  groundswell x1    one request at a time
  bare x1           one thread

`of bare` is the share of the bare library's tokens per second at the same concurrency, `CPU of bare` the ratio of CPU
time. `said` is a hash of all replies: if it is equal, so are the replies. `others` is the number of cores that were
busy with other work; a high number makes figures unreliable.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import importlib
import json
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

import groundswell
from groundswell import Trial, assistant, program, user
from groundswell.transports import llama, weights
from live import cpu_of_all

OUT = Path(__file__).parent / "out"
MODEL = "local/smollm2"
CONVERSATIONS, TURNS, TOKENS = 8, 4, 10
WARM = 1_000
"""The conversation before the clock starts. It is not repeated."""
TOPICS = ("the harbour", "old maps", "rain", "bread", "chess", "the night train", "bees", "a broken clock")
TEMPERATURE = 0.7
UNENDING: dict[str, Any] = {"ignore_eos": True}
"""Every reply has the maximum number of tokens, so all clients do the same work."""
SHARE, MOST_CPU = 0.95, 1.05
"""The engine must cost almost nothing compared with a model."""
HEADS = ("seconds", "tokens/s", "of bare", "CPU of bare", "peak MB", "load s", "others", "said")

Said = list[dict[str, str]]
Ask = Callable[[Said, int], str]
Row = dict[str, Any]


class Client(NamedTuple):
    """A client: how it accesses the model (None: Groundswell), its concurrency, and its open conversations."""

    open: Callable[[Path], Ask] | None
    at_once: int
    window: int | None = None


def question(number: int, turn: int) -> str:
    """A message to the model."""
    topic = TOPICS[number % len(TOPICS)]
    return f"Tell me something about {topic} that few people know." if turn == 0 else f"And what else about {topic}?"


def seed(number: int, turn: int) -> int:
    """Settings that make the replies the same for all clients."""
    return number * 100 + turn


def body(said: Said, chosen: int) -> dict[str, Any]:
    """A request."""
    settings = {"max_tokens": TOKENS, "temperature": TEMPERATURE, "seed": chosen, "cache_prompt": True}
    return {"model": "bench", "messages": said, **settings, **UNENDING}


def heard(reply: Any) -> str:
    """The text of a reply; raises KeyError if it is none."""
    return str(reply["choices"][0]["message"]["content"])


def open_bare(path: Path) -> Ask:
    """xllamacpp with the settings of Groundswell, without the engine."""
    server = llama._serve(path, llama._for_talk)
    return lambda said, chosen: heard(server.handle_chat_completions(body(said, chosen)))


def open_defaults(path: Path) -> Ask:
    """xllamacpp with default settings, except for its concurrency."""
    library: Any = importlib.import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_parallel, params.port = llama.SLOTS, 0
    server = library.Server(params)
    return lambda said, chosen: heard(server.handle_chat_completions(body(said, chosen)))


class Standing(Exception):
    """The server is made already, and Groundswell need not make one that hides."""


def open_http(path: Path) -> Ask:
    """The server with Groundswell's settings, at a port of this machine."""
    made: list[Any] = []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def fit(library: Any, params: Any) -> None:
        llama._for_talk(library, params)
        params.hostnames, params.port, params.api_keys, params.n_threads_http = ["127.0.0.1"], port, [], llama.SLOTS
        made.append(library.Server(params))
        raise Standing

    with contextlib.suppress(Standing):
        llama._serve(path, fit)
    kept = threading.local()

    def ask(said: Said, chosen: int) -> str:
        assert made
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection("127.0.0.1", port)
        headers = {"content-type": "application/json"}
        kept.connection.request("POST", "/v1/chat/completions", json.dumps(body(said, chosen)), headers)
        return heard(json.loads(kept.connection.getresponse().read()))

    return ask


CLIENTS = {
    "groundswell x4": Client(None, 4),
    "groundswell w4": Client(None, 4, window=4),
    "bare x4": Client(open_bare, 4),
    "http x4": Client(open_http, 4),
    "defaults x4": Client(open_defaults, 4),
    "groundswell x1": Client(None, 1),
    "bare x1": Client(open_bare, 1),
}


def converse(ask: Ask, number: int, turns: int) -> list[str]:
    """One conversation without an engine."""
    said: Said = []
    for turn in range(turns):
        said.append({"role": "user", "content": question(number, turn)})
        said.append({"role": "assistant", "content": ask(said, seed(number, turn))})
    return [each["content"] for each in said[1::2]]


def with_threads(ask: Ask, at_once: int, conversations: int) -> list[list[str]]:
    """All conversations, each thread one after the other."""
    numbers: Iterator[int] = iter(range(conversations))
    held: dict[int, list[str]] = {}
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            held[number] = converse(ask, number, TURNS)

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [held[number] for number in range(conversations)]


class Clock:
    """The time, the CPU time of this process and the total CPU time, since the model was ready."""

    def __init__(self) -> None:
        self._all, self._cpu, self._start = cpu_of_all(), time.process_time(), time.perf_counter()

    def stop(self, talks: list[list[str]]) -> Row:
        """The figures of the measurement."""
        seconds, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        said = blake2b(json.dumps(talks).encode(), digest_size=3).hexdigest()
        others = max(0.0, cpu_of_all() - self._all - cpu) / seconds
        tokens = sum(map(len, talks)) * TOKENS
        return {"seconds": seconds, "per_second": tokens / seconds, "cpu": cpu, "others": others, "said": said}


def hold_bare(client: Client, conversations: int) -> Row:
    """Without an engine."""
    assert client.open is not None
    start = time.perf_counter()
    ask = client.open(weights.locate(MODEL))
    converse(ask, WARM, 1)
    loaded, clock = time.perf_counter() - start, Clock()
    return {"load": loaded, **clock.stop(with_threads(ask, client.at_once, conversations))}


@program("bench/local")
async def talk(trial: Trial, spec: tuple[int, int]) -> list[str]:
    """One conversation."""
    number, turns = spec
    said: list[groundswell.Message] = []
    replies: list[str] = []
    for turn in range(turns):
        said.append(user(question(number, turn)))
        reply = await trial.ask(
            MODEL, said, max_tokens=TOKENS, temperature=TEMPERATURE, seed=seed(number, turn), extra=UNENDING
        )
        said.append(assistant(reply.text))
        replies.append(reply.text)
    return replies


async def hold_engine(client: Client, conversations: int, store: str) -> Row:
    """With the engine: a run for the warm-up, a run for the measurement."""
    start = time.perf_counter()
    options = groundswell.RunOptions(window=client.window)
    async with groundswell.open(store, max_concurrent=client.at_once) as engine:

        async def run(name: str, numbers: range, turns: int) -> list[list[str]]:
            outcomes = [
                each
                async for each in engine.run(name, options=options).map(talk, [(number, turns) for number in numbers])
            ]
            for outcome in outcomes:
                if not outcome.ok:
                    raise RuntimeError(f"a conversation failed: {outcome}")
            return [outcome.result or [] for outcome in outcomes]

        await run("warm-up", range(WARM, WARM + 1), 1)
        loaded, clock = time.perf_counter() - start, Clock()
        row = clock.stop(await run("measured", range(conversations), TURNS))
    return {"load": loaded, **row}


def be_client(name: str, conversations: int) -> None:
    """The main function of a measuring process."""
    client = CLIENTS[name]
    if client.open is None:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            row = uvloop.run(hold_engine(client, conversations, f"{folder}/runs.db"))
    else:
        row = hold_bare(client, conversations)
    print(json.dumps(row | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


def measure(name: str, conversations: int) -> Row:
    """One measurement in a separate process, or the error."""
    command = [sys.executable, __file__, "--job", name, "--conversations", str(conversations)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if told:
        row: Row = json.loads(told[-1])
        return row
    return {"failed": f"status {ended.returncode}: {' '.join(ended.stderr.strip().splitlines()[-1:])[:200]}"}


def median_row(rounds: list[Row]) -> Row:
    """The median of every figure; a client that failed in any round failed."""
    for row in rounds:
        if "failed" in row:
            return row
    found: Row = {key: statistics.median(row[key] for row in rounds) for key in rounds[0] if key != "said"}
    return found | {"said": " ".join(sorted({row["said"] for row in rounds}))}


def ratio(rounds: dict[str, list[Row]], name: str, figure: str) -> float | None:
    """A client relative to the bare library at the same concurrency: the median of the ratios of all rounds."""
    beside = f"bare x{CLIENTS[name].at_once}"
    pairs = list(zip(rounds[name], rounds.get(beside, ()), strict=False))
    if not pairs or any("failed" in row for pair in pairs for row in pair):
        return None
    return float(statistics.median(own[figure] / bare[figure] for own, bare in pairs))


def print_table(table: dict[str, Row], rounds: dict[str, list[Row]], conversations: int) -> None:
    """The table."""
    print(f"\n{conversations} conversations of {TURNS} turns, {TOKENS} tokens each; {llama.threads()} processors")
    print(f"  {'client':18}" + "".join(f"{head:>13}" for head in HEADS))
    for name, row in table.items():
        if "failed" in row:
            print(f"  {name:18}{row['failed']}")
            continue
        ratios = [ratio(rounds, name, figure) for figure in ("per_second", "cpu")]
        shares = "".join(f"{'-' if each is None else format(each, '.3f'):>13}" for each in ratios)
        print(
            f"  {name:18}{row['seconds']:13.1f}{row['per_second']:13.1f}{shares}{row['peak_mb']:13.0f}"
            f"{row['load']:13.2f}{row['others']:13.2f}{row['said']:>13}"
        )


def goals(rounds: dict[str, list[Row]]) -> list[Row]:
    """The goals and the measured values. CPU time depends less on other load."""
    found: list[Row] = []
    for figure, name, wanted in (("per_second", "share of the bare library", SHARE), ("cpu", "CPU of it", MOST_CPU)):
        value = ratio(rounds, "groundswell x4", figure) if "groundswell x4" in rounds else None
        enough = None if value is None else value >= wanted if figure == "per_second" else value <= wanted
        found.append({"goal": f"four at once: {name}", "wanted": wanted, "found": value, "reached": enough})
    return found


def compare(names: list[str], conversations: int, rounds: int) -> None:
    """Run all rounds, then compute the results."""
    tried: dict[str, list[Row]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names:
            row = measure(name, conversations)
            tried[name].append(row)
            told = row.get("failed") or f"{row['per_second']:.1f} tokens/s"
            print(f"round {number + 1}, {name}: {told}", file=sys.stderr)
    table = {name: median_row(rows) for name, rows in tried.items()}
    print_table(table, tried, conversations)
    print()
    reached = goals(tried)
    for goal in reached:
        mark = {True: "reached", False: "not reached", None: "not measured"}[goal["reached"]]
        found = "-" if goal["found"] is None else f"{goal['found']:.3f}"
        print(f"{goal['goal']:56} goal {goal['wanted']:5.2f}   found {found:>6}   {mark}")
    OUT.mkdir(exist_ok=True)
    told = {"conversations": conversations, "turns": TURNS, "tokens": TOKENS, "medians": table, "rounds": tried}
    versions = {"xllamacpp": weights.runner_version(), "weights": weights.locate(MODEL).name}
    (OUT / "local.json").write_text(json.dumps(told | versions | {"goals": reached}, indent=1) + "\n")


def main() -> None:
    """Compare the clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of the conversations")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds; medians are reported (1)")
    parser.add_argument("--only", nargs="+", choices=CLIENTS, metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--job", choices=CLIENTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        be_client(options.job, options.conversations)
        return
    try:
        weights.locate(MODEL)
    except groundswell.SettingsError as error:
        sys.exit(str(error))
    compare(options.only or list(CLIENTS), options.conversations // (4 if options.quick else 1), options.rounds)


if __name__ == "__main__":
    main()
