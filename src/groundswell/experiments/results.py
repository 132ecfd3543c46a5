"""The results of a run: its report, the files in its folder, and the folder that is stored with the run."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""The options of a run. Its first line names the run, as proof that the folder belongs to it: a store may come from
somebody else and name any folder."""
KEPT_AS = "groundswell.results"
LONGEST_NAME = 100
_STRANGE = re.compile(r"[^\w .,=+@…-]")
"""Characters that are replaced in folder names."""


class Plain(str):
    """Text in findings that is printed exactly, for pipes."""


class Aside(str):
    """A note beside the findings, printed on standard error."""


@dataclass(frozen=True)
class Written:
    """The files of a report: its page, the other files, and the blocks that it shows."""

    page: Path | None = None
    files: tuple[Path, ...] = ()
    report: Report | None = None
    analysis: Any = None


Blocks = Callable[[Any], Iterable[Block]]
"""Makes the blocks of a report from a `Found`."""


class Results:
    """The results of one run: a report, files in its folder, and the printed findings.

    The defaults suit any experiment. `read` gathers the input of the report, `blocks` makes its blocks, and `tables`
    returns the data files beside it.
    """

    kind: str = ""
    """Title of the experiment in the report, for example `Secret game`."""
    keeps_folder: bool = True
    """Whether the run has a folder."""
    tells_outcome: bool = True
    """Whether trials, requests, cost and time are printed before the findings."""
    needs_drawing: bool = False
    """Whether the report has figures, so that matplotlib must be installed."""
    reports_unfinished: bool = False
    """Whether a run that is not complete has a report, too. `read` must support it."""
    pools: bool = False
    """Whether several runs can have one report."""
    table_names: Sequence[str] = ()
    """All data tables that a report may have. Files of tables that this report does not have are removed."""
    width: int | None = None
    """Width of the terminal; None if the findings go to a file or a pipe."""
    columns: int | None = None
    """Maximum width of tables, also if COLUMNS is set for a pipe; None for no limit."""
    listeners: Sequence[Listener] = ()
    """Listeners for the events of the run."""

    def __init__(self, folder: Path, options: Any = None, make_blocks: Blocks | None = None) -> None:
        """`options` is None if a run is resumed or only shown."""
        self.folder = folder
        self.options = options
        self.choices = HowToRun()
        self.say: Callable[[str], None] = lambda text: None
        """Prints a message for the user."""
        self._make_blocks = make_blocks
        self.analyses: dict[str, Any] = {}
        """The return types of drivers, by driver name."""

    def elsewhere(self, folder: Path) -> Results:
        """The same results in another folder."""
        made = type(self)(folder, None, self._make_blocks)
        made.analyses = self.analyses
        return made

    def check(self) -> None:
        """Check that the files can be written, before anything is sent."""
        if self.needs_drawing:
            check_installed("reports need", REPORT)
        if self.keeps_folder:
            check_writable(self.folder)

    def check_resumed(self, record: RunRecord) -> None:
        """Raise an error if a stored run would write to a path that the user has not named.

        A store may come from somebody else. Files in `folder` are safe.
        """

    def around(self, held: Store, before: RunRecord | None, name: str) -> AbstractContextManager[Any]:
        """A context that encloses the run. `before` is the record of the run, if it existed already."""
        return nullcontext()

    def has_report(self, run: RunRecord | Summary) -> bool:
        """Whether a report can be written about a run now."""
        return run.analysis is not None or self.reports_unfinished

    def summary(self, summary: Summary, record: RunRecord) -> Summary:
        """The summary to print."""
        return summary

    def more(self, held: Store, record: RunRecord) -> Mapping[str, Any]:
        """What `--json` prints in addition to the summary, by name."""
        return {}

    def exit_code(self, summary: Summary) -> int:
        """The exit status of the command."""
        return summary.exit_code

    def read(self, held: Store, records: Sequence[RunRecord]) -> Any:
        """The input of the report. It must have an `analysis`."""
        return Found(held, records, summarise(records[0], self.analyses.get(records[0].driver or "", Any)))

    def blocks(self, found: Any) -> Iterable[Block]:
        """The blocks of the report."""
        if self._make_blocks is None:
            return default_blocks(found)
        try:
            return list(self._make_blocks(found))
        except Exception as error:  # noqa: BLE001  the user's code failed, but the results are paid for
            self.say(
                f"warning: the `blocks` function of this experiment failed ({type(error).__name__}: {error}); "
                "writing the default report"
            )
            return default_blocks(found)

    def tables(self, found: Any) -> Iterable[DataTable]:
        """The data files beside the report. If there are none, trials.csv is written."""
        return ()

    def write_more(self, held: Store, records: Sequence[RunRecord], found: Any) -> Sequence[Path]:
        """Write further files, and return their paths."""
        return ()

    def report(self, held: Store, records: Sequence[RunRecord], found: Any = None) -> Report:
        """The report of a run, or of several pooled runs."""
        if len(records) > 1 and not self.pools:
            raise SettingsError("runs of this experiment cannot be pooled; give one run")
        found = self.read(held, records) if found is None else found
        runs = "Run" if len(records) == 1 else "Runs"
        made = Report(
            kind=self.kind or (records[0].driver or "").partition("/")[0].replace("-", " "),
            title="+".join(record.title for record in records),
            blocks=list(self.blocks(found)),
            footer=f"{runs} {', '.join(record.id for record in records)}, written by Groundswell.",
        )
        if made.figures and lacking(("matplotlib",)):
            self.say(
                "warning: matplotlib is not installed, so the report has tables instead of figures; to get figures: "
                "pip install 'groundswell[report]'"
            )
            return without_drawings(made)
        return made

    def write(self, held: Store, records: Sequence[RunRecord], format: ReportFormat = "html") -> Written:
        """Write the report and the files beside it. Existing files are replaced."""
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
            write_page(self.folder, report, drawn, beside, each)  # existing pages in other formats would be stale
        page = self.folder / PAGES[format]
        return Written(page, tuple(files), report, found.analysis)

    def findings(self, report: Report) -> Iterator[RenderableType]:
        """The findings for a terminal."""
        return brief(report, self.columns)

    def text(self, report: Report) -> str:
        """The findings as plain text."""
        out = io.StringIO()
        console = Console(file=out, width=160, highlight=False, emoji=False, markup=False)
        for each in self.findings(report):
            console.print(each, soft_wrap=isinstance(each, str | Text))
        return out.getvalue().strip("\n")

    def hints(self, held: Store, record: RunRecord, report: Report) -> Iterator[tuple[str, str]]:
        """Suggested next steps: a description and a command."""
        example = report.example
        if example is not None and example[0].command.startswith("groundswell "):
            command = example[0].command.removeprefix("groundswell ")
            yield "to see this transcript in full", command.replace("{key}", example[1].key)


class Outputs:
    """Writes the results of one run: its configuration when it starts, and its files when it has ended.

    `opened` opens the store, from any thread.
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
        """The listeners of the results, and one that records their folder."""
        return [*self.results.listeners, self._hear]

    def _hear(self, event: Event) -> None:
        """Record the folder when the first request is sent. Before that, the run may still be refused."""
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
            self.results.say(f"warning: could not write the configuration: {error}")

    def write(self, summary: Summary) -> Written:
        """Write the files of a run."""
        with self.opened() as held:
            return self.write_with(held, held.runs.get(summary.run_id))

    def write_with(self, held: Store, record: RunRecord) -> Written:
        """Write the files, with the store already open."""
        self._remember(held, record.id)
        return self.results.write(held, [record])


class Kept(msgspec.Struct, frozen=True):
    """What is stored about the results of a run: their folder, if any, and the options of the run."""

    folder: str = ""
    config: str = ""


def remember_folder(held: Store, run: str, folder: Path, config: str) -> None:
    """Store the results folder of a run, for resuming it, and write its configuration there."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CONFIG) as out:
        out.write(f"# run {run}: {_quoted(held.runs.get(run).title)}\n{config}".encode())
    _keep(held, run, Kept(str(folder.absolute()), config))


def remember_config(held: Store, run: str, config: str) -> None:
    """Store the options of a run that has no results folder."""
    _keep(held, run, Kept(config=config))


def _keep(held: Store, run: str, kept: Kept) -> None:
    held.documents.put(KEPT, f"{run}/{KEPT_AS}", msgspec.json.encode(kept).decode())


def remembered_folder(held: Store, record: RunRecord) -> Path | None:
    """The results folder of a run, if its configuration file confirms it."""
    known = _kept(held, record.id)
    if known is None or not known.folder:
        return None
    folder = Path(known.folder)
    if not _first_line(folder).startswith(f"# run {record.id}:"):
        return None
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _quoted(name: str) -> str:
    """A name as a JSON string, on one line."""
    return msgspec.json.encode(name).decode()


def _first_line(folder: Path) -> str:
    """The first line of a configuration, which names its run; empty if there is none."""
    try:
        with (folder / CONFIG).open(errors="replace") as config:
            return config.readline(1000).strip()
    except OSError:
        return ""


def remembered_config(held: Store, record: RunRecord) -> str:
    """The options of a run, as TOML."""
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
    """The known cost in dollars of the replies of a wave, and the number of replies with an unknown price."""
    spent, unknown = 0.0, 0
    prices = ModelPrices(load_here)
    for settlement in held.waves.settled(wave):
        if isinstance(settlement, Reply | Embedding):
            price = _price(prices, wave, settlement.usage)
            spent, unknown = spent + (price or 0.0), unknown + (price is None)
    return (None if unknown and not spent else spent), unknown


def _price(prices: ModelPrices, wave: StoredWave, usage: Usage) -> float | None:
    """The cost of a reply; None if its account is no longer configured."""
    try:
        return prices(f"{wave.account}/{wave.about.model}", usage, wave.transport)
    except SettingsError:
        return None


def folder_of(name: str) -> Path:
    """The default results folder of a run. Every name has its own folder."""
    plain = _STRANGE.sub("-", name).strip(" .")[:LONGEST_NAME]
    if plain == name and " " not in name:
        return RESULTS / name
    slug = RESULTS / name.lower().replace(" ", "-")
    if plain == name and _first_line(slug).partition(": ")[2] in ("", _quoted(name)):  # not the folder of another run
        return slug
    plain = plain.replace(" ", "-")
    return RESULTS / f"{plain or 'run'}-{blake2b(name.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"


def check_writable(folder: Path) -> None:
    """Check that files can be written to a folder, which need not exist yet."""
    place = folder.absolute()
    try:
        nearest = next(each for each in (place, *place.parents) if each.exists())  # missing folders are created later
        with NamedTemporaryFile(dir=nearest):
            """It can be written to."""
    except OSError as error:
        raise SettingsError(f"--out {folder}: cannot write to this folder: {error.strerror or error}") from error
