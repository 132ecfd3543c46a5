"""What a batch finds: counted by hand on small ones, the same in any order, and with nothing there at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.simulations.analysis import Analysis, Simulations, Tally
from groundswell.experiments.simulations.batch import Batch, Schedule
from groundswell.experiments.simulations.dimensions import DESCRIBES
from groundswell.experiments.simulations.entities import Entity, Value
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.simulation import Line, Method, Rules, Simulation, Talked
from groundswell.experiments.simulations.tabulation import Asked, StepCount
from groundswell.program.request import Fault, FaultKind
from tests.properties import examples

CHOICE = Question("vote", "Yes or no?", "choice", ("yes", "no", "unsure"))
SCALE = Question("trust", "How much do you trust them?", "scale", low=0, high=4)
TEXT = Question("why", "Why?")


def people(count: int, attributes: Sequence[Mapping[str, Value]] = ()) -> tuple[Entity, ...]:
    return tuple(
        Entity(f"e{at}", f"Person {at}", attributes=dict(attributes[at]) if attributes else {}) for at in range(count)
    )


def batch_of(
    entities: tuple[Entity, ...], *questions: Question, size: int = 2, many: int = 1, before: bool = False
) -> Batch:
    sheet = Questionnaire(questions, before) if questions else None
    return Batch("b", "A talk.", entities, size, many, Rules("demo/model", n_turns=1, questionnaire=sheet))


def spec_of(batch: Batch, number: int, *places: int) -> Simulation:
    return Simulation(number, batch.context, tuple(batch.entities[place] for place in places), batch.rules)


def said(*speeches: str, thought: str = "hm") -> tuple[Line, ...]:
    return tuple(Line(place, 1, 1, speech, thought) for place, speech in enumerate(speeches))


def voted(*values: str | int | None, question: Question = CHOICE, before: bool = False) -> tuple[Answer, ...]:
    return tuple(
        Answer(place, question.id, value, "" if value is not None else "no answer", before)
        for place, value in enumerate(values)
    )


def test_simulations_and_faults_are_counted() -> None:
    batch = batch_of(people(4), many=5)
    tally = Tally(batch)
    tally.add(spec_of(batch, 1, 0, 1), Talked(said("a", "b"), 1))
    tally.add(spec_of(batch, 2, 1, 0), Talked(said("a", "b"), 1))
    tally.add(spec_of(batch, 3, 0, 2), None, Fault(FaultKind.TIMEOUT, "too slow"))
    tally.add(spec_of(batch, 4, 0, 3), None)
    found = tally.analysis(planned=5)
    assert found.simulations == Simulations(planned=5, usable=2, missing=2, unfinished=1)
    assert found.missing == {"timeout": 1, "unknown": 1}
    assert (found.combinations, found.met, found.interaction_size, found.interaction_type) == (6, 1, 2, "dyadic")
    assert found.questions == []


def test_lines_are_counted_by_entity() -> None:
    batch = batch_of(people(3), many=2)
    tally = Tally(batch)
    lines = (
        Line(0, 1, 1, "one two three", "a thought", cut=True),
        Line(1, 1, 1, "one", " ", overrun=True),
        Line(0, 2, 1, "one two"),
    )
    tally.add(spec_of(batch, 1, 2, 0), Talked(lines, 1, left=3))
    tally.add(spec_of(batch, 2, 0, 1), Talked((), 0))
    found = tally.analysis(planned=2)
    line = found.lines
    assert (line.count, line.words_per_line, line.cut, line.overrun, line.thoughtless) == (3, 2.0, 1, 1, 2)
    assert (line.left, line.short) == (3, 1)
    told = [(each.id, each.simulations, each.lines, each.words_per_line) for each in found.entities]
    assert told == [("e0", 2, 1, 1.0), ("e1", 1, 0, None), ("e2", 1, 2, 2.5)]


def test_turns_of_a_past_do_not_count_as_new_ones_and_thoughts_only_where_asked_for() -> None:
    batch = batch_of(people(2))
    batch = msgspec.structs.replace(batch, rules=msgspec.structs.replace(batch.rules, thoughts=False))
    past = (Line(0, 1, 1, "a"), Line(1, 1, 1, "b"))
    spec = msgspec.structs.replace(spec_of(batch, 1, 0, 1), past=past)
    for turns, short in ((1, 1), (2, 0)):
        tally = Tally(batch)
        tally.add(spec, Talked(said("a", "b", thought=""), turns))
        assert tally.analysis(planned=1).lines.short == short
        assert tally.analysis(planned=1).lines.thoughtless is None


@pytest.mark.parametrize(
    ("method", "questions", "models"),
    [
        ("speaker", (), ["a/own", "demo/model"]),
        ("narrator", (), ["demo/model"]),
        ("narrator", (CHOICE,), ["a/own", "demo/model"]),
    ],
)
def test_models_are_those_that_are_asked(method: Method, questions: tuple[Question, ...], models: list[str]) -> None:
    first, second = people(2)
    batch = batch_of((msgspec.structs.replace(first, model="a/own"), second), *questions)
    batch = msgspec.structs.replace(batch, rules=msgspec.structs.replace(batch.rules, method=method))
    assert Tally(batch).analysis(planned=1).models == models


def test_a_choice_by_hand() -> None:
    """Ten on their own: six yes, three no, one without an answer."""
    batch = batch_of(people(10), CHOICE, size=1, many=10)
    tally = Tally(batch)
    for at, value in enumerate(["yes"] * 6 + ["no"] * 3 + [None]):
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, voted(value)))
    [found] = tally.analysis(planned=10).questions
    assert (found.id, found.type, found.after, found.before) == ("vote", "choice", Asked(10, 9, 1), None)
    assert [(each.option, each.count) for each in found.options] == [("yes", 6), ("no", 3), ("unsure", 0)]
    yes, _, unsure = found.options
    assert yes.share.value == pytest.approx(2 / 3)
    assert yes.share.low == pytest.approx(0.3542, abs=1e-4), "Wilson's interval of 6 of 9"
    assert unsure.share.low == 0
    assert unsure.share.high == pytest.approx(1 - 0.025 ** (1 / 9))
    assert (yes.change, yes.before, found.scale, found.free, found.dimensions) == (None, None, None, None, [])


def test_a_scale_and_its_change_by_hand() -> None:
    batch = batch_of(people(6), SCALE, size=1, many=6, before=True)
    tally = Tally(batch)
    for at, (first, last) in enumerate([(0, 1), (1, 2), (1, 3), (2, 4), (None, 4), (4, None)]):
        given = voted(first, question=SCALE, before=True) + voted(last, question=SCALE)
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, given))
    [found] = tally.analysis(planned=6).questions
    scale = found.scale
    assert scale is not None
    assert (found.after, found.before) == (Asked(6, 5, 1), Asked(6, 5, 1))
    assert (scale.mean.value, scale.mean.n) == (2.8, 5)
    assert scale.sd == pytest.approx(1.3038, abs=1e-4)
    assert scale.mean.low == pytest.approx(2.8 - 2.7764451 * 1.30384 / 5**0.5, abs=1e-4)
    assert scale.mean.high == 4
    assert scale.steps == [StepCount(step, count) for step, count in enumerate([0, 1, 1, 1, 2])]
    assert scale.before is not None
    assert scale.before.value == pytest.approx(1.6)
    assert scale.change is not None
    assert (scale.change.value, scale.change.n, scale.change.reason) == (1.5, 4, "fewer than 5 entities")


def test_the_change_of_a_choice_is_among_those_who_answered_twice() -> None:
    batch = batch_of(people(8), CHOICE, size=1, many=8, before=True)
    tally = Tally(batch)
    for at in range(8):
        given = voted("no" if at < 6 else None, before=True) + voted("yes" if at % 2 else "no")
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, given))
    yes, no, unsure = tally.analysis(planned=8).questions[0].options
    assert yes.change is not None
    assert no.change is not None
    assert unsure.change is not None
    assert (yes.change.value, no.change.value, yes.change.n) == (0.5, -0.5, 6)
    assert yes.change.low == pytest.approx(0.5 - 2.5705818 * 0.3**0.5 / 6**0.5)
    assert (unsure.change.value, unsure.change.reason) == (0, "all values are the same")


def test_questions_that_are_skipped_at_one_time_count_at_the_other() -> None:
    """Eight are asked before, of whom six answer; after, two are not asked and one does not answer."""
    batch = batch_of(people(8), SCALE, size=1, many=8, before=True)
    tally = Tally(batch)
    for at in range(8):
        before = voted(3 if at < 6 else None, question=SCALE, before=True)
        after = voted(4 if at < 5 else None, question=SCALE)
        if at >= 6:
            after = (msgspec.structs.replace(after[0], missing="skipped"),)
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, before + after))
    skipped = voted(None, question=SCALE, before=True)
    tally.add(spec_of(batch, 9, 0), Talked(said("a"), 1, (msgspec.structs.replace(skipped[0], missing="skipped"),)))
    [found] = tally.analysis(planned=9).questions
    assert (found.before, found.after) == (Asked(8, 6, 2), Asked(7, 5, 2))
    assert found.missing == {"malformed": 1, "skipped": 2, "unknown": 1}
    assert found.scale is not None
    assert found.scale.change is not None
    assert found.scale.change.n == 5


def test_free_text_shows_the_first_in_the_order_of_simulations() -> None:
    batch = batch_of(people(9), TEXT, size=1, many=9)
    tally = Tally(batch)
    for at in (8, 3, 5, 1, 0, 7, 2, 4, 6):
        text = None if at == 1 else " ".join(["because"] * (at + 1))
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, voted(text, question=TEXT)))
    [found] = tally.analysis(planned=9).questions
    assert found.free is not None
    assert (found.after, found.free.words) == (Asked(9, 8, 1), 43 / 8)
    assert [each.simulation for each in found.free.examples] == [1, 3, 4, 5, 6]
    assert (found.free.examples[0].entity_id, found.free.examples[0].text) == ("e0", "because")


def test_answers_that_fit_nothing_are_missing_and_the_first_of_two_counts() -> None:
    batch = batch_of(people(2), CHOICE, SCALE)
    tally = Tally(batch)
    given = (*voted("maybe", "yes"), Answer(1, "vote", "no"), *voted(7, question=SCALE), Answer(0, "gone", "x"))
    tally.add(spec_of(batch, 1, 0, 1), Talked(said("a", "b"), 1, given))
    vote, trust = tally.analysis(planned=1).questions
    assert (vote.after, trust.after) == (Asked(2, 1, 1), Asked(2, 0, 2))
    assert [each.count for each in vote.options] == [1, 0, 0]
    assert trust.scale is not None
    assert (trust.scale.mean.value, trust.scale.sd) == (None, None)


def sexes() -> list[dict[str, Value]]:
    """Six women of 20 to 25, six men of 30 to 35, one who does not say; one member."""
    women: list[dict[str, Value]] = [{"sex": "f", "age": 20 + at, "member": at == 0} for at in range(6)]
    men: list[dict[str, Value]] = [{"sex": "m", "age": 30 + at, "member": False} for at in range(6)]
    return [*women, *men, {}]


def test_by_dimension() -> None:
    batch = batch_of(people(13, sexes()), CHOICE, SCALE, size=1, many=13)
    tally = Tally(batch)
    for at in range(13):
        given = (*voted("yes" if at < 6 else "no"), *voted(at % 3 + (at < 6), question=SCALE))
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, given))
    vote, trust = tally.analysis(planned=13).questions
    sex, age, member = vote.dimensions
    assert [(each.name, each.kind, each.cut) for each in vote.dimensions] == [
        ("sex", "text", None),
        ("age", "number", 25),
        ("member", "boolean", None),
    ]
    assert [(each.value, each.entities, each.answered) for each in sex.groups] == [
        ("f", 6, 6),
        ("m", 6, 6),
        ("(none)", 1, 1),
    ]
    assert [each.value for each in age.groups] == ["up to 25", "above 25", "(none)"]
    yes = sex.groups[0].options[0]
    assert (yes.option, yes.count, yes.share.value, yes.difference.value) == ("yes", 6, 1, 1)
    assert yes.difference.low is not None
    assert 0 < yes.difference.low < 1
    lone = sex.groups[2].options[0].share
    assert (lone.value, lone.low, lone.reason) == (0, None, "fewer than 5 entities")
    # Of 12012 ways to give out the labels, 14 have a label of six for all who said yes.
    assert sex.p == pytest.approx(14 / 12012, abs=0.0015)
    assert sex.p_holm is not None
    assert sex.p is not None
    assert sex.p_holm >= sex.p
    assert (member.p is None, member.reason) == (False, "")
    assert [each.mean.value for each in trust.dimensions[0].groups if each.mean is not None] == [2, 1, 0]
    first = trust.dimensions[0].groups[0]
    assert first.difference is not None
    assert first.difference.value == pytest.approx(2 - 6 / 7)
    assert first.difference.reason == ""


def test_p_values_are_adjusted_within_a_question() -> None:
    random = Random(5)
    attributes: list[dict[str, Value]] = [
        {"a": at < 6, "b": at % 2 == 0, "c": random.random() < 0.5} for at in range(12)
    ]
    batch = batch_of(people(12, attributes), SCALE, size=1, many=12)
    tally = Tally(batch)
    for at in range(12):
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, voted(4 if at < 6 else 0, question=SCALE)))
    by_name = {each.name: each for each in tally.analysis(planned=12).questions[0].dimensions}
    assert by_name["a"].p == pytest.approx(2 / 924)
    assert by_name["a"].p_holm == pytest.approx(3 * 2 / 924)


def test_what_was_named_in_advance_is_adjusted_apart() -> None:
    random = Random(5)
    attributes: list[dict[str, Value]] = [
        {"a": at < 6, "b": at % 2 == 0, "c": random.random() < 0.5, "d": at % 3 == 0, "motto": f"motto {at}"}
        for at in range(12)
    ]
    batch = msgspec.structs.replace(batch_of(people(12, attributes), SCALE, size=1, many=12), by=("d", "motto", "a"))
    tally = Tally(batch)
    for at in range(12):
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, voted(4 if at < 6 else 0, question=SCALE)))
    found = tally.analysis(planned=12)
    assert found.by == ["d", "motto", "a"]
    dimensions = found.questions[0].dimensions
    assert [(each.name, each.exploratory) for each in dimensions] == [
        *(("d", False), ("motto", False), ("a", False)),
        *(("b", True), ("c", True)),
    ]
    d, motto, a, b, c = dimensions
    assert [a.p, a.p_holm] == pytest.approx([2 / 924, 2 * 2 / 924])
    assert (motto.groups, motto.p, motto.p_holm) == ([], None, None)
    assert motto.reason == DESCRIBES
    assert d.p is not None
    assert d.p_holm == max(d.p, 2 * 2 / 924)
    assert b.p is not None
    assert c.p is not None
    assert {b.p_holm, c.p_holm} <= {min(1.0, 2 * min(b.p, c.p)), max(b.p, c.p, min(1.0, 2 * min(b.p, c.p)))}
    assert all(each.change_p is None and each.change_reason == "" for each in dimensions)


def changing() -> Analysis:
    """Six with children go from 1 to 3 and from no to yes, six without stay where they were, by and large."""
    attributes: list[dict[str, Value]] = [{"children": at < 6, "left": at % 2 == 0} for at in range(12)]
    batch = batch_of(people(12, attributes), CHOICE, SCALE, size=1, many=12, before=True)
    batch, up = msgspec.structs.replace(batch, by=("children",)), [1, 2, 3, 2, 2, 2, 0, 0, 0, 0, 0, 1]
    tally = Tally(batch)
    for at in range(12):
        given = (*voted("no", before=True), *voted("yes" if at < 6 else "no"))
        given += (*voted(1, question=SCALE, before=True), *voted(1 + up[at], question=SCALE))
        tally.add(spec_of(batch, at + 1, at), Talked(said("a"), 1, given))
    return tally.analysis(planned=12)


def test_how_a_group_changed_and_by_how_much_more_than_the_others() -> None:
    vote, trust = changing().questions
    children = trust.dimensions[0]
    mine, others = children.groups
    assert mine.before is not None
    assert mine.change is not None
    assert mine.change_difference is not None
    assert (mine.value, mine.before.value, mine.change.value, mine.change.n) == ("true", 1, 2, 6)
    # Changes of 1, 2, 3, 2, 2, 2: their standard error is 0.2582, and t of 5 degrees is 2.5706.
    assert mine.change.low == pytest.approx(2 - 2.5705818 * 0.4**0.5 / 6**0.5)
    assert mine.change_difference.value == pytest.approx(2 - 1 / 6)
    assert mine.change_difference.low is not None
    assert mine.change_difference.low > 1
    assert others.change_difference is not None
    assert others.change_difference.value == pytest.approx(1 / 6 - 2)
    # Of 924 ways to give out the labels, 4 do as well: either of the two who changed by 1 may be with those who changed
    # more, and the labels may be the other way round.
    assert children.change_p == pytest.approx(4 / 924)
    assert children.change_p == children.change_p_holm
    yes, no, unsure = vote.dimensions[0].groups[0].options
    assert yes.before is not None
    assert yes.change is not None
    assert no.change is not None
    assert unsure.change is not None
    assert yes.change_difference is not None
    assert (yes.before.value, yes.change.value, no.change.value, unsure.change.value) == (0, 1, -1, 0)
    assert yes.change_difference.value == 1
    assert vote.dimensions[0].change_p == pytest.approx(2 / 924)
    assert vote.dimensions[1].exploratory
    assert vote.dimensions[1].change_p is not None


QUESTIONS = (CHOICE, SCALE, TEXT)


def outcomes(seed: int, many: int) -> tuple[Batch, list[tuple[Simulation, Talked | None, Fault | None]]]:
    """A batch of seven in pairs, with everything that may come of one."""
    random = Random(seed)
    attributes: list[dict[str, Value]] = [
        {"sex": random.choice("fm"), "age": random.randint(1, 80), "member": random.random() < 0.5} for _ in range(7)
    ]
    batch = batch_of(people(7, attributes), *QUESTIONS, many=many, before=True)
    found: list[tuple[Simulation, Talked | None, Fault | None]] = []
    for spec in Schedule(batch, seed):
        if random.random() < 0.2:
            found.append((spec, None, Fault(random.choice([FaultKind.TIMEOUT, FaultKind.SERVER]), "no")))
            continue
        answers = tuple(
            Answer(place, question.id, random.choice([None, *_possible(question)]), before=before)
            for question in QUESTIONS
            for place in (0, 1)
            for before in (False, True)
        )
        found.append((spec, Talked(said("a b", "c"), 1, answers, left=random.randint(0, 2)), None))
    return batch, found


def _possible(question: Question) -> list[str | int]:
    if question.type == "scale":
        return list(range(question.low, question.high + 1))
    return list(question.options) or ["one", "two words"]


def analysed(batch: Batch, found: Sequence[tuple[Simulation, Talked | None, Fault | None]]) -> Analysis:
    tally = Tally(batch)
    for outcome in found:
        tally.add(*outcome)
    return tally.analysis(planned=batch.num_simulations)


@settings(deadline=None, max_examples=examples(25))
@given(st.integers(0, 1000), st.integers(1, 21), st.randoms(use_true_random=False))
def test_the_order_of_adding_does_not_matter(seed: int, many: int, random: Random) -> None:
    batch, found = outcomes(seed, many)
    expected = analysed(batch, found)
    random.shuffle(found)
    assert analysed(batch, found) == expected
    written = msgspec.json.encode(expected)
    assert msgspec.json.decode(written, type=Analysis) == expected
    assert expected.simulations.usable + expected.simulations.missing == many


@pytest.mark.parametrize("count", [0, 1], ids=["all missing", "one entity"])
def test_next_to_nothing_has_figures_too(count: int) -> None:
    batch = batch_of(people(1, [{"sex": "f"}]), *QUESTIONS, size=1, before=True)
    tally = Tally(batch)
    if count:
        given = (*voted("yes"), *voted(2, question=SCALE), *voted("so", question=TEXT))
        tally.add(spec_of(batch, 1, 0), Talked(said("a"), 1, given))
    else:
        tally.add(spec_of(batch, 1, 0), None)
    vote, trust, why = tally.analysis(planned=1).questions
    assert vote.after == trust.after == why.after == Asked(count, count, 0)
    assert vote.options[0].share.value == (1 if count else None)
    assert vote.options[0].share.reason == ("fewer than 5 entities" if count else "there are no values")


def test_a_talk_in_which_one_talks_the_others_round_is_worth_less_than_its_answers() -> None:
    """Twelve in all 66 pairs, who answer by what the two think together: the interval is that of twelve, not of 132."""
    random = np.random.default_rng(8)
    batch = batch_of(people(12), Question("scale", "?", "scale", low=0, high=100), many=66)
    opinions, tally = random.normal(50, 10, 12), Tally(batch)
    for spec in Schedule(batch, 1):
        mine = round(float(np.mean([opinions[int(entity.id[1:])] for entity in spec.entities])))
        tally.add(spec, Talked(said("a", "b"), 1, tuple(Answer(place, "scale", mine) for place in (0, 1))))
    scale = tally.analysis(planned=66).questions[0].scale
    assert scale is not None
    assert scale.mean.low is not None
    assert scale.mean.high is not None
    as_of_twelve = 2 * 2.2009852 * float(opinions.std(ddof=1)) / 12**0.5
    assert scale.mean.high - scale.mean.low == pytest.approx(as_of_twelve, rel=0.15)


WITHOUT_EXTRAS = """
import sys
from groundswell.experiments.needed import EXTRAS
sys.modules.update(dict.fromkeys(package for packages in EXTRAS.values() for package in packages))
from groundswell.experiments.simulations.analysis import Tally
from groundswell.experiments.simulations.batch import Batch, Schedule
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Answer, Question, Questionnaire
from groundswell.experiments.simulations.simulation import Line, Rules, Talked
people = tuple(Entity(f"e{at}", f"E{at}", attributes={"x": at}) for at in range(6))
"""


def test_without_a_questionnaire_nothing_optional_is_needed() -> None:
    script = """
batch = Batch("b", "c", people, 2, 1, Rules("m/m"))
tally = Tally(batch)
tally.add(next(iter(Schedule(batch, 1))), Talked((Line(0, 1, 1, "hello"),), 1))
sys.exit(tally.analysis(planned=1).simulations.usable - 1)
"""
    assert subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS + script], check=False).returncode == 0


@pytest.mark.slow
def test_a_questionnaire_is_tabulated_without_any_extra() -> None:
    script = """
sheet = Questionnaire((Question("s", "?", "scale", low=0, high=9),))
batch = Batch("b", "c", people, 2, 15, Rules("m/m", questionnaire=sheet))
tally = Tally(batch)
for at, spec in enumerate(Schedule(batch, 1)):
    answers = tuple(Answer(place, "s", (at + place) % 10) for place in (0, 1))
    tally.add(spec, Talked((Line(0, 1, 1, "hello"),), 1, answers))
mean = tally.analysis(planned=15).questions[0].scale.mean
sys.exit(not mean.low < mean.value < mean.high)
"""
    assert subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS + script], check=False).returncode == 0
