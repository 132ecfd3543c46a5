"""What the tests of batch services share: a working folder, agents, and what a job leaves there."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from groundswell.emulator.server import Threaded
from groundswell.engine.options import RunOptions
from groundswell.engine.retry import RetryPolicy
from groundswell.experiments.secret_game import Agent, AgentService, BatchJob, BatchService, GameService
from tests.transports.scene import environment

GPT, CLAUDE = "gpt4o_mini", "claude_sonnet"
OFTEN = "".join(f"[accounts.{name}]\nbatch_poll = 0.05\nbatch_patience = 5\n" for name in ("openai", "anthropic"))
"""An order that was on its way when a process was killed is looked for no longer than `batch_patience`."""
QUICK = RunOptions(retry=RetryPolicy(first_wait=0.01, longest_wait=0.05, patience=0.5))


def pair(one: str, other: str) -> list[Agent]:
    """Two agents with names of their own, so that no two of their requests are equal; secrets are drawn."""
    return [Agent("ann", "Ann", model=one), Agent("bob", "Bob", model=other)]


def everything(model: str = GPT) -> GameService:
    """A game with one model for all."""
    return GameService(agent_service=AgentService(model=model))


class Room:
    """A folder to work in, with the emulator's address in its environment."""

    def __init__(self, folder: Path, emulator: Threaded, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.emulator, self.patch = folder, emulator, patch
        for name, value in environment(emulator.url).items():
            patch.setenv(name, value)
        patch.setenv("HOME", str(folder))
        self.enter("start")

    def enter(self, name: str) -> Path:
        """Work in a folder of one's own, with a store of its own."""
        place = self.folder / name
        place.mkdir()
        (place / "groundswell.toml").write_text(OFTEN)
        self.patch.chdir(place)
        return place

    def play(self, service: BatchService, agents: Sequence[Agent], **job: Any) -> BatchJob:
        """Create a job and run it."""
        made = service.create_batch_job(agents, **job)
        return asyncio.run(service.run_batch_job(made.id))

    @property
    def books(self) -> dict[str, Any]:
        """The sums of the emulator's ledger."""
        totals: dict[str, Any] = self.emulator.ledger()["totals"]
        return totals


def results(job: BatchJob) -> dict[str, Any]:
    """What a job's results.json holds."""
    found: dict[str, Any] = json.loads(job.results_path.read_bytes())
    return found


def analysis(job: BatchJob) -> dict[str, Any]:
    """What a job's analysis.json holds."""
    found: dict[str, Any] = json.loads(job.analysis_path.read_bytes())
    return found


def said(job: BatchJob) -> list[list[tuple[str, str]]]:
    """Every conversation: who said what."""
    return [[(line["speaker"], line["text"]) for line in task["messages"]] for task in results(job)["tasks"]]


def batches(store: str = "groundswell.db") -> list[tuple[str, int]]:
    """The batches that were sent: by which transport, and of how many requests."""
    connection = sqlite3.connect(store)
    rows: list[tuple[str, int]] = connection.execute("SELECT transport, size FROM waves ORDER BY id").fetchall()
    connection.close()
    return rows
