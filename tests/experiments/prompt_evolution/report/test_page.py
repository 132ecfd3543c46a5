"""The page: every section is there, whatever is missing, and nothing in it runs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from groundswell.experiments.prompt_evolution.analysis import Analysis
from groundswell.experiments.prompt_evolution.fitness import COMPOSITE
from groundswell.experiments.prompt_evolution.report.failing import chosen
from groundswell.experiments.prompt_evolution.report.page import page
from groundswell.experiments.prompt_evolution.report.searches import curves, genealogy
from groundswell.experiments.prompt_evolution.report.told import Fault, Tried
from groundswell.experiments.prompt_evolution.report.writing import drawings, write_report
from groundswell.experiments.prompt_evolution.solving import Solved
from tests.experiments.prompt_evolution.report.evolutions import BEST, EVIL, SCORES, analysis, large, searched, told

SECTIONS = ("verdict", "prompt", "searches", "family", "front", "spending", "failures", "beware", "run", "files")


def test_every_section_is_there_with_its_drawing() -> None:
    about = told(about=[("begun", "today")])
    html = page(about, {each.name: each for each in drawings(about)})
    for name in SECTIONS:
        assert f'<section id="{name}"' in html
    assert html.count("<svg") == 5
    assert '<section id="models"' not in html
    assert "API efficiency" in html
    assert "65.0%" in html, "13 asks of 20"
    assert "today" in html


def test_nothing_that_a_model_wrote_runs() -> None:
    replies = {9: [Tried("m<1>", Solved(0.0, EVIL, said=EVIL))]}
    fault = Fault("sealed test", "timeout")
    html = page(told(replies=replies, faults={fault: 3}, examples={fault: EVIL}), {})
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html
    assert "m&lt;1&gt;" in html
    assert "A &lt;run&gt;" in html


def nothing() -> Analysis:
    none: list[float | None] = [None] * 10
    return analysis({"seed": none, "evolution": none}, [searched(curve=())], validation=None)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("found", "drawn"),
    [
        (nothing(), ["genealogy", "front"]),
        (analysis({name: SCORES[name] for name in ("seed", "evolution")}), None),
        (analysis(SCORES, [searched(winner=0), searched("random", winner=1)]), None),
        (analysis({name: [0.5] * 10 for name in SCORES}), None),
        (msgspec.structs.replace(analysis(SCORES), gains=(), front=()), ["accuracies", "curves", "genealogy", "front"]),
    ],
    ids=["everything missing", "no baselines", "one finalist", "scores in between", "no gains and no front"],
)
def test_what_is_missing_does_not_break_the_page(found: Analysis, drawn: list[str] | None) -> None:
    about = told(found)
    every = ["accuracies", "gains", "curves", "genealogy", "front"]
    plots = {each.name: each for each in drawings(about)}
    assert list(plots) == (every if drawn is None else drawn)
    html = page(about, plots)
    assert "None" not in html
    assert "nan" not in html


def test_a_fitness_of_several_parts_is_no_percentage() -> None:
    settings = msgspec.structs.replace(told().settings, fitness=COMPOSITE)
    about = told(settings=settings)
    assert "accuracy 0.6, consistency 0.15" in page(about, {})
    drawn = curves(about.analysis, settings)
    assert drawn is not None
    assert "fitness in training" in drawn.svg
    assert "%" not in "".join(re.findall("<text.*?</text>", drawn.svg))


def test_several_models_are_told_apart() -> None:
    settings = msgspec.structs.replace(told().settings, models=("one", "two"))
    found = analysis(SCORES)
    by = msgspec.structs.replace(found.tested[1], by_model={"one": 0.25, "two": None})
    html = page(told(msgspec.structs.replace(found, tested=(found.tested[0], by, found.tested[2])), settings), {})
    models = html.partition('<section id="models"')[2].partition("</section>")[0]
    assert "25.0%" in models
    assert ">two<" in models


def test_failures_that_others_solve_come_first() -> None:
    found = analysis({"evolution": [0.0, 1.0, 0.0, None, 0.5], "seed": [0.0, 0.0, 1.0, 1.0, 1.0]}, [searched()])
    evolved, seed = found.tested
    assert chosen(evolved, [seed]) == [2, 4, 0]
    assert chosen(evolved, [seed], most=1) == [2]
    assert chosen(seed, []) == [0, 1]


@pytest.mark.slow
def test_five_thousand_births_make_a_page_that_can_be_read() -> None:
    about = told(large())
    drawn = genealogy(about.analysis.evolution, about.settings)
    assert drawn is not None
    html = page(about, {drawn.name: drawn})
    assert len(html) < 500_000
    assert "The first" in html, "steps of a long line are folded"


@pytest.mark.slow
def test_the_report_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    once, again = write_report(tmp_path / "a", told()), write_report(tmp_path / "b", told())
    assert [each.name for each in once.files] == [each.name for each in again.files]
    for one, other in zip(once.files, again.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    assert (tmp_path / "a" / "best_prompt.txt").read_bytes() == BEST.text.encode()

    fewer = write_report(tmp_path / "b", told(nothing()))
    assert not (tmp_path / "b" / "figures" / "gains.svg").exists(), "drawings of an earlier report go"
    assert all(each.exists() for each in fewer.files)
