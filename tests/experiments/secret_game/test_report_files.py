"""The way of a report: files in a folder, the same whenever they are written, for none and for many interactions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import polars
import pytest

from groundswell.engine.records import About, TrialRow
from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.analysis import Analysis
from groundswell.experiments.secret_game.reading import Interaction, interactions_of, waves_of
from groundswell.store.results import TrialResult
from groundswell.store.waves import StoredWave
from tests.experiments.secret_game.games import Held, every_kind, game, game_of, missing, write_report
from tests.reporting.walked import Walked


def test_everything_is_there_and_nothing_else(tmp_path: Path) -> None:
    about = game_of(every_kind())
    folder = tmp_path / "deep" / "out"
    written = write_report(folder, about)
    assert written.page == folder / "report.html"
    assert {path for path in folder.rglob("*") if path.is_file()} == {written.page, *written.files}
    assert msgspec.json.decode((folder / "analysis.json").read_bytes(), type=Analysis) == about.analysis
    rows = json.loads((folder / "interactions.json").read_bytes())
    assert [row["status"] for row in rows] == ["usable", "usable", "usable", "missing", "unfinished"]
    assert polars.read_parquet(folder / "interactions.parquet")["key"].to_list() == [r["key"] for r in rows]
    assert polars.read_parquet(folder / "sides.parquet")["seat"].to_list() == ["first", "second"] * 5
    text = Walked(written.page.read_text()).text
    assert "interactions.csv, interactions.json, interactions.parquet, sides.csv" in text, "it says what is beside it"
    assert "Columns of interactions" in text


@pytest.mark.slow
def test_writing_again_gives_the_same_bytes_and_takes_away_what_is_no_more(tmp_path: Path) -> None:
    about = game_of(every_kind())

    def content() -> dict[str, bytes]:
        written = write_report(tmp_path, about)
        assert written.page is not None
        return {path.name: path.read_bytes() for path in (written.page, *written.files)}

    assert content() == content()
    (tmp_path / "figures" / "mine.svg").write_text("<svg/>")
    written = write_report(tmp_path, game_of([missing()]))
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["mine.svg"]
    assert not [path for path in written.files if path.suffix == ".svg"]


@pytest.mark.parametrize("package", ["matplotlib", "polars"])
def test_a_library_that_is_not_there(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingsError, match=rf"need {package}.*pip install 'groundswell\[report\]'"):
        Held(tmp_path, game_of([game()])).check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ten_thousand_interactions(tmp_path: Path) -> None:
    some = [game(number=number) for number in range(4)]

    def many() -> Iterator[Interaction]:
        for number in range(10_000):
            yield some[number % 4]._replace(key=f"key{number}")

    written = write_report(tmp_path, game_of(many))
    assert written.page is not None
    assert polars.scan_parquet(tmp_path / "interactions.parquet").select(polars.len()).collect().item() == 10_000
    assert (tmp_path / "interactions.json").read_bytes().count(b"\n") == 10_002
    assert written.page.stat().st_size < 20_000_000
    assert len(Walked(written.page.read_text()).transcripts) == 10_000


def trial(interaction: Interaction, program: str = "secret_game/duel@1") -> TrialResult:
    _, duel, played, fault = interaction
    outcome = played if fault is None else fault
    body = None if outcome is None else msgspec.json.encode(outcome).decode()
    spec = msgspec.json.encode(duel).decode()
    kind = None if fault is None else fault.kind.value
    return TrialResult(TrialRow(1, interaction.key, program, spec, 0, body, kind), fault)


def test_interactions_come_from_the_store_as_often_as_wanted() -> None:
    every = every_kind()
    results = [*map(trial, every), trial(game(number=7), "other@1")]
    read = interactions_of(results)
    assert list(read()) == list(read()) == every


def sent(ended_at: float | None) -> StoredWave:
    """A wave as the store has it."""
    return StoredWave(4, "r", None, "openai", "openai_batch", 12, 100.0, About(), None, ended_at)


def test_waves_that_came_back() -> None:
    def usd(wave: StoredWave) -> float:
        return wave.size / 100

    found = waves_of([sent(250.5), sent(None)], usd)
    assert [msgspec.structs.astuple(wave) for wave in found] == [(4, "openai_batch", "openai", 12, 150.5, 0.12)]
    assert waves_of([sent(250.5)], lambda _: None)[0].usd is None
