"""What `simulate` makes of what it is given: names, files or text, and figures of nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.cli.simulate_figures import print_figures
from groundswell.cli.simulate_inputs import HEADLINE, file_named, headline, make_up_name
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.analysis import Tally
from groundswell.experiments.simulations.batch import Batch, Schedule
from groundswell.experiments.simulations.entities import Entity, check_name
from groundswell.experiments.simulations.reading import BATCH
from groundswell.experiments.simulations.simulation import Rules
from groundswell.program.request import Fault, FaultKind, canonical
from groundswell.store.journal import Store

SMALL = Batch("talk", "talk", (Entity("a", "A"),), 1, 1, Rules("emulated/keeper"))


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("A panel discussion about climate change solutions", "A panel discussion about climate…"),
        ("Discuss AI.", "Discuss AI"),
        ("  two\n\n lines\t", "two lines"),
        ("First, second, and then a third, a fourth one", "First, second, and then a third, a…"),
        ("x" * 50, "x" * 36 + "…"),
        ("\x1b\x00", "simulations"),
        ("气候变化" * 20, "气候变化" * 9 + "…"),
    ],
    ids=["long", "short", "lines", "comma", "word", "nothing", "chinese"],
)
def test_headlines(context: str, name: str) -> None:
    assert headline(context) == name


@given(st.text())
def test_a_headline_is_a_name_for_a_batch(context: str) -> None:
    made = headline(context)
    check_name(made, "name")
    assert len(made) <= HEADLINE + 1


def named(name: str) -> Batch:
    return msgspec.structs.replace(SMALL, name=name)


def test_a_run_of_another_day_is_gone_on_with_if_it_is_the_same(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    store = Store(path)
    for name in ("talk 2020-01-01", "talk 2020-01-02 (3)", "talk of the town 2020-01-01"):
        store.runs.create(name, 0, driver=BATCH, settings=canonical(named(name)).decode())
    store.close_reading()
    assert make_up_name("talk", path, 0, BATCH, named)[0] == "talk 2020-01-02 (3)"  # the newest
    assert make_up_name("talk", path, 1, BATCH, named)[0].startswith("talk 20")
    assert make_up_name("talk", path, 1, BATCH, named)[0] not in ("talk 2020-01-01", "talk 2020-01-02 (3)")
    name, settings = make_up_name("talk of", path, 0, BATCH, named)
    assert settings.name == name != "talk of the town 2020-01-01"


def test_a_name_that_somebody_gave_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    first, _ = make_up_name("talk", path, 0, BATCH, named)
    store = Store(path)
    store.runs.create(first, 0)
    store.close_reading()
    assert make_up_name("talk", path, 0, BATCH, named)[0] == f"{first} (2)"


@pytest.mark.parametrize("text", ["a word", "x" * 10_000, "nul\0nul", "see notes.txt there", "."], ids=range(5))
def test_what_is_no_file_is_text(text: str) -> None:
    assert file_named(text, "--context") is None


def test_what_can_only_be_a_file_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "scene.txt"
    with pytest.raises(SettingsError, match="there is no such file"):
        file_named(str(path), "--context")
    path.write_text("x")
    assert file_named(str(path), "--context") == path


def test_figures_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(SMALL)
    tally.add(next(iter(Schedule(SMALL, 0))), None, Fault(FaultKind.TIMEOUT, "late"))
    print_figures(tally.analysis(planned=1), Path("x"))
    assert "no simulation is usable, so there are no figures" in capsys.readouterr().out
