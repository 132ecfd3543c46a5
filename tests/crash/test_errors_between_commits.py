"""Errors that arise between two commits end a run; they do not hang it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import groundswell
from groundswell import SettingsError, Trial, function, program


@function("hanging/look")
async def look(at: object) -> int:
    return 1


@program("hanging/not_data")
async def not_data(trial: Trial, number: int) -> int:
    await trial.ask("m", "the first ask is journalled")
    return await trial.call(look, object())


def test_a_request_that_is_not_data_ends_the_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with groundswell.open(tmp_path / "s.db", script=lambda request: "x") as engine:
            async for _ in engine.run("r").map(not_data, [1, 2]):
                pass

    with pytest.raises(SettingsError, match="request 1: it cannot be stored"):
        asyncio.run(asyncio.wait_for(main(), 20))
