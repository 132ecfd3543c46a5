"""The report of simulations in a browser: no screen is too narrow for it, talks are filtered, nothing is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.simulation import Line, Rules, Talked
from groundswell.program.request import Fault, FaultKind
from groundswell.reporting.page import page_of
from tests.browser.conftest import Open
from tests.browser.test_report import looked_at
from tests.experiments.simulations.finished import plant_batch, report_of

pytestmark = pytest.mark.slow

PEOPLE = tuple(
    Entity(f"e{at}", name, attributes={"motto": "m" * 300, "age": at})
    for at, name in enumerate(["Fatima Zahraoui", "Henrik Dalgaard", "N" * 200])
)
SHEET = Questionnaire(
    (
        Question("why", "Who should decide? " * 9 + "x" * 90, "text"),
        Question("who", "Who should decide? " * 9 + "x" * 90, "choice", ("o" * 90, "everybody", "the state")),
        Question("sure", "How sure are you?", "scale", low=0, high=100),
    ),
    before=True,
)
VALUES: dict[str, tuple[str | int, ...]] = {
    "why": ("Why " * 30, "l" * 90, "yes"),
    "who": ("o" * 90, "everybody", "everybody"),
    "sure": (0, 100, 50),
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("talks")
    rules = Rules("emulated/a", questionnaire=SHEET)
    batch = Batch("t" * 200, "c" * 300, PEOPLE, 3, 3, rules, replicates=3, by=("age",))
    lines = tuple(Line(at, 1, 1, "word " * 60 + "w" * 300, "t" * 200, cut=at == 1) for at in range(3))
    answers = [
        Answer(place, each.id, VALUES[each.id][place], before=before)
        for place in range(3)
        for each in SHEET.questions
        for before in (True, False)
    ]
    came: list[Talked | Fault | None] = [
        Talked(lines, 1, tuple(answers)),
        Fault(FaultKind.TIMEOUT, "e" * 300),
        Talked(lines[:1], 1),
    ]
    with ThreadPoolExecutor(1) as pool:  # Playwright has a loop of its own in this thread
        record = pool.submit(plant_batch, folder / "s.db", batch, came).result()
    with report_of(folder / "s.db", record) as report:
        (folder / "report.html").write_text(page_of(report))
    return folder / "report.html"


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_nothing_fails(width: int, page: Path, browse: Open) -> None:
    opened = browse(page, width=width)
    seen = looked_at(opened)
    assert seen["wide"] == width
    assert seen["out"] == []
    assert seen["scroll"] <= width, "no scrolling to the side"
    assert seen["clipped"] == [], "text that a drawing cuts off"
    assert len(seen["drawings"]) == 4
    assert opened.complaints == []
    assert opened.requests[1:] == []


def test_talks_are_filtered_by_label_and_answer(page: Path, browse: Open) -> None:
    opened = browse(page)
    opened.page.get_by_text("Showing 3 of 3").wait_for()
    opened.page.locator('select[name="label"]').select_option(label="cut off (1)")
    opened.page.get_by_text("Showing 1 of 1 (3 in total)").wait_for()
    assert "sim-" in opened.page.locator(".talk > summary").first.inner_text()
    opened.page.locator('select[name="answer"]').select_option(label="who: everybody (1)")
    opened.page.get_by_text("Showing 1 of 1 (3 in total)").wait_for()
    opened.page.locator('select[name="status"]').select_option(label="failed (1)")
    opened.page.get_by_text("Showing 0 of 0 (3 in total)").wait_for()
