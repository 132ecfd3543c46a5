"""What a game would use: no game uses more, however long its messages are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Chat, Reply, Request, Usage
from groundswell.emulator import tokens
from groundswell.engine.driver import Driver
from groundswell.estimate.declared import estimate_of
from groundswell.experiments.secret_game.agents import Agent, AgentService
from groundswell.experiments.secret_game.playing import play, tournament
from groundswell.experiments.secret_game.schedule import Table
from groundswell.experiments.secret_game.settings import Batch, Tournament

MODEL = "scripted/talker"
MOST = 300
AGENTS = tuple(Agent(str(number), f"Agent number {number}") for number in range(4))
TABLE = Table(messages=4, service=AgentService(MODEL, max_tokens=MOST))
GAMES: dict[str, tuple[Driver, Any]] = {
    "a batch": (play, Batch(AGENTS, 4, TABLE)),
    "rounds that are remembered": (tournament, Tournament(AGENTS, 8, TABLE)),
    "rounds that are forgotten": (tournament, Tournament(AGENTS, 8, TABLE, memory="short")),
}


def at_length(request: Request) -> Reply:
    """A message that is as long as it may be."""
    assert isinstance(request, Chat)
    assert request.max_tokens == MOST
    return Reply("word" * MOST, Usage(tokens.count_request(request), MOST))


@pytest.mark.sampled
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.slow
def test_no_game_uses_more_than_the_upper_end(tmp_path: Path, game: str) -> None:
    driver, settings = GAMES[game]

    async def main() -> tuple[int, int]:
        async with groundswell.open(tmp_path / "runs.db", script=at_length) as engine:
            run = engine.run("r", seed=3)
            await driver(run, settings)
            return run.counters.input_tokens, run.counters.output_tokens

    used = asyncio.run(main())
    (load,) = estimate_of(driver, settings).loads
    assert used[0] in load.input_tokens
    assert used[1] == load.output_tokens.high
