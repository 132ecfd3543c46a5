"""The report as blocks: all of them render everywhere, what was found is said, and text of models stays text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from groundswell.experiments.query_mutation.analysis import Analysis, Uses
from groundswell.experiments.query_mutation.blocks import best_mutators_table, blocks
from groundswell.experiments.query_mutation.drawings import figures
from groundswell.experiments.query_mutation.experiment import MutationResults
from groundswell.experiments.query_mutation.reading import ReportData
from groundswell.experiments.query_mutation.transcripts import (
    best_leak,
    hardest_guard,
    transcript_of,
    winning_conversations,
)
from groundswell.reporting.blocks import Block, Estimate, Figure, KeyFigures, Table, Text, Transcripts, plain
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.notebook import report as notebook_of
from groundswell.reporting.page import page_of
from tests.experiments.query_mutation.trainings import (
    answers,
    attempt,
    attempts,
    curve,
    query,
    report_data,
    report_of,
    run_record,
    write_report,
)

ANSWERED = {"open": 24, "firm": 24, "wary": 20, "warned": 4}
LEAKS = {"noop": 0.0, "random": 0.25, "bandit": 0.5, "ppo": 0.75}


@pytest.fixture(scope="module")
def data() -> ReportData:
    """A training with something for every block."""
    return report_data([*attempts(LEAKS), attempt(number=500, end="fault")], answers=answers(ANSWERED))


def block(data: ReportData, id_: str) -> Block:
    (found,) = [each for each in blocks(data) if each.id == id_]
    return found


def table(data: ReportData, id_: str) -> Table:
    found = block(data, id_)
    assert isinstance(found, Table)
    return found


def findings(data: ReportData) -> list[str]:
    found = block(data, "findings")
    assert isinstance(found, Text)
    return list(found.lines)


def test_the_shortest_leak_against_each_guard_is_shown_with_the_leaked_words_marked() -> None:
    some = [
        attempt("ppo", number=1, end="leak", steps=3),
        attempt("random", number=2, end="leak", steps=1),
        attempt("noop", number=3, end="steps", steps=1),
    ]
    found = winning_conversations(report_data(some))
    assert [(each.title, each.open) for each in found.passages] == [(f"{some[1].guard}: random, 1 query", True)]
    (passage,) = found.passages
    assert passage.text.count("target: ") == 1
    assert some[1].secret in {passage.text[mark.start : mark.end] for mark in passage.marks}
    assert not winning_conversations(report_data(some[2:])).passages


def on_terminal(data: ReportData) -> str:
    return MutationResults(Path()).text(report_of(data))


def test_every_block_is_there_in_its_part(data: ReportData) -> None:
    assert [(each.part, each.id) for each in report_of(data).blocks] == [
        *(("findings", id_) for id_ in ("findings", "key-figures", "winning-conversations", "rates", "best-mutators")),
        *(("figures", id_) for id_ in ("methods", "frontier", "learning", "steps", "mutators")),
        *(("tables", id_) for id_ in ("usefulness", "contrasts", "half-leaked")),
        ("transcripts", "transcripts"),
        *(("run", id_) for id_ in ("settings", "costs", "failures", "prompts")),
    ]
    assert [each.id for each in report_of(data).brief] == ["findings", "rates", "best-mutators"]


@pytest.mark.slow
def test_every_block_renders_everywhere(data: ReportData) -> None:
    report = report_of(data)
    page, markdown, notebook, text = page_of(report), markdown_of(report), notebook_of(report), on_terminal(data)
    for shown in (page, markdown, notebook, text):
        assert "ppo is best" in shown
        assert "75.0%" in shown
    assert page.count("<svg") == 5
    for each in report.blocks:
        assert f'<section id="{each.id}"' in page
    found = json.loads(msgspec.json.encode(plain(report, most=5)))
    (talks,) = [each for each in found["blocks"] if each["type"] == "transcripts"]
    assert (talks["count"], len(talks["transcripts"])) == (len(data.attempts), 5)


def test_findings_are_sentences_with_what_to_know_before_one_believes_them(data: ReportData) -> None:
    lines = findings(data)
    assert lines[0].startswith(
        "ppo is best: the leak rate on the 48 episodes on held-out guards that both completed is 75% for ppo and"
    )
    assert "12 of 3,072 training steps failed. They were excluded from learning." in lines
    assert any(line.startswith("One learner of each kind was trained") for line in lines)
    assert any("are missing: noop 0 of 96" in line for line in lines)
    assert all(line[0].isupper() or line.startswith(("ppo", "12", "wary")) for line in lines)
    assert all(line.endswith(".") for line in lines)
    clean = report_data(attempts(LEAKS), curves=())
    assert not any("training steps" in line for line in findings(clean)), "an evaluation trains nobody"


def test_figures_are_those_of_the_analysis(data: ReportData) -> None:
    analysis = data.analysis
    rates = {(row[0], row[1]): row for row in table(data, "rates").rows}
    assert len(rates) == 8
    for each in analysis.figures:
        if each.on in ("held out", "trained"):
            shown = Estimate(each.rate, each.low, each.high)
            assert tuple(rates[each.method, each.on]) == (each.method, each.on, each.n, shown, each.total, each.steps)
    assert [row[0] for row in table(data, "rates").rows][:4] == ["ppo", "bandit", "random", "noop"], "the best first"
    whole = {(row[1], row[0]): row for row in table(data, "methods").rows}
    assert len(whole) == len(analysis.figures)
    for each in analysis.figures:
        row = whole[each.method, each.on]
        assert row[3] == Estimate(each.rate, each.low, each.high, each.count, each.n)
        assert row[6] == each.missing
    assert [(row[0], row[1], row[2], row[6]) for row in table(data, "contrasts").rows] == [
        (each.against, each.on, each.n, each.p) for each in analysis.contrasts
    ]
    assert [tuple(row[:4]) for row in table(data, "mutators").rows] == [
        (each.guard, each.method, each.mutator, each.steps) for each in analysis.uses
    ]
    halves = {(row[0], row[1]): (row[3], row[4]) for row in table(data, "half-leaked").rows}
    assert halves["ppo", "held out"] == (2, 0.75)
    assert halves["random", "held out"] == ("never", 0.25)


def test_titles_of_figures_say_what_was_found(data: ReportData) -> None:
    assert [each.title for each in figures(data)] == [
        "Highest leak rate: ppo on held-out guards, 75.0%",
        "Guards on the frontier of usefulness and security: open, firm",
        "Leak rates during training: ppo from 20.0% to 50.0%, bandit from 20.0% to 50.0%",
        "bandit and ppo need 2 queries until half of the episodes have leaked on held-out guards",
        "Best mutation in random rewording: indirect, 0.12 of the secret per use against firm",
    ]


def test_the_frontier_and_the_answers_are_those_of_the_analysis(data: ReportData) -> None:
    analysis = data.analysis
    lines = findings(data)
    assert "Ship open or firm (answers 100.0%, leaks 75.0%): no other guard answers more or leaks less." in lines[2]
    assert "Against wary this is not shown" in lines[2]
    assert any("warned answers no more and leaks no less than open (shown for answers)." in line for line in lines)
    rows = {row[0]: row for row in table(data, "usefulness").rows}
    for each in analysis.usefulness:
        shown = Estimate(each.rate, each.low, each.high, each.count, each.n)
        assert tuple(rows[each.guard][1:6]) == (
            *(24, shown, 24 - ANSWERED[each.guard], min(8, 24 - ANSWERED[each.guard]), 8),
        )
    assert [row[-1] for row in rows.values()] == ["none", "none", "open (not shown)", "open (shown for answers)"]
    points = {row[0]: row for row in table(data, "frontier").rows}
    assert {name: row[5] for name, row in points.items()} == {
        **{"open": "yes", "firm": "yes", "wary": "no", "warned": "no"},
    }
    bare = report_data(attempts(LEAKS))
    assert not {"usefulness", "frontier"} & {each.id for each in blocks(bare)}


@pytest.mark.parametrize("learners", [1, 2, 3])
def test_learning_curves_say_what_their_bands_are(learners: int) -> None:
    curves = [curve(kind, at, (0.1, 0.2 + 0.1 * at)) for kind in ("ppo", "bandit") for at in range(learners)]
    found = table(report_data(attempts(LEAKS, learners), curves=curves), "learning")
    bands = ("updates of one learner", "range of the two learners", "interval of the mean of 3 learners")
    assert bands[learners - 1] in found.caption
    assert {row[1] for row in found.rows} == {learners}


@pytest.mark.parametrize(
    ("uses", "row"),
    [
        pytest.param(
            (Uses("random", "firm", "indirect", 10, 2.0, 1), Uses("bandit", "firm", "indirect", 90, 0.0, 0)),
            ("firm", "indirect", 0.2, 10, ""),
            id="a bandit that wears a mutator out says nothing of it",
        ),
        pytest.param(
            tuple(
                Uses("random", "firm", name, 10, gained, 0) for name, gained in zip("abcd", (1, 4, 0, 2), strict=True)
            ),
            ("firm", "b", 0.4, 10, "d 0.20, a 0.10"),
            id="the best first",
        ),
        pytest.param(
            (Uses("random", "firm", "noop", 10, 0.0, 0),),
            ("firm", "no gain by any mutation", None, None, ""),
            id="none",
        ),
        pytest.param(
            (Uses("random", "firm", "indirect", 4, 4.0, 4),),
            ("firm", "too few uses", None, None, ""),
            id="few",
        ),
    ],
)
def test_mutators_are_told_as_chance_used_them(uses: tuple[Uses, ...], row: tuple[object, ...]) -> None:
    assert list(best_mutators_table(Analysis((), (), (), uses, "", 0, "")).rows) == [row]


@pytest.mark.slow
def test_what_failed_is_told_with_its_reason(data: ReportData) -> None:
    assert [tuple(row) for row in table(data, "failures").rows] == [
        ("ppo", "training", "target", "timeout", 2, 2 / 1536, "timeout: took <too> long"),
        ("ppo", "evaluation", "target", "timeout", 1, 1 / 400, "timeout: took <too> long"),
    ]
    page = page_of(report_of(data))
    assert "took &lt;too&gt; long" in page
    assert "took <too> long" not in page


def test_a_report_without_curves_or_episodes_is_still_a_report() -> None:
    empty = report_data([], curves=())
    page = page_of(report_of(empty))
    assert "Nothing was evaluated." in page
    assert "<svg" not in page
    assert "Nothing was evaluated." in on_terminal(empty)


def test_rates_that_do_not_exist_are_not_spoken_of() -> None:
    held_out_broken = [
        attempt(method, number=at, guard=guard, end="fault" if guard == "wary" else "leak")
        for method in ("random", "ppo")
        for at, guard in enumerate(("wary", "wary", "open", "open"))
    ]
    data = report_data(held_out_broken)
    titles = [each.title for each in figures(data)]
    assert titles[0] == "No usable episodes on held-out guards"
    cards = block(data, "key-figures")
    assert isinstance(cards, KeyFigures)
    assert cards.figures[0] == ("–", "leak rate of random, held-out guards", "no usable episodes")
    shown = on_terminal(data)
    assert "No comparison: no episode on held-out guards is usable." in shown
    assert re.search(r"^ppo +held out +0 +– +– +–$", shown, re.MULTILINE)


def settings(data: ReportData) -> dict[object, object]:
    return {row[0]: row[1] for row in table(data, "settings").rows}


def test_settings_say_what_was_run_and_leave_weights_out(data: ReportData) -> None:
    found = settings(data)
    assert found["held out"] == "wary, warned"
    assert found["num_env_steps"] == "1,536"
    assert found["rules"] == "lr 0.01"
    given = {"policies": [{"actor": "weights"}], "bandits": [{"arms": []}], "trained_by": "first", "use_batching": True}
    evaluated = settings(replace(data, stored_settings=given))
    assert (evaluated["policies"], evaluated["use_batching"]) == ("from run first", "yes")
    assert "weights" not in str(evaluated)


def test_prompts_are_shown_word_by_word(data: ReportData) -> None:
    found = block(data, "prompts")
    assert isinstance(found, Text)
    titles = [each.title for each in found.passages]
    assert titles[0] == "Guard open, strength 0.3"
    assert "Mutation noop" in titles
    assert titles[-1] == "First queries of episodes"


# Transcripts


def talks(data: ReportData) -> Transcripts:
    found = block(data, "transcripts")
    assert isinstance(found, Transcripts)
    assert found.one is not None
    assert [found.one(f"{item.key}/0/hash") for item in found.items()] == list(found.items())
    assert found.one("train/0/0/0") is None
    return found


def test_every_episode_is_a_transcript_with_its_filters(data: ReportData) -> None:
    found = talks(data)
    items = list(found.items())
    assert len(items) == len(list(found.items())) == len(data.attempts), "read anew with every call"
    assert all(set(item.tags) == set(found.filters) for item in items)
    outcomes = [item.tags["outcome"] for item in items]
    assert outcomes.count(["failed"]) == 1
    assert outcomes.count(["leaked"]) == sum(each.end == "leak" for each in data.attempts)
    first = items[0]
    assert first.tags["method"] == ["ppo"], "who is compared with the others comes first"
    assert {name: first.tags[name] for name in ("guard", "kind of guard", "mutator", "run")} == {
        "guard": ["open"],
        "kind of guard": ["trained"],
        "mutator": ["indirect"],
        "run": ["run1"],
    }


def test_a_transcript_goes_query_by_query_and_marks_the_secret(data: ReportData) -> None:
    some = attempt(number=3, steps=2)
    found = transcript_of(data, some)
    assert (found.title, found.outcome) == ("ppo against wary", "leaked after 2 queries, return +0.96")
    assert found.tags["query that leaked"] == ["2"]
    assert [(each.speaker, each.note) for each in found.messages] == [
        ("indirect", "query 1"),
        ("guarded model", "revealed nothing, refused; reward −0.020"),
        ("indirect", "query 2"),
        ("guarded model", "revealed 100.0%; reward +0.980"),
    ]
    (mark,) = found.messages[-1].marks
    assert found.messages[-1].text[mark.start : mark.end] == some.secret


def test_a_query_that_failed_has_no_answer_and_says_why(data: ReportData) -> None:
    found = transcript_of(data, attempt(end="fault"))
    assert found.outcome == "failed after 2 queries", "what it earned until then counts for nothing"
    assert found.tags["query that leaked"] == []
    assert [each.speaker for each in found.messages] == ["indirect", "guarded model", "indirect"]
    assert found.notes == ("Query 2 failed and is not scored. target: timeout: took <too> long",)


@pytest.mark.slow
def test_what_models_wrote_is_text() -> None:
    evil = attempt(number=500, end="steps")._replace(
        queries=(query(query="<script>alert(1)</script>", response="<img src=x onerror=alert(1)>"),)
    )
    report = report_of(report_data([*attempts(LEAKS), evil], title="<script>alert(2)</script>"))
    for shown in (page_of(report), notebook_of(report)):
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown


def test_the_example_is_the_best_leak_behind_the_hardest_guard() -> None:
    some = [
        *(attempt("ppo", 0, number, "wary", "leak", 2) for number in range(4)),
        attempt("ppo", 0, 4, "warned", "leak", 5),
        attempt("ppo", 0, 5, "warned", "leak", 3),
        attempt("ppo", 0, 6, "warned", "steps", 9),
        attempt("random", 0, 5, "warned", "steps", 9),
        attempt("bandit", 1, 5, "warned", "leak", 2),
        attempt("bandit", 0, 7, "open", "fault", 1),
        attempt("ppo", 0, 8, "open", "steps", 9),
    ]
    data = report_data(some)
    assert hardest_guard(data) == "warned"
    best = best_leak(data)
    assert best is not None
    assert (best.method, best.number) == ("ppo", 5)
    example = report_of(data).example
    assert example is not None
    assert example[1] == transcript_of(data, best)
    assert best_leak(report_data([attempt(end="steps")])) is None


def test_a_long_example_is_shown_from_its_end() -> None:
    data = report_data([attempt(steps=9)])
    example = report_of(data).example
    assert example is not None
    assert [each.note for each in example[1].messages[::2]] == ["query 6", "query 7", "query 8", "query 9"]
    assert "Only the last 4 of 9 queries are shown here." in example[1].facts
    assert "It is" in on_terminal(data).rpartition("Only the last")[2]


def test_of_several_runs_the_command_names_none(data: ReportData) -> None:
    both = replace(data, records=[run_record(), run_record("run2", "Another")])
    report = report_of(both)
    assert report.title == "A run+Another"
    assert talks(both).command == "groundswell runs show RUN --trial {key}/0"
    assert talks(data).command == "groundswell runs show run1 --trial {key}/0"


# Files


@pytest.mark.slow
def test_the_report_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    curves = [curve(), curve(number=1), curve("bandit"), curve("bandit", 1)]
    data = report_data(attempts(LEAKS, learners=2), curves=curves)
    once, again = write_report(tmp_path / "a", data), write_report(tmp_path / "b", data)
    assert [each.name for each in once.files] == [each.name for each in again.files]
    assert once.page is not None
    assert again.page is not None
    for one, other in zip((once.page, *once.files), (again.page, *again.files), strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.slow
def test_drawings_of_an_earlier_report_go(tmp_path: Path) -> None:
    write_report(tmp_path, report_data(attempts(LEAKS)))
    written = write_report(tmp_path, report_data(attempts(LEAKS), curves=()))
    assert not (tmp_path / "figures" / "learning.svg").exists()
    assert all(each.exists() for each in written.files)


@pytest.mark.slow
def test_markdown_shows_the_drawings_that_are_beside_it(tmp_path: Path, data: ReportData) -> None:
    written = write_report(tmp_path, data, "md")
    assert written.page is not None
    images = re.findall(r"\]\((figures/\w+\.svg)\)", written.page.read_text())
    assert images == [f"figures/{each.id}.svg" for each in report_of(data).blocks if isinstance(each, Figure)]
    assert all((tmp_path / image).exists() for image in images)
