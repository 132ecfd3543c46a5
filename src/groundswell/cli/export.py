"""`groundswell runs export`: the results of a run as a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from groundswell.cli import output
from groundswell.cli.options import RunName, StoreFlags, takes
from groundswell.cli.stored import opened
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    from groundswell.store.results import Results


class Format(StrEnum):
    """What a file can look like."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@takes(StoreFlags)
def export(
    flags: StoreFlags,
    run: RunName,
    *,
    to: Annotated[Format, typer.Option("--format", help="The form of the file.")] = Format.JSONL,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; else standard output.", show_default=False),
    ] = None,
) -> None:
    """Write one row per trial: key, program, status, why it is missing, spec and result."""
    if file is None and (to is Format.PARQUET or flags.json):
        raise SettingsError(f"--output: give a file for {'--json' if flags.json else '--format parquet'}")
    with opened(flags.store) as store:
        record = store.runs.get(run)
        with _target(file, binary=to is Format.PARQUET) as out:
            count = _write(store.results(record), out, to)
    if flags.json:
        output.print_json({"run_id": record.id, "format": to.value, "output": str(file), "rows": count})
    elif file is not None:
        output.say(f"{count} trials of run {record.title} written to {file}")


def _write(results: Results, out: IO[Any], to: Format) -> int:
    from groundswell.store.export import write_csv, write_json, write_jsonl, write_parquet

    if to is Format.PARQUET:
        return write_parquet(results, out)
    return {Format.JSONL: write_jsonl, Format.JSON: write_json, Format.CSV: write_csv}[to](results, out)


@contextmanager
def _target(file: Path | None, *, binary: bool) -> Iterator[IO[Any]]:
    """Standard output, or a file that appears only once it is complete."""
    if file is None:
        yield sys.stdout
        return
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("wb") if binary else part.open("w", encoding="utf-8", newline="") as out:
            yield out
        os.replace(part, file)
    except OSError as error:
        raise SettingsError(f"--output {file}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
