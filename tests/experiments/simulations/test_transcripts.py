"""The page with the talks: all of them are there, and nothing on it does anything."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from pathlib import Path

import pytest

from groundswell.experiments.simulations import transcripts
from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.reading import Readings
from groundswell.experiments.simulations.simulation import Line, Rules, Simulation, Talked
from groundswell.experiments.simulations.transcripts import write_transcripts
from groundswell.program.request import Fault, FaultKind
from groundswell.store.journal import Store
from tests.experiments.simulations.finished import plant_batch, plant_single

NASTY = "</p><script>alert('x')</script><img src=x onerror=alert(1)> & \x1b[31mred \u202eleft"
PEOPLE = (Entity("ann", "Ann <b>", attributes={"motto": NASTY, "rich": True}), Entity("bob", "Bob", "A <baker>."))
SHEET = Questionnaire((Question("why", NASTY), Question("sure", "Are you <sure>?", "scale")), before=True)
RULES = Rules("emulated/a", questionnaire=SHEET)
BATCH = Batch(f"about {NASTY[:30]}", NASTY, PEOPLE, 2, 1, RULES, NASTY, order="given")
TALKED = Talked(
    (Line(0, 1, 1, NASTY, NASTY, cut=True), Line(1, 1, 1, "fine", overrun=True)),
    1,
    (Answer(1, "why", None, "is <empty>", before=True), Answer(0, "why", NASTY), Answer(0, "sure", 3)),
)


class Elements(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str | None] = []
        self.ids: list[str | None] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def page_of(path: Path, what: Batch | Single, came: Talked | Fault | None) -> tuple[str, int]:
    record = plant_batch(path, what, [came]) if isinstance(what, Batch) else plant_single(path, what, came)
    store, out = Store(path), io.BytesIO()
    count = write_transcripts(Readings(store), record, out)
    store.close_reading()
    return out.getvalue().decode(), count


def test_everything_is_text_whatever_it_says(tmp_path: Path) -> None:
    page, count = page_of(tmp_path / "s.db", BATCH, TALKED)
    found = Elements(page)
    assert count == 1
    assert not found.tags & {"script", "img", "iframe", "link", "form"}
    assert not {name for name in found.attributes if name.startswith("on")} | (found.attributes & {"src"})
    assert found.links == [f"#{id_}" for id_ in found.ids]
    assert "\x1b" not in page
    assert "\u202e" not in page
    shown = NASTY.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert found.text.count(shown) == 7  # context, description, speech, thought, answer, question and attribute
    assert "Ann <b>" in found.text
    assert "default-src 'none'" in page


def test_what_became_of_a_line_and_of_an_answer_is_told(tmp_path: Path) -> None:
    text = Elements(page_of(tmp_path / "s.db", BATCH, TALKED)[0]).text
    assert "(cut off)" in text
    assert "(went on to speak for others)" in text
    assert "no answer: is <empty>" in text


def test_who_speaks_is_told_and_answers_are_a_table(tmp_path: Path) -> None:
    page = Elements(page_of(tmp_path / "s.db", BATCH, TALKED)[0])
    assert "; rich: true" in page.text
    assert "Bob A <baker>." in page.text
    [asked, times, ann, bob] = [[cell.strip() for cell in row] for row in page.rows]
    assert [asked[0], asked[1][:3], asked[2]] == ["", "why", "sureAre you <sure>?"]
    assert times == ["", "before", "after", "before", "after"]
    assert [ann[0], ann[1], ann[2][:4], *ann[3:]] == ["Ann <b>", "", "</p>", "", "3"]
    assert bob == ["Bob", "no answer: is <empty>", "", "", ""]


def test_a_simulation_that_is_missing_says_why(tmp_path: Path) -> None:
    text = Elements(page_of(tmp_path / "s.db", BATCH, Fault(FaultKind.TIMEOUT, "too <late>"))[0]).text
    assert "timeout: too <late>" in text
    assert "1: Ann <b>, Bob" in text
    assert "failed" in text


def test_a_talk_on_its_own(tmp_path: Path) -> None:
    spec = Simulation(1, "alone", PEOPLE[1:], Rules("emulated/a"), past=(Line(0, 1, 1, "before"),))
    page, _ = page_of(tmp_path / "s.db", Single(spec, "mine"), Talked((Line(0, 2, 2, "after"),), 2))
    text = Elements(page).text
    assert text.index("before") < text.index("after")


def test_a_page_that_would_be_too_long_says_where_the_rest_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MOST_SHOWN", 0)
    page, count = page_of(tmp_path / "s.db", BATCH, TALKED)
    assert count == 0
    assert "1 more are in simulations.json and lines.csv" in page
