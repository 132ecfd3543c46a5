"""One small self-test, played once for all tests of this folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import groundswell
from groundswell import Summary
from groundswell.experiments.checks import Size
from groundswell.experiments.secret_game.selftest import driving
from groundswell.experiments.secret_game.selftest.games import Games
from groundswell.experiments.secret_game.selftest.planting import plan

SMALL, SEED = 0.05, 1


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Games:
    """The games of a small test, by arm."""

    async def main(store: Path) -> Games:
        async with groundswell.open(store) as engine, engine.run("games", seed=SEED) as run:
            return await driving.play_all(run, list(plan(SEED, SMALL)), SMALL)

    return asyncio.run(main(tmp_path_factory.mktemp("selftest") / "runs.db"))


def drive(store: Path, size: float, **more: object) -> Summary:
    """The driver on a store of its own."""

    async def main() -> Summary:
        async with groundswell.open(store) as engine:
            return await engine.drive(driving.selftest, Size(size), seed=SEED, name="t", **more)  # type: ignore[arg-type]

    return asyncio.run(main())
