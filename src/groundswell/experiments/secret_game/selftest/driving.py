"""The driver of the self-test: what `groundswell selftest` runs. One run, which can be resumed like any other."""

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
    """How large the test is: 1 is the whole, 0.1 a tenth."""

    size: float = WHOLE


class Verdict(msgspec.Struct, frozen=True):
    """What the self-test found."""

    passed: bool
    failed: int
    size: float
    checks: list[Check]
    false_alarms: FalseAlarms


async def selftest(run: Run, settings: Size) -> Verdict:
    """Have planted agents play, look at ordinary messages, reckon; then say what holds."""
    seed = run.record.seed
    plans = list(plan(seed, settings.size))
    played = await play_all(run, plans, settings.size)
    alarms, looked = await look_at(run, list(ordinary.sheets(played, seed, settings.size)))
    ended = Rate(sum(map(len, played.values())) + looked.passed, len(plans) + looked.n)
    found = [all_of("games", "games and looks that came to their end", ended), *games.checks(played)]
    found += ordinary.checks(alarms)
    for check in reckoning.checks():
        found.append(check)
        await asyncio.sleep(0)  # whoever watches sees that it goes on
    return verdict(found, alarms, settings.size)


def verdict(found: Iterable[Check], alarms: FalseAlarms, size: float) -> Verdict:
    """All checks, and whether all of them hold."""
    checks = list(found)
    failed = sum(not check.passed for check in checks)
    return Verdict(not failed, failed, size, checks, alarms)


async def play_all(run: Run, plans: list[Planned], size: float) -> Games:
    """The games that were played to their end, by arm."""
    played: dict[str, list[Game]] = {arm.name: [] for arm in arms(size)}
    at = iter(plans)
    async for outcome in run.map(duel, [each.duel for each in plans]):
        arm = next(at).arm
        if outcome.result is not None:
            played[arm].append(Game(outcome.spec, outcome.result))
    return played


async def look_at(run: Run, sheets: list[Sheet]) -> tuple[FalseAlarms, Rate]:
    """What stands in ordinary messages, and how many sheets were looked at."""
    looked = []
    async for outcome in run.map(ordinary.look, sheets):
        if outcome.result is not None:
            looked.append((outcome.spec, outcome.result))
    return ordinary.false_alarms(looked), Rate(len(looked), len(sheets))
