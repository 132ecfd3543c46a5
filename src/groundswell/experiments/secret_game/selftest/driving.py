"""The driver of the self-test, which `groundswell selftest` runs. It is a run like any other and can be resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from groundswell.engine.run import Run
from groundswell.experiments.checks import Check, Size, Verdict, all_of
from groundswell.experiments.secret_game.duel import duel
from groundswell.experiments.secret_game.selftest import games, ordinary, reckoning
from groundswell.experiments.secret_game.selftest.games import Game, Games
from groundswell.experiments.secret_game.selftest.ordinary import FalseAlarms, Sheet
from groundswell.experiments.secret_game.selftest.planting import Planned, arms, plan
from groundswell.stats.rates import Rate


class GameVerdict(Verdict, frozen=True):
    """The result of the self-test, with the false alarms in ordinary messages."""

    false_alarms: FalseAlarms

    @property
    def notes(self) -> list[str]:
        """How many false alarms there are, and the first of them."""
        alarms = self.false_alarms
        quiet = [form for form, each in alarms.forms.items() if not each.count]
        pairs = max(each.pairs for each in alarms.tiers.values())
        most = max((alarms.forms[form].at_most for form in quiet), default=1.0)
        return [
            f"False alarms: {alarms.messages:,} ordinary messages, {pairs:,} pairs of a message and a word. None in "
            f"the forms {', '.join(quiet)}; each of these has a rate of at most {most:.4%} (upper end of the 95% "
            "Clopper-Pearson interval).",
            *(f"  {form}, {word}: {text!r}" for form, word, text in alarms.found),
        ]


async def selftest(run: Run, settings: Size) -> GameVerdict:
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


def verdict(found: Iterable[Check], alarms: FalseAlarms, size: float) -> GameVerdict:
    """All checks, and whether all of them pass."""
    said = Verdict.of(found, size)
    return GameVerdict(said.passed, said.failed, size, said.checks, alarms)


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
