"""The secret game as an experiment: its commands and its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from groundswell.engine.events import Event, WaveEnded, WaveSent
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import summarise
from groundswell.experiments.experiment import Command, DataTable, Experiment, Results
from groundswell.experiments.results import Blocks, cost_of
from groundswell.experiments.secret_game.agreement import agreement_blocks
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.blocks import blocks
from groundswell.experiments.secret_game.conversations import Scoring
from groundswell.experiments.secret_game.data import data_tables
from groundswell.experiments.secret_game.game_labels import GameLabelling
from groundswell.experiments.secret_game.options import (
    Compare,
    Play,
    Score,
    prepare_compare,
    prepare_play,
)
from groundswell.experiments.secret_game.played import Played, Talk
from groundswell.experiments.secret_game.playing import play, tournament
from groundswell.experiments.secret_game.reading import Game, WaveFigures, interactions_of, waves_of
from groundswell.experiments.secret_game.scored import FINDINGS, ScoredAnalysis, finding_rows, score_conversations
from groundswell.experiments.secret_game.scored import MEANING as FINDINGS_MEAN
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.sources import prepare_score
from groundswell.reporting.blocks import Block, Table
from groundswell.store.journal import Store
from groundswell.store.tables import Kind


class WaveTimer:
    """Records the duration of live waves. The store only records waves that were sent as provider batches."""

    def __init__(self) -> None:
        self._sent: dict[int, WaveSent] = {}
        self._ended: list[tuple[WaveSent, float]] = []

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        match event:
            case WaveSent(whole=True):
                self._sent[event.wave] = event
            case WaveEnded() if event.wave in self._sent:
                self._ended.append((self._sent.pop(event.wave), event.seconds))

    def figures(self) -> list[WaveFigures]:
        """The recorded waves, in the order of sending."""
        waves = sorted(self._ended, key=lambda each: each[0].wave)
        return [
            WaveFigures(number, sent.transport, sent.account, sent.size, seconds)
            for number, (sent, seconds) in enumerate(waves, 1)
        ]


class GameResults(Results):
    """The report of a game."""

    kind = "The secret game"
    needs_drawing = True

    def __init__(self, folder: Path, options: Any = None, make_blocks: Blocks | None = None) -> None:
        super().__init__(folder, options, make_blocks)
        self._timer = WaveTimer()
        self.listeners = [self._timer]

    def read(self, held: Store, records: Sequence[RunRecord]) -> Game:
        """The data of the report."""
        record = records[0]
        of_rounds = record.driver == "secret-game/tournament"
        kind: type[Batch | Tournament] = Tournament if of_rounds else Batch
        settings = msgspec.json.decode(record.settings or "", type=kind)
        game = self._read_game(held, record, Analysis)
        return replace(game, points=settings.table.points, about=list(_about(settings)))

    def _read_game(self, held: Store, record: RunRecord, kind: type[Analysis]) -> Game:
        found = summarise(record)
        return Game(
            record,
            msgspec.convert(found.analysis, kind),
            found,
            interactions_of(held.results(record)),
            waves_of(held.waves.of(record), lambda wave: cost_of(held, wave)[0]) or self._timer.figures(),
            held=held,
        )

    def blocks(self, found: Game) -> Iterator[Block]:
        """Findings, figures, tables, transcripts and settings."""
        return blocks(found)

    def tables(self, found: Game) -> Iterator[DataTable]:
        """The tables of interactions and of sides."""
        return data_tables(found)


class ScoreResults(GameResults):
    """The report of scored conversations: that of a game, the findings as data, and the agreement with labels."""

    kind = "Scored conversations"

    def read(self, held: Store, records: Sequence[RunRecord]) -> Game:
        """The data of the report."""
        record = records[0]
        settings = msgspec.json.decode(record.settings or "", type=Scoring)
        about = [("judge", settings.judge or ""), ("labels", "yes" if settings.labelled else "")]
        return replace(self._read_game(held, record, ScoredAnalysis), about=about)

    def blocks(self, found: Game) -> Iterator[Block]:
        """The blocks of a game, conversations that could not be scored, and the agreement with labels."""
        yield from blocks(found)
        scores = found.analysis
        assert isinstance(scores, ScoredAnalysis)
        if scores.unscored:
            yield Table(
                id="unscored",
                title="Conversations that could not be scored",
                columns={"why": "text", "conversations": "count"},
                rows=list(scores.unscored.items()),
                brief=True,
            )
        if scores.agreement is not None:
            yield from agreement_blocks(scores.agreement)

    def tables(self, found: Game) -> Iterator[DataTable]:
        """The tables of a game with the id of the conversation, and the findings."""
        for table in data_tables(found):
            columns: dict[str, Kind] = {"conversation": "text", **table.columns}
            yield DataTable(table.name, columns, partial(_with_ids, found, table), {**FINDINGS_MEAN, **table.meaning})
        yield DataTable("findings", FINDINGS, partial(_findings, found), FINDINGS_MEAN)

    def more(self, held: Store, record: RunRecord) -> dict[str, Any]:
        """The findings, which `--json` prints beside the summary."""
        return {"findings": list(_findings(self.read(held, [record])))}


def _talks(game: Game) -> Iterator[tuple[Talk, Played | None]]:
    return ((each.duel, each.played) for each in game.interactions() if isinstance(each.duel, Talk))


def _findings(game: Game) -> Iterator[dict[str, Any]]:
    """All findings, in the order of the files."""
    found = [(talk.number, list(finding_rows(talk, played))) for talk, played in _talks(game) if played is not None]
    for _, rows in sorted(found, key=lambda each: each[0]):
        yield from rows


def _with_ids(game: Game, table: DataTable) -> Iterator[dict[str, Any]]:
    ids = {talk.number: talk.id for talk, _ in _talks(game)}
    return ({"conversation": ids[row["number"]], **row} for row in table.rows())


def _about(settings: Batch | Tournament) -> Iterator[tuple[str, str]]:
    """Request settings, for the settings table."""
    table, service = settings.table, settings.table.service
    yield "temperature", "provider default" if service.temperature is None else f"{service.temperature:g}"
    yield "reply tokens", f"at most {service.max_tokens:,}"
    yield "secrets", "built in" if settings.words is None else f"from --secrets, {sum(map(len, settings.words))} words"
    yield "seats", table.seats
    yield "judge", table.judge or ""
    yield "guesses", f"{table.probe} after each conversation" if table.probe else ""
    yield "thoughts", "yes" if table.thoughts else ""


LABELS = GameLabelling()

experiment = Experiment(
    "secret-game",
    [
        Command(
            "play",
            Play,
            [play, tournament],
            prepare_play,
            GameResults,
            prefix="game",
            labelling=LABELS,
            function="play",
        ),
        Command(
            "compare",
            Compare,
            [play],
            prepare_compare,
            GameResults,
            prefix="game",
            labelling=LABELS,
            function="compare",
        ),
        Command(
            "score",
            Score,
            [score_conversations],
            prepare_score,
            ScoreResults,
            prefix="score",
            labelling=LABELS,
            function="score",
        ),
    ],
    about="Two agents each hold a secret code word and try to learn the other's.",
)
