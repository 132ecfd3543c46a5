"""The results of any run: files in its folder, an analysis as lines, and the folder remembered with the run."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from groundswell.engine.events import Event, Listener, TrialEnded, WaveSent
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary
from groundswell.errors import GroundswellError, SettingsError
from groundswell.experiments.options import HowToRun
from groundswell.program.request import Embedding, Reply, Usage
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.reporting.words import visible
from groundswell.store.atomic import replacing
from groundswell.store.documents import KEPT
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave

RESULTS = Path("results")
ANALYSIS, TRIALS = "analysis.json", "trials.csv"
CONFIG = "config.toml"
"""The options of a run. Its first line names the run, so that a folder says itself whose results it holds: a store may
come from somebody else, and name any folder."""
KEPT_AS = "groundswell.results"
LONGEST = 100
MOST_LINES = 60
LONGEST_NAME = 100
_STRANGE = re.compile(r"[^\w .,=+@…-]")
"""What is not put into the name of a folder."""


class Plain(str):
    """Text in findings that is printed to the character, for those who pipe it on."""


class Aside(str):
    """What is said beside the findings, on standard error."""


@dataclass(frozen=True)
class Written:
    """The files of a report: the page to open first, and what is beside it."""

    page: Path | None = None
    files: tuple[Path, ...] = ()
    analysis: Any = None


class Results:
    """What a run leaves: files in its folder, and what is said of it. One object for each run that is carried out.

    Everything has a default, which suits any experiment.
    """

    title: str = ""
    """What `runs report` calls a run of this kind, as 'a game'."""
    keeps_folder: bool = True
    """Whether there is a folder at all."""
    tells_outcome: bool = True
    """Whether the findings come after what every run is told of: trials, requests, cost and time."""
    width: int | None = None
    """The columns of the terminal that findings are for; None if they go to a file or a pipe."""
    listeners: Sequence[Listener] = ()
    """Who hears of the run while it goes on."""

    def __init__(self, folder: Path, options: Any = None) -> None:
        """`options` are None when a run is resumed, or only looked at."""
        self.folder = folder
        self.options = options
        self.choices = HowToRun()
        self.say: Callable[[str], None] = lambda text: None
        """Says something to whoever waits for the run."""

    def check(self) -> None:
        """Find out before anything is paid for whether the files can be written."""
        if self.keeps_folder:
            check_writable(self.folder)

    def check_resumed(self, record: RunRecord) -> None:
        """Refuse to go on with a stored run that would write to a place which the user has not named.

        A store may come from somebody else. What goes to `folder` is safe.
        """

    def around(self, held: Store, before: RunRecord | None, name: str) -> AbstractContextManager[Any]:
        """What is done before and after the run is carried out; `before` is the run as it was, if there was one."""
        return nullcontext()

    def summary(self, summary: Summary, record: RunRecord) -> Summary:
        """The summary as people are told of it."""
        return summary

    def exit_code(self, summary: Summary) -> int:
        """The exit status of the command."""
        return summary.exit_code

    def write(self, held: Store, records: Sequence[RunRecord]) -> Written:
        """Write the files, of one run or of several that are pooled. Files that are there are replaced."""
        if not self.keeps_folder:
            return Written()
        return write_results(self.folder, held, records)

    def findings(self, held: Store, records: Sequence[RunRecord], summary: Summary) -> Iterator[RenderableType]:
        """What came of it, for a terminal."""
        yield from analysis_shown(summary.analysis)

    def text(self, held: Store, records: Sequence[RunRecord], summary: Summary) -> str:
        """The findings as plain text."""
        out = io.StringIO()
        console = Console(file=out, width=160, highlight=False, emoji=False, markup=False)
        for each in self.findings(held, records, summary):
            console.print(each, soft_wrap=isinstance(each, str))
        return out.getvalue().strip("\n")

    def hints(self, held: Store, record: RunRecord) -> Iterator[tuple[str, str]]:
        """What could be done next: what for, and the command."""
        return iter(())


class Outputs:
    """The results of one run as they are kept: the configuration when the run begins, the files when it has ended.

    `opened` opens the store for a while, from any thread.
    """

    def __init__(
        self, results: Results, opened: Callable[[], AbstractContextManager[Store]], config: str, *, keep: bool = True
    ) -> None:
        self.results = results
        self.opened = opened
        self._config = config
        self._left = keep and results.keeps_folder

    @property
    def listeners(self) -> list[Listener]:
        """Those of the results, and one that writes down where they go."""
        return [*self.results.listeners, self._hear]

    def _hear(self, event: Event) -> None:
        """Write down the folder of a run when its first trial is on its way: before, it may not even begin."""
        if self._left and isinstance(event, WaveSent | TrialEnded):
            with self.opened() as held:
                self._remember(held, event.run)

    def _remember(self, held: Store, run: str) -> None:
        if not self._left:
            return
        self._left = False
        try:
            remember_folder(held, run, self.results.folder, self._config)
        except (GroundswellError, OSError) as error:
            self.results.say(f"note: the configuration was not written: {error}")

    def write(self, summary: Summary) -> Written:
        """Write the files of a run that has figures."""
        with self.opened() as held:
            return self.write_with(held, held.runs.get(summary.run_id))

    def write_with(self, held: Store, record: RunRecord) -> Written:
        """The same, with the store open already."""
        self._remember(held, record.id)
        return self.results.write(held, [record])


class Kept(msgspec.Struct, frozen=True):
    """What a run remembers of its results: the folder that they are in, and the options that it was started with."""

    folder: str
    config: str = ""


def remember_folder(held: Store, run: str, folder: Path, config: str) -> None:
    """Remember where the results of a run go, for those who resume it, and put its configuration there."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CONFIG) as out:
        out.write(f"# run {run}: {_quoted(held.runs.get(run).title)}\n{config}".encode())
    held.documents.put(KEPT, f"{run}/{KEPT_AS}", msgspec.json.encode(Kept(str(folder.absolute()), config)).decode())


def remembered_folder(held: Store, record: RunRecord) -> Path | None:
    """The folder that a run's results are in, if it says so itself."""
    known = _kept(held, record.id)
    if known is None:
        return None
    folder = Path(known.folder)
    if not _first_line(folder).startswith(f"# run {record.id}:"):
        return None
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _quoted(name: str) -> str:
    """A name on one line, whatever is in it."""
    return msgspec.json.encode(name).decode()


def _first_line(folder: Path) -> str:
    """The line of a configuration that names its run; empty if there is none."""
    try:
        with (folder / CONFIG).open(errors="replace") as config:
            return config.readline(1000).strip()
    except OSError:
        return ""


def remembered_config(held: Store, record: RunRecord) -> str:
    """The options that a run was started with, as TOML."""
    known = _kept(held, record.id)
    return "" if known is None else known.config


def _kept(held: Store, run: str) -> Kept | None:
    id_ = f"{run}/{KEPT_AS}"
    found = held.documents.find(KEPT, id_).get(id_)
    try:
        return None if found is None else msgspec.json.decode(found.body, type=Kept)
    except msgspec.DecodeError:
        return None


def write_results(folder: Path, held: Store, records: Sequence[RunRecord]) -> Written:
    """The analysis as JSON and the trials as a table. Files that are there are replaced."""
    record = records[0]
    files = []
    if record.analysis is not None:
        with replacing(folder / ANALYSIS) as out:
            out.write(msgspec.json.format(record.analysis.encode(), indent=2) + b"\n")
        files.append(folder / ANALYSIS)
    with replacing(folder / TRIALS) as out:
        held.results(record).write(out, "csv")
    files.append(folder / TRIALS)
    return Written(files=tuple(files))


def analysis_shown(analysis: Any) -> Iterator[str | Table]:
    """An analysis as lines and tables: what is nested is indented, lists of equal objects are tables."""
    plain = msgspec.to_builtins(analysis, enc_hook=str)
    if plain is None:
        return
    lines = list(_lines(plain, ""))
    yield ""
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"… and {len(lines) - MOST_LINES:,} lines more: --json has them all"


def _lines(value: Any, indent: str) -> Iterator[str | Table]:
    if not isinstance(value, Mapping):
        value = {"analysis": value}
    width = max((len(str(name)) for name in value), default=0)
    for name, each in value.items():
        if isinstance(each, Mapping) and each:
            yield f"{indent}{name}"
            yield from _lines(each, indent + "  ")
        elif _is_table(each):
            yield f"{indent}{name}"
            yield _table(each)
        else:
            yield f"{indent}{name:<{width}}  {_cell(each)}"


def _is_table(value: Any) -> bool:
    """Whether a list has objects with the same fields."""
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        return False
    return len({tuple(each) for each in value}) == 1


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        number = all(isinstance(row[name], int | float) for row in rows)
        table.add_column(Text(visible(str(name))), justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(_cell(each)) for each in row.values()))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}…"


def cost_of(held: Store, wave: StoredWave) -> tuple[float | None, int]:
    """The dollars that the replies of a wave cost, as far as known, and of how many they are not."""
    spent, unknown = 0.0, 0
    prices = ModelPrices(load_here)
    for settlement in held.waves.settled(wave):
        if isinstance(settlement, Reply | Embedding):
            price = _price(prices, wave, settlement.usage)
            spent, unknown = spent + (price or 0.0), unknown + (price is None)
    return (None if unknown and not spent else spent), unknown


def _price(prices: ModelPrices, wave: StoredWave, usage: Usage) -> float | None:
    """What a reply cost; nobody knows, where its account is not set up any more."""
    try:
        return prices(f"{wave.account}/{wave.about.model}", usage, wave.transport)
    except SettingsError:
        return None


def folder_of(name: str) -> Path:
    """Where the results of a run go unless something is said: a folder of its own, whatever the run is called."""
    plain = _STRANGE.sub("-", name).strip(" .")[:LONGEST_NAME]
    if plain == name and " " not in name:
        return RESULTS / name
    slug = RESULTS / name.lower().replace(" ", "-")
    if plain == name and _first_line(slug).partition(": ")[2] in ("", _quoted(name)):  # nor does another run have it
        return slug
    plain = plain.replace(" ", "-")
    return RESULTS / f"{plain or 'run'}-{blake2b(name.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"


def check_writable(folder: Path) -> None:
    """Find out whether files can be put into a folder, which need not be there yet."""
    place = folder.absolute()
    try:
        nearest = next(each for each in (place, *place.parents) if each.exists())  # the rest is made with the report
        with NamedTemporaryFile(dir=nearest):
            """It can be written to."""
    except OSError as error:
        raise SettingsError(f"--out {folder}: no report can be put there: {error.strerror or error}") from error
