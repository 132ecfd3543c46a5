"""The files of a report: each whole or not at all, and none left of an earlier report that had more to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from groundswell.experiments.reporting.drawing import Drawing, on_paper
from groundswell.store.atomic import own_folder, replacing


def put(path: Path, data: bytes) -> Path:
    """Write a file; gives its path."""
    with replacing(path) as out:
        out.write(data)
    return path


def put_figures(folder: Path, drawn: Sequence[Drawing], names: Iterable[str]) -> list[Path]:
    """Write drawings; of those names that were not drawn this time, none stays."""
    own_folder(folder)
    written = [put(folder / f"{each.name}.svg", on_paper(each)) for each in drawn]
    for name in names:
        if (path := folder / f"{name}.svg") not in written:
            path.unlink(missing_ok=True)
    return written
