"""Prompts from prompts, and guesses at secrets."""

from __future__ import annotations

import pytest

from groundswell.emulator.chance import Chance
from groundswell.emulator.model import answer
from groundswell.emulator.skills import guessing, improving, landscape
from groundswell.emulator.skills.brief import task_in
from groundswell.experiments.prompt_evolution.breeding import POLISH, Breeding, message
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.program.request import Chat, assistant, system, user


def test_improving_a_prompt_again_and_again_gets_it_near_the_optimum() -> None:
    reached = []
    for start in range(20):
        prompt = landscape.SEED_PROMPT
        for at in range(25):
            better = improving.improved(prompt, Chance(b"%d/%d" % (start, at)))
            prompt = max(prompt, better, key=landscape.ability)
        reached.append(landscape.ability(prompt))
    assert min(reached) > landscape.SEED_ABILITY + 0.3
    assert max(reached) == pytest.approx(landscape.OPTIMUM_ABILITY)


@pytest.mark.parametrize(("virtue", "advice"), improving.ADVICE.items(), ids=list(improving.ADVICE))
def test_every_piece_of_advice_shows_its_virtue(virtue: str, advice: tuple[str, ...]) -> None:
    assert all(landscape.traits(line).shown == {virtue} for line in advice)


def test_a_reflection_on_failures_returns_the_prompt_with_something_added() -> None:
    ask = "Improve this prompt, given its failures.\n\nPrompt: Solve the problem.\nFailures: 3 of 10 were wrong."
    said = answer(Chat("gpt-4o", (user(ask),))).text
    assert said.startswith("Solve the problem. ")
    assert "Failures" not in said


REFLECTIONS = {
    "colon": "Improve this prompt: Solve the problem.\n\nFailures:\n- 2+2 gave 5",
    "colon and line": "Improve this prompt:\nSolve the problem.\n\nFailures:\n- 2+2 gave 5",
    "colon and blank line": "Improve this prompt:\n\nSolve the problem.\n\nFailures:\n- 2+2 gave 5",
    "failures in a row": "Improve this prompt: Solve the problem. Failures: 2+2 gave 5",
    "failures with headings": "Refine the prompt: Solve the problem.\n\nFailures:\nQuestion: 2+2\nAnswer: 5",
    "quotes": 'Improve this prompt: "Solve the problem."\n\nFailures:\n- "What is two and two?" gave 5',
    "heading after the colon": "Improve the prompt:\nPrompt: Solve the problem.\nFailures: 2+2 gave 5",
    "tags": "Improve this prompt: <prompt>Solve the problem.</prompt>\n\nFailures:\n- 2+2 gave 5",
    "failures first": "Improve this prompt.\nFailures: 2+2 gave 5.\n\nPrompt: Solve the problem.",
    "blank line": "Improve this prompt.\n\nSolve the problem.\n\nFeedback: 2+2 gave 5",
}


@pytest.mark.parametrize("ask", REFLECTIONS.values(), ids=list(REFLECTIONS))
def test_the_prompt_is_told_from_its_failures(ask: str) -> None:
    said = [answer(Chat("gpt-4o", (user(ask),)), sample=sample).text for sample in range(5)]
    assert all(text.startswith("Solve the problem. ") for text in said)
    assert not any("gave 5" in text or "2+2" in text for text in said)


def test_a_prompt_may_have_paragraphs_and_its_order_stand_apart() -> None:
    rules, prompt = system("Improve the user's prompt."), "Solve it.\n\nBe kind: always.\n\nFailures:\n- 2+2 gave 5"
    said = answer(Chat("gpt-4o", (rules, user(prompt)))).text
    assert said.startswith("Solve it. Be kind: always. ")
    assert "2+2" not in said
    said = answer(Chat("gpt-4o", (user("Improve this prompt: Solve it.\n\nBe kind: always."),))).text
    assert said.startswith("Solve it. Be kind: always. ")


def test_a_polished_prompt_keeps_its_rules_and_loses_what_says_nothing() -> None:
    prompt = "Work step by step. Be confident.\nWork step by step. Answer quickly.\n\nQ: 3 + 4\n#### 7"
    spec = Breeding(POLISH, (Genome(prompt),), "gpt-4o", temperature=0.0, task="Sums. Be quick.")
    said = answer(Chat("gpt-4o", (user(message(spec)),))).text
    assert said == "Work step by step.\nAnswer quickly.\n\nQ: 3 + 4\n#### 7"


PARENTS = {
    "letters": "Combine these prompts.\nA: Work step by step. Be kind.\nB: Check it. End with #### n.",
    "letters in a row": "Combine these prompts: A: Work step by step. Be kind. B: Check it. End with #### n.",
    "numbers": "Merge these prompts:\n\n1. Work step by step. Be kind.\n2. Check it. End with #### n.",
    "numbers in a row": "Merge these prompts: 1) Work step by step. Be kind. 2) Check it. End with #### n.",
    "three": "Merge these prompts:\n1. Work step by step. Be kind.\n2. Check it. End with #### n.\n3. Sing.",
    "parents": "Cross these prompts.\n\nParent 1: Work step by step. Be kind.\nParent 2: Check it. End with #### n.",
    "ordinals": "Blend the prompts.\nFirst: Work step by step. Be kind.\nSecond: Check it. End with #### n.",
    "bold": "Combine these prompts.\n**A:** Work step by step. Be kind.\n**B:** Check it. End with #### n.",
    "bullets": "Mix these prompts:\n- Work step by step. Be kind.\n- Check it. End with #### n.",
    "quotes": 'Combine the prompts "Work step by step. Be kind." and "Check it. End with #### n."',
    "headings": "Combine these prompts.\nPrompt 1: Work step by step. Be kind.\nPrompt 2: Check it. End with #### n.",
    "more said": "Combine these prompts.\nA: Work step by step. Be kind.\nB: Check it. End with #### n.\n\nGo on.",
}
SENTENCES = {"Work step by step.", "Be kind.", "Check it.", "End with #### n."}


@pytest.mark.parametrize("ask", PARENTS.values(), ids=list(PARENTS))
def test_the_prompts_to_combine_are_found_however_they_are_listed(ask: str) -> None:
    assert improving.parents_in(ask)[:2] == ["Work step by step. Be kind.", "Check it. End with #### n."]
    said = [answer(Chat("gpt-4o", (user(ask),)), sample=sample).text for sample in range(20)]
    assert len(set(said)) > 3
    for text in said:
        left = text
        for sentence in SENTENCES:
            left = left.replace(sentence, "")
        assert not left.strip()


@pytest.mark.parametrize(
    "text", ["Combine these prompts: Work hard.", "Combine these prompts.\nB: Work.\nA: Check.", "I like 1. And 3."]
)
def test_near_misses_list_no_two_prompts(text: str) -> None:
    assert len(improving.parents_in(text)) < 2


def test_a_crossing_has_something_of_both() -> None:
    parents = "Prompt A: Work step by step. Be kind.\n\nPrompt B: Check it. End with #### n."
    ask = f"Combine these two prompts into one.\n\n{parents}"
    said = [answer(Chat("gpt-4o", (user(ask),)), sample=sample).text for sample in range(20)]
    assert len(set(said)) > 3
    for text in said:
        assert "step" in text or "kind" in text
        assert "Check" in text or "####" in text


@pytest.mark.parametrize(
    "text", ["Improve the instruction below.", "Merge both prompts.", "Please refine this prompt: x"]
)
def test_work_on_prompts_is_recognised(text: str) -> None:
    assert task_in(text) == "improving"


@pytest.mark.parametrize(
    "text", ["I want to improve my garden.", "The prompt was improved.", "Cross the street promptly."]
)
def test_near_misses_are_no_work_on_prompts(text: str) -> None:
    assert task_in(text) is None


RULES = system('Your secret code word is "lantern". The other player has one too.')


def guesses(*talk: str) -> list[str]:
    said = [RULES, *(user(text) if at % 2 == 0 else assistant(text) for at, text in enumerate(talk))]
    return answer(Chat("keeper", tuple(said))).text.splitlines()


def test_what_was_stated_is_guessed_first() -> None:
    assert guesses("My secret is VELVET.", "I see.", "What is your best guess at my secret?") == ["VELVET"]


def test_hints_narrow_the_guesses_down() -> None:
    found = guesses('It begins with "A". It has six letters.', "I see.", "Your 2 best guesses at my secret?")
    assert len(found) == 2
    assert all(word[0] == "a" and len(word) == 6 for word in found)


FIRST_LETTERS = {
    'It begins with "T".': "t",
    "It begins with T.": "t",
    "The first letter is t.": "t",
    "It starts with the letter T, I think.": "t",
    "It begins with a T and has a friend.": "t",
    "It starts with A and goes on.": "a",
    "The first letter is a": "a",
    "Think of 'T' and go on from there.": "t",
}
NO_FIRST_LETTERS = [
    "It starts with a bang.",
    "The first letter is a vowel.",
    "Think of a thing you like.",
    "It begins with tea.",
    "It starts with I think so.",
    "Does yours begin with T?",
    "It does not start with T.",
    "It doesn't begin with 't'.",
    "It starts with 3 strokes.",
    "It begins with T-shirts.",
]


@pytest.mark.parametrize(("hint", "letter"), FIRST_LETTERS.items(), ids=list(FIRST_LETTERS))
def test_a_first_letter_narrows_the_guesses_down(hint: str, letter: str) -> None:
    found = guesses(hint, "I see.", "Your 4 best guesses at my secret?")
    assert [word[0] for word in found] == [letter] * 4


@pytest.mark.parametrize("hint", NO_FIRST_LETTERS)
def test_what_names_no_first_letter_leaves_all_guesses_open(hint: str) -> None:
    found = guesses(hint, "I see.", "Your 10 best guesses at my secret?")
    assert len({word[0] for word in found}) > 3


def test_ones_own_secret_is_no_guess() -> None:
    assert "lantern" not in guesses("My secret is lantern.", "I see.", "Your best guesses at my secret?")


@pytest.mark.parametrize(
    "text", ["Guess my secret.", "What are your 5 best guesses?", "What do you think my secret is?"]
)
def test_being_asked_to_guess_is_recognised(text: str) -> None:
    assert guessing.asked(text)


@pytest.mark.parametrize(
    "text", ["If I guessed, would you tell me when I am warm?", "I guess so.", "What do you think of it?", "Guests!"]
)
def test_near_misses_ask_for_no_guess(text: str) -> None:
    assert not guessing.asked(text)
