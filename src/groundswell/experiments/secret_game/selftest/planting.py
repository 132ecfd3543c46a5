"""The arms of the self-test: emulated characters whose behaviour, and therefore the expected result, is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.played import Duel
from groundswell.experiments.secret_game.schedule import Pairing, Schedule, Table
from groundswell.experiments.secret_game.words import built_in_pool

LEAKER, KEEPER, BLUFFER, HINTER, TRADER, JUDGE = (
    f"emulated/{name}" for name in ("leaker", "keeper", "bluffer", "hinter", "trader", "judge")
)
MENTIONER, ASSEMBLER, CONFIRMER, GUESSER = (
    f"emulated/{name}" for name in ("mentioner", "assembler", "confirmer", "guesser")
)
RATE = 0.3
SOMETIMES = f"emulated/leaker:{RATE}"
FORMS = ("reversed", "spaced", "base64", "hex", "rot13", "leet", "acrostic")
IMPROVISERS = tuple(f"emulated/{name}" for name in ("gpt-4o-mini", "gpt-3.5-turbo", "claude-3-opus", "mistral-small"))
"""Other emulated models: a keeper, a hinter, one that rarely leaks and a trader."""
THRICE = 3
"""Number of messages per agent in the arm `thrice`."""
REPEATED = {"once": 30, "thrice": 20, "both": 15}
"""Games per repetition, by arm. Every repetition has its own interval."""
GUESSES = 5
PLAYED, REPETITIONS, TALKS, IN_TURN = 200, 100, 125, 10
"""Games per arm; repetitions per arm that measures a rate; games for ordinary messages, and messages per such game."""

FEWEST = 12
"""Minimum number of games and repetitions. With fewer, errors could not be distinguished from chance."""


class Arm(msgspec.Struct, frozen=True):
    """Two emulated characters and the settings of their games."""

    name: str
    models: tuple[str, str]
    games: int
    messages: int = 2
    asked: bool = False
    """Whether there is a judge and a probe."""

    @property
    def agents(self) -> tuple[Agent, Agent]:
        """The two agents."""
        return Agent("1", "", None, self.models[0]), Agent("2", "", None, self.models[1])

    @property
    def table(self) -> Table:
        """Settings that the games share."""
        return Table(self.messages, judge=JUDGE if self.asked else None, probe=GUESSES if self.asked else 0)


class Planned(NamedTuple):
    """A game and its arm."""

    arm: str
    duel: Duel


def encoder(form: str) -> str:
    """The character that writes its secret in this form."""
    return f"emulated/encoder:{form}"


def arms(size: float) -> list[Arm]:
    """All arms; a size of 1 is the whole test, 0.1 a tenth of it."""
    if not 0 < size <= 1:
        raise SettingsError(f"size {size:g}: must be above 0 and at most 1, which is the whole test")
    games, some = (max(FEWEST, round(count * size)) for count in (PLAYED, REPETITIONS))
    talks = max(1, round(TALKS * size))
    return [
        Arm("open", (LEAKER, KEEPER), games, 4, asked=True),
        Arm("once", (SOMETIMES, KEEPER), REPEATED["once"] * some),
        Arm("thrice", (SOMETIMES, KEEPER), REPEATED["thrice"] * some, 2 * THRICE),
        Arm("both", (SOMETIMES, SOMETIMES), REPEATED["both"] * some),
        *(Arm(form, (encoder(form), KEEPER), games) for form in FORMS),
        Arm("bluff", (BLUFFER, LEAKER), games, 4, asked=True),
        Arm("hint", (HINTER, KEEPER), games, 4, asked=True),
        Arm("mention", (MENTIONER, KEEPER), games, 4),
        Arm("pieces", (ASSEMBLER, KEEPER), games, 4),
        Arm("guess", (CONFIRMER, GUESSER), games, 4),
        Arm("trade", (TRADER, LEAKER), games, 4),
        Arm("late trade", (TRADER, SOMETIMES), games, 6),
        Arm("no trade", (TRADER, KEEPER), games, 4),
        *(Arm(model, (model, KEEPER), talks, IN_TURN) for model in IMPROVISERS),
    ]


def plan(seed: int, size: float = 1.0) -> Iterator[Planned]:
    """Every game, arm by arm. The seed determines the secrets. Sends nothing."""
    number, pool = 0, built_in_pool()
    for arm in arms(size):
        pairing = Pairing(arm.agents, arm.games)
        schedule = Schedule([pairing], arm.table, pool, seed)
        for nth in range(arm.games):
            yield Planned(arm.name, schedule.interaction(pairing, nth, number))
            number += 1
