"""The page of transcripts in a browser: no screen is too narrow for it, names stay whole, nothing is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.reading import Readings
from groundswell.experiments.simulations.simulation import Line, Rules, Talked
from groundswell.experiments.simulations.transcripts import POLICY, write_transcripts
from groundswell.program.request import Fault, FaultKind
from groundswell.store.journal import Store
from tests.browser.test_report import BROWSER, browse, console, looked_at
from tests.experiments.simulations.finished import plant_batch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="there is no chromium here")]

PEOPLE = tuple(
    Entity(f"e{at}", name, attributes={"motto": "m" * 300, "age": at})
    for at, name in enumerate(["Fatima Zahraoui", "Henrik Dalgaard", "N" * 200])
)
SHEET = Questionnaire(
    tuple(Question(f"q{at}", "Who should decide? " * 9 + "x" * 90, "text") for at in range(4)), before=True
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("talks")
    batch = Batch("t" * 200, "c" * 300, PEOPLE, 3, 3, Rules("emulated/a", questionnaire=SHEET), replicates=3)
    lines = tuple(Line(at, 1, 1, "word " * 60 + "w" * 300, "t" * 200) for at in range(3))
    answers = [
        Answer(place, each.id, ["Why " * 30, "l" * 90, "yes"][place], before=before)
        for place in range(3)
        for each in SHEET.questions
        for before in (True, False)
    ]
    came: list[Talked | Fault | None] = [
        Talked(lines, 1, tuple(answers)),
        Fault(FaultKind.TIMEOUT, "e" * 300),
        Talked(lines, 1),
    ]
    record = plant_batch(folder / "s.db", batch, came)
    store = Store(folder / "s.db")
    with (folder / "transcripts.html").open("wb") as out:
        assert write_transcripts(Readings(store), record, out) == 3
    store.close_reading()
    return folder / "transcripts.html"


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_nothing_fails(width: int, page: Path, tmp_path: Path) -> None:
    seen = looked_at(page, tmp_path, width, policy=POLICY)
    assert seen["wide"] == width
    assert seen["out"] == []
    assert seen["scroll"] <= width, "no scrolling to the side"
    assert seen["failed"] == []
    names = {name: height for name, height in seen["names"] if not name.startswith("NN")}
    assert names.keys() == {"Fatima Zahraoui", "Henrik Dalgaard"}
    assert max(names.values()) < 3 * 24, "names are broken into two lines at the most"


def test_the_page_itself_says_nothing_to_the_console(page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    done = browse(page, tmp_path / "profile", "--window-size=1280,1000", f"--screenshot={shot}")
    assert console(done) == []
    assert shot.stat().st_size > 20_000
