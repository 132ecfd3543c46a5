"""What a folder of results holds: names of files, columns of tables, keys of JSON, sections of pages."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy
import polars

from tests.pins.shapes import shape, shape_of_lines, top_level

HEADINGS = ("h1", "h2", "h3", "h4")
ANALYSIS = "analysis.json"
"""Only its keys are listed: the object that the command prints has the same analysis, and its shape is pinned."""
RUN_IN_ID = re.compile(r"sim-\w{10}-")
TENSORBOARD = re.compile(r"events\.out\.tfevents\..*")


def contents(folder: Path, mappings: Collection[str] = ()) -> list[str]:
    """Lines for every file in a folder: its name, and below it what is in it."""
    return [line for path in sorted(folder.rglob("*")) if path.is_file() for line in _file(path, folder, mappings)]


def content(path: Path, mappings: Collection[str] = ()) -> list[str]:
    """What is in one file."""
    kinds = {".csv": _columns, ".tsv": _columns, ".parquet": _typed_columns, ".html": _sections, ".npz": _arrays}
    if path.name == ANALYSIS:
        return top_level(json.loads(path.read_bytes()))
    if path.suffix == ".json":
        return shape(json.loads(path.read_bytes()), mappings)
    if path.suffix == ".jsonl":
        return shape_of_lines(path.read_text("utf-8"), mappings)
    return list(kinds[path.suffix](path)) if path.suffix in kinds else []


def _file(path: Path, folder: Path, mappings: Collection[str]) -> Iterator[str]:
    yield TENSORBOARD.sub("events.out.tfevents.*", path.relative_to(folder).as_posix())
    yield from (f"    {line}" for line in content(path, mappings))


def _columns(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def _typed_columns(path: Path) -> Iterator[str]:
    yield from (f"{name}: {kind}" for name, kind in polars.read_parquet_schema(path).items())


def _arrays(path: Path) -> Iterator[str]:
    with numpy.load(path) as arrays:
        yield from sorted(arrays.files)


def _sections(path: Path) -> Iterator[str]:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    yield from page.found


class _Page(HTMLParser):
    """The headings of a page, and the ids of everything but drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._heading: list[str] | None = None
        self._drawings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._drawings += tag == "svg"
        id_ = dict(attrs).get("id")
        if id_ and not self._drawings:
            self.found.append(f"#{RUN_IN_ID.sub('sim-<run>-', id_)}")
        if tag in HEADINGS:
            self._heading = []

    def handle_endtag(self, tag: str) -> None:
        self._drawings -= tag == "svg"
        if tag in HEADINGS and self._heading is not None:
            self.found.append(f"{tag}: {' '.join(''.join(self._heading).split())}")
            self._heading = None

    def handle_data(self, data: str) -> None:
        if self._heading is not None:
            self._heading.append(data)
