"""Talks as they are shown: all of them are there, with what is amiss, and nothing that anybody wrote does anything."""

from __future__ import annotations

from pathlib import Path

from groundswell.experiments.simulations.batch import Batch, Single
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.simulation import Line, Rules, Simulation, Talked
from groundswell.experiments.simulations.transcripts import transcripts_block
from groundswell.program.request import Fault, FaultKind
from groundswell.reporting.blocks import Transcript
from groundswell.reporting.page import page_of
from groundswell.reporting.words import visible
from tests.experiments.simulations.finished import plant_batch, plant_single, report_of, study_of
from tests.reporting.walked import Walked

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


def shown(path: Path, what: Batch | Single, came: Talked | Fault | None) -> tuple[Transcript, Transcript | None]:
    """The only talk of a run, as the page has it and as a terminal does."""
    record = plant_batch(path, what, [came]) if isinstance(what, Batch) else plant_single(path, what, came)
    with study_of(path, record) as study:
        block = transcripts_block(study)
        (found,) = block.items()
        assert block.example is not None
        assert block.one is not None
        assert block.one(found.key) == found
        return found, block.example()


def test_everything_is_text_whatever_it_says(tmp_path: Path) -> None:
    with report_of(tmp_path / "s.db", plant_batch(tmp_path / "s.db", BATCH, [TALKED])) as report:
        page = page_of(report)
    found = Walked(page)
    assert found.well_formed
    assert not found.names & {"img", "iframe", "link", "form"}
    assert not any(name.startswith("on") for _, of in found.elements for name in of)
    assert "\x1b" not in page
    assert "\u202e" not in page
    (talk,) = found.transcripts
    assert talk["messages"][0] == {
        "speaker": "Ann <b>",
        "text": visible(NASTY),
        "note": "turn 1, cut off",
        "thought": visible(NASTY),
    }
    assert found.text.count(visible(NASTY)) >= 3  # context, description and question


def test_what_became_of_lines_and_answers_is_told(tmp_path: Path) -> None:
    found, _ = shown(tmp_path / "s.db", BATCH, TALKED)
    assert [message.note for message in found.messages] == [
        "turn 1, cut off",
        "turn 1, spoke for other entities, no thought",
    ]
    assert [message.side for message in found.messages] == [0, 1]
    assert found.notes == (
        "Bob answers why: no answer (is <empty>)",
        f"Ann <b> answers why: {NASTY}",
        "Ann <b> answers sure: 3",
    )


def test_talks_can_be_filtered_by_what_they_are(tmp_path: Path) -> None:
    found, _ = shown(tmp_path / "s.db", BATCH, TALKED)
    assert found.tags == {
        "status": ["completed"],
        "speaker": ["Ann <b>", "Bob"],
        "label": ["cut off", "spoke for other entities", "no thought", "no answer"],
        "model": ["emulated/a"],
        "answer": ["sure: 3"],
    }


def test_who_speaks_is_told(tmp_path: Path) -> None:
    found, example = shown(tmp_path / "s.db", BATCH, TALKED)
    assert found.title == "1: Ann <b>, Bob"
    assert found.facts == (f"Ann <b> (emulated/a): motto: {NASTY}; rich: true", "Bob (emulated/a): A <baker>.")
    assert example is not None
    assert (example.key, example.facts) == (found.key, ())


def test_a_simulation_that_is_missing_says_why(tmp_path: Path) -> None:
    found, example = shown(tmp_path / "s.db", BATCH, Fault(FaultKind.TIMEOUT, "too <late>"))
    assert found.notes == ("timeout: too <late>",)
    assert found.outcome.endswith(", failed")
    assert found.tags["status"] == ["failed"]
    assert example is None


def test_of_a_talk_that_goes_on_a_terminal_shows_what_is_new(tmp_path: Path) -> None:
    spec = Simulation(1, "alone", PEOPLE[1:], Rules("emulated/a"), past=(Line(0, 1, 1, "before"),))
    found, example = shown(tmp_path / "s.db", Single(spec, "mine"), Talked((Line(0, 2, 2, "after"),), 2))
    assert [message.text for message in found.messages] == ["before", "after"]
    assert example is not None
    assert ([message.text for message in example.messages], example.facts) == (
        ["after"],
        ("1 earlier line not shown.",),
    )
