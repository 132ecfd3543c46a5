"""The report of simulations: whatever there is to show is shown, and its figures are those of the analysis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.batch import Batch, Schedule, Single
from groundswell.experiments.simulations.blocks import MOST_QUESTIONS, blocks, contrast_blocks
from groundswell.experiments.simulations.contrasting import Taken, contrast
from groundswell.experiments.simulations.data import data_tables
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.reading import Readings
from groundswell.experiments.simulations.simulation import Line, Rules, Simulation, Talked
from groundswell.program.request import Fault, FaultKind
from groundswell.reporting import notebook
from groundswell.reporting.blocks import Cell, Estimate, Figure, Report, Table, Text, plain
from groundswell.reporting.figures import on_paper, svg_of
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.page import page_of
from groundswell.reporting.terminal import brief
from groundswell.store.journal import Store
from tests.experiments.simulations.finished import plant_batch, plant_single, report_of, study_of
from tests.reporting.walked import Walked

PEOPLE = tuple(
    Entity(name.lower(), name, attributes={"town": ("Ulm", "Rom")[at % 2], "age": 30 + at, "motto": f"motto {at}"})
    for at, name in enumerate(["Ann", "Bob", "Cleo", "Dan", "Eve", "Fred", "Gil", "Hal"])
)
SHEET = Questionnaire(
    (
        Question("agree", "Do you <b>agree</b>?", "choice", ("yes", "no", "perhaps")),
        Question("warm", "How warm was it?", "scale", low_label="cold"),
        Question("why", "Why?"),
    ),
    before=True,
)


def a_batch(sheet: Questionnaire | None = SHEET, people: Sequence[Entity] = PEOPLE, **more: object) -> Batch:
    rules = Rules("emulated/a", questionnaire=sheet)
    settings = {"interaction_size": 2, "num_simulations": 20, "by": ("town",), **more}
    return Batch("Warm & wet", "A talk.", tuple(people), rules=rules, **settings)  # type: ignore[arg-type]


def came_of(batch: Batch) -> list[Talked | Fault | None]:
    """Those of Ulm say yes, those of Rom say no, and all are warmer after the talk; every fifth one is missing."""
    return [
        Fault(FaultKind.TIMEOUT, "too late") if spec.number % 5 == 0 else _talked(spec) for spec in Schedule(batch, 0)
    ]


def _talked(spec: Simulation) -> Talked:
    lines = tuple(Line(at, 1, 1, "one two three", "a thought" if at else "") for at in range(len(spec.entities)))
    sheet = spec.rules.questionnaire
    answers = [
        _answer(place, entity, question, before, spec.number)
        for place, entity in enumerate(spec.entities)
        for question in (() if sheet is None else sheet.questions)
        for before in ((True, False) if sheet is not None and sheet.before else (False,))
    ]
    return Talked(lines, 1, tuple(answers))


def _answer(place: int, entity: Entity, question: Question, before: bool, number: int) -> Answer:
    if question.type == "choice":
        value: str | int = (
            "perhaps" if before and number % 3 == 0 else "yes" if entity.attributes["town"] == "Ulm" else "no"
        )
    elif question.type == "scale":
        value = 1 + (number + place) % 2 if before else 3 + (number + place) % 3
    else:
        value = f"because of {number}"
    return Answer(place, question.id, value, before=before)


def report_on(path: Path, batch: Batch, came: Sequence[Talked | Fault | None] | None = None) -> Report:
    with report_of(path, plant_batch(path, batch, came_of(batch) if came is None else came)) as report:
        found = [block for block in report.blocks if block.id != "transcripts"]
        return Report(kind=report.kind, title=report.title, blocks=found)


def lines_of(report: Report) -> str:
    (text,) = [block for block in report.blocks if block.id == "findings" and isinstance(block, Text)]
    return "\n".join(text.lines)


def table_of(report: Report, id_: str) -> Table:
    (table,) = [block for block in report.blocks if block.id == id_ and isinstance(block, Table)]
    return table


def column(report: Report, id_: str, name: str) -> list[Cell]:
    table = table_of(report, id_)
    return [row[list(table.columns).index(name)] for row in table.rows]


MISSING = Fault(FaultKind.TIMEOUT, "too late")
CASES: dict[str, tuple[Batch, list[Talked | Fault | None] | None]] = {
    "rich": (a_batch(), None),
    "nothing asked": (a_batch(None), None),
    "all missing": (a_batch(num_simulations=2), [MISSING, MISSING]),
    "none began": (a_batch(), []),
    "three entities": (a_batch(people=PEOPLE[:3], num_simulations=3, by=("motto",)), None),
    "alone": (a_batch(interaction_size=1, num_simulations=8, by=()), None),
    "nobody answered": (a_batch(num_simulations=1), [Talked((Line(0, 1, 1, "x"), Line(1, 1, 1, "y")), 1)]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_renderer_takes_whatever_there_is_to_show(name: str, tmp_path: Path) -> None:
    batch, came = CASES[name]
    came = came_of(batch) if came is None else came
    with report_of(tmp_path / "s.db", plant_batch(tmp_path / "s.db", batch, came)) as report:
        walked = Walked(page_of(report))
        assert walked.well_formed
        assert "None" not in walked.text
        assert "nan" not in re.split(r"\W+", walked.text)
        assert len(walked.transcripts) == len(came)
        assert "None" not in markdown_of(report)
        assert list(brief(report))
        assert msgspec.json.encode(plain(report))
        assert notebook.report(report)


def test_what_a_report_is_made_of(tmp_path: Path) -> None:
    ids = [block.id for block in report_on(tmp_path / "s.db", a_batch()).blocks]
    assert ids == [
        *(
            "findings",
            "key-figures",
            "choices",
            "scales",
            "question-agree",
            "agree-by-town",
            "question-warm",
            "warm-by-town",
        ),
        *("answers-why", "attributes", "scales-by-group", "choices-by-group", "entities"),
        *("settings", "missing", "context", "questionnaire", "prompts"),
    ]
    few = [block.id for block in report_on(tmp_path / "t.db", a_batch(None, by=())).blocks]
    assert few == ["findings", "key-figures", "entities", "settings", "missing", "context", "prompts"]


def test_findings_say_how_many_what_changed_and_which_groups_differ(tmp_path: Path) -> None:
    said = lines_of(report_on(tmp_path / "s.db", a_batch()))
    assert said.startswith("16 of 20 simulations are usable: 16 of 28 possible combinations of 8 entities, in pairs.")
    assert "Not usable: 4 missing (timeout 4)." in said
    assert "The conversations have 32 lines of 3.0 words on average; 16 without a thought." in said
    assert re.search(
        r"^agree \(Do you <b>agree</b>\?\): ‘(yes|no)’ \d+\.\d% \(95% interval .*; 32 of 32 answered\.$", said, re.M
    )
    apart = r"‘yes’ 0\.0% for Rom, 100\.0% for Ulm"
    assert re.search(rf"^agree differs by town \(p = 0\.\d+; Holm-adjusted p = .*, 1 test\): {apart}\.$", said, re.M)
    assert re.search(r"^warm .*: mean 4\.\d+ \(95% interval .* on a scale from 1 to 5; 32 of 32 answered", said, re.M)
    assert re.search(
        r"^During the conversation, the mean of warm rose by \+2\.\d+ \(95% interval .*\), from a mean",
        said,
        re.M,
    )
    assert re.search(
        r"^Exploratory: no significant difference in warm by any other attribute; .* of age \(p", said, re.M
    )
    assert "why (Why?): 32 of 32 answered, 3.0 words on average." in said


def test_figures_without_intervals_say_why(tmp_path: Path) -> None:
    batch, _ = CASES["three entities"]
    report = report_on(tmp_path / "s.db", batch)
    assert "(no interval: fewer than 5 entities)" in lines_of(report)
    assert "No breakdown by motto: its values are mostly unique" in lines_of(report)
    assert "Some values have no interval: fewer than 5 entities." in table_of(report, "choices").caption
    assert "differ by" not in lines_of(report)


def test_nothing_usable_is_no_figure(tmp_path: Path) -> None:
    batch, came = CASES["all missing"]
    report = report_on(tmp_path / "s.db", batch, came)
    assert lines_of(report) == "No simulation is usable, so there are no results: 2 missing (timeout 2)."
    assert report.figures == []


def test_every_figure_is_that_of_the_analysis(tmp_path: Path) -> None:
    batch = a_batch()
    record = plant_batch(tmp_path / "s.db", batch, came_of(batch))
    analysis = msgspec.json.decode(record.analysis or "", type=Analysis)
    report = report_on(tmp_path / "t.db", batch)
    agree, warm, why = analysis.questions
    for id_, counts in (("choices", False), ("question-agree", True)):
        shares = dict(zip(column(report, id_, "option"), column(report, id_, "share"), strict=True))
        for each in agree.options:
            more = (each.count, 32) if counts else ()
            assert shares[each.option] == Estimate(each.share.value, each.share.low, each.share.high, *more)
    assert warm.scale is not None
    assert column(report, "scales", "mean") == [
        Estimate(warm.scale.mean.value, warm.scale.mean.low, warm.scale.mean.high)
    ]
    assert column(report, "question-warm", "answers")[3:] == [each.count for each in warm.scale.steps]
    (town,) = [each for each in warm.dimensions if not each.exploratory]
    assert column(report, "warm-by-town", "group") == [each.value for each in town.groups]
    means = [each.mean for each in town.groups]
    assert column(report, "warm-by-town", "mean") == [
        Estimate(each.value, each.low, each.high) for each in means if each is not None
    ]
    assert column(report, "attributes", "p") == [each.p for question in (agree, warm) for each in question.dimensions]
    assert why.free is not None
    assert column(report, "answers-why", "answer") == [each.text for each in why.free.examples]
    assert column(report, "entities", "lines") == [each.lines for each in analysis.entities]


def test_figures_are_the_same_every_time_and_say_what_they_show(tmp_path: Path) -> None:
    first, again = (report_on(tmp_path / name, a_batch()).figures for name in ("s.db", "t.db"))
    assert [each.id for each in first] == ["question-agree", "agree-by-town", "question-warm", "warm-by-town"]
    assert [on_paper(each, svg_of(each)) for each in first] == [on_paper(each, svg_of(each)) for each in again]
    assert re.fullmatch(r"agree: differs by town \(p = 0\.\d+; Holm-adjusted p = 0\.\d+, 1 test\)", first[1].title)
    assert "with 95% intervals" in first[1].caption


def test_too_much_to_draw_is_a_table(tmp_path: Path) -> None:
    options = tuple(f"option {at}" for at in range(60))
    sheet = Questionnaire((Question("which", "Which?", "choice", options),), before=True)
    batch = a_batch(sheet, num_simulations=1, by=())
    answers = tuple(
        Answer(place, "which", options[place], before=before) for place in (0, 1) for before in (True, False)
    )
    report = report_on(tmp_path / "s.db", batch, [Talked((), 0, answers)])
    assert not isinstance(table_of(report, "question-which"), Figure)
    assert "and 54 more options" in lines_of(report)


def test_a_terminal_has_the_first_questions_and_the_page_has_them_all(tmp_path: Path) -> None:
    many = MOST_QUESTIONS + 2
    sheet = Questionnaire(tuple(Question(f"q{at}", "How?", "scale") for at in range(many)))
    report = report_on(tmp_path / "s.db", a_batch(sheet))
    said = lines_of(report)
    assert f"q{MOST_QUESTIONS - 1} (How?)" in said
    assert f"q{MOST_QUESTIONS} (How?)" not in said
    assert said.endswith("The report has 2 more questions.")
    (more,) = [block for block in report.blocks if block.id == "more-findings" and isinstance(block, Text)]
    assert any(line.startswith(f"q{many - 1} (How?): mean") for line in more.lines)
    assert not more.brief
    assert [each.brief for each in report.figures if "-by-" in each.id] == [True] * MOST_QUESTIONS + [False] * 2


def test_what_was_run_has_settings_questions_and_the_very_prompts(tmp_path: Path) -> None:
    report = report_on(tmp_path / "s.db", a_batch())
    settings = dict(zip(column(report, "settings", "setting"), column(report, "settings", "value"), strict=True))
    assert settings["entities"] == "8, 2 per simulation"
    assert settings["simulations"] == "20, each combination once"
    assert (settings["named in advance"], settings["model"]) == ("town", "emulated/a")
    assert column(report, "questionnaire", "answers") == ["yes | no | perhaps", "1 (cold) to 5", "in their own words"]
    (context,) = [block for block in report.blocks if block.id == "context" and isinstance(block, Text)]
    assert [passage.text for passage in context.passages] == ["A talk."]
    (prompts,) = [block for block in report.blocks if block.id == "prompts" and isinstance(block, Text)]
    assert prompts.passages[0].text.startswith("You are ")
    assert "[agree] Do you <b>agree</b>? One of: " in prompts.passages[1].text


def test_a_simulation_on_its_own(tmp_path: Path) -> None:
    spec = Simulation(1, "alone", PEOPLE[:1], Rules("emulated/a"), past=(Line(0, 1, 1, "before"),))
    record = plant_single(tmp_path / "s.db", Single(spec, "mine", "sim-x-1"), Talked((Line(0, 2, 2, "after"),), 2))
    with report_of(tmp_path / "s.db", record) as report:
        assert lines_of(report) == "1 line added; the conversation now has 2 turns."
        assert ("continues", "sim-x-1") in table_of(report, "settings").rows
        assert len(Walked(page_of(report)).transcripts) == 1
    lost = plant_single(tmp_path / "t.db", Single(spec, "mine"), MISSING)
    with report_of(tmp_path / "t.db", lost) as report:
        assert lines_of(report) == "The conversation is missing."


def test_data_tables_say_who_sat_where_with_which_model(tmp_path: Path) -> None:
    own = msgspec.structs.replace(PEOPLE[0], model="emulated/own")
    batch = a_batch(people=(own, *PEOPLE[1:3]), num_simulations=6, replicates=2, by=())
    record = plant_batch(tmp_path / "s.db", batch, came_of(batch))
    with study_of(tmp_path / "s.db", record) as study:
        tables = {table.name: table for table in data_tables(study)}
        rows = {name: list(table.rows()) for name, table in tables.items()}
    assert {name: len(found) for name, found in rows.items()} == {"simulations": 6, "lines": 10, "answers": 60}
    for name, table in tables.items():
        assert all(set(row) == set(table.columns) for row in rows[name])
        assert set(table.columns) <= set(table.meaning)
    assert {row["condition"] for found in rows.values() for row in found} == {"Warm & wet"}
    for row in (*rows["lines"], *rows["answers"]):
        assert row["model"] == ("emulated/own" if row["entity_id"] == "ann" else "emulated/a")
    order = {row["id"]: (row["entity_ids"], row["replicate"]) for row in rows["simulations"]}
    for row in rows["answers"]:
        ids, replicate = order[row["simulation_id"]]
        assert (ids[row["seat"] - 1], replicate) == (row["entity_id"], row["replicate"])


def test_without_questions_there_is_no_table_of_answers(tmp_path: Path) -> None:
    batch = a_batch(None, by=())
    with study_of(tmp_path / "s.db", plant_batch(tmp_path / "s.db", batch, came_of(batch))) as study:
        assert [table.name for table in data_tables(study)] == ["simulations", "lines"]
        assert next(iter(blocks(study))).id == "findings"


def test_what_two_batches_differ_by(tmp_path: Path) -> None:
    """Batches may have the same name, and an attribute the name of a column."""
    people = [msgspec.structs.replace(each, attributes={"option": each.attributes["town"]}) for each in PEOPLE]
    people = [
        msgspec.structs.replace(each, attributes={**each.attributes, "town": each.attributes["option"]})
        for each in people
    ]
    taken = []
    for at, replicates in enumerate((1, 2)):
        batch = a_batch(people=people, replicates=replicates, by=("option",))
        record = plant_batch(tmp_path / f"{at}.db", batch, came_of(batch))
        taken.append(Taken(batch, list(Readings(Store(tmp_path / f"{at}.db")).simulations(record))))
    report = Report(kind="k", title="t", blocks=list(contrast_blocks(contrast(taken[0], taken[1]))))
    assert list(table_of(report, "gaps-agree").columns) == [
        *("option", "Warm & wet", "Warm & wet (2)", "difference (95% interval)", "in the change"),
    ]
    assert list(table_of(report, "groups-by-1-agree").columns)[:3] == ["option", "entities", "option (2)"]
    assert Walked(page_of(report)).well_formed
    (left,) = [block for block in report.blocks if block.id == "left-out" and isinstance(block, Text)]
    assert left.lines == ["why was left out: free text cannot be compared"]
