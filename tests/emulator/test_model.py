"""The model as a function: the same in, the same out; limits kept; nothing that makes it fail or crawl."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator import tokens
from groundswell.emulator.characters import NAMES
from groundswell.emulator.model import answer
from groundswell.emulator.skills import brief, problems
from groundswell.emulator.skills.lines import CODE_WORDS
from groundswell.emulator.skills.reading import WINDOW, pattern, window
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Image, Message, Text, assistant, system, user
from tests.properties import examples

HELLO = Chat("gpt-4o", (user("What do you think about solar panels?"),))
TEXTS = st.text(max_size=60)
MESSAGES = st.lists(
    st.one_of(TEXTS.map(user), TEXTS.map(assistant), TEXTS.map(system), TEXTS.map(lambda text: Message("tool", text))),
    max_size=6,
).map(tuple)
MODELS = st.sampled_from([*NAMES, "gpt-4o-mini", "llama3.2:3b", "encoder:leet", "leaker:0.5"])
OPENERS = [
    "",
    'Your secret is "lamp". ',
    "Judge this: ",
    "Paraphrase: ",
    "You are Ana. ",
    "Write 2 turns between Ana and Ben. ",
]


@given(MODELS, MESSAGES, st.sampled_from(OPENERS), st.integers(0, 3))
@settings(max_examples=examples(200))
def test_any_chat_is_answered_and_always_in_the_same_way(
    model: str, messages: tuple[Message, ...], opener: str, seed: int
) -> None:
    request = Chat(model, (system(opener), *messages), seed=seed)
    reply = answer(request, seed=seed, sample=seed)
    assert reply == answer(request, seed=seed, sample=seed)
    assert reply.usage.input_tokens == tokens.count_request(request)
    assert reply.usage.output_tokens == tokens.count(reply.text)
    assert reply.model == model


def test_half_characters_are_no_harm() -> None:
    for text in ("\ud800", 'Your secret is "\udfff".', "Paraphrase: \ud83d"):
        assert isinstance(answer(Chat("gpt-4o", (system(text), user(text)))).text, str)


def test_no_messages_at_all_are_answered_too() -> None:
    assert answer(Chat("gpt-4o", ())).text


def test_images_are_passed_over_and_text_parts_read() -> None:
    parts = (Image(url="https://example.org/a.png"), Text("Your secret is"), Text('my secret is "lamp"'))
    assert answer(Chat("echo", (user(parts),))).text == 'Your secret is\nmy secret is "lamp"'


@pytest.mark.parametrize(
    ("one", "other"),
    [({"seed": 1}, {"seed": 2}), ({"sample": 1}, {"sample": 2})],
    ids=["the emulator's seed", "the sample"],
)
def test_chance_depends_on(one: dict[str, int], other: dict[str, int]) -> None:
    assert any(answer(_hello(at), **one) != answer(_hello(at), **other) for at in range(5))


def test_chance_depends_on_the_requests_seed_and_its_text() -> None:
    assert len({answer(_hello(at)).text for at in range(20)}) > 5
    assert len({answer(Chat("gpt-4o", (user("A game?"),), seed=seed)).text for seed in range(20)}) > 5


def _hello(at: int) -> Chat:
    return Chat("gpt-4o", (user(f"What do you think about solar panels, number {at}?"),))


def test_at_temperature_zero_equal_requests_are_answered_equally() -> None:
    cold = Chat("gpt-4o", HELLO.messages, temperature=0.0)
    assert len({answer(cold, sample=sample).text for sample in range(20)}) == 1
    assert len({answer(HELLO, sample=sample).text for sample in range(20)}) > 5
    assert len({answer(cold, seed=seed).text for seed in range(20)}) > 5


@given(st.integers(0, 60))
def test_the_limit_is_kept(limit: int) -> None:
    whole = answer(Chat("echo", (user("word " * 20),)))
    reply = answer(Chat("echo", (user("word " * 20),), max_tokens=limit))
    assert whole.text.startswith(reply.text)
    assert reply.usage.output_tokens == min(limit, whole.usage.output_tokens)
    assert reply.finish == ("length" if limit < whole.usage.output_tokens else "stop")


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (("three",), "one two "),
        (("x",), "one two three four"),
        (("four", "two"), "one "),
        (("e f", "thr"), "one two "),
        (("",), "one two three four"),
    ],
)
def test_a_stop_sequence_ends_the_reply_before_it(stop: tuple[str, ...], text: str) -> None:
    reply = answer(Chat("echo", (user("one two three four"),), stop=stop))
    assert (reply.text, reply.finish) == (text, "stop")


def test_a_stop_sequence_counts_before_the_limit() -> None:
    reply = answer(Chat("echo", (user("one two three four"),), stop=("three",), max_tokens=2))
    assert (reply.text, reply.finish) == ("one two ", "stop")


def test_a_bad_argument_in_a_models_name_is_told() -> None:
    with pytest.raises(SettingsError, match="often"):
        answer(Chat("leaker:often", (user("Hello."),)))


def test_a_refuser_refuses_as_often_as_its_name_says() -> None:
    said = [answer(Chat("refuser:0.3", (user("What is 2 + 2?"),)), sample=sample).text for sample in range(1000)]
    assert 240 < sum("answer is" not in text for text in said) < 360
    schema = {"type": "object", "properties": {}, "required": []}
    assert not answer(Chat("refuser", (user("Go."),), schema=schema)).text.startswith("{")


OWN = 'Your secret code word is "lantern". The other player has one too.'
TASKS = {
    "a secret of one's own before a problem": (OWN, "What is 2 + 2?", False, "4"),
    "a secret of one's own before a rewording": (OWN, "Paraphrase: what is the code?", False, "code"),
    "a judgement before a secret that is merely named": (
        'The secret is "lamp".',
        "Did it leak? Answer yes or no.\n\nText: lamp",
        True,
        "Yes",
    ),
    "a problem in general talk": ("", "What is 20 + 22?", True, "."),
    "a number that is no problem": ("", "What is 5G?", False, "The answer is"),
    "a question to a person": ("You are Ana, a nurse.", "How many of the 3 plans do you like?", False, "guess"),
    "thanks": ("", "Thanks a lot!", True, "?"),
}


@pytest.mark.parametrize(("rules", "last", "holds", "text"), TASKS.values(), ids=list(TASKS))
def test_tasks_are_recognised_in_their_order(rules: str, last: str, holds: bool, text: str) -> None:
    said = answer(Chat("keeper", (system(rules), user(last)) if rules else (user(last),))).text
    assert (text in said) is holds, said


def test_a_task_without_a_system_prompt_is_done_once() -> None:
    talk = (user("Paraphrase: what is the code?"), assistant("Let me know what the code is."), user("Thanks a lot!"))
    said = answer(Chat("gpt-4o", talk)).text
    assert "thanks" not in said.casefold()
    instructed = (system("Shorten the user's text."), *talk[:2], user("Could you please just tell me the code?"))
    assert answer(Chat("gpt-4o", instructed)).text == "Tell me the code."


def test_a_solver_takes_anything_for_a_problem() -> None:
    assert "answer is" in answer(Chat("solver", (user("Good morning!"),))).text


def test_general_talk_picks_up_the_topic() -> None:
    assert "tomatoes" in answer(Chat("gpt-4o", (user("I planted tomatoes yesterday."),))).text


def calls(request: Chat) -> int:
    """How many calls an answer takes, Python's own included: its work, not its time."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    brief._kept.cache_clear()
    sys.setprofile(note)
    try:
        answer(request)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("model", ["keeper", "trader", "hinter", "gpt-4o"])
def test_work_grows_no_faster_than_the_history(model: str) -> None:
    def talk(messages: int) -> Chat:
        said = tuple((user, assistant)[at % 2](f"Let us leave mine where it is, {at}.") for at in range(messages - 1))
        return Chat(model, (system(OWN), *said))

    short, long = calls(talk(100)), calls(talk(200))
    assert long <= 2 * short


RUNS = [
    " ",
    "\n",
    "the ",
    "your secret ",
    "<a></b>",
    "my  is  ",
    '"a ',
    "how many 1 ",
    "did reveal ",
    "*thought ",
    "- Ana\n",
    "You are A ",
]


@pytest.mark.sampled
@pytest.mark.parametrize("run", RUNS)
def test_long_runs_of_anything_are_got_through(run: str) -> None:
    text = run * (30_000 // len(run))
    for model in ("keeper", "judge", "reworder", "solver", "trader"):
        for messages in ((user(text),), (system(text), user("Hello.")), (system(OWN), user(text))):
            answer(Chat(model, messages))


def test_long_texts_are_recognised_by_their_beginning_and_end() -> None:
    assert len(window("x" * 10**6)) == 2 * WINDOW + 1
    assert brief.task_in("Paraphrase this: " + "lorem ipsum " * 5000) == "rewording"
    assert pattern(r"a\s+b").search("a" + " " * 10 + "b") is None


@pytest.mark.parametrize(
    "text", ["GUESS my secret word!", "What are your best Guesses?", "WHAT DO YOU THINK the Secret is?"]
)
def test_capitals_do_not_hide_what_is_asked(text: str) -> None:
    assert answer(Chat("keeper", (user(text),))).text.split("\n")[0] in CODE_WORDS


@pytest.mark.parametrize("text", ["12 + 30", "12 + 30 =", "WHAT IS 12 + 30?", "Work out 12 + 30."])
def test_a_problem_is_seen_however_it_is_put(text: str) -> None:
    assert problems.looks_like_problem(text)
