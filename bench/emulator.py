"""Throughput of the emulator: `python bench/emulator.py` (`--quick` for a fifth of the time).

The emulator runs on one core, the client on another. Every figure is compared with a bound from the same run: the
emulator's own HTTP layer with one fixed answer, and granian with the same answer if it is installed (nothing else
needs it). Measured with latency 0:

  chat       requests per second of short OpenAI chats over 64 connections, and CPU per request
  talk       the same with conversations of 20 messages
  providers  Anthropic messages, Ollama chats and embeddings
  limits     chats with rate limits and a fault rule
  open       2,000 connections at once, every reply after 1 s: the delay of the last reply
  model      microseconds per answer of the emulated model alone, in this process, without repeated requests
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import uvloop

from groundswell import Chat, Embed, assistant, system, user
from groundswell.emulator import model

OUT = Path(__file__).parent / "out"
CORES = sorted(os.sched_getaffinity(0))
WIDTH = 64
MODEL = "leaker:0.3"
FIXED = """
import asyncio, sys
import uvloop
from groundswell.emulator.http import Answer, HttpServer
BODY = b'{"choices":[{"message":{"content":"%s"}}]}' % (b"x" * 500)
async def main():
    server = HttpServer(lambda http: Answer(200, BODY))
    port = await server.listen("127.0.0.1", 0)
    print('{"url": "http://127.0.0.1:%d"}' % port, flush=True)
    await asyncio.Event().wait()
uvloop.run(main())
"""
GRANIAN = """
BODY = b'{"choices":[{"message":{"content":"%s"}}]}' % (b"x" * 500)
async def app(scope, proto):
    await proto()
    proto.response_bytes(200, [("content-type", "application/json")], BODY)
"""


class Load(asyncio.Protocol):
    """A connection that repeats the same request as soon as it is answered."""

    def __init__(self, request: bytes, tally: Tally) -> None:
        self._request = request
        self._tally = tally
        self._left = 0
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._left:
            self._head += data
            at = self._head.find(b"\r\n\r\n")
            if at < 0:
                return
            head, data = self._head[:at].lower(), self._head[at + 4 :]
            self._head = b""
            begin = head.find(b"content-length:") + 15
            end = head.find(b"\r\n", begin)
            self._left = int(head[begin : end if end > 0 else None])
            self._tally.statuses[head[9:12].decode()] = self._tally.statuses.get(head[9:12].decode(), 0) + 1
        self._left -= len(data)
        if self._left == 0:
            self._tally.done += 1
            self._tally.slowest = max(self._tally.slowest, time.perf_counter() - self._sent_at)
            if self._tally.going:
                self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._tally.going:
            self._tally.lost += 1

    def close(self) -> None:
        """End it."""
        self._transport.abort()


class Tally:
    """The result of a load test."""

    def __init__(self) -> None:
        self.done = self.lost = 0
        self.slowest = self.cpu = self.seconds = 0.0
        self.going = True
        self.statuses: dict[str, int] = {}


def http_request(path: str, body: dict[str, Any]) -> bytes:
    """A POST as bytes."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer bench\r\nanthropic-version: 2023-06-01\r\n"
        f"x-api-key: bench\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def talk(turns: int) -> list[dict[str, str]]:
    """A conversation."""
    said = [{"role": "system", "content": 'You are Ana. Your secret code word is "harbour". Find out the other one.'}]
    for turn in range(turns):
        role = "user" if turn % 2 == 0 else "assistant"
        said.append(
            {"role": role, "content": f"Number {turn}: I will think about it, but first tell me what you know."}
        )
    return said


CHAT = http_request("/v1/chat/completions", {"model": MODEL, "messages": talk(1), "max_tokens": 200})
TALK = http_request("/v1/chat/completions", {"model": MODEL, "messages": talk(19), "max_tokens": 200})
MESSAGE = http_request(
    "/v1/messages", {"model": MODEL, "system": talk(1)[0]["content"], "messages": talk(1)[1:], "max_tokens": 200}
)
OLLAMA = http_request("/api/chat", {"model": MODEL, "messages": talk(1), "stream": False})
EMBED = http_request("/v1/embeddings", {"model": "text-embedding-3-small", "input": ["a dozen words or so " * 3]})


@contextlib.contextmanager
def served(*command: str) -> Iterator[tuple[str, int]]:
    """Start a server on the first core. Yield its address and process id."""
    pinned = [
        sys.executable,
        "-c",
        f"import os, sys; os.sched_setaffinity(0, {{{CORES[0]}}}); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    process = subprocess.Popen([*pinned, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        wait_for(url)
        yield url, process.pid
    finally:
        process.terminate()
        process.communicate()


def wait_for(url: str) -> None:
    """Wait until the server listens."""
    host, _, port = url.removeprefix("http://").partition(":")
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection((host, int(port))).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def cpu_of(pid: int) -> float:
    """The CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """The peak memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def load(url: str, pid: int, request: bytes, seconds: float) -> Tally:
    """Repeat one request on many connections. The first moments do not count."""
    tally, loop = Tally(), asyncio.get_running_loop()
    host, _, port = url.removeprefix("http://").partition(":")
    made = [await loop.create_connection(lambda: Load(request, tally), host, int(port)) for _ in range(WIDTH)]
    await asyncio.sleep(seconds / 5)
    tally.done, tally.cpu, start = 0, -cpu_of(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    tally.going = False
    tally.cpu += cpu_of(pid)
    tally.seconds = time.perf_counter() - start
    for _, connection in made:
        connection.close()
    return tally


def measure(command: list[str], request: bytes, seconds: float) -> dict[str, float]:
    """Requests per second, and CPU per request, of one server under one load."""
    with served(*command) as (url, pid):
        tally = uvloop.run(load(url, pid, request, seconds))
    assert set(tally.statuses) == {"200"}, tally.statuses
    assert not tally.lost, tally.lost
    return {"per_second": tally.done / tally.seconds, "cpu_us": tally.cpu / tally.done * 1e6}


def emulator(*flags: str) -> list[str]:
    """The command that starts an emulator."""
    return [sys.executable, "-m", "groundswell", "emulate", "--port", "0", "--json", *flags]


def open_connections(count: int) -> dict[str, float]:
    """Many connections at once, each with a request whose reply takes a second."""

    async def run(url: str) -> tuple[Tally, float]:
        tally, loop = Tally(), asyncio.get_running_loop()
        host, _, port = url.removeprefix("http://").partition(":")
        start = time.perf_counter()
        connects = (loop.create_connection(lambda: Load(CHAT, tally), host, int(port)) for _ in range(count))
        made = await asyncio.gather(*connects)
        tally.going = False
        while tally.done < count and not tally.lost:
            await asyncio.sleep(0.01)
        wall = time.perf_counter() - start
        for _, connection in made:
            connection.close()
        return tally, wall

    with served(*emulator("--latency", "1")) as (url, pid):
        tally, wall = uvloop.run(run(url))
        peak = memory_of(pid)
    assert tally.done == count, tally.done
    return {"connections": count, "slowest_s": tally.slowest, "wall_s": wall, "peak_mb": peak}


def model_costs(count: int) -> dict[str, float]:
    """Microseconds per answer by kind of request. Instructions recur, as they do in experiments."""
    rules = system('You are Ana in a game with Ben. Your secret code word is "harbour".')
    past = [user("Well?"), assistant("I would rather wait a little.")] * 9
    solve = system("Solve the problem step by step. End with #### number.")
    asked: dict[str, Callable[[int], Chat | Embed]] = {
        "a turn of the game": lambda n: Chat(MODEL, (rules, user(f"Tell me more, for the time {n}."))),
        "a turn after 20 messages": lambda n: Chat(MODEL, (rules, *past, user(f"And now, for the time {n}?"))),
        "talk": lambda n: Chat("gpt-4o-mini", (user(f"Tell me about harbour {n}."),)),
        "a word problem": lambda n: Chat("solver", (solve, user(f"Ana has {n} pens and buys 5. How many has she?"))),
        "an embedding, 1536 wide": lambda n: Embed("text-embedding-3-small", (f"some twenty words or so {n} " * 4,)),
    }
    costs = {}
    for name, make in asked.items():
        requests = [make(number) for number in range(count)]
        start = time.perf_counter()
        for request in requests:
            model.answer(request)
        costs[name] = (time.perf_counter() - start) / count * 1e6
    return costs


def granian_command(folder: str) -> list[str] | None:
    """A granian server with one worker, if granian is installed."""
    if importlib.util.find_spec("granian") is None:
        return None
    Path(folder, "fixed_app.py").write_text(GRANIAN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        f"import sys; sys.path.insert(0, {folder!r})\nimport fixed_app, uvloop\n"
        "from granian.server.embed import Server\n"
        f'print(\'{{"url": "http://127.0.0.1:{port}"}}\', flush=True)\n'
        f"server = Server(fixed_app.app, port={port}, interface='rsgi', log_enabled=False)\n"
        "uvloop.run(server.serve())"
    )
    return [sys.executable, "-c", code]


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    seconds = 1.0 if parser.parse_args().quick else 5.0
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.sched_setaffinity(0, {CORES[-1]})
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        found["fixed answer, own HTTP"] = measure([sys.executable, "-c", FIXED], CHAT, seconds)
        granian = granian_command(folder)
        if granian is not None:
            found["fixed answer, granian"] = measure(granian, CHAT, seconds)
        found["OpenAI chat"] = measure(emulator(), CHAT, seconds)
        found["OpenAI chat, 20 messages"] = measure(emulator(), TALK, seconds)
        found["Anthropic message"] = measure(emulator(), MESSAGE, seconds)
        found["Ollama chat"] = measure(emulator(), OLLAMA, seconds)
        found["OpenAI embedding, 1536 wide"] = measure(emulator(), EMBED, seconds)
        limited = emulator("--rpm", "1e9", "--tpm", "1e12", "--fault", "500=0@/v1/*")
        found["OpenAI chat, limits and faults"] = measure(limited, CHAT, seconds)
    bound = found["fixed answer, own HTTP"]["per_second"]
    for name, row in found.items():
        rate, share = row["per_second"], row["per_second"] / bound
        print(f"{name:32} {rate:8,.0f}/s  {row['cpu_us']:6.0f} us CPU  {share:5.2f} of the bound")
    held = open_connections(2000)
    print(
        f"{held['connections']:,.0f} connections, replies after 1 s: slowest {held['slowest_s']:.2f} s, "
        f"total {held['wall_s']:.2f} s, peak memory {held['peak_mb']:.0f} MB"
    )
    costs = model_costs(400 if seconds < 5 else 4000)
    for name, cost in costs.items():
        print(f"the model alone: {name:28} {cost:6.0f} us")
    OUT.mkdir(exist_ok=True)
    (OUT / "emulator.json").write_text(json.dumps({"rates": found, "open": held, "model": costs}, indent=1))


if __name__ == "__main__":
    main()
