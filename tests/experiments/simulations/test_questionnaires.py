"""How entities are questioned: in how many requests, what is asked again, what is missing, and surveys without talk."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from groundswell import Fault, FaultKind, Reply
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import Single
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.reading import SimulationShown
from groundswell.experiments.simulations.simulation import Rules, Simulation, Talked, continued
from groundswell.experiments.simulations.talk import read_answers
from tests.experiments.simulations.stage import ANA, BEN, MODEL, Cues, a_batch, drive, text_of

KEEP = Question("keep", "Would you keep bees?", "choice", ("yes", "no"))
MANY = Question("many", "How many hives?", "number", whole=True, min=0)
WHY = Question("why", "Why {keep}?", when={"keep": "no"})
SURVEY = Rules(MODEL, n_turns=0, questionnaire=Questionnaire((KEEP,)))
LIKE = Question("like", "How much do you like", "matrix", rows={"honey": "honey?", "wax": "wax?"})


def asked_of(
    sheet: Questionnaire | Sequence[Question], *replies: str | Reply | Fault | dict[str, Any], rules: Rules = SURVEY
) -> tuple[Cues, SimulationShown]:
    """One entity answers these questions."""
    made = sheet if isinstance(sheet, Questionnaire) else Questionnaire(tuple(sheet), shuffle=False)
    cues = Cues(*(json.dumps(each) if isinstance(each, dict) else each for each in replies))
    batch = a_batch(msgspec.structs.replace(rules, questionnaire=made), size=1, entities=(ANA,))
    summary, [shown] = drive(batch, cues)
    assert summary.trials.usable == 1
    return cues, shown


def values(shown: SimulationShown) -> dict[str, object]:
    return {answer.question: answer.value for answer in shown.answers}


def missing(shown: SimulationShown) -> dict[str, str]:
    return {answer.question: answer.missing for answer in shown.answers if answer.missing}


def test_questions_that_depend_on_nothing_are_asked_together_and_the_others_after_them() -> None:
    chain = Question("else", "After {why}, what else?")
    cues, shown = asked_of(
        [KEEP, MANY, WHY, chain, LIKE],
        {"keep": "no", "many": 2, "like": {"honey": 4, "wax": 1}},
        {"why": "They sting."},
        {"else": "Nothing."},
    )
    assert [list(chat.schema["properties"]) for chat in cues.asked if chat.schema] == [
        ["keep", "many", "like"],
        ["why"],
        ["else"],
    ]
    assert text_of(cues.asked[2])[2:] == [
        'assistant: {"keep": "no", "many": 2, "like": {"honey": 4, "wax": 1}}',
        "user: More questions:\n[why] Why no? In your own words, one or two sentences.\n"
        "Answer with a JSON object that has the names in brackets as its keys.",
        'assistant: {"why": "They sting."}',
        "user: More questions:\n[else] After They sting., what else? In your own words, one or two sentences.\n"
        "Answer with a JSON object that has the names in brackets as its keys.",
    ]
    assert values(shown) == {
        **{"keep": "no", "many": 2, "why": "They sting.", "else": "Nothing."},
        **{"like.honey": 4, "like.wax": 1},
    }


def test_questions_are_asked_one_by_one_in_their_order() -> None:
    sheet = Questionnaire((KEEP, WHY, MANY), one_by_one=True, shuffle=False)
    cues, shown = asked_of(sheet, {"keep": "no"}, {"why": "They sting."}, {"many": 0})
    assert [list(chat.schema["properties"]) for chat in cues.asked if chat.schema] == [["keep"], ["why"], ["many"]]
    assert values(shown) == {"keep": "no", "why": "They sting.", "many": 0}
    assert [len(chat.messages) for chat in cues.asked] == [2, 4, 6], "the entity sees its earlier answers"
    assert [chat.max_tokens for chat in cues.asked] == [60, 300, 60]


def test_a_question_that_does_not_apply_is_not_asked() -> None:
    cues, shown = asked_of([KEEP, WHY, Question("then", "And?", when={"why": "Because."})], {"keep": "yes"})
    assert len(cues.asked) == 1
    assert missing(shown) == {"why": "skipped", "then": "skipped"}
    assert [answer.problem for answer in shown.answers] == ["", "skipped", "skipped"]


def test_only_invalid_answers_are_named_when_asked_again_and_valid_ones_are_kept() -> None:
    cues, shown = asked_of(
        [KEEP, MANY, LIKE], {"keep": "no", "many": -1, "like": {"honey": 4}}, {"many": 3, "like": {"wax": 5}}
    )
    assert text_of(cues.asked[1])[-1] == (
        "user: That was not right: [many] -1 is no whole number of at least 0; [like.wax] is missing. Answer all the "
        "questions again, as a JSON object."
    )
    assert values(shown) == {"keep": "no", "many": 3, "like.honey": 4, "like.wax": 5}
    assert missing(shown) == {}


def test_what_is_still_invalid_is_missing_and_nothing_is_asked_a_third_time() -> None:
    cues, shown = asked_of([KEEP, MANY], {"keep": "never", "many": 1})
    assert len(cues.asked) == 2
    assert values(shown) == {"keep": None, "many": 1}
    assert missing(shown) == {"keep": "malformed"}


def test_an_answer_can_be_declined_if_the_questionnaire_allows_it() -> None:
    sheet = Questionnaire((KEEP, LIKE), shuffle=False, decline=True)
    cues, shown = asked_of(sheet, {"keep": None, "like": {"honey": None, "wax": 2}})
    assert len(cues.asked) == 1
    assert missing(shown) == {"keep": "declined", "like.honey": "declined"}
    assert "If you do not want to answer a question, its value is null." in text_of(cues.asked[0])[-1]
    cues, shown = asked_of([KEEP, LIKE], {"keep": None, "like": {"honey": None, "wax": 2}})
    assert len(cues.asked) == 2
    assert missing(shown) == {"keep": "malformed", "like.honey": "malformed"}
    assert "null" not in text_of(cues.asked[0])[-1]


@pytest.mark.parametrize("second", [{"many": 3}, Fault(FaultKind.FILTERED, "no"), "I am sorry."], ids=str)
def test_what_was_declined_stays_declined_when_other_questions_are_asked_again(second: Any) -> None:
    sheet = Questionnaire((KEEP, MANY), shuffle=False, decline=True)
    _, shown = asked_of(sheet, {"keep": None, "many": "three"}, second)
    assert missing(shown)["keep"] == "declined"


def test_what_was_declined_can_be_answered_after_all() -> None:
    sheet = Questionnaire((KEEP, MANY), shuffle=False, decline=True)
    _, shown = asked_of(sheet, {"keep": None, "many": "three"}, {"keep": "yes", "many": None})
    assert (values(shown)["keep"], missing(shown)) == ("yes", {"many": "declined"})


REFUSALS: dict[str, tuple[Reply, str]] = {
    "sorry": (Reply("I'm sorry, but I cannot take part in surveys."), "refused"),
    "curly": (Reply("I can’t answer that."), "refused"),
    "as an AI": (Reply(" As an AI, I have no opinions."), "refused"),
    "finish": (Reply("", finish="refusal"), "refused"),
    "filter": (Reply("{", finish="content_filter"), "refused"),
    "chatter": (Reply("Bees are fine."), "malformed"),
    "a word that begins so": (Reply("Sorrylessly yes."), "malformed"),
    "cut off": (Reply('{"keep": "ye', finish="length"), "malformed"),
}


@pytest.mark.parametrize(("reply", "kind"), REFUSALS.values(), ids=REFUSALS)
def test_refusals_are_counted_as_such(reply: Reply, kind: str) -> None:
    cues, shown = asked_of([KEEP, MANY], reply)
    assert len(cues.asked) == 2
    assert missing(shown) == {"keep": kind, "many": kind}


def test_an_answer_in_a_text_that_begins_like_a_refusal_counts() -> None:
    _, shown = asked_of([KEEP], 'I am sorry to say: {"keep": "no"}')
    assert (values(shown), missing(shown)) == ({"keep": "no"}, {})


def test_a_failed_request_leaves_its_questions_without_answers_and_later_ones_are_still_asked() -> None:
    sheet = Questionnaire((KEEP, MANY, WHY), one_by_one=True, shuffle=False)
    cues, shown = asked_of(sheet, Fault(FaultKind.BAD_REQUEST, "no"), {"many": 1})
    assert len(cues.asked) == 2
    assert (values(shown)["many"], missing(shown)) == (1, {"keep": "failed", "why": "skipped"})
    assert shown.answers[0].problem == "bad_request: no"


def test_valid_answers_of_a_first_reply_stay_if_the_second_request_fails() -> None:
    _, shown = asked_of([KEEP, MANY], {"keep": "no"}, Fault(FaultKind.BAD_REQUEST, "no"))
    assert (values(shown), missing(shown)) == ({"keep": "no", "many": None}, {"many": "failed"})


MATRIX = {
    "an object per matrix": '{"like": {"honey": 1, "wax": 2}}',
    "rows by themselves": '{"honey": 1, "wax": 2}',
    "whole names": '{"like.honey": 1, "like.wax": 2}',
}


@pytest.mark.parametrize("text", MATRIX.values(), ids=MATRIX)
def test_the_rows_of_a_matrix_are_found(text: str) -> None:
    assert read_answers(Reply(text), [LIKE]) == ({"like.honey": 1, "like.wax": 2}, {})


def test_several_options_are_kept_in_the_order_given() -> None:
    rank = Question("rank", "Order?", "ranking", ("a", "b", "c"))
    cues, shown = asked_of([rank, Question("some", "Any?", "multi", ("a", "b"))], {"rank": ["c", "a", "b"], "some": []})
    assert values(shown) == {"rank": ("c", "a", "b"), "some": ()}
    assert cues.asked[0].max_tokens == 60 + 3 * 20 + 60 + 2 * 20


def test_a_survey_has_no_conversation_and_does_not_mention_one() -> None:
    cues, shown = asked_of([KEEP], {"keep": "yes"})
    assert text_of(cues.asked[0]) == [
        "system: You are Ana Silva. A nurse.\nAbout you:\n- age: 41\n- urban: yes\n"
        "Context: A panel discussion about bees\nStay in character as Ana Silva.",
        "user: Answer some questions, as Ana Silva. Nobody else will see the answers.\n"
        "[keep] Would you keep bees? One of: yes | no.\n"
        "Answer with a JSON object that has the names in brackets as its keys.",
    ]
    assert (len(cues.asked), shown.lines, shown.content, shown.status) == (1, (), "", "completed")


def test_a_survey_needs_no_context() -> None:
    rules = msgspec.structs.replace(SURVEY, questionnaire=Questionnaire((KEEP,)))
    cues = Cues('{"keep": "yes"}')
    drive(msgspec.structs.replace(a_batch(rules, size=2, entities=(ANA, BEN)), context=""), cues)
    assert [text_of(chat)[0].splitlines()[-2:] for chat in cues.asked] == [
        ["- urban: yes", "Stay in character as Ana Silva."],
        ["- urban: no", "Stay in character as Ben Okoro."],
    ]


def test_a_survey_without_a_context_can_become_a_talk_about_one() -> None:
    rules = msgspec.structs.replace(SURVEY, questionnaire=Questionnaire((KEEP,)))
    survey = Simulation(1, "", (ANA,), rules)
    cues = Cues("Hello.")
    drive(Single(continued(survey, Talked((), 0), Rules(MODEL, thoughts=False), "A talk about bees.")), cues)
    assert text_of(cues.asked[0])[-1] == "user: This is what it is about: A talk about bees.\nBegin."
    with pytest.raises(SettingsError, match="context is empty"):
        continued(survey, Talked((), 0), Rules(MODEL))


@pytest.mark.parametrize(
    ("sheet", "said"),
    [(None, "there must be questions"), (Questionnaire((KEEP,), before=True), "there is no `before`")],
    ids=["nothing to ask", "before"],
)
def test_a_survey_that_cannot_be_is_refused(sheet: Questionnaire | None, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Rules(MODEL, n_turns=0, questionnaire=sheet)


OLD = Questionnaire(
    (
        Question("keep", "Would you keep bees?", "choice", ("yes", "no")),
        Question("like", "How much do you like {them}?", "scale", low=0, high=10, low_label="not at all"),
        Question("why", "Why?"),
    ),
    before=True,
    shuffle=False,
)
OLD_SCHEMA = (
    '"max_tokens":420,"temperature":0.5,"schema":{"type":"object","properties":{"keep":{"type":"string","enum":'
    '["yes","no"]},"like":{"type":"integer","minimum":0,"maximum":10},"why":{"type":"string"}},"required":["keep",'
    '"like","why"],"additionalProperties":false}}'
)
OLD_QUESTIONS = (
    r"[keep] Would you keep bees? One of: yes | no.\n[like] How much do you like {them}? A whole number from 0 (not at "
    r"all) to 10.\n[why] Why? In your own words, one or two sentences.\nAnswer with a JSON object that has the names "
    r'in brackets as its keys."}'
)
OLD_BEFORE = (
    r'{"type":"chat","model":"emulated/gpt-4o-mini","messages":[{"role":"system","content":"You are Ana Silva. A nurse.'
    r"\nAbout you:\n- age: 41\n- urban: yes\nContext: A panel discussion about bees\nStay in character as Ana Silva."
    r'"},{"role":"user","content":"Before it begins, answer some questions, as Ana Silva. Nobody else will see the '
    rf"answers.\n{OLD_QUESTIONS}"
)
OLD_AGAIN = (
    r',{"role":"assistant","content":"{\"keep\":\"never\",\"like\":4,\"why\":\"\"}"},{"role":"user","content":"That '
    r"was not right: [keep] 'never' is none of yes, no; [why] is empty. Answer all the questions again, as a JSON "
    r'object."}'
)
OLD_AFTER = (
    r'{"type":"chat","model":"emulated/gpt-4o-mini","messages":[{"role":"system","content":"You are Ana Silva. A nurse.'
    r"\nAbout you:\n- age: 41\n- urban: yes\nContext: A panel discussion about bees\nYou talk with Ben Okoro.\nThis is "
    r"a discussion: say what you think, and take up what the others say.\nStay in character as Ana Silva."
    r'"},{"role":"user","content":"This is what it is about: A panel discussion about bees\nYou speak first."},'
    r'{"role":"assistant","content":"a"},{"role":"user","content":"Ben Okoro: b\n\nIt is over. Now answer some '
    rf"questions, as Ana Silva. Nobody else will see the answers.\n{OLD_QUESTIONS}"
)


def test_older_questionnaires_have_the_same_requests_byte_for_byte() -> None:
    """A run that began with an earlier version continues without asking anything again."""
    good = '{"keep": "yes", "like": 4, "why": "For the honey."}'
    cues = Cues('{"keep":"never","like":4,"why":""}', good, good, "a", "b", good, good)
    drive(a_batch(Rules(MODEL, thoughts=False, questionnaire=OLD, temperature=0.5)), cues)
    sent = [msgspec.json.encode(chat).decode() for chat in cues.asked]
    assert sent[0] == f"{OLD_BEFORE}],{OLD_SCHEMA}"
    assert sent[2] == f"{OLD_BEFORE}{OLD_AGAIN}],{OLD_SCHEMA}"
    assert sent[5] == f"{OLD_AFTER}],{OLD_SCHEMA}"


def test_a_question_that_quotes_a_missing_answer_is_skipped() -> None:
    why = Question("why", "You said {keep}. Why?")
    cues, shown = asked_of([KEEP, why], {"keep": "perhaps not"}, {"keep": "perhaps not"})
    assert missing(shown) == {"keep": "malformed", "why": "skipped"}
    assert len(cues.asked) == 2


def test_a_condition_on_an_answer_that_cannot_be_given_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'keep' has no option 'maybe'; options: "):
        Questionnaire((KEEP, Question("why", "Why?", when={"keep": ("maybe", "no")})))
    Questionnaire((KEEP, Question("why", "Why?", when={"keep": "{level}"})))


def test_a_matrix_row_does_not_take_the_answer_to_another_question() -> None:
    honey = Question("honey", "Honey?", "scale")
    _, shown = asked_of([honey, LIKE], {"honey": 5}, {"like": {"honey": 1, "wax": 2}})
    assert values(shown) == {"honey": 5, "like.honey": 1, "like.wax": 2}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (">=3", "'like' is a number, so '>=3' must be a number or a range"),
        ("9..", "'like' is at most 5, so it is never 9.."),
        ("..0", "'like' is at least 1, so it is never ..0"),
        (7, "'like' is at most 5, so it is never 7"),
    ],
)
def test_a_condition_that_no_number_meets_is_refused(wanted: Any, said: str) -> None:
    like = Question("like", "Well?", "scale")
    with pytest.raises(SettingsError, match=re.escape(said)):
        Questionnaire((like, Question("why", "Why?", when={"like": wanted})))
    for fine in ("..1", "5..", 3, "2..9", "{level}"):
        Questionnaire((like, Question("why", "Why?", when={"like": fine})))
