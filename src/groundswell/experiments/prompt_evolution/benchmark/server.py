"""A server for a benchmark: the emulator on this machine, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, build_opener

from groundswell.errors import RunError

MODEL = "gpt-4o-mini"
LONGEST = 7200
"""Seconds after which it ends by itself, should nobody end it."""


class Server(NamedTuple):
    """Where it listens, its process, and how much it may be asked at once."""

    url: str
    pid: int
    at_once: int

    @property
    def model(self) -> str:
        """What is asked there."""
        return f"ollama/{MODEL}"

    @property
    def account(self) -> tuple[str, ...]:
        """What leads to it: it speaks as Ollama does, since that needs no key."""
        return (f"ollama.base_url={self.url}", f"ollama.max_concurrent_requests={self.at_once}")

    def calls(self) -> int:
        """How many requests it has answered."""
        with build_opener(ProxyHandler({})).open(f"{self.url}/emulator/ledger", timeout=60) as answer:
            return int(json.load(answer)["totals"]["requests"])


@asynccontextmanager
async def emulator(latency: float, at_once: int) -> AsyncIterator[Server]:
    """An emulator that answers each request after so many seconds, so many of them at once. It sets no limits."""
    flags = ["--port", "0", "--json", "--latency", str(latency), "--ollama-parallel", str(at_once)]
    command = [sys.executable, "-m", "groundswell", "emulate", *flags, "--model", MODEL, "--for", str(LONGEST)]
    started = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": _importable()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told = await asyncio.to_thread(_ready, started)
        yield Server(told["url"], started.pid, at_once)
    finally:
        started.terminate()
        await asyncio.to_thread(started.communicate)


def _importable() -> str:
    """Where the other process finds this package, whatever was done to find it here."""
    own, given = str(Path(__file__).parents[4]), os.environ.get("PYTHONPATH")
    return own if not given else f"{own}{os.pathsep}{given}"


def _ready(started: subprocess.Popen[str]) -> dict[str, Any]:
    """What it says once it listens."""
    assert started.stdout is not None
    said = started.stdout.readline()
    if not said:
        raise RunError(f"the emulator did not start: {_last_words(started)}")
    told: dict[str, Any] = json.loads(said)
    return told


def _last_words(started: subprocess.Popen[str]) -> str:
    _, errors = started.communicate()
    return (errors.strip().splitlines() or [f"it ended with {started.returncode}"])[-1]


def cpu_of(pid: int) -> float | None:
    """CPU seconds that a process has used, where that can be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
