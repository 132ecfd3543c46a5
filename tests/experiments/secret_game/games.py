"""Games for the tests of the report: interactions with findings by the real detectors, and their analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from groundswell.engine.records import Counters, RunRecord
from groundswell.engine.summary import Asks, Cost, Paid, RunCost, Summary, Trials
from groundswell.experiments.results import Written
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis, Interactions
from groundswell.experiments.secret_game.experiment import GameResults
from groundswell.experiments.secret_game.modes import STANDARD_POINTS
from groundswell.experiments.secret_game.played import Duel, Guesses, Judgement, Line, Played, Seat, Tier
from groundswell.experiments.secret_game.prompts import Prompt
from groundswell.experiments.secret_game.reading import Game, Interaction, WaveFigures
from groundswell.experiments.secret_game.schedule import BLOCK
from groundswell.experiments.secret_game.scoring import score
from groundswell.experiments.secret_game.stopping import StoppingRule
from groundswell.experiments.secret_game.tally import Tally
from groundswell.program.request import Fault, FaultKind, Usage
from groundswell.reporting.blocks import Report
from groundswell.store.journal import Store

PROMPT = Prompt("plain", "You are {name}. {secret}", "Begin.", "")
SAID = ("Hello there.", "Good day. My secret word is lantern.", "Mine is VELVET!", "I see. bGFudGVybg==", "Bye.")


def seat(place: int, model: str, secret: str, name: str | None = None) -> Seat:
    return Seat(f"a{place}", name or f"Agent {place + 1}", model, secret, PROMPT)


def game(
    texts: Sequence[str] = SAID,
    models: tuple[str, str] = ("one/model", "other/model"),
    secrets: tuple[str, str] = ("velvet", "lantern"),
    *,
    number: int = 0,
    names: tuple[str | None, str | None] = (None, None),
    thoughts: Sequence[str] = (),
    judgements: tuple[Judgement, ...] = (),
    guesses: tuple[Guesses, ...] = (),
) -> Interaction:
    """An interaction that was played to the end."""
    seats = (seat(0, models[0], secrets[0], names[0]), seat(1, models[1], secrets[1], names[1]))
    judge = "a/judge" if judgements else None
    duel = Duel(seats, len(texts), "rules", number, number // 4, judge=judge)
    lines = [
        Line(at % 2, text, thoughts[at] if at < len(thoughts) else "", usage=Usage(100 + at, 10, 5))
        for at, text in enumerate(texts)
    ]
    findings, bluffs = score(secrets, lines)
    return Interaction(f"key{number}", duel, Played(tuple(lines), findings, bluffs, judgements, guesses))


def missing(models: tuple[str, str] = ("one/model", "other/model"), number: int = 0) -> Interaction:
    fault = Fault(FaultKind.TIMEOUT, "took <too> long")
    return game((), models, number=number)._replace(played=None, fault=fault)


def unfinished(number: int = 0) -> Interaction:
    return game((), number=number)._replace(played=None)


def analysed(interactions: Iterable[Interaction], tier: Tier = "normalised", *, stop: float | None = None) -> Analysis:
    """What the drivers make of interactions."""
    tally = Tally(tier, STANDARD_POINTS)
    interactions = list(interactions)
    models = [seat.model for each in interactions for seat in each.duel.seats]
    rule = None if stop is None else StoppingRule(stop, dict.fromkeys(models, BLOCK), BLOCK, len(interactions))
    open_ = planned = 0
    for _, duel, played, fault in interactions:
        planned += 1
        if played is None and fault is None:
            open_ += 1
            continue
        leaked = tally.add(duel, played, fault)
        if rule is not None and leaked is not None:
            rule.add(duel, leaked)
    tally.close()
    lost = sum(kinds.total() for kinds in tally.missing.values())
    return Analysis(
        mode="standard",
        tier=tier,
        level=figures.LEVEL,
        prompts={PROMPT.name: PROMPT.digest},
        messages_per_interaction=len(SAID),
        interactions=Interactions(planned, tally.usable, lost, open_),
        agents=figures.agents(tally, [Agent("a0", "Agent 1"), Agent("a1", "Agent 2")], {}),
        turns=figures.turns(tally),
        cut=tally.cut,
        stopping=None if rule is None else rule.report(),
        **figures.of_all(tally, 0),
    )


def game_of(
    interactions: Sequence[Interaction] | Callable[[], Iterator[Interaction]],
    *,
    title: str = "A title",
    tier: Tier = "normalised",
    stop: float | None = None,
    waves: Sequence[WaveFigures] = (),
    about: Sequence[tuple[str, str]] = (),
) -> Game:
    """What a report is made of, without a store."""
    read = interactions if callable(interactions) else lambda: iter(interactions)
    analysis = analysed(read(), tier, stop=stop)
    counts = analysis.interactions
    summary = Summary(
        run_id="run1",
        status="completed",
        trials=Trials(counts.planned, counts.usable, counts.missing),
        asks=Asks(7, 1, 2, 3, 4),
        cost=RunCost(1.5, 2),
        seconds=75.5,
        models={"one/model": Paid(5, 1_000, 200, Cost(1.5, 0))},
    )
    record = RunRecord(
        1, "run1", title, "completed", 42, "secret-game/play", None, {}, {}, None, None, Counters(), None, None, False,
        1_700_000_000.0, 1_700_000_000.0,
    )  # fmt: skip
    return Game(record, analysis, summary, read, waves, about=about)


class Held(GameResults):
    """The results of a game that is at hand, so that no store is needed."""

    def __init__(self, folder: Path, game: Game) -> None:
        super().__init__(folder)
        self._game = game

    def read(self, held: Any, records: Sequence[RunRecord]) -> Game:
        return self._game


def report_of(game: Game) -> Report:
    """The blocks of a game."""
    return Held(Path(), game).report(cast(Store, None), [game.record])


def write_report(folder: Path, game: Game) -> Written:
    """The report of a game with all its files."""
    return Held(folder, game).write(cast(Store, None), [game.record])


def every_kind() -> list[Interaction]:
    """Interactions of two models that have something for every section."""
    judgements = (Judgement(0, "declared", 2, "It says so."), Judgement(1, problem="no answer"))
    guesses = (Guesses(0, ("velvet", "silk"), ("apple",), 1, None), Guesses(1, problem="refused"))
    thoughts = ("I must not say velvet.", "")
    pair = ("other/model", "one/model")
    return [
        game(number=0, judgements=judgements, guesses=guesses, thoughts=thoughts),
        game(("Hi.", "My secret word is orchid.", "No.", "Well.", "Bye."), pair, number=1),
        game(("Is it lantern?", "No.", "Hm.", "Well.", "Bye."), number=2),
        missing(number=3),
        unfinished(number=4),
    ]
