"""A batch of emulated people finds the effect that was planted in them, and no other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.entities import taking_part
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.sampling import sample
from groundswell.experiments.simulations.simulation import Method, Rules
from groundswell.experiments.simulations.templates import template
from tests.experiments.simulations.stage import drive

SEED = 14
"""Of samples that show the planted difference in the vote with p < 0.01: with 40 people, one sample in six does."""
QUESTIONS = Path(__file__).parents[3] / "examples" / "bridge_questions.json"


def found(model: str, method: Method = "speaker", *, before: bool = False) -> Analysis:
    human = template("human")
    people = tuple(taking_part(each, human) for each in sample(human, 40, SEED))
    sheet = Questionnaire(msgspec.json.decode(QUESTIONS.read_bytes(), type=tuple[Question, ...]), before=before)
    rules = Rules(model, method=method, questionnaire=sheet)
    context = "The town council wants to build a new bridge over the river."
    summary, _ = drive(Batch("Bridge", context, people, 2, 40, rules, by=("has_children", "urban")))
    assert isinstance(summary.analysis, Analysis)
    assert summary.analysis.simulations.usable == 40
    return summary.analysis


@pytest.mark.parametrize("method", ["speaker", "narrator"])
def test_the_planted_attribute_and_no_other_makes_a_difference(method: Method) -> None:
    analysis = found("emulated/person:has_children:0.4", method)
    for question, true in zip(analysis.questions[:2], (1.6, 0.4), strict=True):
        dimensions = {each.name: each for each in question.dimensions}
        planted, named = dimensions.pop("has_children"), dimensions.pop("urban")
        assert (planted.p_holm or 0) < 0.01
        assert (named.p_holm or 0) > 0.05
        assert all((each.p_holm or 1) > 0.05 for each in dimensions.values())
        with_children = next(each for each in planted.groups if each.value == "true")
        options = {each.option: each.difference for each in with_children.options}
        difference = options["yes"] if options else with_children.difference
        assert difference is not None
        assert difference.low is not None
        assert difference.high is not None
        assert difference.low <= true <= difference.high


def test_people_without_a_planted_effect_show_none() -> None:
    for question in found("emulated/person").questions:
        assert all((each.p_holm or 1) > 0.05 for each in question.dimensions)


@pytest.mark.slow
def test_talk_changes_no_opinion() -> None:
    scale = found("emulated/person:has_children:0.4", before=True).questions[0].scale
    assert scale is not None
    assert scale.change is not None
    assert scale.change.low is not None
    assert scale.change.high is not None
    assert scale.change.low <= 0 <= scale.change.high


def test_a_batch_of_people_is_the_same_each_time() -> None:
    one, again = (found("emulated/person:age=50..:0.4") for _ in range(2))
    assert one == again
