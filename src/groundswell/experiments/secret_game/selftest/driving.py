"""The driver of the self-test, which `groundswell selftest` runs. It is a run like any other and can be resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from groundswell.engine.run import Run
from groundswell.experiments.secret_game.duel import duel
from groundswell.experiments.secret_game.selftest import games, ordinary, reckoning
from groundswell.experiments.secret_game.selftest.check import Check, all_of
from groundswell.experiments.secret_game.selftest.games import Game, Games
from groundswell.experiments.secret_game.selftest.ordinary import FalseAlarms, Sheet
from groundswell.experiments.secret_game.selftest.planting import Planned, arms, plan
from groundswell.stats.rates import Rate

WHOLE, QUICK = 1.0, 0.1


class Size(msgspec.Struct, frozen=True):
    """The size of the test: 1 is the whole test, 0.1 a tenth of it."""

    size: float = WHOLE


class Verdict(msgspec.Struct, frozen=True):
    """The result of the self-test."""

    passed: bool
    failed: int
    size: float
    checks: list[Check]
    false_alarms: FalseAlarms


async def selftest(run: Run, settings: Size) -> Verdict:
    """Play the games, search ordinary messages, compute coverage, and check the results."""
    seed = run.record.seed
    plans = list(plan(seed, settings.size))
    played = await play_all(run, plans, settings.size)
    alarms, looked = await look_at(run, list(ordinary.sheets(played, seed, settings.size)))
    ended = Rate(sum(map(len, played.values())) + looked.passed, len(plans) + looked.n)
    found = [all_of("games", "games and searches completed", ended), *games.checks(played)]
    found += ordinary.checks(alarms)
    for check in reckoning.checks():
        found.append(check)
        await asyncio.sleep(0)  # let the progress display update
    return verdict(found, alarms, settings.size)


def verdict(found: Iterable[Check], alarms: FalseAlarms, size: float) -> Verdict:
    """All checks, and whether all of them pass."""
    checks = list(found)
    failed = sum(not check.passed for check in checks)
    return Verdict(not failed, failed, size, checks, alarms)


async def play_all(run: Run, plans: list[Planned], size: float) -> Games:
    """Play all games; return the completed ones by arm."""
    played: dict[str, list[Game]] = {arm.name: [] for arm in arms(size)}
    at = iter(plans)
    async for outcome in run.map(duel, [each.duel for each in plans]):
        arm = next(at).arm
        if outcome.result is not None:
            played[arm].append(Game(outcome.spec, outcome.result))
    return played


async def look_at(run: Run, sheets: list[Sheet]) -> tuple[FalseAlarms, Rate]:
    """Search ordinary messages; return the false alarms and the share of completed sheets."""
    looked = []
    async for outcome in run.map(ordinary.look, sheets):
        if outcome.result is not None:
            looked.append((outcome.spec, outcome.result))
    return ordinary.false_alarms(looked), Rate(len(looked), len(sheets))
