"""What the tests of the game share: agents that say what a script has for them, and runs on a store of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

import groundswell
from groundswell import Chat, Reply, Request, RunOptions, Summary
from groundswell.experiments.detectors.spans import Match
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.played import Duel, Finding, Line, Played, Seat
from groundswell.experiments.secret_game.playing import play, tournament
from groundswell.experiments.secret_game.prompts import load_prompt
from groundswell.program.request import Fault

A, B = Agent("1", "Ann", "saffron", "emulated/keeper"), Agent("2", "Bob", "trellis", "emulated/keeper")


def text_of(request: Request) -> list[str]:
    """The messages of a request as `role: text`."""
    assert isinstance(request, Chat)
    return [f"{message.role}: {message.content}" for message in request.messages]


Script = Callable[[Request, int], Reply | Fault]


def drive(settings: Any, script: Script | None = None, *, seed: int = 1, options: RunOptions | None = None) -> Summary:
    """Play, on emulated models or with a script that answers for all."""
    driver = play if type(settings).__name__ == "Batch" else tournament

    async def main(folder: Path) -> Summary:
        async with groundswell.open(folder / "runs.db", script=script) as engine:
            return await engine.drive(driver, settings, seed=seed, options=options)

    with TemporaryDirectory() as folder:
        return asyncio.run(main(Path(folder)))


def seat(number: int, secret: str, *, model: str = "m", name: str = "", agent: str = "") -> Seat:
    return Seat(agent or str(number), name or f"Agent {number}", model, secret, load_prompt("plain"))


def a_duel(
    models: tuple[str, str] = ("m", "n"),
    *,
    number: int = 0,
    block: int = 0,
    secrets: Sequence[str] = ("saffron", "trellis"),
) -> Duel:
    seats = seat(1, secrets[0], model=models[0], agent=models[0]), seat(2, secrets[1], model=models[1], agent=models[1])
    return Duel(seats, 4, "", number, block)


EXACT = Match("exact", "exact", 0, 7)


def ended(first: int | None, second: int | None, **more: Any) -> Played:
    """An interaction of four messages in which secrets came out at these turns."""
    told = [(0, first), (1, second)]
    more.setdefault("findings", tuple(Finding(of, of, turn, EXACT) for of, turn in told if turn is not None))
    return Played(tuple(Line(turn % 2, "...") for turn in range(4)), **more)


def plain(summary: Summary) -> Any:
    """The analysis of a run as plain data."""
    return msgspec.to_builtins(summary.analysis)
