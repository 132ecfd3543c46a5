"""A game as its report reads it: the figures, and the interactions behind them, as the store has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import Duel, Played
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.program.request import Fault
from groundswell.store.journal import Store
from groundswell.store.results import TrialResult

PROGRAM = "secret_game/duel@"


class Interaction(NamedTuple):
    """One interaction as the store holds it: what came of it, why it is missing, or neither while it is unfinished."""

    key: str
    duel: Duel
    played: Played | None = None
    fault: Fault | None = None

    @property
    def status(self) -> Literal["usable", "missing", "unfinished"]:
        """Whether there is something to count."""
        if self.played is not None:
            return "usable"
        return "unfinished" if self.fault is None else "missing"


class WaveFigures(msgspec.Struct, frozen=True):
    """One wave of requests: how it travelled, how many it held, and what it took."""

    number: int
    transport: str
    account: str
    size: int
    seconds: float
    usd: float | None = None


@dataclass(frozen=True)
class Game:
    """What the report of a game is made of. Interactions come in the order of trials, anew with every call."""

    record: RunRecord
    analysis: Analysis
    summary: Summary
    interactions: Callable[[], Iterator[Interaction]]
    waves: Sequence[WaveFigures] = ()
    points: Points = field(default_factory=Points)
    """What things were worth."""
    about: Sequence[tuple[str, str]] = ()
    """More of what was run, each with its name."""
    held: Store | None = None

    def prompts(self) -> list[Prompt]:
        """The prompts that agents were given: interactions are read until all are found."""
        left, found = set(self.analysis.prompts.values()), dict[str, Prompt]()
        for interaction in self.interactions():
            for seat in interaction.duel.seats:
                found.setdefault(seat.prompt.digest, seat.prompt)
            if left <= found.keys():
                break
        return list(found.values())


class Wave(Protocol):
    """As much of a stored wave as is told of it."""

    @property
    def number(self) -> int: ...
    @property
    def transport(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def at(self) -> float: ...
    @property
    def ended_at(self) -> float | None: ...


W = TypeVar("W", bound=Wave)


def interactions_of(results: Iterable[TrialResult]) -> Callable[[], Iterator[Interaction]]:
    """The interactions of a run, read from its results whenever they are asked for."""

    def read() -> Iterator[Interaction]:
        for trial in results:
            if trial.program.startswith(PROGRAM):
                yield Interaction(trial.key, trial.spec(Duel), trial.result(Played), trial.fault)

    return read


def waves_of(waves: Iterable[W], usd: Callable[[W], float | None] = lambda _: None) -> list[WaveFigures]:
    """The waves of a run that came back, as the store has them; `usd` says what one of them cost."""
    return [
        WaveFigures(wave.number, wave.transport, wave.account, wave.size, wave.ended_at - wave.at, usd(wave))
        for wave in waves
        if wave.ended_at is not None
    ]
