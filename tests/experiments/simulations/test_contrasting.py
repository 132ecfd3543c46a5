"""Two batches against each other: what is paired with what, by hand; what cannot be compared; and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import Batch, Schedule
from groundswell.experiments.simulations.contrasting import Contrast, QuestionGap, Taken, contrast
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.reading import SaidAnswer, SimulationShown
from groundswell.experiments.simulations.scoring import Scoring
from groundswell.experiments.simulations.simulation import Rules
from tests.experiments.simulations.designs import SURE, people, study

CHOICE = Question("vote", "Yes or no?", "choice", ("yes", "no"))
SCALE = Question("trust", "How much?", "scale", low=1, high=7)
TEXT = Question("why", "Why?")
PEOPLE = tuple(Entity(f"e{at}", f"Person {at}", attributes={"parent": at < 6}) for at in range(12))
Say = Callable[[int, Sequence[int], int, str], str | int | None]
"""What one says, from who it is, who was there, the replicate and the question."""


def taken(
    say: Say,
    *questions: Question,
    entities: tuple[Entity, ...] = PEOPLE,
    size: int = 1,
    many: int = 12,
    seed: int = 0,
    before: Say | None = None,
    lost: Sequence[int] = (),
    **more: Any,
) -> Taken:
    """A batch in which entities say so; some of its simulations are missing."""
    rules = more.pop("rules", {})
    sheet = Questionnaire(questions or (SCALE,), before is not None)
    batch = Batch("b", "A talk", entities, size, many, Rules("m/m", questionnaire=sheet, **rules), **more)
    shown = []
    for spec in Schedule(batch, seed):
        ids = [entity.id for entity in spec.entities]
        who = [int(each[1:]) for each in ids]
        answers = [
            SaidAnswer(id_, "", question.id, early, ask(one, who, spec.replicate, question.id), "")
            for early, ask in ((True, before), (False, say))
            if ask is not None
            for question in sheet.questions
            for one, id_ in zip(who, ids, strict=True)
        ]
        status: Any = "failed" if spec.number in lost else "completed"
        about = {"replicate": spec.replicate}
        shown.append(
            SimulationShown(
                *(str(spec.number), spec.number, "", status, "solo", tuple(ids), "", about),
                *((), () if spec.number in lost else tuple(answers)),
            )
        )
    return Taken(batch, shown)


def only(found: Contrast) -> QuestionGap:
    [question] = found.questions
    return question


def test_the_same_combinations_are_compared_pair_by_pair() -> None:
    """All say 3 and a bit more by who it is and who is there; in the first batch, 0 to 2 more by who it is."""
    first = taken(lambda one, who, _, __: 3 + sum(who) % 2 + one % 3, size=2, many=30)
    second = taken(lambda one, who, _, __: 3 + sum(who) % 2, size=2, many=30, lost=[4, 9], rules={"method": "narrator"})
    found = contrast(first, second)
    question = only(found)
    assert (question.pairing, question.pairs, question.answers) == ("simulation", 56, (60, 56))
    [gap] = question.gaps
    kept = [shown for shown in second.simulations if shown.status == "completed"]
    more = [int(each[1:]) % 3 for shown in kept for each in shown.entity_ids]
    assert gap.difference.value == pytest.approx(sum(more) / 56)
    assert (gap.difference.n, gap.difference.entities) == (56, 12)
    assert gap.one is not None
    assert gap.other is not None
    assert gap.one - gap.other == pytest.approx(gap.difference.value)
    assert gap.difference.low is not None
    assert gap.difference.low > 0
    assert gap.change is None
    assert found.differ == {"method": ("speaker", "narrator")}
    assert (found.common, found.altered, found.left_out) == (12, 0, {})


def test_the_same_entities_in_other_company_are_each_compared_with_themselves() -> None:
    solo = taken(lambda one, *_: 1 + one % 3, many=12)
    pairs = taken(lambda one, *_: 2 + one % 3 + (one < 6), size=2, many=30)
    found = contrast(pairs, solo)
    question = only(found)
    assert (question.pairing, question.pairs, question.answers, question.entities) == ("entity", 12, (60, 12), (12, 12))
    [gap] = question.gaps
    assert [gap.one, gap.other] == pytest.approx([3.5, 2.0])
    assert gap.difference.value == pytest.approx(1.5)
    # The differences of people are six of 2 and six of 1: a standard error of 0.1508, and t of 11 degrees is 2.201.
    # What they do to each other is allowed for beside that, though here it is nothing.
    assert gap.difference.low is not None
    least = 2.2009852 * 0.5 / 11**0.5
    assert least <= 1.5 - gap.difference.low < 1.1 * least
    assert found.differ == {"interaction_size": (2, 1)}


def test_more_replicates_are_another_company_and_all_of_them_count() -> None:
    once = taken(lambda *_: 2, many=12)
    thrice = taken(lambda _, __, replicate, ___: 2 + replicate, many=36, replicates=3)
    question = only(contrast(thrice, once))
    assert (question.pairing, question.answers) == ("entity", (36, 12))
    assert question.gaps[0].difference.value == pytest.approx(2)


def test_others_are_compared_without_pairs() -> None:
    others = tuple(Entity(f"e{at}", f"Somebody {at}") for at in range(12))
    found = contrast(taken(lambda one, *_: 3 + one % 2), taken(lambda one, *_: 2 + one % 3, entities=others))
    question = only(found)
    assert (question.pairing, question.pairs, found.common) == ("none", 0, 0)
    [gap] = question.gaps
    assert (gap.one, gap.other, gap.difference.value) == (3.5, 3, 0.5)
    assert (gap.difference.n, gap.difference.entities, gap.difference.reason) == (24, 24, "")


def test_a_few_in_common_do_not_speak_for_all() -> None:
    others = (*PEOPLE[:3], *(Entity(f"e{at}", f"Somebody {at}") for at in range(3, 12)))
    found = contrast(taken(lambda *_: 3), taken(lambda *_: 2, entities=others))
    assert (found.common, only(found).pairing) == (3, "none")


def test_shares_of_options_whatever_their_order() -> None:
    turned = msgspec.structs.replace(CHOICE, options=("no", "yes"), text="No or yes?")
    first = taken(lambda one, *_: "yes" if one < 9 else "no", CHOICE)
    second = taken(lambda one, *_: "yes" if one < 3 else "no", turned)
    question = only(contrast(first, second))
    assert question.reworded
    yes, no = question.gaps
    assert (yes.option, yes.one, yes.other, yes.difference.value) == ("yes", 0.75, 0.25, 0.5)
    assert (no.option, no.difference.value) == ("no", -0.5)


def test_the_difference_in_the_change_where_both_asked_twice() -> None:
    first = taken(lambda one, *_: 4 + one % 2, before=lambda *_: 2)
    second = taken(lambda *_: 4, before=lambda one, *_: 3 + one % 2)
    [gap] = only(contrast(first, second)).gaps
    assert gap.difference.value == pytest.approx(0.5)
    assert gap.change is not None
    assert gap.change.value == pytest.approx(2.5 - 0.5)
    assert only(contrast(first, taken(lambda *_: 4))).gaps[0].change is None


@pytest.mark.parametrize(("size", "many"), [(1, 12), (2, 30)], ids=["simulation", "entity"])
def test_whether_an_attribute_bears_on_the_difference(size: int, many: int) -> None:
    """Parents say 3 more in the first batch, the others say the same."""
    first = taken(lambda one, *_: 4 + 3 * (one < 6) - one % 2, size=size, many=many)
    question = only(contrast(first, taken(lambda one, *_: 4 - one % 2), by=["parent"]))
    assert question.pairing == ("simulation" if size == 1 else "entity")
    [parent] = question.dimensions
    assert [(each.value, each.entities) for each in parent.groups] == [("true", 6), ("false", 6)]
    assert [each.gaps[0].difference.value for each in parent.groups] == [pytest.approx(3), pytest.approx(0)]
    assert [each.apart[0].value for each in parent.groups] == [pytest.approx(3), pytest.approx(-3)]
    assert parent.p == parent.p_holm == pytest.approx(2 / 924)


def test_what_either_was_to_be_looked_at_by_is_told_and_nothing_else() -> None:
    first, second = taken(lambda *_: 4, by=("parent",)), taken(lambda *_: 4)
    assert [each.name for each in only(contrast(second, first)).dimensions] == ["parent"]
    assert only(contrast(second, second)).dimensions == []
    others = taken(lambda *_: 4, entities=tuple(Entity(f"x{at}", "X") for at in range(12)), many=1, lost=[1])
    [parent] = only(contrast(first, others)).dimensions
    assert (parent.p, parent.reason) == (None, "the two batches have different entities")
    with pytest.raises(SettingsError, match="by: no entity has an attribute 'sex'") as refused:
        contrast(first, second, by=["sex"])
    assert refused.value.field == "by"


def test_entities_that_were_altered_are_counted() -> None:
    altered = (msgspec.structs.replace(PEOPLE[0], description="Another"), *PEOPLE[1:])
    assert contrast(taken(lambda *_: 4), taken(lambda *_: 4, entities=altered)).altered == 1


LEFT_OUT: dict[str, tuple[Question, Question, str]] = {
    "other steps": (SCALE, msgspec.structs.replace(SCALE, high=5), "its scale differs"),
    "other options": (
        CHOICE,
        msgspec.structs.replace(CHOICE, options=("yes", "perhaps")),
        "its options differ",
    ),
    "another type": (CHOICE, Question("vote", "?"), "its type differs"),
    "free text": (TEXT, TEXT, "free text cannot be compared"),
    "not asked": (SCALE, CHOICE, "the second batch does not have it"),
}


@pytest.mark.parametrize(("one", "other", "why"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_questions_that_are_not_the_same_are_left_out(one: Question, other: Question, why: str) -> None:
    common = Question("both", "?", "scale")
    first, second = taken(lambda *_: 4, one, common), taken(lambda *_: 4, other, common)
    found = contrast(first, second)
    assert [each.id for each in found.questions] == ["both"]
    assert found.left_out[one.id] == why
    with pytest.raises(SettingsError, match=f"no question that can be compared.*{one.id}: {why}"):
        contrast(taken(lambda *_: 4, one), taken(lambda *_: 4, other))


def test_batches_without_questions_have_nothing_to_compare() -> None:
    batch = msgspec.structs.replace(taken(lambda *_: 4).batch, rules=Rules("m/m"))
    with pytest.raises(SettingsError, match="no question that can be compared; run both with the same --questions"):
        contrast(Taken(batch, []), Taken(batch, []))


def test_a_batch_in_which_nobody_answered_has_no_difference() -> None:
    [gap] = only(contrast(taken(lambda *_: 4), taken(lambda *_: None))).gaps
    assert (gap.one, gap.other, gap.difference.value, gap.difference.reason) == (4, None, None, "there are no values")


def test_the_other_way_round_it_is_the_same_with_the_other_sign() -> None:
    random = Random(3)
    first = taken(lambda *_: random.randint(1, 7), size=3, many=20, seed=1)
    second = taken(lambda *_: random.randint(1, 7), size=2, many=30, seed=2)
    there, back = only(contrast(first, second)).gaps[0].difference, only(contrast(second, first)).gaps[0].difference
    assert there.value == pytest.approx(-(back.value or 0))
    assert [there.low, there.high] == pytest.approx([-(back.high or 0), -(back.low or 0)])


def studied(say: Callable[[str, int], Any], **options: Any) -> Taken:
    """A study in which entities say so, by condition and number."""
    batch = study(entities=people(12), **{"questions": [SURE], **options})
    shown = []
    for spec in Schedule(batch, 0):
        id_, about = spec.entities[0].id, {"replicate": spec.replicate, "condition": spec.condition}
        said = SaidAnswer(id_, "", "sure", False, say(spec.condition, int(id_[1:])), "")
        first = (str(spec.number), spec.number, "", "completed", "solo", (id_,), "", about)
        shown.append(SimulationShown(*first, (), (said,)))  # type: ignore[arg-type]
    return Taken(batch, shown)


def test_studies_are_compared_condition_by_condition() -> None:
    """Each answer is paired with that of the same entity in the same condition."""
    both: dict[str, Any] = {"factors": {"x": {"a": "A", "b": "B"}}, "within": ["x"]}
    first = studied(lambda name, at: 2 + at % 2 + (name == "b"), **both)
    second = studied(lambda name, at: 2 + (name == "b"), **both)
    question = only(contrast(first, second))
    assert (question.pairing, question.pairs, question.answers) == ("simulation", 24, (24, 24))
    assert question.gaps[0].difference.value == 0.5
    alone = studied(lambda name, at: 2 if name == "a" else None, **both)
    assert only(contrast(first, alone)).pairs == 12, "those of the other condition have no partner"


def test_options_that_factors_word_are_the_same_in_both_studies() -> None:
    vote = {"id": "sure", "text": "Who?", "type": "choice", "options": ["{who}", "nobody"]}
    names = {"factors": {"who": {"ann": "Ann", "bob": "Bob"}}, "questions": [vote]}
    first = studied(lambda name, at: name.title(), **names)
    second = studied(lambda name, at: name.title() if at < 6 else "nobody", **names)
    gaps = only(contrast(first, second)).gaps
    assert [(each.option, each.one, each.other) for each in gaps] == [("{who}", 1, 0.5), ("nobody", 0, 0.5)]


def test_numbers_are_compared_if_their_bounds_are_the_same() -> None:
    number = {"id": "sure", "text": "How many?", "type": "number", "min": 0}
    first = studied(lambda name, at: at + 0.5, questions=[number])
    second = studied(lambda name, at: at, questions=[number])
    assert only(contrast(first, second)).gaps[0].difference.value == 0.5
    with pytest.raises(SettingsError, match="sure: its scale differs"):
        contrast(first, studied(lambda name, at: at, questions=[{**number, "min": 1}]))


def test_scores_of_judges_are_compared_like_answers() -> None:
    scoring = Scoring(("a/judge",), lines=(Question("stance", "Which stance?", "choice", ("for", "against")),))
    polite = Scoring(("another/judge",), lines=scoring.lines)

    def said(share: float) -> Say:
        def ask(one: int, who: Sequence[int], replicate: int, question: str) -> Any:
            return {"trust": 3 + one % 2, "stance.for": share + one % 2 / 10, "stance.against": 1 - share}[question]

        return ask

    sides = []
    for judged, share in ((scoring, 0.6), (polite, 0.4)):
        one = taken(said(share), before=said(share), rules={"scoring": judged})
        sheet = one.batch.rules.questions
        shown = [
            msgspec.structs.replace(
                each,
                answers=tuple(
                    SaidAnswer(id_, "", item.id, early, said(share)(int(id_[1:]), (), 1, item.id), "")
                    for id_ in each.entity_ids
                    for item in sheet
                    for early in ((True, False) if item.id == "trust" else (False,))
                ),
            )
            for each in one.simulations
        ]
        sides.append(Taken(one.batch, shown))
    found = contrast(sides[0], sides[1])
    gaps = {each.id: each.gaps[0] for each in found.questions}
    assert list(gaps) == ["trust", "stance.for", "stance.against"]
    assert gaps["stance.for"].difference.value == pytest.approx(0.2)
    assert (gaps["trust"].change is None, gaps["stance.for"].change) == (False, None), "scores have no before"
    assert found.differ == {"judges": (["a/judge"], ["another/judge"])}
