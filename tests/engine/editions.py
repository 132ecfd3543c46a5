"""Programs that tests put in place of others, as an edit of their file would; figures; and waiting for them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundswell import Program
from groundswell.program import trial as registry
from tests.engine.scenario import counters


def edition(patch: pytest.MonkeyPatch, name: str, function: Any, version: int = 1) -> Program[Any, Any]:
    """Register a function under a name until the test ends; its own name stands for its source."""
    made: Program[Any, Any] = Program(name, version, function)
    made.source = function.__name__
    patch.setitem(registry._PROGRAMS, made.id, made)
    return made


def figures(store: Path, run: str = "story") -> tuple[int, int]:
    """How many trials are usable and how many missing, counted from the outcomes in the store."""
    with sqlite3.connect(store) as reading:
        found = reading.execute(
            "SELECT count(*) FILTER (WHERE fault IS NULL), count(*) FILTER (WHERE fault IS NOT NULL) FROM outcomes "
            "JOIN runs ON runs.id = outcomes.trial >> 32 WHERE runs.name = ?",
            (run,),
        ).fetchone()
    reading.close()
    return int(found[0]), int(found[1])


def counted(store: Path, run: str = "story") -> tuple[int, int]:
    """The same, as the run has counted them."""
    kept = counters(store, run)
    return kept.usable, kept.missing


def status(store: Path, run: str = "story") -> str:
    with sqlite3.connect(store) as reading:
        (found,) = reading.execute("SELECT status FROM runs WHERE name = ?", (run,)).fetchone()
    reading.close()
    return str(found)


async def turn() -> None:
    """Let the loop go round once, and the threads of the store go on: a loop that only spins holds them up."""
    await asyncio.to_thread(int)


async def in_time(condition: Callable[[], object]) -> None:
    """Wait until something is so, where the exact tick does not matter."""
    while not condition():
        await turn()
