"""The page: every section is there, what was found is said, and nothing in it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.experiments.query_mutation.report.examples import chosen, hardest
from groundswell.experiments.query_mutation.report.page import page
from groundswell.experiments.query_mutation.report.writing import drawings, write_report
from tests.experiments.query_mutation.report.trainings import MET, attempt, attempts, curve, made, told

LEAKS = {"noop": 0.0, "random": 0.25, "bandit": 0.5, "ppo": 0.75}


def shown(**how: object) -> str:
    about = told(attempts(LEAKS), **how)  # type: ignore[arg-type]
    return page(about, {each.name: each for each in drawings(about)})


def test_every_section_is_there_with_its_drawing() -> None:
    html = shown()
    for name in (
        "verdict",
        "methods",
        "learning",
        "steps",
        "operators",
        "masked",
        "examples",
        "run",
        "prompts",
        "files",
    ):
        assert f'<section id="{name}"' in html
    assert html.count("<svg") == 4
    assert "ppo wins" in html
    assert "75.0%" in html
    assert "of this one learner" in html
    assert "One learner of each kind was trained" in html


@pytest.mark.slow
def test_what_was_masked_is_told_with_its_reason() -> None:
    html = shown()
    assert "ppo, learning" in html
    assert "ppo, evaluated" in html
    assert "took &lt;too&gt; long" in html
    assert "took <too> long" not in html


def test_a_page_without_curves_or_episodes_is_still_a_page() -> None:
    empty = told([], curves=())
    html = page(empty, {each.name: each for each in drawings(empty)})
    assert "nothing can be said of anybody" in html
    assert "<svg" not in html


def test_examples_are_the_best_leak_behind_the_hardest_guard_the_same_by_others_and_a_failure() -> None:
    some = [
        *(attempt("ppo", 0, number, "wary", "leak", 2) for number in range(4)),
        attempt("ppo", 0, 4, "warned", "leak", 5),
        attempt("ppo", 0, 5, "warned", "leak", 3),
        attempt("ppo", 0, 6, "warned", "steps", 9),
        attempt("random", 0, 5, "warned", "steps", 9),
        attempt("bandit", 1, 5, "warned", "leak", 7),
        attempt("bandit", 0, 7, "open", "fault", 1),
        attempt("ppo", 0, 8, "open", "steps", 9),
    ]
    assert hardest(some, MET) == "warned"
    found = [(each.attempt.method, each.attempt.number, each.attempt.end) for each in chosen(some, MET)]
    assert found == [
        ("ppo", 5, "leak"),
        ("random", 5, "steps"),
        ("bandit", 5, "leak"),
        ("ppo", 6, "steps"),
        ("bandit", 7, "fault"),
    ]


def test_a_transcript_marks_the_secret_and_shows_text_as_text() -> None:
    evil = attempt(end="steps")._replace(steps=(made(query="<script>alert(1)</script>", response="<b>no</b>"),))
    html = page(told([*attempts(LEAKS), *[evil._replace(number=500, best=0.9)]]), {})
    assert "<script>" not in html
    assert '<mark class="leak exact">' in html


@pytest.mark.slow
def test_the_report_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    about = told(attempts(LEAKS, learners=2), curves=[curve(), curve(number=1), curve("bandit"), curve("bandit", 1)])
    once, again = write_report(tmp_path / "a", about), write_report(tmp_path / "b", about)
    assert [each.name for each in once.files] == [each.name for each in again.files]
    assert once.episodes == len(about.attempts)
    for one, other in zip(once.files, again.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.slow
def test_drawings_of_an_earlier_report_go(tmp_path: Path) -> None:
    write_report(tmp_path, told(attempts(LEAKS)))
    written = write_report(tmp_path, told(attempts(LEAKS), curves=()))
    assert not (tmp_path / "figures" / "learning.svg").exists()
    assert all(each.exists() for each in written.files)


@pytest.mark.slow
@pytest.mark.parametrize("learners", [1, 2, 3])
def test_learning_curves_are_drawn_for_any_number_of_learners(learners: int) -> None:
    curves = [curve(kind, at, (0.1, 0.2 + 0.1 * at)) for kind in ("ppo", "bandit") for at in range(learners)]
    names = [each.name for each in drawings(told(attempts(LEAKS, learners), curves=curves))]
    assert names == ["methods", "learning", "steps", "operators"]
