"""Studies: conditions from factors and levels, who is in which, in which order they run, and what is refused."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell import Reply
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.analysis import Analysis
from groundswell.experiments.simulations.batch import Batch, Condition, Schedule
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.simulation import Rules
from groundswell.experiments.simulations.study import study_notes
from tests.experiments.simulations.designs import FRAMES, PLAN, SURE, people, study
from tests.experiments.simulations.stage import MODEL, Cues, drive, text_of
from tests.properties import examples


def refused(**options: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        study(**options)
    return str(caught.value)


def texts(condition: Condition) -> list[str]:
    assert condition.rules.questionnaire is not None
    return [each.text for each in condition.rules.questionnaire.questions]


def test_factors_are_crossed_and_placeholders_filled_in() -> None:
    two = {**FRAMES, "place": {"city": "a city", "village": {"text": "a village", "language": "German"}}}
    batch = study(factors=two, context="In {place}, {nobody} asks.")
    assert [(each.name, each.levels, each.context, texts(each)[0]) for each in batch.conditions] == [
        (name, {"frame": frame, "place": place}, f"In a {place}, {{nobody}} asks.", f"Shall it be {text}?")
        for frame, place, name, text in [
            ("gain", "city", "gain, city", "saving lives"),
            ("gain", "village", "gain, village", "saving lives"),
            ("loss", "city", "loss, city", "not letting die"),
            ("loss", "village", "loss, village", "not letting die"),
        ]
    ]
    assert [each.rules.language for each in batch.conditions] == ["", "German", "", "German"]
    assert [each.num_simulations for each in batch.conditions] == [3, 3, 3, 3]
    assert (batch.num_simulations, batch.interaction_size, batch.rules.n_turns) == (12, 1, 0)
    assert batch.context == "In {place}, {nobody} asks."


def test_placeholders_are_filled_in_everywhere() -> None:
    question = {
        **{"id": "pick", "text": "{x}?", "type": "choice", "options": ["{x}", "none"]},
        "when": {"sure": ["{y}..", "{y}"]},
    }
    scale = {**SURE, "low_label": "not {x}", "high_label": "very {x}"}
    grid = {"id": "grid", "text": "How", "type": "matrix", "rows": {"a": "{x}?"}}
    two = {"x": {"one": "first", "two": "second"}, "y": {"3": "3", "4": {"text": "4"}}}
    last = study(questions=[scale, question, grid], factors=two).conditions[-1]
    assert last.rules.questionnaire is not None
    sure, pick, rows = last.rules.questionnaire.questions
    assert (sure.low_label, sure.high_label, rows.rows) == ("not second", "very second", {"a": "second?"})
    assert (pick.text, pick.options, pick.when) == ("second?", ("second", "none"), {"sure": ("4..", "4")})


def test_levels_can_have_settings_of_their_own() -> None:
    other = {"questions": [SURE], "before": True}
    levels = {
        "plain": "nothing",
        "pairs": {"interaction_size": 2, "num_simulations": 2, "context": "A talk.", "temperature": 0.2},
        "other": {"model": "emulated/other", "n_turns": 3, "context": "Alone.", "questions": [SURE]},
        "debate": {
            "interaction_size": 3,
            "num_simulations": 1,
            "style": "debate",
            "method": "narrator",
            "context": "?",
        },
    }
    batch = study(factors={"how": levels}, temperature=1.0)
    plain, pairs, alone, debate = batch.conditions
    assert (plain.interaction_size, plain.num_simulations, plain.rules.n_turns, plain.rules.temperature) == (1, 3, 0, 1)
    assert (pairs.interaction_size, pairs.num_simulations, pairs.rules.n_turns) == (2, 2, 1)
    assert (pairs.context, pairs.rules.temperature, pairs.rules.model) == ("A talk.", 0.2, MODEL)
    assert (alone.rules.model, alone.rules.n_turns, texts(alone)) == ("emulated/other", 3, ["How sure?"])
    assert (debate.rules.style, debate.rules.method) == ("debate", "narrator")
    assert (batch.num_simulations, batch.interaction_size) == (9, 3)
    assert "`before` differs in condition 'b'" in refused(
        factors={"x": {"a": "A", "b": {"questions": other, "n_turns": 1, "context": "?"}}}
    )


def test_a_study_of_talks_can_ask_before_them_although_sizes_differ_by_level() -> None:
    size = {
        "pair": {"interaction_size": 2, "num_simulations": 2},
        "group": {"interaction_size": 3, "num_simulations": 1},
    }
    batch = study(factors={"size": size}, context="A talk.", questions={"questions": [SURE], "before": True})
    assert batch.rules.n_turns == 1
    assert [each.rules.n_turns for each in batch.conditions] == [1, 1]


def test_models_as_levels_need_no_default() -> None:
    levels = {each: {"model": f"emulated/{each}"} for each in ("one", "two")}
    batch = study(factors={"model-used": levels}, model=None)
    assert [each.rules.model for each in batch.conditions] == ["emulated/one", "emulated/two"]
    assert batch.rules.model == "emulated/one"


def test_without_factors_there_is_one_condition() -> None:
    [condition] = study(factors={}, questions=[SURE], replicates=3).conditions
    assert (condition.name, condition.levels, condition.num_simulations) == ("all", {}, 36)


ABC = {"a": "A", "b": "B", "c": "C"}
ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown within": ({"within": ["order"]}, "within: there is no factor 'order'; the factors are frame"),
    "within without factors": ({"factors": {}, "within": ["x"]}, "the factors are none"),
    "duplicate conditions": (
        {"factors": {"x": {"a, b": "", "a": ""}, "y": {"c": "", "b, c": ""}}},
        "two conditions are called 'a, b, c'; rename a level",
    ),
    "too few entities": (
        {"entities": people(1)},
        "1 given, but the study has 2 between-subject groups; give at least 2",
    ),
    "one level": ({"factors": {"x": {"a": "A"}}}, "factors: 'x' needs at least two levels"),
    "too many conditions": (
        {"factors": {"x": {str(at): "" for at in range(15)}, "y": {str(at): "" for at in range(14)}}},
        "factors: 210 conditions; at most 200 are allowed",
    ),
    "a factor called like a question": ({"factors": {"sure": ABC}}, "'sure' is also the id of a question; rename one"),
    "like a question of a level": (
        {"factors": {"mood": {"a": "A", "b": {"questions": [{"id": "mood", "text": "?"}]}}}},
        "'mood' is also the id of a question",
    ),
    "a factor with a strange name": ({"factors": {"x y": ABC}}, "'x y' may contain only letters, digits, hyphens"),
    "a level without a name": ({"factors": {"x": {"": "", "b": ""}}}, "level of x ''"),
    "an unknown setting": ({"factors": {"x": {"a": {"temprature": 1}, "b": ""}}}, "temprature"),
    "a setting that is wrong": ({"factors": {"x": {"a": {"temperature": 3}, "b": ""}}}, "temperature"),
    "talks without a number": (
        {"interaction_size": 2, "context": "A talk."},
        "num_simulations is required for conversations; a condition has 6 entities, which are 15 combinations of 2",
    ),
    "talks without a context": ({"interaction_size": 2, "num_simulations": 3}, "context is empty"),
    "more talks than there are": (
        {"interaction_size": 2, "num_simulations": 16, "context": "A talk."},
        "set it to at most 15, or set replicates to 2",
    ),
    "no questions": ({"questions": None}, "questions is required: a study compares answers"),
    "nobody": ({"entities": None}, "give either entities or sample"),
    "stratify by what nobody has": ({"stratify": ["height"]}, "stratify: no entity has an attribute 'height'"),
    "stratify twice": ({"stratify": ["age", "age"]}, "stratify: 'age' is listed twice"),
    "a scale that differs": (
        {"factors": {"x": {"a": "", "b": {"questions": [{**SURE, "high": 7}]}}}},
        "question 'sure': high differs in condition 'b'; give the question another id",
    ),
    "other options": (
        {"factors": {"x": {"a": "", "b": {"questions": [{**PLAN, "options": ["a", "b", "c"]}]}}}},
        "question 'plan': the number of options differs in condition 'b'",
    ),
}


@pytest.mark.parametrize(("options", "said"), ERRORS.values(), ids=ERRORS)
def test_studies_that_cannot_be_run_are_refused(options: dict[str, Any], said: str) -> None:
    assert said in refused(**options)


def contrast(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "question": "plan", "compare": ["gain", "loss"], **fields}


CONTRASTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "unknown condition": (
        [contrast(compare=["gain", "win"])],
        "'win' is neither a condition nor a level of exactly one factor; the conditions are 'gain', 'loss'",
    ),
    "unknown question": ([contrast(question="plans")], "there is no question 'plans'; the questions are plan, sure"),
    "unknown option": ([contrast(option="maybe")], "'maybe' is not an option of question 'plan'"),
    "option of a scale": ([contrast(question="sure", option="3")], "question 'sure' has no options; remove option"),
    "weights": ([contrast(compare=None, weights={"gain": 1, "loss": -0.5})], "the weights add up to 0.5 instead of 0"),
    "both": ([contrast(weights={"gain": 1, "loss": -1})], "give either `compare` or `weights`"),
    "neither": ([contrast(compare=None)], "give either `compare` or `weights`"),
    "zero weights": ([contrast(compare=None, weights={"gain": 0, "loss": 0})], "and not all 0"),
    "itself": ([contrast(compare=["gain", "gain"])], "'gain' is compared with itself"),
    "change": ([contrast(change=True)], "`change` needs a questionnaire with `before`"),
    "the same name": ([contrast(), contrast(question="sure")], "contrasts: two are called 'c'; rename one"),
    "no name": ([contrast(name=" ")], "give it a name of 1 to 200 printable characters"),
    "sd": ([contrast(sd=0)], "sd must be above 0"),
    "rate": ([contrast(rate=1.2)], "rate must be from 0 to 1"),
    "correlation": ([contrast(correlation=1)], "correlation must be between -1 and 1"),
    "effect": ([contrast(effect="big")], "effect"),
}


@pytest.mark.parametrize(("contrasts", "said"), CONTRASTS.values(), ids=CONTRASTS)
def test_contrasts_that_cannot_be_answered_are_refused(contrasts: list[dict[str, Any]], said: str) -> None:
    assert said in refused(contrasts=contrasts)


def test_free_text_cannot_be_compared() -> None:
    questions = [PLAN, {"id": "why", "text": "Why?"}]
    assert "'why' is free text, which cannot" in refused(questions=questions, contrasts=[contrast(question="why")])


def designed(count: int, factors: dict[str, list[str]], within: tuple[str, ...], **more: Any) -> Batch:
    """A survey with these factors and levels."""
    levels = {factor: dict.fromkeys(names, "x") for factor, names in factors.items()}
    return study(entities=people(count), factors=levels, within=list(within), questions=[SURE], **more)


@st.composite
def designs(draw: st.DrawFn) -> Batch:
    names = draw(st.lists(st.sampled_from("xyz"), max_size=3, unique=True))
    factors = {name: [f"{name}{at}" for at in range(draw(st.integers(2, 3)))] for name in names}
    within = tuple(draw(st.lists(st.sampled_from(names), unique=True))) if names else ()
    stratify = draw(st.sampled_from([[], ["urban"], ["urban", "age"]]))
    return designed(draw(st.integers(27, 60)), factors, within, stratify=stratify)


@settings(max_examples=examples(60), deadline=None)
@given(designs(), st.integers(0, 9))
def test_everybody_is_in_one_group_and_groups_are_equally_large(batch: Batch, seed: int) -> None:
    assigned = batch.assigned(seed)
    groups = [{entity.id for number in cell for entity in assigned[number]} for cell in batch.cells]
    assert sorted(id_ for group in groups for id_ in group) == sorted(entity.id for entity in batch.entities)
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    assert [len(each) for each in assigned] == [each.num_simulations for each in batch.conditions]
    for cell, group in zip(batch.cells, groups, strict=True):
        levels = [batch.conditions[number].levels for number in cell]
        assert all({entity.id for entity in assigned[number]} == group for number in cell), "within: all levels"
        for factor in levels[0]:
            assert (len({each[factor] for each in levels}) > 1) == (factor in batch.within)
    if batch.stratify:
        for urban in (True, False):
            counts = [sum(each.attributes["urban"] == urban for each in assigned[cell[0]]) for cell in batch.cells]
            assert max(counts) - min(counts) <= 1
    assert batch.assigned(seed) == assigned, "the same in every process"


def test_the_assignment_is_random() -> None:
    batch = designed(20, {"x": ["a", "b"]}, ())
    first = [frozenset(entity.id for entity in batch.assigned(seed)[0]) for seed in range(200)]
    assert len(set(first)) > 190
    often = Counter(id_ for group in first for id_ in group)
    assert all(60 < often[entity.id] < 140 for entity in batch.entities)


def test_attributes_are_balanced_only_if_the_assignment_is_stratified_by_them() -> None:
    def apart(**options: Any) -> int:
        """The largest difference between groups in the number of people with the attribute, over many seeds."""
        batch = designed(30, {"x": ["a", "b", "c"]}, (), **options)
        counts = [
            [sum(each.attributes["urban"] is True for each in one) for one in batch.assigned(at)] for at in range(20)
        ]
        return max(max(each) - min(each) for each in counts)

    assert apart(stratify=["urban"]) <= 1 < apart()


@settings(max_examples=examples(30), deadline=None)
@given(designs(), st.integers(0, 9))
def test_conditions_alternate_and_simulations_are_numbered(batch: Batch, seed: int) -> None:
    specs = list(Schedule(batch, seed))
    assert [each.number for each in specs] == list(range(1, len(Schedule(batch, seed)) + 1))
    names = [each.name for each in batch.conditions]
    sizes = [each.num_simulations for each in batch.conditions]
    whole = min(sizes) * len(names)
    assert [each.condition for each in specs[:whole]] == names * min(sizes)
    assert Counter(each.condition for each in specs) == dict(zip(names, sizes, strict=True))
    assigned = dict(zip(names, batch.assigned(seed), strict=True))
    assert all(each.entities[0] in assigned[each.condition] for each in specs)


def test_within_subjects_the_same_combinations_talk_in_all_conditions() -> None:
    batch = study(
        factors={"x": {"a": "A", "b": "B"}}, within=["x"], context="{x}", interaction_size=2, num_simulations=20
    )
    talks: dict[str, list[frozenset[str]]] = {"a": [], "b": []}
    for spec in Schedule(batch, 3):
        talks[spec.condition].append(frozenset(entity.id for entity in spec.entities))
        assert spec.context == spec.condition.upper()
    assert talks["a"] == talks["b"]
    assert len(set(talks["a"])) == 20


def test_a_study_runs_every_condition_with_its_own_texts_and_model() -> None:
    levels = {"gain": "saving", "loss": {"text": "dying", "model": "emulated/other", "temperature": 0.5}}
    cues = Cues('{"plan": "yes", "sure": 3}')
    summary, shown = drive(study(factors={"frame": levels}, entities=people(4)), cues)
    assert [(chat.model, chat.temperature, "Shall it be saving?" in text_of(chat)[-1]) for chat in cues.asked] == [
        (MODEL, None, True),
        ("emulated/other", 0.5, False),
    ] * 2
    assert [each.metadata["condition"] for each in shown] == ["gain", "loss"] * 2
    assert isinstance(summary.analysis, Analysis)
    assert summary.analysis.models == [MODEL, "emulated/other"]
    counts = [(each.name, each.entities, each.simulations.usable) for each in summary.analysis.conditions]
    assert counts == [("gain", 2, 2), ("loss", 2, 2)]
    assert [each.name for each in summary.analysis.contrasts] == ["loss minus gain"] * 2, "one per question"


def test_options_that_a_factor_words_are_counted_by_their_position() -> None:
    vote = {"id": "vote", "text": "For whom?", "type": "choice", "options": ["{who}", "nobody"]}
    batch = study(factors={"who": {"ann": "Ann", "bob": "Bob"}}, questions={"questions": [vote], "shuffle": False})
    cues = Cues(*[f'{{"vote": "{each}"}}' for each in ("Ann", "Bob", "Ann", "nobody")])
    summary, _ = drive(batch, cues)
    assert isinstance(summary.analysis, Analysis)
    [vote_] = summary.analysis.questions
    assert [(each.option, each.count) for each in vote_.options] == [("{who}", 9), ("nobody", 3)]
    [contrasted] = summary.analysis.contrasts
    assert contrasted.values == {"bob": 0.5, "ann": 1.0}


def test_a_question_of_one_condition_is_counted_there_only() -> None:
    also = [PLAN, SURE, {"id": "calm", "text": "How calm?", "type": "scale", "when": {"plan": "yes"}}]
    batch = study(factors={"frame": {"gain": "x", "loss": {"questions": also}}})
    assert batch.rules.questionnaire is not None
    assert [each.id for each in batch.rules.questionnaire.questions] == ["plan", "sure", "calm"]
    summary, _ = drive(batch, Cues('{"plan": "yes", "sure": 3, "calm": 2}'))
    assert isinstance(summary.analysis, Analysis)
    calm = next(each for each in summary.analysis.questions if each.id == "calm")
    assert (calm.after.answered, calm.after.missing) == (6, 0)
    found = next(each for each in summary.analysis.contrasts if each.question == "calm")
    assert (found.values, found.p, found.reason) == ({"loss": 2.0, "gain": None}, None, "there are no values")


def test_a_study_is_stored_and_read_as_it_was() -> None:
    batch = study(contrasts=[contrast(effect=0.2)], within=["frame"], stratify=["urban"])
    assert msgspec.json.decode(msgspec.json.encode(batch), type=Batch) == batch


def test_a_batch_without_conditions_is_stored_as_before() -> None:
    entity = Entity("a", "Ann")
    sheet = Questionnaire((Question("s", "?", "scale"),))
    batch = Batch("b", "A talk.", (entity,), 1, 1, Rules(MODEL, questionnaire=sheet))
    assert msgspec.json.encode(batch) == (
        b'{"name":"b","context":"A talk.","entities":[{"id":"a","name":"Ann"}],"interaction_size":1,'
        b'"num_simulations":1,"rules":{"model":"emulated/gpt-4o-mini","questionnaire":{"questions":[{"id":"s",'
        b'"text":"?","type":"scale"}]}}}'
    )
    [spec] = Schedule(batch, 0)
    assert b"condition" not in msgspec.json.encode(spec)


def test_options_are_the_same_by_their_text_in_any_order() -> None:
    def asked(*options: str) -> dict[str, Any]:
        return {"id": "q", "text": "Well?", "type": "choice", "options": list(options)}

    turned = {"a": {"questions": [asked("yes", "no")]}, "b": {"questions": [asked("no", "yes")]}}
    batch = study(questions=[asked("yes", "no")], factors={"order": turned})
    summary, _ = drive(batch, lambda request, sample: Reply('{"q": "yes"}'))
    assert isinstance(summary.analysis, Analysis)
    for condition in summary.analysis.conditions:
        assert [(each.option, each.count) for each in condition.questions[0].options] == [("yes", 6), ("no", 0)]
    other = {"a": "x", "b": {"questions": [asked("agree", "yes")]}}
    with pytest.raises(SettingsError, match="an option differs in condition 'b'; give the question another id"):
        study(questions=[asked("yes", "no")], context="{order}", factors={"order": other})


def test_a_factor_that_changes_nothing_is_refused() -> None:
    asked = [{**PLAN, "text": "Shall it be {frme}?"}, SURE]
    with pytest.raises(
        SettingsError, match=r"'frame' has texts, but \{frame\} is in no context, question, seat or event"
    ):
        study(questions=asked, context="A vote.", description="About the {frame}.")
    levels = {"frame": FRAMES["frame"], "frme": {"a": "x", "b": "y"}}
    [note] = [
        each for each in study_notes(study(questions=[*asked, PLAN | {"id": "p"}], factors=FRAMES)) if "frme" in each
    ]
    assert note == "question 'plan': {frme} is neither a factor nor an earlier question, and is sent as it is"
    assert not [
        each for each in study_notes(study(questions=[*asked, PLAN | {"id": "p"}], factors=levels)) if "frme" in each
    ]


def test_events_and_endings_have_placeholders_too() -> None:
    batch = study(
        context="A talk.",
        until="they agree on {frame}",
        events=[{"turn": 1, "text": "Think of {frame}."}],
        questions=[SURE],
        interaction_size=2,
        num_simulations=2,
    )
    last = batch.conditions[-1].rules
    assert (last.until, last.events[0].text) == ("they agree on not letting die", "Think of not letting die.")


def test_whether_seats_can_be_filled_depends_on_the_seed() -> None:
    """Two of twelve live in a town; in some assignments both are in the same group."""
    entities = [{**each, "attributes": {"urban": at < 2}} for at, each in enumerate(people(12))]
    seats = [{"where": {"urban": True}}, {"where": {"urban": False}}]
    found = set()
    for seed in range(12):
        try:
            study(entities=entities, seats=seats, num_simulations=1, n_turns=1, context="{frame}", seed=seed)
            found.add("filled")
        except SettingsError as error:
            found.add(str(error).partition(":")[0])
    assert found == {"filled", "seats"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"questions": [{**SURE, "type": "likert"}]},
            "unknown value 'likert'; choose from choice, multi, ranking, scale",
        ),
        (
            {"questions": {"questions": [{**SURE, "lows": 1}]}},
            "unknown field lows; choose from id, text, type, options",
        ),
        ({"factors": {"x": {"a": {"temprature": 1}}}}, "unknown field temprature; choose from text, context, model"),
        ({"contrasts": [{"name": "a", "efect": 1}]}, "unknown field efect; choose from name, question, compare"),
    ],
)
def test_a_typing_error_deep_inside_names_what_is_possible(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        study(**wrong)
