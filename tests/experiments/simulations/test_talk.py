"""The program: who sees what, turns and rounds, narrators, thoughts, answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest

import groundswell
from groundswell import Fault, FaultKind, Reply
from groundswell.experiments.simulations.batch import Single
from groundswell.experiments.simulations.driving import simulate
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType, taking_part
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.simulation import Line, Rules, Simulation, Talked, continued
from groundswell.experiments.simulations.talk import read_answers
from tests.experiments.simulations.stage import ANA, BEN, CARLA, CONTEXT, MODEL, SHEET, Cues, a_batch, drive, text_of

PLAIN = Rules(MODEL, thoughts=False)


def test_a_turn_is_one_utterance_by_each_in_order() -> None:
    cues = Cues("a1", "b1", "a2", "b2")
    _, [shown] = drive(a_batch(msgspec.structs.replace(PLAIN, n_turns=2)), cues)
    assert [(line.name, line.turn, line.round, line.speech) for line in shown.lines] == [
        ("Ana Silva", 1, 1, "a1"),
        ("Ben Okoro", 1, 1, "b1"),
        ("Ana Silva", 2, 1, "a2"),
        ("Ben Okoro", 2, 1, "b2"),
    ]
    assert shown.metadata["final_turn_number"] == 2
    assert shown.content == 'Ana Silva: "a1"\n\nBen Okoro: "b1"\n\nAna Silva: "a2"\n\nBen Okoro: "b2"'


def test_each_sees_what_it_would_see() -> None:
    cues = Cues('*I doubt it.*\n"One."', '*Poor Ana.*\n"Two."', '*Hm.*\n"Three."')
    drive(a_batch(Rules(MODEL, n_turns=2), size=3, entities=(ANA, BEN, CARLA)), cues)
    again = text_of(cues.asked[3])
    assert again[1:] == [
        f"user: This is what it is about: {CONTEXT}\nYou speak first.",
        'assistant: *I doubt it.*\n"One."',
        "user: Ben Okoro: Two.\nCarla Weiss: Three.",
    ]
    third = text_of(cues.asked[2])
    assert third[1:] == ["user: Ana Silva: One.\nBen Okoro: Two."]
    assert "Poor Ana" not in "".join(third), "thoughts are private"


def test_an_entity_is_told_who_it_is_and_not_who_the_others_are() -> None:
    cues = Cues("x")
    drive(a_batch(PLAIN), cues)
    told = text_of(cues.asked[0])[0]
    assert told.startswith("system: You are Ana Silva. A nurse.\nAbout you:\n- age: 41\n- urban: yes\n")
    assert f"Context: {CONTEXT}" in told
    assert "You talk with Ben Okoro." in told
    assert "farmer" not in told


def test_rounds_go_on_with_all_that_was_said() -> None:
    cues = Cues("a", "b")
    _, [shown] = drive(a_batch(msgspec.structs.replace(PLAIN, n_turns=2, simulation_rounds=3)), cues)
    assert shown.metadata["final_turn_number"] == 6
    assert Counter(line.round for line in shown.lines) == {1: 4, 2: 4, 3: 4}
    assert [line.turn for line in shown.lines] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert len(cues.asked[-1].messages) == 12, "the last ask holds the whole talk"


def test_one_alone_goes_on_by_itself() -> None:
    cues = Cues("First.", "Then.")
    _, [shown] = drive(a_batch(msgspec.structs.replace(PLAIN, n_turns=2), size=1, entities=(ANA,)), cues)
    assert shown.interaction_type == "solo"
    assert text_of(cues.asked[1])[1:] == [
        f"user: This is what it is about: {CONTEXT}\nBegin.",
        "assistant: First.",
        "user: Go on.",
    ]


def test_entities_may_have_models_of_their_own() -> None:
    cues = Cues("x")
    drive(a_batch(PLAIN, entities=(ANA, msgspec.structs.replace(BEN, model="emulated/gpt-4o"))), cues)
    assert [chat.model for chat in cues.asked] == [MODEL, "emulated/gpt-4o"]


@pytest.mark.parametrize("style", ["discussion", "debate", "negotiation"])
def test_styles_and_languages_are_told(style: str) -> None:
    cues = Cues("x")
    drive(a_batch(Rules(MODEL, style=style, language="Hindi")), cues)  # type: ignore[arg-type]
    told = text_of(cues.asked[0])[0]
    assert f"This is a {style}:" in told
    assert "Speak Hindi." in told


def test_two_of_the_same_name_are_told_apart() -> None:
    cues = Cues("x")
    _, [shown] = drive(a_batch(PLAIN, entities=(ANA, Entity("other", "ana silva"))), cues)
    assert [line.name for line in shown.lines] == ["Ana Silva", "ana silva (2)"]
    assert "You are ana silva (2)." in text_of(cues.asked[1])[0]


def test_nobody_speaks_for_somebody_else() -> None:
    cues = Cues("Yes.\nBen Okoro: I agree!", "No.")
    _, [shown] = drive(a_batch(PLAIN), cues)
    assert [(line.speech, line.overrun) for line in shown.lines] == [("Yes.", True), ("No.", False)]
    assert text_of(cues.asked[1])[1:] == ["user: Ana Silva: Yes."]


def test_an_utterance_that_was_cut_off_says_so() -> None:
    _, [shown] = drive(a_batch(PLAIN), Cues(Reply("I was about to", finish="length"), "No."))
    assert [line.cut for line in shown.lines] == [True, False]


def test_an_utterance_that_cannot_be_had_makes_the_simulation_missing() -> None:
    summary, [shown] = drive(a_batch(PLAIN), Cues("Yes.", Fault(FaultKind.FILTERED, "no")))
    assert summary.trials.missing == 1
    assert (shown.status, shown.content, shown.error) == ("failed", "", "content_filter: no")


SCRIPT = 'Ana Silva: *Hm.*\n"One."\n\nBen Okoro: "Two."\n\nAna Silva: "Three."\n\nBen Okoro: *Ah.*\n"Four."'
NARRATED = Rules(MODEL, 2, method="narrator", max_tokens=50)


def test_a_narrator_writes_a_round_in_one_ask() -> None:
    cues = Cues(SCRIPT)
    _, [shown] = drive(a_batch(msgspec.structs.replace(NARRATED, simulation_rounds=2)), cues)
    assert len(cues.asked) == 2
    assert cues.asked[0].max_tokens == 50 * 2 * 2
    assert [(line.name, line.turn, line.round, line.speech, line.thought) for line in shown.lines[:4]] == [
        ("Ana Silva", 1, 1, "One.", "Hm."),
        ("Ben Okoro", 1, 1, "Two.", ""),
        ("Ana Silva", 2, 1, "Three.", ""),
        ("Ben Okoro", 2, 1, "Four.", "Ah."),
    ]
    assert [line.turn for line in shown.lines[4:]] == [3, 3, 4, 4]
    assert shown.metadata["final_turn_number"] == 4
    assert 'Ana Silva: *Hm.*\n"One."' in text_of(cues.asked[1])[1], "what was said is not lost"
    assert "- Ben Okoro (age: 58; urban: no): A farmer." in text_of(cues.asked[0])[1]


def test_what_a_narrator_writes_beyond_its_round_is_left_out_and_counted() -> None:
    _, [shown] = drive(a_batch(msgspec.structs.replace(NARRATED, n_turns=1)), Cues(SCRIPT))
    assert [line.speech for line in shown.lines] == ["One.", "Two."]


def test_a_round_that_falls_short_says_so() -> None:
    _, [shown] = drive(a_batch(msgspec.structs.replace(NARRATED, n_turns=4)), Cues(SCRIPT))
    assert shown.metadata["final_turn_number"] == 2
    assert shown.metadata["n_turns"] == 4


def test_a_narrator_that_names_nobody_is_asked_once_more_and_then_missing() -> None:
    cues = Cues("It was a dark night.", SCRIPT)
    _, [shown] = drive(a_batch(NARRATED), cues)
    assert shown.status == "completed"
    assert "Ana Silva and Ben Okoro" in str(cues.asked[1].messages[-1].content)
    summary, [shown] = drive(a_batch(NARRATED), Cues("It was a dark night."))
    assert summary.trials.missing == 1
    assert shown.error is not None
    assert "no line starts with the name" in shown.error


ANSWERS = json.dumps({"keep": "yes", "like": 4, "why": "For the honey."})


def test_everybody_answers_at_the_end() -> None:
    cues = Cues("a", "b", answers=ANSWERS)
    _, [shown] = drive(a_batch(msgspec.structs.replace(PLAIN, questionnaire=SHEET)), cues)
    assert [(answer.entity_id, answer.question, answer.value) for answer in shown.answers] == [
        ("e-ana", "keep", "yes"),
        ("e-ana", "like", 4),
        ("e-ana", "why", "For the honey."),
        ("e-ben", "keep", "yes"),
        ("e-ben", "like", 4),
        ("e-ben", "why", "For the honey."),
    ]
    assert len(cues.asked) == 4
    asked = text_of(cues.asked[2])
    assert "[like] How much do you like them? A whole number from 1 (not at all) to 5 (very much)." in asked[-1]
    assert "Ben Okoro: b" in asked[-1], "they have heard everything"
    schema = cues.asked[2].schema
    assert schema is not None
    assert sorted(schema["properties"]["keep"]["enum"]) == ["no", "perhaps", "yes"]


def test_a_row_of_data_says_who_answered_with_which_model_and_in_which_seat(tmp_path: Path) -> None:
    own = msgspec.structs.replace(BEN, model="emulated/other")
    rules = msgspec.structs.replace(PLAIN, questionnaire=SHEET)
    cues = Cues("Hello.", answers=ANSWERS)
    with groundswell.open_sync(tmp_path / "runs.db", script=cues) as engine:
        engine.drive(simulate, a_batch(rules, entities=(ANA, own)), name="talk")
        rows = engine.stored("talk").rows.where(question="keep")
    assert [(row["entity"], row["model"], row["seat"], row["replicate"]) for row in rows] == [
        ("e-ana", MODEL, 1, 1),
        ("e-ben", "emulated/other", 2, 1),
    ]


def scripted_answers(*replies: str) -> Cues:
    """One alone says something, then answers."""
    return Cues("Something.", *replies)


def test_an_answer_that_does_not_fit_is_asked_for_once_more() -> None:
    wrong = json.dumps({"keep": "never", "like": 4, "why": "x"})
    cues = scripted_answers(wrong, json.dumps({"keep": "no", "like": 9, "why": "y"}))
    batch = a_batch(msgspec.structs.replace(PLAIN, questionnaire=SHEET), size=1, entities=(ANA,))
    _, [shown] = drive(batch, cues)
    assert {answer.question: answer.value for answer in shown.answers} == {"keep": "no", "like": 4, "why": "x"}
    assert "'never' is none of" in str(cues.asked[2].messages[-1].content)


def test_an_answer_that_cannot_be_had_is_missing_and_the_talk_stands() -> None:
    batch = a_batch(msgspec.structs.replace(PLAIN, questionnaire=SHEET), size=1, entities=(ANA,))
    summary, [shown] = drive(batch, scripted_answers("I would rather not say."))
    assert summary.trials.usable == 1
    assert [answer.value for answer in shown.answers] == [None, None, None]
    assert shown.answers[0].problem == "there is no JSON object with answers"
    summary, [shown] = drive(batch, Cues("Something.", Fault(FaultKind.FILTERED, "no")))
    assert summary.trials.usable == 1
    assert {answer.problem for answer in shown.answers} == {"content_filter: no"}


def test_the_same_may_be_asked_ahead_of_the_talk() -> None:
    sheet = msgspec.structs.replace(SHEET, before=True)
    cues = Cues(ANSWERS, "Something.", ANSWERS)
    _, [shown] = drive(a_batch(msgspec.structs.replace(PLAIN, questionnaire=sheet), size=1, entities=(ANA,)), cues)
    assert [answer.before for answer in shown.answers] == [True] * 3 + [False] * 3
    assert "Before it begins" in str(cues.asked[0].messages[-1].content)
    assert "private" not in str(cues.asked[0].messages[0].content), "answers are no utterances"


def test_options_are_in_another_order_for_every_entity() -> None:
    sheet = Questionnaire((Question("which", "Which?", "choice", tuple("abcdefgh")),))
    cues = Cues("x", '{"which": "a"}')
    drive(a_batch(msgspec.structs.replace(PLAIN, questionnaire=sheet), size=1, simulations=4), cues)
    orders = {tuple(chat.schema["properties"]["which"]["enum"]) for chat in cues.asked if chat.schema is not None}
    assert len(orders) > 1
    cues = Cues("x", '{"which": "a"}')
    drive(
        a_batch(
            msgspec.structs.replace(PLAIN, questionnaire=msgspec.structs.replace(sheet, shuffle=False)),
            size=1,
            simulations=4,
        ),
        cues,
    )
    orders = {tuple(chat.schema["properties"]["which"]["enum"]) for chat in cues.asked if chat.schema is not None}
    assert orders == {tuple("abcdefgh")}


READ = {
    "all right": (ANSWERS, {"keep": "yes", "like": 4, "why": "For the honey."}, set()),
    "in a fence": (f"```json\n{ANSWERS}\n```", {"keep": "yes", "like": 4, "why": "For the honey."}, set()),
    "a number as text": ('{"keep": "no", "like": "4", "why": "x"}', {"keep": "no", "why": "x"}, {"like"}),
    "true is no number": ('{"keep": "no", "like": true, "why": "x"}', {"keep": "no", "why": "x"}, {"like"}),
    "empty text": ('{"keep": "no", "like": 1, "why": " "}', {"keep": "no", "like": 1}, {"why"}),
    "one is missing": ('{"keep": "no"}', {"keep": "no"}, {"like", "why"}),
    "no object": ("[1, 2]", {}, {"keep", "like", "why"}),
    "broken": ('{"keep": ', {}, {"keep", "like", "why"}),
    "nested beyond reason": ('{"keep":' * 5_000 + "1" + "}" * 5_000, {}, {"keep", "like", "why"}),
}


@pytest.mark.parametrize(("text", "values", "wrong"), READ.values(), ids=READ)
def test_answers_are_read(text: str, values: dict[str, object], wrong: set[str]) -> None:
    found, problems = read_answers(Reply(text), SHEET.questions)
    assert found == values
    assert set(problems) == wrong


def test_models_are_told_what_attributes_mean() -> None:
    kind = EntityType("adult", "Adult", "An adult in Norway.", (Dimension("age", "int", "In years.", 0, 120),))
    cues = Cues("x")
    drive(a_batch(PLAIN, entities=(taking_part(ANA, kind), BEN)), cues)
    assert text_of(cues.asked[0])[0].startswith(
        "system: You are Ana Silva. A nurse. An adult in Norway.\nAbout you:\n- age (In years): 41\n- urban: yes\n"
    )


def test_who_is_asked_ahead_of_the_talk_does_not_know_with_whom_it_will_be() -> None:
    sheet = msgspec.structs.replace(SHEET, before=True)
    cues = Cues("a", "b", answers=ANSWERS)
    drive(a_batch(msgspec.structs.replace(PLAIN, questionnaire=sheet)), cues)
    first, last = text_of(cues.asked[0]), text_of(cues.asked[-1])
    assert "Ben Okoro" not in "".join(first)
    assert "You talk with Ana Silva." in last[0]
    assert "For the honey" not in "".join(last), "what was answered before is not shown again"


def test_a_problem_does_not_repeat_all_of_a_long_answer() -> None:
    long = "x" * 100_000
    _, problems = read_answers(Reply(f'{{"keep": "{long}", "like": "{long}", "why": "x"}}'), SHEET.questions)
    assert max(len(problem) for _, problem in problems.values()) < 500


def test_a_talk_can_be_continued() -> None:
    past = (Line(0, 1, 1, "One.", "Hm."), Line(1, 1, 1, "Two."))
    spec = Simulation(1, CONTEXT, (ANA, BEN), Rules(MODEL, n_turns=1), past=past)
    cues = Cues('*Yes.*\n"Three."', '"Four."')
    _, [shown] = drive(Single(spec, continues="sim-x-1"), cues)
    assert text_of(cues.asked[0])[1:] == [
        f"user: This is what it is about: {CONTEXT}\nYou speak first.",
        'assistant: *Hm.*\n"One."',
        "user: Ben Okoro: Two.",
    ]
    assert [(line.turn, line.round, line.speech) for line in shown.lines] == [
        (1, 1, "One."),
        (1, 1, "Two."),
        (2, 2, "Three."),
        (2, 2, "Four."),
    ]
    assert shown.metadata["final_turn_number"] == 2
    assert shown.metadata["continues"] == "sim-x-1"
    assert shown.content.startswith('Ana Silva: *Hm.*\n"One."\n\nBen Okoro: "Two."')


def test_another_context_comes_after_what_was_said_in_the_first() -> None:
    talked = Talked((Line(0, 1, 1, "One.", "Hm."), Line(1, 1, 1, "Two.")), 1)
    first = Simulation(1, CONTEXT, (ANA, BEN), PLAIN, replicate=3)
    rained = continued(first, talked, PLAIN, "It rained.")
    assert (rained.context, rained.replicate) == (CONTEXT, 3)
    assert continued(rained, talked, PLAIN, "It rained.").later == rained.later
    cues = Cues("Wet.")
    drive(Single(rained), cues)
    ana, ben = (text_of(chat) for chat in cues.asked)
    assert f"Context: {CONTEXT}" in ana[0]
    assert ana[1] == f"user: This is what it is about: {CONTEXT}\nYou speak first."
    assert ana[-1] == "user: Ben Okoro: Two.\nThen: It rained."
    assert ben[-1] == "user: Then: It rained.\nAna Silva: Wet."
    dried = continued(rained, Talked((Line(0, 2, 2, "Wet."), Line(1, 2, 2, "Wet.")), 2), NARRATED, "It dried.")
    cues = Cues(SCRIPT)
    drive(Single(dried), cues)
    told = text_of(cues.asked[0])[1]
    order = [told.index(part) for part in (CONTEXT, '"Two."', "Then: It rained.", '"Wet."', "Then: It dried.")]
    assert order == sorted(order)


def test_whole_turns_are_the_same_in_a_talk_and_its_continuation() -> None:
    """Ana speaks twice in the first round and Ben in the second: two turns are whole, not three."""
    cues = Cues("Ana Silva: 1.\nBen Okoro: 2.\nAna Silva: 3.", "Ana Silva: 4.\nBen Okoro: 5.\nBen Okoro: 6.")
    rules = msgspec.structs.replace(NARRATED, simulation_rounds=2)
    _, [shown] = drive(a_batch(rules), cues)
    assert [line.turn for line in shown.lines] == [1, 1, 2, 3, 3, 4]
    assert shown.metadata["final_turn_number"] == 2
    lines = tuple(
        Line((ANA.id, BEN.id).index(line.entity_id), line.turn, line.round, line.speech) for line in shown.lines
    )
    spec = Simulation(1, CONTEXT, (ANA, BEN), rules)
    _, [more] = drive(Single(continued(spec, Talked(lines, 2), Rules(MODEL))), Cues("Fine."))
    assert more.metadata["final_turn_number"] == 3
