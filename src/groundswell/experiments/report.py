"""Common parts of all reports: the blocks about a run, the default report, and the files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.stored import StoredRun
from groundswell.engine.summary import Paid, RunCost, Summary
from groundswell.reporting.blocks import (
    Block,
    Cell,
    KeyFigure,
    KeyFigures,
    Message,
    Report,
    Table,
    Text,
    Transcript,
    Transcripts,
    plain,
    settings_table,
)
from groundswell.reporting.figures import OURS, on_paper
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.page import page_of
from groundswell.reporting.talk import turns
from groundswell.reporting.transcript import Transcript as StoredTranscript
from groundswell.reporting.words import also, cost, duration, plainly
from groundswell.store.atomic import own_folder, replacing
from groundswell.store.journal import Store
from groundswell.store.results import Results as Trials
from groundswell.store.tables import Columns, table_files, table_paths
from groundswell.version import __version__

ReportFormat = Literal["html", "md", "json"]
ANALYSIS, FIGURES = "analysis.json", "figures"
PAGES: dict[ReportFormat, str] = {"html": "report.html", "md": "report.md", "json": "report.json"}
MOST_TRANSCRIPTS = 500
"""Maximum number of transcripts in the default report. Each is read from the journal."""
MOST_TABLE = 1_000
LONGEST = 200
ASKS = {"sent": "sent", "resent": "resent", "cached": "from the cache", "replayed": "replayed", "failed": "failed"}


class DataTable(NamedTuple):
    """A data file beside a report: typed columns with descriptions, and a function that reads the rows."""

    name: str
    columns: Columns
    rows: Callable[[], Iterable[Mapping[str, Any]]]
    meaning: Mapping[str, str] = {}


@dataclass
class Found:
    """The input of a report: the store, the records of its runs, and the summary of the first run."""

    held: Store
    records: Sequence[RunRecord]
    summary: Summary

    @property
    def record(self) -> RunRecord:
        """The first run, usually the only one."""
        return self.records[0]

    @property
    def analysis(self) -> Any:
        """The return value of the driver."""
        return self.summary.analysis

    @property
    def run(self) -> StoredRun:
        """The stored run, with rows, frame and transcripts."""
        return StoredRun(self.record, self.held.results(self.record))

    def ending(self) -> Iterator[Block]:
        """The last blocks of a report: rows, transcripts, settings, missing trials and cost."""
        yield from rows_block(self.held.results(self.record))
        yield trial_transcripts(self)
        yield from about_run([self.summary], self.records, self.held)


def write_page(
    folder: Path, report: Report, drawn: Mapping[str, str], blocks: Iterable[Block], format: ReportFormat
) -> None:
    """Write a report with these blocks at its end. `drawn` contains the rendered figures."""
    whole = Report(kind=report.kind, title=report.title, blocks=[*report.blocks, *blocks], footer=report.footer)
    with replacing(folder / PAGES[format]) as out:
        out.write(rendered(whole, format, drawn))


def rendered(report: Report, format: ReportFormat, drawn: Mapping[str, str] | None = None) -> bytes:
    """A report as a file."""
    match format:
        case "html":
            return page_of(report, drawn).encode()
        case "md":
            return markdown_of(report, FIGURES).encode()
        case "json":
            return msgspec.json.format(msgspec.json.encode(plain(report), enc_hook=str), indent=2) + b"\n"


def write_tables(folder: Path, tables: Iterable[DataTable], every: Iterable[str] = ()) -> Iterator[Path]:
    """Write data tables in all formats, and remove files of other tables in `every` from an earlier report."""
    names = []
    for table in tables:
        names.append(table.name)
        with table_files(folder, table.name, table.columns) as take:
            for row in table.rows():
                take(row)
        yield from table_paths(folder, table.name)
    for path in [path for name in every if name not in names for path in table_paths(folder, name)]:
        path.unlink(missing_ok=True)


def write_trials(folder: Path, held: Store, records: Sequence[RunRecord]) -> Iterator[Path]:
    """Write the data of any run: one row per trial, and the rows that programs recorded."""
    trials = held.results(records[0])
    recorded = next(iter(trials.rows()), None) is not None
    tables: tuple[Literal["trials", "rows"], ...] = ("trials", "rows") if recorded else ("trials",)
    for table in tables:
        path = folder / f"{table}.csv"
        with replacing(path) as out:
            trials.write(out, "csv", table)
        yield path


def write_analysis(folder: Path, analysis: Any) -> Iterator[Path]:
    """Write the analysis as JSON."""
    if analysis is not None:
        with replacing(folder / ANALYSIS) as out:
            out.write(msgspec.json.format(msgspec.json.encode(analysis), indent=2) + b"\n")
        yield folder / ANALYSIS


def write_figures(folder: Path, report: Report, drawn: Mapping[str, str]) -> Iterator[Path]:
    """Write figures as SVG, and remove those of an earlier report."""
    place = own_folder(folder / FIGURES)
    paths = []
    for block in report.figures:
        paths.append(place / f"{block.id}.svg")
        with replacing(paths[-1]) as out:
            out.write(on_paper(block, drawn[block.id]))
        yield paths[-1]
    for old in place.glob("*.svg"):
        if old not in paths and old.is_file() and OURS.encode() in old.read_bytes()[:1_000]:
            old.unlink()


def files_blocks(folder: Path, files: Sequence[Path], tables: Sequence[DataTable]) -> Iterator[Block]:
    """The list of files beside the page, and the columns of the data tables."""
    names = [str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name for path in files]
    yield Text(id="files", title="Files beside this page", part="run", lines=[", ".join(names)])
    for table in tables:
        if table.meaning:
            yield Table(
                id=f"columns-{table.name}",
                title=f"Columns of {table.name}",
                part="run",
                columns={"column": "text", "type": "text", "meaning": "text"},
                rows=[(name, kind, table.meaning.get(name, "")) for name, kind in table.columns.items()],
                caption="Missing values are empty. In CSV, lists are written as JSON.",
                folded=True,
            )


def default_blocks(found: Found) -> Iterator[Block]:
    """The default report."""
    yield run_figures([found.summary])
    yield from analysis_blocks(found.analysis)
    yield from found.ending()


def run_figures(summaries: Sequence[Summary]) -> KeyFigures:
    """Trials, requests, cost and time of runs."""
    planned, usable = (sum(getattr(each.trials, name) for each in summaries) for name in ("planned", "usable"))
    missing = sum(each.trials.missing for each in summaries)
    spent = whole_cost(summaries)
    sent = sum(each.asks.sent for each in summaries)
    return KeyFigures(
        id="run-figures",
        figures=[
            KeyFigure(f"{usable:,}", "usable trials", f"of {planned:,} planned{also(missing=missing)}"),
            KeyFigure(cost(spent.usd, 0), "cost", _unknown(spent.unknown_asks)),
            KeyFigure(duration(sum(each.seconds for each in summaries)), "time", f"{sent:,} requests sent"),
        ],
    )


def _unknown(asks: int) -> str:
    return f"{asks:,} requests of unknown price" if asks else "all prices known"


def whole_cost(summaries: Sequence[Summary]) -> RunCost:
    """The total cost of runs."""
    costs = [each.cost for each in summaries]
    known = [each.usd for each in costs if each.usd is not None]
    return RunCost(
        sum(known) if known else None,
        sum(each.unknown_asks for each in costs),
        sum(each.possible_usd for each in costs),
        sum(each.possible_asks for each in costs),
        sum(each.possible_unknown_asks for each in costs),
    )


def about_run(
    summaries: Sequence[Summary], records: Sequence[RunRecord], held: Store | None, more: Iterable[tuple[str, str]] = ()
) -> Iterator[Block]:
    """The end of every report: settings, missing trials, and cost by model."""
    yield settings_table(
        [*run_settings(summaries, records), *more],
        "The same seed and settings produce the same trials.",
    )
    if held is not None:
        yield from missing_block(held, records)
    yield from models_block(summaries)


def run_settings(summaries: Sequence[Summary], records: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    """Settings and figures that every run has."""
    first = records[0]
    yield "run", ", ".join(each.id + (f" ({each.name})" if each.name else "") for each in records)
    states = [
        each.status if each.error in (None, each.status) else f"{each.status}: {each.error}" for each in summaries
    ]
    yield "status", ", ".join(dict.fromkeys(states))
    yield "seed", ", ".join(str(each.seed) for each in records)
    trials = [each.trials for each in summaries]
    usable, missing = (sum(getattr(each, name) for each in trials) for name in ("usable", "missing"))
    yield "trials", f"{usable:,} usable, {missing:,} missing"
    asks = {words: sum(getattr(each.asks, name) for each in summaries) for name, words in ASKS.items()}
    yield (
        "requests",
        ", ".join([f"{asks.pop('sent'):,} sent", *(f"{many:,} {what}" for what, many in asks.items() if many)]),
    )
    yield "cost", whole_cost(summaries).words
    yield "time", duration(sum(each.seconds for each in summaries))
    via, schedule = first.options.get("via", "live"), first.options.get("schedule", "stream")
    yield "sent", f"{via}, {'in waves' if schedule == 'waves' else 'as a stream'}"
    yield "started", ", ".join(f"{datetime.fromtimestamp(each.created_at, UTC):%Y-%m-%d %H:%M} UTC" for each in records)
    yield "version", f"groundswell {__version__}"
    full = {name.removeprefix("model "): model for name, model in first.sources.items() if name.startswith("model ")}
    yield "full model names", ", ".join(f"{name} is {model}" for name, model in full.items())


def missing_block(held: Store, records: Sequence[RunRecord]) -> Iterator[Table]:
    """The missing trials by reason."""
    faults = [fault for record in records for fault in held.results(record).fault_counts()]
    if faults:
        yield Table(
            id="missing",
            title="Missing trials",
            part="run",
            columns={"why": "text", "trials": "count", "for example": "text", "message": "text"},
            rows=[(fault.kind, fault.trials, fault.key, fault.message) for fault in faults],
            caption="Missing trials are excluded from all figures.",
        )


def models_block(summaries: Sequence[Summary]) -> Iterator[Table]:
    """The cost of each model."""
    models = dict.fromkeys(model for summary in summaries for model in summary.models)
    rows = [_paid([each.models[model] for each in summaries if model in each.models], model) for model in models]
    if rows:
        yield Table(
            id="costs",
            title="Cost by model",
            part="run",
            columns={
                "model": "text",
                "replies": "count",
                "input tokens": "count",
                "output tokens": "count",
                "cost": "usd",
                "replies of unknown price": "count",
            },
            rows=rows,
            caption="Billed replies by model. Cache hits cost nothing and are not included.",
        )


def _paid(paid: Sequence[Paid], model: str) -> list[Cell]:
    known = [each.cost.usd for each in paid if each.cost.usd is not None]
    sums = [sum(getattr(each, name) for each in paid) for name in ("replies", "input_tokens", "output_tokens")]
    return [model, *sums, sum(known) if known else None, sum(each.cost.unknown_asks for each in paid)]


def analysis_blocks(analysis: Any) -> Iterator[Table]:
    """Any analysis as tables: one for its values by name, and one for each list of similar objects."""
    plain_ = msgspec.to_builtins(analysis, enc_hook=str)
    if plain_ is None:
        return
    values: list[tuple[str, Cell]] = []
    lists: dict[str, Sequence[Mapping[str, Any]]] = {}
    _gather(plain_ if isinstance(plain_, dict) else {"analysis": plain_}, "", values, lists)
    if values:
        columns = {"name": "text", "value": "value"}
        yield Table(id="analysis", title="Analysis", part="findings", columns=columns, rows=values, brief=True)
    for name, rows in lists.items():
        names = list(rows[0])
        yield Table(
            id=f"analysis-{name.replace('.', '-')}",
            title=name,
            columns={each: _kind([row[each] for row in rows]) for each in names},
            rows=[[_flat(row[each]) for each in names] for row in rows[:MOST_TABLE]],
            brief=True,
        )


def _gather(
    value: Mapping[str, Any], before: str, values: list[tuple[str, Cell]], lists: dict[str, Sequence[Mapping[str, Any]]]
) -> None:
    for name, each in value.items():
        if isinstance(each, Mapping) and each:
            _gather(each, f"{before}{name}.", values, lists)
        elif _is_table(each):
            lists[f"{before}{name}"] = each
        else:
            values.append((f"{before}{name}", _flat(each)))


def _is_table(value: Any) -> bool:
    """Whether a value is a list of objects with the same fields."""
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        return False
    return len({tuple(each) for each in value}) == 1


def _kind(values: Sequence[Any]) -> str:
    some = {type(each) for each in values if each is not None}
    return "count" if some == {int} else "value" if some and some <= {int, float} else "text"


def _flat(value: Any) -> Cell:
    """A cell: numbers unchanged, text on one line, nested values as JSON."""
    if value is None or isinstance(value, bool | int | float):
        return value
    flat = " ".join(plainly(value).split())
    return flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}…"


def rows_block(trials: Trials) -> Iterator[Table]:
    """The first rows that programs recorded."""
    rows = list(islice(trials.rows(), MOST_TABLE + 1))
    cut = f" The first {MOST_TABLE:,} are shown; rows.csv has all of them." if len(rows) > MOST_TABLE else ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if rows:
        yield Table(
            id="rows",
            title="Rows",
            columns={name: _kind([row.get(name) for row in rows]) for name in names},
            rows=[[_flat(row.get(name)) for name in names] for row in rows[:MOST_TABLE]],
            caption=f"Observations that the trials recorded.{cut}",
            folded=True,
        )


def trial_transcripts(found: Found) -> Transcripts:
    """The transcripts of the first trials of any experiment."""
    return Transcripts(
        id="transcripts",
        items=partial(_trials, found),
        one=partial(_trial, found),
        filters=("status", "speaker"),
        command=f"groundswell runs show {shlex.quote(found.record.title)} --trial {{key}}",
        about=f"Prompts and replies of each trial, for up to {MOST_TRANSCRIPTS:,} trials.",
    )


def _trials(found: Found) -> Iterator[Transcript]:
    run = found.run
    for trial in islice(found.held.results(found.record), MOST_TRANSCRIPTS):
        yield plain_transcript(run.transcript(trial.key), trial.row.id - found.record.span[0])


def _trial(found: Found, key: str) -> Transcript | None:
    number = found.held.results(found.record).trial(key).row.id - found.record.span[0]
    return plain_transcript(found.run.transcript(key), number)


def plain_transcript(said: StoredTranscript, number: int) -> Transcript:
    """The transcript of a trial of any experiment: all that was said to models, and what they replied."""
    sides: dict[str, int] = {}
    messages = []
    for turn in turns(said.exchanges):
        side, thought = sides.setdefault(turn.speaker, len(sides)), ""
        for line in turn.lines:
            if line.kind == "reasoning":
                thought = line.text
            elif line.kind in ("told", "recalled", "system"):
                messages.append(Message(f"to {turn.speaker}", line.text, 5, line.who))
            else:
                messages.append(Message(turn.speaker, line.text, side, turn.note, thought, path=turn.path))
    end = said.result if said.fault is None else f"{said.fault.kind}: {said.fault.message}"
    return Transcript(
        key=said.key,
        title=f"Trial {number}",
        outcome=said.status,
        facts=(f"spec: {said.spec}",),
        messages=tuple(messages),
        notes=(f"result: {end}",) if end else (),
        tags={"status": [said.status], "speaker": list(sides)},
    )
