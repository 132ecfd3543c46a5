"""The data of a report: the figures and the stored interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.played import Duel, Played, Talk
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.program.request import Fault
from groundswell.store.journal import Store
from groundswell.store.results import TrialResult
from groundswell.store.waves import StoredWave

PROGRAM, SCORED = "secret_game/duel@", "secret_game/scored@"


class Interaction(NamedTuple):
    """A stored interaction: with its result, with its fault, or with neither if it is unfinished."""

    key: str
    duel: Duel
    played: Played | None = None
    fault: Fault | None = None

    @property
    def status(self) -> Literal["usable", "missing", "unfinished"]:
        """The status, from the result and the fault."""
        if self.played is not None:
            return "usable"
        return "unfinished" if self.fault is None else "missing"


class WaveFigures(msgspec.Struct, frozen=True):
    """One wave of requests: transport, size, duration and cost."""

    number: int
    transport: str
    account: str
    size: int
    seconds: float
    usd: float | None = None


@dataclass(frozen=True)
class Game:
    """The data of a report. `interactions` reads them in trial order on each call."""

    record: RunRecord
    analysis: Analysis
    summary: Summary
    interactions: Callable[[], Iterator[Interaction]]
    waves: Sequence[WaveFigures] = ()
    points: Points = field(default_factory=Points)
    """The points of the game."""
    about: Sequence[tuple[str, str]] = ()
    """Further rows of the settings table."""
    held: Store | None = None

    def prompts(self) -> list[Prompt]:
        """All prompts. Interactions are read until every prompt has been found."""
        left, found = set(self.analysis.prompts.values()), dict[str, Prompt]()
        for interaction in self.interactions():
            for seat in interaction.duel.seats:
                found.setdefault(seat.prompt.digest, seat.prompt)
            if left <= found.keys():
                break
        return [prompt for prompt in found.values() if prompt.system]


def interactions_of(results: Iterable[TrialResult]) -> Callable[[], Iterator[Interaction]]:
    """A function that reads the interactions of a run from its results."""

    def read() -> Iterator[Interaction]:
        for trial in results:
            if trial.program.startswith((PROGRAM, SCORED)):
                spec = trial.spec(Talk if trial.program.startswith(SCORED) else Duel)
                yield Interaction(trial.key, spec, trial.result(Played), trial.fault)

    return read


def waves_of(waves: Iterable[StoredWave], usd: Callable[[StoredWave], float | None]) -> list[WaveFigures]:
    """The finished waves of a run. `usd` returns the cost of a wave."""
    return [
        WaveFigures(wave.number, wave.transport, wave.account, wave.size, wave.ended_at - wave.at, usd(wave))
        for wave in waves
        if wave.ended_at is not None
    ]
