"""`groundswell runs export`: write the results of a run to a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import RunName, StoreFlags
from groundswell.cli.stored import opened
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.store.atomic import beside
from groundswell.store.tables import format_of


class Format(StrEnum):
    """The file formats."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def export(
    flags: StoreFlags,
    run: RunName,
    *,
    to: Annotated[
        Format | None,
        Meta(description="File format. The default follows the ending of the file, else jsonl."),
        Flag(long="--format", usual=True),
    ] = None,
    table: Annotated[
        Literal["trials", "rows"],
        Meta(description="Table to write: one row per trial, or the rows that trials recorded with `trial.row`."),
        Flag(usual=True),
    ] = "trials",
    file: Annotated[
        Path | None,
        Meta(description="File to write. The default is standard output."),
        Flag("-o", long="--output", metavar="FILE", usual=True),
    ] = None,
) -> None:
    """Export the trials of a run (key, program, status, fault, spec and result), or the rows that they recorded."""
    ending = None if file is None else format_of(file)
    to = to or (Format(ending) if ending in list(Format) else Format.JSONL)
    if file is None and (to is Format.PARQUET or flags.json):
        raise SettingsError(f"--output: give a file for {'--json' if flags.json else '--format parquet'}")
    with opened(flags.store) as store:
        record = store.runs.get(run)
        with _target(file, to) as out:
            count = store.results(record).write(out, to.value, table)
    if flags.json:
        output.print_json({"run_id": record.id, "format": to.value, "output": str(file), "rows": count})
    elif file is not None:
        output.say(f"wrote {count} {table} of run {record.title} to {file}")


@contextmanager
def _target(file: Path | None, to: Format) -> Iterator[Any]:
    """Standard output, or a file that appears only when it is complete."""
    if file is None:
        yield output.Shown(json=to is not Format.CSV)
        return
    try:
        with beside(file) as out:
            yield out
    except OSError as error:
        raise SettingsError(f"--output {file}: {error.strerror or error}") from error
