"""The server of a benchmark: an emulator on this machine, in a separate process."""

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
"""Seconds after which the emulator stops by itself."""


class Server(NamedTuple):
    """The address, the process and the concurrency of the emulator."""

    url: str
    pid: int
    at_once: int

    @property
    def model(self) -> str:
        """The model name for requests."""
        return f"ollama/{MODEL}"

    @property
    def account(self) -> tuple[str, ...]:
        """The account settings. The Ollama protocol needs no key."""
        return (f"ollama.base_url={self.url}", f"ollama.max_concurrent_requests={self.at_once}")

    def calls(self) -> int:
        """The number of requests answered so far."""
        with build_opener(ProxyHandler({})).open(f"{self.url}/emulator/ledger", timeout=60) as answer:
            return int(json.load(answer)["totals"]["requests"])


@asynccontextmanager
async def emulator(latency: float, at_once: int) -> AsyncIterator[Server]:
    """Start an emulator with this latency and concurrency, and no rate limits."""
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
    """A PYTHONPATH with which the other process finds this package."""
    own, given = str(Path(__file__).parents[4]), os.environ.get("PYTHONPATH")
    return own if not given else f"{own}{os.pathsep}{given}"


def _ready(started: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait until it listens; returns its first line."""
    assert started.stdout is not None
    said = started.stdout.readline()
    if not said:
        raise RunError(f"the emulator did not start: {_last_words(started)}")
    told: dict[str, Any] = json.loads(said)
    return told


def _last_words(started: subprocess.Popen[str]) -> str:
    _, errors = started.communicate()
    return (errors.strip().splitlines() or [f"exit status {started.returncode}"])[-1]


def cpu_of(pid: int) -> float | None:
    """The CPU seconds of a process; None if they cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
