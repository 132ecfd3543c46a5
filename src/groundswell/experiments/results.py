"""The results of any run: its report, the files in its folder, and the folder remembered with the run."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.text import Text

from groundswell.engine.events import Event, Listener, TrialEnded, WaveSent
from groundswell.engine.records import RunRecord
from groundswell.engine.summary import Summary, summarise
from groundswell.errors import GroundswellError, SettingsError
from groundswell.experiments.needed import REPORT, check_installed, lacking
from groundswell.experiments.options import HowToRun
from groundswell.experiments.report import (
    PAGES,
    DataTable,
    Found,
    ReportFormat,
    default_blocks,
    files_blocks,
    write_analysis,
    write_figures,
    write_page,
    write_tables,
    write_trials,
)
from groundswell.program.request import Embedding, Reply, Usage
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.reporting.blocks import Block, Report, without_drawings
from groundswell.reporting.figures import svg_of
from groundswell.reporting.terminal import brief
from groundswell.store.atomic import replacing
from groundswell.store.documents import KEPT
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave

RESULTS = Path("results")
CONFIG = "config.toml"
"""The options of a run. Its first line names the run, so that a folder says itself whose results it holds: a store may
come from somebody else, and name any folder."""
KEPT_AS = "groundswell.results"
LONGEST_NAME = 100
_STRANGE = re.compile(r"[^\w .,=+@…-]")
"""What is not put into the name of a folder."""


class Plain(str):
    """Text in findings that is printed to the character, for those who pipe it on."""


class Aside(str):
    """What is said beside the findings, on standard error."""


@dataclass(frozen=True)
class Written:
    """The files of a report: the page to open first, what is beside it, and the blocks that they show."""

    page: Path | None = None
    files: tuple[Path, ...] = ()
    report: Report | None = None
    analysis: Any = None


Blocks = Callable[[Any], Iterable[Block]]
"""Makes the blocks of a report from a `Found`."""


class Results:
    """What a run leaves: a report, files in its folder, and what is said of it. One object for each run.

    Everything has a default, which suits any experiment. `read` gathers what the report is made of, `blocks` makes the
    report from it, `tables` are the data files beside it.
    """

    kind: str = ""
    """What the report calls the experiment, as `The secret game`."""
    keeps_folder: bool = True
    """Whether there is a folder at all."""
    tells_outcome: bool = True
    """Whether the findings come after what every run is told of: trials, requests, cost and time."""
    needs_drawing: bool = False
    """Whether reports have figures, so that matplotlib has to be installed."""
    pools: bool = False
    """Whether several runs can have one report."""
    table_names: Sequence[str] = ()
    """Every data table that a report may have: files of those that it does not have this time are removed."""
    width: int | None = None
    """The columns of the terminal that findings are for; None if they go to a file or a pipe."""
    columns: int | None = None
    """The columns that tables may take, also where somebody set them for a pipe; None if they do not matter."""
    listeners: Sequence[Listener] = ()
    """Who hears of the run while it goes on."""

    def __init__(self, folder: Path, options: Any = None, make_blocks: Blocks | None = None) -> None:
        """`options` are None when a run is resumed, or only looked at."""
        self.folder = folder
        self.options = options
        self.choices = HowToRun()
        self.say: Callable[[str], None] = lambda text: None
        """Says something to whoever waits for the run."""
        self._make_blocks = make_blocks
        self.analyses: dict[str, Any] = {}
        """The types that drivers return, by the names of the drivers."""

    def elsewhere(self, folder: Path) -> Results:
        """The same results in another folder."""
        made = type(self)(folder, None, self._make_blocks)
        made.analyses = self.analyses
        return made

    def check(self) -> None:
        """Find out before anything is paid for whether the files can be written."""
        if self.needs_drawing:
            check_installed("reports need", REPORT)
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

    def read(self, held: Store, records: Sequence[RunRecord]) -> Any:
        """What the report is made of. It has an `analysis`."""
        return Found(held, records, summarise(records[0], self.analyses.get(records[0].driver or "", Any)))

    def blocks(self, found: Any) -> Iterable[Block]:
        """The blocks of the report."""
        if self._make_blocks is None:
            return default_blocks(found)
        try:
            return list(self._make_blocks(found))
        except Exception as error:  # noqa: BLE001  it is the user's code, and the results are paid for
            self.say(
                f"note: the blocks of this report failed, so it has the usual ones: {type(error).__name__}: {error}"
            )
            return default_blocks(found)

    def tables(self, found: Any) -> Iterable[DataTable]:
        """The data files beside the report, other than trials.csv, which is there if there is no other."""
        return ()

    def write_more(self, held: Store, records: Sequence[RunRecord], found: Any) -> Sequence[Path]:
        """Write files of another kind; gives their paths."""
        return ()

    def report(self, held: Store, records: Sequence[RunRecord], found: Any = None) -> Report:
        """The report of a run, or of several that are pooled."""
        if len(records) > 1 and not self.pools:
            raise SettingsError("runs of this kind are not pooled: give one run")
        found = self.read(held, records) if found is None else found
        runs = "Run" if len(records) == 1 else "Runs"
        made = Report(
            kind=self.kind or (records[0].driver or "").partition("/")[0].replace("-", " "),
            title="+".join(record.title for record in records),
            blocks=list(self.blocks(found)),
            footer=f"{runs} {', '.join(record.id for record in records)}, written by Groundswell.",
        )
        if made.figures and lacking(("matplotlib",)):
            self.say("note: matplotlib is not installed, so figures are tables: pip install 'groundswell[report]'")
            return without_drawings(made)
        return made

    def write(self, held: Store, records: Sequence[RunRecord], format: ReportFormat = "html") -> Written:
        """Write the report and the files beside it. Files that are there are replaced."""
        found = self.read(held, records)
        report = self.report(held, records, found)
        if not self.keeps_folder:
            return Written(report=report, analysis=found.analysis)
        tables = list(self.tables(found))
        data = list(write_tables(self.folder, tables, self.table_names))
        drawn = {block.id: svg_of(block) for block in report.figures}
        files = [
            *(data if tables else write_trials(self.folder, held, records)),
            *write_analysis(self.folder, found.analysis),
            *write_figures(self.folder, report, drawn),
            *self.write_more(held, records, found),
        ]
        beside = list(files_blocks(self.folder, files, tables))
        for each in [each for each in PAGES if each == format or (self.folder / PAGES[each]).exists()]:
            write_page(self.folder, report, drawn, beside, each)  # one of an earlier report would be out of date
        page = self.folder / PAGES[format]
        return Written(page, tuple(files), report, found.analysis)

    def findings(self, report: Report) -> Iterator[RenderableType]:
        """What came of it, for a terminal."""
        return brief(report, self.columns)

    def text(self, report: Report) -> str:
        """The findings as plain text."""
        out = io.StringIO()
        console = Console(file=out, width=160, highlight=False, emoji=False, markup=False)
        for each in self.findings(report):
            console.print(each, soft_wrap=isinstance(each, str | Text))
        return out.getvalue().strip("\n")

    def hints(self, held: Store, record: RunRecord, report: Report) -> Iterator[tuple[str, str]]:
        """What could be done next: what for, and the command."""
        example = report.example
        if example is not None and example[0].command.startswith("groundswell "):
            command = example[0].command.removeprefix("groundswell ")
            yield "that transcript in full", command.replace("{key}", example[1].key)


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
