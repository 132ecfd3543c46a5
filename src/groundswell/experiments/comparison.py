"""The comparison of runs: their settings that differ, and the differences of all estimates that their reports share.

A figure is compared if the reports have it in the same place: the same block, row labels and column. So the comparison
knows no experiment. Intervals assume independent runs, and the first block says where that is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from hashlib import blake2b
from math import inf
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.engine.summary import summarise
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import results_of
from groundswell.reporting.blocks import (
    Block,
    Cell,
    Estimate,
    Figure,
    KeyFigures,
    Kind,
    Mark,
    Passage,
    Report,
    Table,
    Text,
)
from groundswell.reporting.figures import (
    BLUE,
    FAINT,
    WIDTH,
    Group,
    Point,
    forest,
    forest_height,
    legend,
    name_of,
)
from groundswell.reporting.figures import STAND_IN as COLOURS
from groundswell.reporting.numbers import NONE, plural, worded
from groundswell.reporting.words import clipped, plainly
from groundswell.stats.compare import Difference, holm, reported_difference
from groundswell.store.journal import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FEWEST, MOST = 2, 8
"""Number of runs that can be compared at once."""
LEVEL = 0.05
MOST_DRAWN = 30
MOST_ITEMS = 30
"""Lists of settings with more items are compared as a whole."""
LONG = 100
"""Settings with longer texts, or with several lines, are shown as a diff."""
MOST_TOKENS = 4_000
"""Longer texts are compared by lines, and even longer ones are not compared."""
LABEL = 40
ADJUSTED = "In all tables, p-values are adjusted for all differences (Holm)."
CHANGES = {"share": "share_change", "number": "change"}


@dataclass(frozen=True)
class ComparedRun:
    """A run with its report, if it has results.

    `origin` is the run that it was forked from, directly or not. `warnings` are about its report.
    """

    record: RunRecord
    report: Report | None = None
    origin: str = ""
    warnings: Sequence[str] = ()


def compared_run(held: Store, record: RunRecord) -> ComparedRun:
    """A stored run with its report."""
    results, warnings = results_of(record, Path()), list[str]()
    results.say = warnings.append
    report = results.report(held, [record]) if results.has_report(record) else None
    record.status = held.runs.state(record)
    return ComparedRun(record, report, origin_of(held, record), warnings)


def origin_of(held: Store, record: RunRecord) -> str:
    """The id of the run that a run was forked from, directly or not; its own id if it is no fork."""
    seen = {record.id}
    while record.parent is not None and record.parent not in seen:
        seen.add(record.parent)
        found = held.runs.find(record.parent)
        if found is None:
            return record.parent
        record = found
    return record.id


def check_compared(runs: Sequence[str]) -> list[str]:
    """The runs without duplicates. Refuses too few and too many."""
    found = list(dict.fromkeys(runs))
    if not FEWEST <= len(found) <= MOST:
        raise SettingsError(f"run: give {FEWEST} to {MOST} different runs to compare, not {len(found)}", field="run")
    return found


def comparison(runs: Sequence[ComparedRun]) -> Report:
    """The report that compares runs with the first of them."""
    names = [
        f"{letter}: {clipped(run.record.title, LABEL)}" for letter, run in zip(ascii_uppercase, runs, strict=False)
    ]
    comparable = same_experiment(runs) and all(run.report is not None for run in runs)
    reports = [run.report for run in runs if run.report is not None] if comparable else []
    found = differences_of(reports)
    values = [settings_of(run.record) for run in runs]
    return Report(
        kind="Comparison",
        title=" and ".join(run.record.title for run in runs),
        blocks=[
            Text(id="findings", lines=list(_findings(runs, names, found)), brief=True),
            *_differing(values, names),
            *_key_figures(reports, names),
            *_drawn(found.all, names),
            *_tables(found.all, names),
            _equal(values),
            _runs_table(runs, names),
        ],
        footer=f"Runs {', '.join(run.record.id for run in runs)}, compared by Groundswell.",
    )


def same_experiment(runs: Sequence[ComparedRun]) -> bool:
    """Whether all runs are of one experiment, so that equal labels mean the same."""
    return len({run.record.driver for run in runs}) == 1


class Place(NamedTuple):
    """The place of a figure in a report: block, labels of the row, and column."""

    block: str
    labels: tuple[str, ...]
    column: str

    @property
    def words(self) -> str:
        """The place as a label, without its block."""
        return " · ".join([*(label for label in self.labels if label), self.column])


@dataclass(frozen=True)
class Compared:
    """A figure in all runs, and the difference of each other run to the first, with its adjusted p-value."""

    place: Place
    title: str
    """The title of its block."""
    kind: Kind
    figures: Sequence[Estimate]
    differences: Sequence[Difference]
    adjusted: Sequence[float] = ()


@dataclass(frozen=True)
class Differences:
    """All figures that were compared. `single` figures are not in all reports."""

    all: Sequence[Compared] = field(default_factory=list)
    single: int = 0

    @property
    def tests(self) -> list[tuple[Difference, float]]:
        """All differences, with their adjusted p-values."""
        return [pair for each in self.all for pair in zip(each.differences, each.adjusted, strict=True)]


def differences_of(reports: Sequence[Report]) -> Differences:
    """The differences of all estimates with an interval that the reports share, in the order of the first report."""
    found, single, shown = list[Compared](), 0, set[Any]()
    tables = [{block.id: block for block in report.blocks if isinstance(block, Table)} for report in reports]
    for name in dict.fromkeys(name for some in tables for name in some):
        several = [some[name] for some in tables if name in some]
        keys = _key_columns(several)
        places = [_figures(table, keys) for table in several]
        for place in dict.fromkeys(place for some in places for place in some):
            figures = [some[place] for some in places if place in some]
            if len(figures) < len(reports) or len({kind for _, kind in figures}) > 1:
                single += 1
                continue
            estimates, kind = [each for each, _ in figures], figures[0][1]
            same = (place.labels, place.column, *estimates)  # a figure and a table of a report often share rows
            if same not in shown:
                shown.add(same)
                differences = [_difference(each, estimates[0], kind) for each in estimates[1:]]
                found.append(Compared(place, _title(several[0]), kind, estimates, differences))
    adjusted = iter(holm([each.p for one in found for each in one.differences]))
    return Differences(
        [replace(one, adjusted=[next(adjusted) for _ in one.differences]) for one in found],
        single,
    )


def _title(table: Table) -> str:
    """The title of a table. That of a figure states the finding of its own run, so its id is used instead."""
    return table.title if table.title and not isinstance(table, Figure) else table.id.replace("-", " ").capitalize()


def _difference(one: Estimate, other: Estimate, kind: Kind) -> Difference:
    assert one.value is not None
    assert other.value is not None
    bound = 1.0 if kind == "share" else inf
    return reported_difference(one.value, (one.low, one.high), other.value, (other.low, other.high), bound=bound)


def _key_columns(tables: Sequence[Table]) -> list[str]:
    """The columns that identify the rows of these tables: texts before the first estimate, then counts as needed.

    Texts after an estimate are usually results, too.
    """
    columns = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    measured = {name for table in tables for name in _measured(table)}
    first = next((at for at, name in enumerate(columns) if name in measured), len(columns))
    texts = [name for name in columns if tables[0].columns[name] == "text"]
    found = [name for name in texts if name in columns[:first]] or texts
    for name in [name for name in columns[:first] if tables[0].columns[name] == "count"]:
        if all(_unique(table, found) for table in tables):
            break
        found.append(name)
    return found


def _measured(table: Table) -> list[str]:
    """The columns of a table that have estimates."""
    return [name for at, name in enumerate(table.columns) if any(isinstance(row[at], Estimate) for row in table.rows)]


def _labels(table: Table, row: Sequence[Cell], keys: Sequence[str]) -> tuple[str, ...]:
    cells = dict(zip(table.columns, row, strict=True))
    return tuple(
        worded(cells[key], "text")[0] if table.columns[key] == "text" else f"{key} {worded(cells[key], 'count')[0]}"
        for key in keys
    )


def _unique(table: Table, keys: Sequence[str]) -> bool:
    return len({_labels(table, row, keys) for row in table.rows}) == len(table.rows)


def _figures(table: Table, keys: Sequence[str]) -> dict[Place, tuple[Estimate, Kind]]:
    """The estimates of a table that have an interval, by place. None if its rows cannot be told apart."""
    if not _unique(table, keys):
        return {}
    return {
        Place(table.id, _labels(table, row, keys), name): (cell, kind)
        for row in table.rows
        for (name, kind), cell in zip(table.columns.items(), row, strict=True)
        if isinstance(cell, Estimate) and cell.value is not None and (cell.low is not None or cell.high is not None)
    }


def _findings(runs: Sequence[ComparedRun], names: Sequence[str], found: Differences) -> Iterator[str]:
    tests = found.tests
    if tests:
        apart = sum(each.excludes_zero for each, _ in tests)
        left = sum(adjusted < LEVEL for _, adjusted in tests)
        yield (
            f"{plural(len(tests), 'difference')} to {names[0]}: {apart:,} of the 95% intervals exclude 0. "
            f"After Holm's adjustment for all of them, {left:,} {'remains' if left == 1 else 'remain'} at 5%."
        )
        yield "If the runs did not differ, about 5% of the intervals would still exclude 0."
    elif not same_experiment(runs):
        yield "The runs are of different experiments. So only their settings, cost and time are compared."
    elif all(run.report is not None for run in runs):
        yield "The reports have no estimates with intervals in the same place. So only settings, cost and time differ."
    for name, run in zip(names, runs, strict=True):
        if run.report is None:
            yield f"{name} has no results yet: its status is {run.record.status}. So results are not compared."
    if found.single:
        yield (
            f"{plural(found.single, 'figure')} {'is' if found.single == 1 else 'are'} not in all reports under the "
            "same label, and not compared."
        )
    yield from _doubts(runs, names)
    for name, run in zip(names, runs, strict=True):
        yield from (f"{name}: {warning}" for warning in run.warnings)


def _doubts(runs: Sequence[ComparedRun], names: Sequence[str]) -> Iterator[str]:
    """Why the runs may not be independent, as the intervals assume."""
    origins = [run.origin for run in runs]
    for name, run in zip(names, runs, strict=True):
        if run.record.parent is not None and origins.count(run.origin) > 1:
            yield (
                f"Warning: {name} is a fork, and shares replies with another of these runs. The intervals assume "
                "independent runs, so they do not hold here."
            )
        elif cached := run.record.counters.cached:
            yield (
                f"Warning: {plural(cached, 'request')} of {name} had cached replies. If these are replies "
                "of another of these runs, the intervals do not hold."
            )
    if same_experiment(runs) and len({run.record.seed for run in runs}) < len(runs):
        yield (
            "Runs with the same seed can have the same cases, such as words or problems. If their results are "
            "positively correlated for that reason, these intervals are wider than necessary."
        )


def _tables(found: Sequence[Compared], names: Sequence[str]) -> Iterator[Table]:
    """The differences: one table for each block and kind of figure."""
    groups: dict[tuple[str, Kind], list[Compared]] = {}
    for each in found:
        groups.setdefault((each.place.block, each.kind), []).append(each)
    seen = list[str]()
    for (block, kind), some in groups.items():
        number = seen.count(block) + 1
        seen.append(block)
        columns: dict[str, Kind] = {"figure": "text", **dict.fromkeys(names, kind)}
        for letter in _letters(names)[1:]:
            columns |= {_minus(letter): change_kind(kind), f"{letter} excludes 0": "text", f"p, {letter}": "p"}
        yield Table(
            id=f"difference-{block}" + (f"-{number}" if number > 1 else ""),
            title=some[0].title,
            columns=columns,
            rows=[_row(each) for each in some],
            caption="" if seen[1:] else f"Differences to {names[0]} with 95% intervals. {ADJUSTED}",
            brief=not seen[1:] or any(found.excludes_zero for each in some for found in each.differences),
        )


def _row(each: Compared) -> list[Cell]:
    row: list[Cell] = [each.place.words, *each.figures]
    for found, adjusted in zip(each.differences, each.adjusted, strict=True):
        verdict = "yes" if found.excludes_zero else "no"
        row += [Estimate(found.value, found.low, found.high), verdict, adjusted]
    return row


def _letters(names: Sequence[str]) -> list[str]:
    return [name.partition(":")[0] for name in names]


def _minus(letter: str) -> str:
    return f"{letter} − A"


def change_kind(kind: Kind) -> Kind:
    """The kind of a difference of two values of a kind."""
    name, _, digits = kind.partition(".")
    changed = CHANGES.get(name, name)
    return f"{changed}.{digits}" if digits else changed


def _drawn(found: Sequence[Compared], names: Sequence[str]) -> Iterator[Figure]:
    """The first differences as a forest plot. It has one axis, so it shows figures of one kind."""
    kinds = [each.kind for each in found]
    if not found:
        return
    kind = max(dict.fromkeys(kinds), key=kinds.count)
    some = [each for each in found if each.kind == kind][:MOST_DRAWN]
    colours = [BLUE, *(COLOURS[role] for role in ("red", "green", "pink", "heat", "ink", "faint"))]
    groups = [
        Group(
            name_of(each.place.words, LABEL),
            [
                _point(found, adjusted, colour, kind)
                for found, adjusted, colour in zip(each.differences, each.adjusted, colours, strict=False)
            ],
        )
        for each in some
    ]
    height = forest_height(groups)

    def draw(canvas: Canvas) -> None:
        axes = forest(canvas, groups, height)
        axes.axvline(0, color=FAINT, lw=0.8)
        axes.set_xlabel(f"difference to {names[0]}")
        if kind.startswith("share"):
            axes.xaxis.set_major_formatter(lambda value, _: worded(value, "share_change")[0])
        if len(names) > 2:
            legend(canvas, [(name, colour, "o", True) for name, colour in zip(names[1:], colours, strict=False)])

    rest = sum(each.kind == kind for each in found) - len(some)
    more = f" The tables have {rest:,} more." if rest else ""
    apart = [each for each in some if any(adjusted < LEVEL for adjusted in each.adjusted)]
    table = Table(
        id="differences",
        title=f"{len(apart):,} of {plural(len(some), 'figure')} differ after adjustment",
        caption=f"Differences to {names[0]} with 95% intervals; filled if p < 0.05 after Holm's adjustment.{more}",
        columns={"figure": "text", **{_minus(letter): change_kind(kind) for letter in _letters(names)[1:]}},
        rows=[[each.place.words, *(Estimate(d.value, d.low, d.high) for d in each.differences)] for each in some],
    )
    yield table.drawn((WIDTH, height), draw)


def _point(found: Difference, adjusted: float, colour: str, kind: Kind) -> Point:
    note = worded(found.value, change_kind(kind))[0]
    return Point(found.value, found.low, found.high, note, colour, "o", adjusted < LEVEL)


def _key_figures(reports: Sequence[Report], names: Sequence[str]) -> Iterator[Table]:
    """The key figures of all reports, side by side."""
    found = [
        {each.label: f"{each.value} ({each.note})" if each.note else each.value for each in _all_key_figures(report)}
        for report in reports
    ]
    labels = dict.fromkeys(label for some in found for label in some)
    if labels:
        yield Table(
            id="key-figures",
            title="Key figures",
            part="findings",
            columns={"figure": "text", **dict.fromkeys(names, "text")},
            rows=[[label, *(some.get(label, NONE) for some in found)] for label in labels],
            brief=True,
        )


def _all_key_figures(report: Report) -> Iterator[Any]:
    for block in report.blocks:
        if isinstance(block, KeyFigures):
            yield from block.figures


Settings = Mapping[str, str]


def settings_of(record: RunRecord) -> Settings:
    """All settings of a run as text, by the names of their nested fields."""
    found = {"experiment": record.driver or "script", "seed": str(record.seed)}
    if record.settings is not None:
        found |= _flat("", msgspec.json.decode(record.settings))
    options = {name: value for name, value in record.options.items() if name not in ("unattended", "deleting")}
    found |= {f"run option {name}": value for name, value in _flat("", options).items()}
    found["models that replied"] = ", ".join(sorted(summarise(record).models))
    found["version of Groundswell"] = record.release or ""
    for name, source in record.sources.items():
        model = name.removeprefix("model ")
        found |= {f"full name of {model}": source} if model != name else {f"code of {name}": _digest(source)}
    return {name: value for name, value in found.items() if value}


def _flat(before: str, value: Any) -> dict[str, str]:
    """The values of nested settings, by their path."""
    match value:
        case dict():
            return {k: v for name, each in value.items() for k, v in _flat(_path(before, name), each).items()}
        case list() if all(not isinstance(each, dict | list) for each in value) and len(value) <= MOST_ITEMS:
            return {before or "settings": ", ".join(map(plainly, value))}
        case list() if len(value) <= MOST_ITEMS:
            return {k: v for at, each in enumerate(value, 1) for k, v in _flat(_path(before, str(at)), each).items()}
        case list():
            digest = _digest(msgspec.json.encode(value).decode())
            return {before or "settings": f"{len(value):,} items (digest {digest})"}
    return {before or "settings": plainly(value)}


def _path(before: str, name: str) -> str:
    return f"{before}.{name}" if before else name


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


def _names_of(values: Sequence[Settings], *, equal: bool) -> list[str]:
    names = dict.fromkeys(name for some in values for name in some)
    return [name for name in names if (len({some.get(name) for some in values}) == 1) == equal]


def _differing(values: Sequence[Settings], names: Sequence[str]) -> Iterator[Block]:
    """The settings that differ, and long texts among them as a diff."""
    differing = _names_of(values, equal=False)
    if not differing:
        yield Text(id="settings", title="Settings that differ", lines=["All settings are equal."], brief=True)
        return
    long = [name for name in differing if any(_is_long(some.get(name, "")) for some in values)]
    yield Table(
        id="settings",
        title="Settings that differ",
        part="findings",
        columns={"setting": "text", **dict.fromkeys(names, "text")},
        rows=[[name, *(_shown(some.get(name)) for some in values)] for name in differing],
        caption="Long texts are compared below the table." if long else "",
        brief=True,
    )
    passages = [
        _diff(f"{name}: {names[0]} and {other}", values[0].get(name, ""), some.get(name, ""))
        for name in long
        for other, some in zip(names[1:], values[1:], strict=True)
        if values[0].get(name) != some.get(name)
    ]
    if passages:
        yield Text(id="texts", title="Texts that differ", passages=passages)


def _is_long(text: str) -> bool:
    return len(text) > LONG or "\n" in text.strip()


def _shown(value: str | None) -> str:
    if value is None:
        return NONE
    return f"a text of {len(value):,} characters" if _is_long(value) else value


def _diff(title: str, old: str, new: str) -> Passage:
    """Two texts as one, with removals and additions marked."""
    before, after = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in (old, new))
    if max(len(before), len(after)) > MOST_TOKENS:
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if max(len(before), len(after)) > MOST_TOKENS:
        return Passage(title, "These texts are too long to compare.")
    text, marks = "", list[Mark]()
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            text += "".join(before[i:j])
            continue
        removed, added = "".join(before[i:j]), "".join(after[k:m])
        middle, end = len(text) + len(removed), len(text) + len(removed) + len(added)
        marks += [Mark(len(text), middle, "removed", "only before"), Mark(middle, end, "green", "only after")]
        text += removed + added
    return Passage(title, text, marks, open=True)


def _equal(values: Sequence[Settings]) -> Table:
    return Table(
        id="equal-settings",
        title="Settings that are equal",
        part="run",
        columns={"setting": "text", "value": "text"},
        rows=[[name, _shown(values[0].get(name))] for name in _names_of(values, equal=True)],
        folded=True,
    )


def _runs_table(runs: Sequence[ComparedRun], names: Sequence[str]) -> Table:
    return Table(
        id="runs",
        title="Trials, cost and time",
        part="run",
        columns={
            "run": "text",
            "id": "text",
            "status": "text",
            "usable trials": "count",
            "missing": "count",
            "requests": "count",
            "cost": "usd",
            "time": "seconds",
        },
        rows=[_run_row(run.record, name) for run, name in zip(runs, names, strict=True)],
        brief=True,
    )


def _run_row(record: RunRecord, name: str) -> list[Cell]:
    found = summarise(record)
    counts = (found.trials.usable, found.trials.missing, found.asks.sent)
    return [name, record.id, record.status, *counts, found.cost.usd, found.seconds]
