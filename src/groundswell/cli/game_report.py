"""The report of a game, after its run: what is told in the terminal, and the folder with the page and its tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from groundswell.cli import output
from groundswell.cli.game_views import print_analysis, print_talk
from groundswell.engine.events import Event, WaveEnded, WaveSent
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.cli.running import Report
    from groundswell.engine.records import RunRecord
    from groundswell.engine.summary import Summary
    from groundswell.experiments.secret_game.analysis import Analysis
    from groundswell.experiments.secret_game.playing import Batch, Tournament
    from groundswell.experiments.secret_game.report.told import Interaction, Told, WaveFigures
    from groundswell.experiments.secret_game.report.writing import Written
    from groundswell.store.journal import Store
    from groundswell.store.results import FaultCount


DRIVERS = ("secret-game/play", "secret-game/tournament")
RESULTS = Path("results")
MOST_LETTERS = 100
_STRANGE = re.compile(r"[^\w .,=+@…-]")
"""What is not put into the name of a folder."""


class WaveTimes:
    """Listens for waves that travel live: the store knows only those that went in batches."""

    def __init__(self) -> None:
        self._sent: dict[int, WaveSent] = {}
        self._ended: list[tuple[WaveSent, float]] = []

    def __call__(self, event: Event) -> None:
        match event:
            case WaveSent(whole=True):
                self._sent[event.wave] = event
            case WaveEnded() if event.wave in self._sent:
                self._ended.append((self._sent.pop(event.wave), event.seconds))

    def figures(self) -> list[WaveFigures]:
        """What was heard, in the order in which waves left."""
        from groundswell.experiments.secret_game.report.told import WaveFigures

        waves = sorted(self._ended, key=lambda each: each[0].wave)
        return [
            WaveFigures(number, sent.transport, sent.account, sent.size, seconds)
            for number, (sent, seconds) in enumerate(waves, 1)
        ]


def folder_of(title: str) -> Path:
    """Where the report of a run goes unless something is said: a folder of its own, whatever the run is called."""
    plain = _STRANGE.sub("-", title).strip(" .")[:MOST_LETTERS]
    if plain == title:
        return RESULTS / title
    return RESULTS / f"{plain or 'game'}-{blake2b(title.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"


def check_folder(folder: Path) -> None:
    """Find out before anything is paid for whether a report can be made, and put there."""
    from groundswell.experiments.needed import REPORT, check_installed

    check_installed("reports need", REPORT)
    check_writable(folder)


def check_writable(folder: Path) -> None:
    """Find out whether files can be put into a folder, which need not be there yet."""
    place = folder.absolute()
    try:
        nearest = next(each for each in (place, *place.parents) if each.exists())  # the rest is made with the report
        with NamedTemporaryFile(dir=nearest):
            """It can be written to."""
    except OSError as error:
        raise SettingsError(f"--out {folder}: no report can be put there: {error.strerror or error}") from error


def report_to(folder: Path, summary: Summary, faults: Sequence[FaultCount], store: str, times: WaveTimes) -> None:
    """Write the report of a run, and say what it came to."""
    import msgspec

    from groundswell.cli.stored import opened
    from groundswell.experiments.secret_game.report.writing import write_report

    bare = msgspec.structs.replace(summary, analysis=None)
    if summary.analysis is None:
        output.print_outcome(bare, faults)
        return
    with opened(store) as held:
        told = _told(summary, held, times)
        with output.working("writing the report"):
            written = write_report(folder, told)  # before anything is said: whoever reads may stop reading
        output.print_outcome(bare, faults)
        print_analysis(told.analysis)
        if (beyond := summary.trials.usable - told.analysis.interactions.usable) > 0 and told.analysis.stopping:
            output.line(f"{beyond:,} interactions that were under way then are in the tables, and not in the figures")
        telling = next((each for each in told.interactions() if _leaked(each, told.analysis)), None)
        if telling is not None:
            output.line()
            print_talk(telling, told.analysis.tier)
    output.line()
    output.line(f"report: {written.page}")
    output.line(f"the interactions beside it: {', '.join(_tables(written.files))}")
    if telling is not None:
        show = f"runs show {shlex.quote(summary.name or summary.run_id)} --trial {telling.key}"
        output.line(f"that conversation in full: {output.command(show, store)}")


def report_of(record: RunRecord, store: str) -> Report | None:
    """How a game says what it came to when it is resumed; None for a run of something else."""
    if record.driver not in DRIVERS:
        return None
    folder = folder_of(record.title)

    def report(summary: Summary, faults: Sequence[FaultCount]) -> None:
        report_to(folder, summary, faults, store, WaveTimes())

    return report


def write_to(folder: Path, summary: Summary, store: str, times: WaveTimes) -> Written:
    """Write the report of a run that has figures, and say nothing."""
    from groundswell.cli.stored import opened
    from groundswell.experiments.secret_game.report.writing import write_report

    with opened(store) as held:
        return write_report(folder, _told(summary, held, times))


def _told(summary: Summary, held: Store, times: WaveTimes) -> Told:
    """What the report of a run tells."""
    import msgspec

    from groundswell.cli.batch_views import cost_of
    from groundswell.experiments.secret_game.analysis import Analysis
    from groundswell.experiments.secret_game.playing import Batch, Tournament
    from groundswell.experiments.secret_game.report.told import Told, interactions_of, waves_of

    record = held.runs.get(summary.run_id)
    of_rounds = record.driver == "secret-game/tournament"
    kind: type[Batch | Tournament] = Tournament if of_rounds else Batch
    settings = msgspec.json.decode(record.settings or "", type=kind)
    return Told(
        record.title,
        record.id,
        record.seed,
        msgspec.convert(summary.analysis, Analysis),
        summary,
        interactions_of(held.results(record)),
        waves_of(held.waves.of(record), lambda wave: cost_of(held, wave)[0]) or times.figures(),
        settings.table.points,
        _about(record, settings),
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


def _leaked(interaction: Interaction, analysis: Analysis) -> bool:
    return interaction.played is not None and any(interaction.played.leaked(analysis.tier))


def _tables(files: Sequence[Path]) -> list[str]:
    return [file.name for file in files if file.stem == "interactions"]
