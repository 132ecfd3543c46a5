"""The secret game as an experiment: options, the settings made of them, and the results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from rich.console import RenderableType

from groundswell.engine.events import Event, WaveEnded, WaveSent
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Command, Experiment, Results, Written
from groundswell.experiments.needed import REPORT, check_installed
from groundswell.experiments.results import cost_of
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.options import Compare, Play, prepare_compare, prepare_play
from groundswell.experiments.secret_game.playing import play, tournament
from groundswell.experiments.secret_game.report.told import Interaction, Told, WaveFigures, interactions_of, waves_of
from groundswell.experiments.secret_game.report.writing import write_report
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.summary import summary, talk
from groundswell.store.journal import Store


class WaveTimes:
    """Listens for waves that travel live: the store knows only those that went in batches."""

    def __init__(self) -> None:
        self._sent: dict[int, WaveSent] = {}
        self._ended: list[tuple[WaveSent, float]] = []

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        match event:
            case WaveSent(whole=True):
                self._sent[event.wave] = event
            case WaveEnded() if event.wave in self._sent:
                self._ended.append((self._sent.pop(event.wave), event.seconds))

    def figures(self) -> list[WaveFigures]:
        """What was heard, in the order in which waves left."""
        waves = sorted(self._ended, key=lambda each: each[0].wave)
        return [
            WaveFigures(number, sent.transport, sent.account, sent.size, seconds)
            for number, (sent, seconds) in enumerate(waves, 1)
        ]


class GameResults(Results):
    """The report of a game: the page with its tables, and a summary with one conversation."""

    def __init__(self, folder: Path, options: Any = None) -> None:
        super().__init__(folder, options)
        self._times = WaveTimes()
        self.listeners = [self._times]

    def check(self) -> None:
        """Also whether the packages for drawings are there."""
        check_installed("reports need", REPORT)
        super().check()

    def write(self, held: Store, records: Sequence[RunRecord]) -> Written:
        """The page, the figures, and the interactions in three formats."""
        _refuse_several(records)
        told = self.told(held, records[0])
        written = write_report(self.folder, told)
        return Written(written.page, tuple(file for file in written.files if file != written.page), told.analysis)

    def findings(self, held: Store, records: Sequence[RunRecord], summary_: Summary) -> Iterator[RenderableType]:
        """The models and their rates, and a conversation in which a secret came out."""
        told = self.told(held, records[0])
        analysis = told.analysis
        yield from summary(analysis)
        beyond = summary_.trials.usable - analysis.interactions.usable
        if beyond > 0 and analysis.stopping:
            under_way = "1 interaction that was" if beyond == 1 else f"{beyond:,} interactions that were"
            yield f"{under_way} under way then {'is' if beyond == 1 else 'are'} in the tables, and not in the figures"
        if (leaking := _leaking(told)) is not None:
            yield ""
            yield from talk(leaking, analysis.tier)

    def hints(self, held: Store, record: RunRecord) -> Iterator[tuple[str, str]]:
        """How to read that conversation."""
        if (leaking := _leaking(self.told(held, record))) is not None:
            yield "that conversation in full", f"runs show {shlex.quote(record.title)} --trial {leaking.key}"

    def told(self, held: Store, record: RunRecord) -> Told:
        """What the report of a run tells."""
        of_rounds = record.driver == "secret-game/tournament"
        kind: type[Batch | Tournament] = Tournament if of_rounds else Batch
        settings = msgspec.json.decode(record.settings or "", type=kind)
        found = summarise(record)
        return Told(
            record.title,
            record.id,
            record.seed,
            msgspec.convert(found.analysis, Analysis),
            found,
            interactions_of(held.results(record)),
            waves_of(held.waves.of(record), lambda wave: cost_of(held, wave)[0]) or self._times.figures(),
            settings.table.points,
            _about(record, settings),
        )


def _refuse_several(records: Sequence[RunRecord]) -> None:
    if len(records) > 1:
        raise SettingsError("games are not pooled: give one run")


def _leaking(told: Told) -> Interaction | None:
    """The first interaction in which a secret came out."""
    tier = told.analysis.tier
    return next(
        (each for each in told.interactions() if each.played is not None and any(each.played.leaked(tier))), None
    )


def _about(record: RunRecord, settings: Batch | Tournament) -> list[tuple[str, str]]:
    """What else there is to say of a run, for those who want to do it again."""
    table, service = settings.table, settings.table.service
    full = {name.removeprefix("model "): model for name, model in record.sources.items() if name.startswith("model ")}
    via, schedule = record.options.get("via", "live"), record.options.get("schedule", "stream")
    pool = "built in" if settings.words is None else f"your own, {sum(map(len, settings.words))} words"
    rows = [
        ("begun", f"{datetime.fromtimestamp(record.created_at, UTC):%Y-%m-%d %H:%M} UTC"),
        ("version", f"groundswell {version('groundswell')}"),
        ("in full", ", ".join(f"{name} is {model}" for name, model in full.items())),
        ("temperature", "the provider's" if service.temperature is None else f"{service.temperature:g}"),
        ("reply tokens", f"at most {service.max_tokens:,}"),
        ("sent", f"{via}, {'turn by turn' if schedule == 'waves' else 'as they come up'}"),
        ("secrets", pool),
        ("seats", table.seats),
        ("judge", table.judge or ""),
        ("guesses", f"{table.probe} afterwards" if table.probe else ""),
        ("thoughts", "asked for" if table.thoughts else ""),
    ]
    return [(name, value) for name, value in rows if value]


experiment = Experiment(
    "secret-game",
    [
        Command("play", Play, [play, tournament], prepare_play, GameResults, prefix="game"),
        Command("compare", Compare, [play], prepare_compare, GameResults, prefix="game"),
    ],
    about="Two agents keep a code word each and try to get the other's.",
)
