"""Output of the commands: JSON and results on standard output, everything else on standard error."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from groundswell.errors import GroundswellError, SettingsError
from groundswell.reporting import words
from groundswell.reporting.console import SafeConsole

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from groundswell.engine.records import EndpointFigures
    from groundswell.engine.summary import Summary
    from groundswell.store.results import FaultCount
    from groundswell.store.waves import Came

STYLES = {
    "completed": "green",
    "running": "cyan",
    "pending": "dim",
    "partial": "yellow",
    "stopped": "yellow",
    "interrupted": "yellow",
    "failed": "red",
}
INTERRUPTED = 130
DEFAULT_STORE = "groundswell.db"


out = SafeConsole(highlight=False, emoji=False)
err = SafeConsole(stderr=True, highlight=False, emoji=False)


def say(text: str) -> None:
    """One message to the person at the terminal."""
    err.print(text, markup=False, soft_wrap=True)


class Warnings(logging.Handler):
    """Prints log records, with control characters escaped."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        echo(self.format(record), err=True)


def show_warnings() -> None:
    """Print logged warnings with this module instead of Python's handler of last resort."""
    logging.getLogger("groundswell").addHandler(Warnings(logging.WARNING))


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner, if standard error is a terminal. The function that this yields changes its text."""
    if not err.is_terminal:
        yield lambda text: None
        return
    from rich.text import Text

    with err.status(Text(what)) as status:
        yield lambda text: status.update(Text(text))


def line(text: str | Text = "", style: str | None = None) -> None:
    """One line of a result, never wrapped."""
    out.print(text, style=style, markup=False, soft_wrap=True)


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Text without wrapping or styles. Control characters are escaped."""
    click.echo(words.on_terminal(text), err=err, nl=nl)


def confirm(question: str) -> None:
    """Ask the person at the terminal, and end the command unless the answer is yes."""
    if not is_confirmed(question):
        raise click.Abort


def is_confirmed(question: str) -> bool:
    """Whether the person at the terminal answers yes."""
    return click.confirm(words.on_terminal(question), err=True)


def print_json(data: Any) -> None:
    """The one object that `--json` prints."""
    import msgspec

    click.echo(words.visible_json(msgspec.json.encode(data).decode()))


class Shown:
    """Standard output for data: unchanged in files and pipes, with control characters escaped on a terminal."""

    def __init__(self, *, json: bool) -> None:
        self._shown = words.visible_json if json else words.on_terminal

    def write(self, data: bytes) -> int:
        """Write a piece of data. It must contain whole UTF-8 characters."""
        text = data.decode()
        sys.stdout.write(self._shown(text) if sys.stdout.isatty() else text)
        return len(data)


def room() -> int | None:
    """The width of the terminal; None if standard output is not a terminal."""
    return out.width if out.is_terminal or "COLUMNS" in os.environ else None


def print_table(table: Table) -> None:
    """A table. If standard output is not a terminal, it is as wide as its contents need."""
    if (plain := one_line_rows(table, room())) is not None:
        out.print(plain, soft_wrap=True)
    elif room() is not None:
        out.print(table)
    else:
        wide = SafeConsole(file=out.file, width=1000, highlight=False, emoji=False)
        wide.width = max(80, wide.measure(table).maximum)
        wide.print(table, soft_wrap=True)


def one_line_rows(table: Table, width: int | None) -> Text | None:
    """A borderless table as text, as rich renders it; None if it does not fit. For long tables, rich is slow."""
    from rich.cells import cell_len
    from rich.text import Text

    if table.box is not None or table.title or table.pad_edge:
        return None
    columns: list[list[Text]] = []
    for column in table.columns:
        texts = []
        for each in (column.header, *column.cells):
            if not isinstance(each, str | Text):
                return None
            texts.append(Text.from_markup(each) if isinstance(each, str) else each)
        columns.append(texts)
    cells = [cell for column in columns for cell in column]
    if any("\n" in cell.plain or words.on_terminal(cell.plain) != cell.plain for cell in cells):
        return None
    widths = [max(cell_len(cell.plain) for cell in column) for column in columns]
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        return None
    lines = []
    for number, row in enumerate(zip(*columns, strict=True)):
        style = table.header_style or "bold" if number == 0 else ""
        line = Text(style=style)
        for at, (cell, space, column) in enumerate(zip(row, widths, table.columns, strict=True)):
            pad = " " * (space - cell_len(cell.plain))
            line.append("  " if at else "")
            line.append_text(Text.assemble(pad, cell) if column.justify == "right" else Text.assemble(cell, pad))
        lines.append(line)
    return Text("\n").join(lines)


def print_error(error: Exception, *, verbose: bool) -> None:
    """Print an error. Errors of other types come from the code of an experiment and get a traceback."""
    of_disk = is_of_disk(error)
    if verbose or not (of_disk or isinstance(error, GroundswellError)):
        echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    if isinstance(error, GroundswellError):
        echo(f"error: {error}", err=True)
    elif of_disk:
        echo(f"error: {_of_disk(error)}", err=True)


def print_json_error(error: Exception) -> None:
    """The object that `--json` prints if a command fails before a run exists."""
    field = getattr(error, "field", None)
    print_json({"error": str(error)} | ({} if field is None else {"field": field}))


def is_of_disk(error: BaseException) -> bool:
    """Whether an error comes from the system: disk full, not readable or writable, too many open files."""
    from groundswell.store.file import OF_THE_DISK

    return isinstance(error, OSError) and error.errno in OF_THE_DISK


def _of_disk(error: Exception) -> str:
    from groundswell.store.file import TOO_MANY_FILES

    assert isinstance(error, OSError)
    advice = "raise the limit, for example with `ulimit -n 1024`"
    if error.errno not in TOO_MANY_FILES:
        advice = "check the free space and the permissions of the disk"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror}; {advice}, and run the command again"


def exit_code(error: Exception) -> int:
    """2 for a wrong setting or flag, 1 for everything else."""
    return 2 if isinstance(error, SettingsError) else 1


def print_summary(summary: Summary) -> None:
    """Print how a run ended."""
    trials, asks = summary.trials, summary.asks
    title = f"{summary.name} ({summary.run_id})" if summary.name else summary.run_id
    why = f", {summary.error}" if summary.error not in (None, summary.status) else ""
    line(f"run {title}: {summary.status}{why}", STYLES[summary.status])
    line(f"  trials    {trials.usable} usable of {trials.planned} planned" + _also(missing=trials.missing))
    more = _also(cached=asks.cached, replayed=asks.replayed, resent=asks.resent, failed=asks.failed)
    line(f"  requests  {asks.sent} sent{more}")
    line(f"  cost      {summary.cost.words}")
    line(f"  time      {duration(summary.seconds)}")
    if summary.analysis is not None:
        _print_analysis(summary.analysis)


def already_done(summary: Summary, files: str = "") -> str:
    """What to say about a run that existed already and sent nothing now."""
    state = "is complete" if summary.status == "completed" else f"has status {summary.status}"
    more = f"; {files}" if files else ""
    return f"Run {summary.name} already exists and {state}. No request was sent{more}."


def print_outcome(summary: Summary, faults: Sequence[FaultCount]) -> None:
    """Print how a run ended and why trials are missing."""
    print_summary(summary)
    print_missing(faults)


def print_missing(faults: Sequence[FaultCount]) -> None:
    """Print why trials are missing."""
    if faults:
        line("  missing")
    for fault in faults:
        line(f"    {fault.trials} x {fault.kind}, for example trial {fault.key}: {fault.message}")


def print_endpoints(figures: Mapping[str, Sequence[EndpointFigures]], *, verbose: bool) -> None:
    """Print requests, failures and latency per endpoint, for accounts with several endpoints, or with -v.

    Requests in batches are not counted, so accounts that only had batches are left out.
    """
    for account, endpoints in figures.items():
        asked = any(one.sent for one in endpoints)
        troubled = any(one.state != "up" for one in endpoints)
        shown = asked or troubled if verbose else asked and len(endpoints) > 1
        for one in endpoints if shown else ():
            took = "" if one.seconds is None else f", recent latency {one.seconds:.2f} s"
            state = "" if one.state == "up" else f", {one.state}"
            line(f"  {account}  {one.url}: {one.sent} sent{_also(failed=one.failed)}{took}{state}")


def _print_analysis(analysis: Any) -> None:
    from rich.table import Table

    from groundswell.experiments.report import analysis_blocks
    from groundswell.reporting.terminal import block_lines

    line("")
    for block in analysis_blocks(analysis):
        for each in block_lines(block, room()):
            print_table(each) if isinstance(each, Table) else line(str(each))


_also, age, cost, duration = words.also, words.age, words.cost, words.duration


def in_flight(accounts: Sequence[str]) -> str:
    """The number of batches in flight and their accounts. `accounts` has one entry per batch."""
    count = f"{len(accounts)} {'batch' if len(accounts) == 1 else 'batches'}"
    return f"{count} in flight at {', '.join(dict.fromkeys(accounts))}"


def travelled(came: Came) -> str:
    """How many replies of a run came in batches, and how many live."""
    batches = "1 batch" if came.batches == 1 else f"{came.batches:,} batches"
    live = f", {came.live:,} live" if came.live else ""
    return f"{came.batched:,} {'reply' if came.batched == 1 else 'replies'} came in {batches}{live}"


def command(words: str, store: str) -> str:
    """A command line for the same store, to be copied."""
    return f"groundswell {words}" + ("" if store == DEFAULT_STORE else f" --store {shlex.quote(store)}")
