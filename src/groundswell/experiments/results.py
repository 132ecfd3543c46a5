"""The results of any run: files in its folder, an analysis as lines, and the folder remembered with the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from groundswell.engine.records import RunRecord
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Written
from groundswell.experiments.replacing import replacing
from groundswell.program.request import Embedding, Reply, Usage
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.shown.words import visible
from groundswell.store.documents import KEPT
from groundswell.store.journal import Store
from groundswell.store.waves import StoredWave

if TYPE_CHECKING:
    from rich.table import Table

ANALYSIS, TRIALS = "analysis.json", "trials.csv"
CONFIG = "config.toml"
"""The options of a run. Its first line names the run, so that a folder says itself whose results it holds: a store may
come from somebody else, and name any folder."""
KEPT_AS = "groundswell.results"
LONGEST = 100
MOST_LINES = 60


class Kept(msgspec.Struct, frozen=True):
    """What a run remembers of its results: the folder that they are in, and the options that it was started with."""

    folder: str
    config: str = ""


def remember_folder(held: Store, run: str, folder: Path, config: str) -> None:
    """Remember where the results of a run go, for those who resume it, and put its configuration there."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CONFIG) as out:
        out.write(f"# run {run}\n{config}".encode())
    held.documents.put(KEPT, f"{run}/{KEPT_AS}", msgspec.json.encode(Kept(str(folder.absolute()), config)).decode())


def remembered_folder(held: Store, record: RunRecord) -> Path | None:
    """The folder that a run's results are in, if it says so itself."""
    known = _kept(held, record.id)
    if known is None:
        return None
    folder = Path(known.folder)
    try:
        with (folder / CONFIG).open(errors="replace") as config:
            first = config.readline(200)
    except OSError:
        return None
    if first.strip() != f"# run {record.id}":
        return None
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


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
    from groundswell.store.tables import write_csv

    record = records[0]
    files = []
    if record.analysis is not None:
        with replacing(folder / ANALYSIS) as out:
            out.write(msgspec.json.format(record.analysis.encode(), indent=2) + b"\n")
        files.append(folder / ANALYSIS)
    with replacing(folder / TRIALS) as out:
        import io

        text = io.TextIOWrapper(out, encoding="utf-8", newline="")
        write_csv(held.results(record), text)
        text.flush()
        text.detach()
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
    from rich.table import Table
    from rich.text import Text

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
