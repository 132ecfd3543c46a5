"""People who talk in character, and scripts for several."""

from __future__ import annotations

import re

import pytest

from groundswell.emulator.model import answer
from groundswell.emulator.skills import persona, topics
from groundswell.program.request import Chat, assistant, system, user

NAMED = {
    "You are Mira Patel, a nurse.": "Mira Patel",
    "You are Ana.": "Ana",
    "Your name is Leo. You are a baker.": "Leo",
    "Stay in character as Tom of Bombadil.": "Tom of Bombadil",
    "you are playing the role of Kira": "Kira",
    "You are Entity 1. Context: buses": "Entity 1",
}
UNNAMED = [
    "You are a helpful assistant.",
    "You are the best.",
    "You are in Paris.",
    "Who are you?",
    "You are not Ana.",
    "",
]


@pytest.mark.parametrize(("brief", "name"), NAMED.items(), ids=list(NAMED))
def test_a_persona_is_found(brief: str, name: str) -> None:
    assert persona.name_in(brief) == name


@pytest.mark.parametrize("brief", UNNAMED)
def test_near_misses_are_nobody(brief: str) -> None:
    assert persona.name_in(brief) is None


TOPICS = {
    "Discuss the ethics of artificial intelligence": "the ethics of artificial intelligence",
    "Topic: school uniforms": "school uniforms",
    "You are in a debate with Tom about remote work.": "remote work",
    "What do you think about solar panels?": "solar panels",
    "Context: Discuss free buses.": "free buses",
}


@pytest.mark.parametrize(("text", "topic"), TOPICS.items(), ids=list(TOPICS))
def test_a_topic_is_found(text: str, topic: str) -> None:
    assert topics.topic_in(text, [text]) == topic


def test_a_person_speaks_to_whoever_spoke_last_and_about_the_topic() -> None:
    rules = system("You are Mira Patel, a nurse. Discuss free buses with Tom.")
    first = answer(Chat("gpt-4o", (rules, user("Begin.")))).text
    assert "free buses" in first
    second = answer(Chat("gpt-4o", (rules, user("Begin."), assistant(first), user("Tom: I disagree.")))).text
    assert "Tom" in second


def test_a_thought_comes_first_where_it_is_asked_for() -> None:
    rules = system('You are Mira, a nurse. Answer as *private thought* and then "speech".')
    text = answer(Chat("gpt-4o", (rules, user("Tom: Free buses?")))).text
    assert re.fullmatch(r'\*[^*\n]+\*\n"[^"\n]+"', text)
    plain = answer(Chat("gpt-4o", (system("You are Mira, a nurse."), user("Tom: Free buses?")))).text
    assert "*" not in plain


def test_a_stance_stays_with_the_name_and_the_topic() -> None:
    stances = {persona.person("Mira", f"topic {at}").stance for at in range(30)}
    assert stances == set(persona.STANCES)
    assert persona.person("Mira", "Buses") == persona.person("Mira", "buses")


SCRIPTS = [
    ("Write 2 turns of a talk between Ana, Ben and Carla about buses.", ["Ana", "Ben", "Carla"] * 2),
    ("Participants:\n- Ana (a nurse)\n- Ben: a pilot\nTopic: buses\nWrite the next three turns.", ["Ana", "Ben"] * 3),
    ("Narrate 5 lines of a conversation between Ana and Ben.", ["Ana", "Ben", "Ana", "Ben", "Ana"]),
    ("Speakers:\n1. Ana Lopez\n2. Ben\nSimulate 1 round.", ["Ana Lopez", "Ben"]),
    ("People:\n- Entity 1\n- Entity 2 (old)\nTopic: buses\nWrite the next 2 turns.", ["Entity 1", "Entity 2"] * 2),
]


@pytest.mark.parametrize(("prompt", "speakers"), SCRIPTS)
def test_a_narrator_writes_a_line_for_every_speaker_and_turn(prompt: str, speakers: list[str]) -> None:
    lines = answer(Chat("gpt-4o", (user(prompt),))).text.splitlines()
    assert [line.partition(":")[0] for line in lines] == speakers
    assert all(line.partition(":")[2].strip() for line in lines)


def test_a_narrator_writes_thoughts_where_they_are_asked_for() -> None:
    prompt = 'Write 2 turns between Ana and Ben. Each line: Name: *thought* then "speech".'
    text = answer(Chat("gpt-4o", (user(prompt),))).text
    assert len(re.findall(r'^(?:Ana|Ben): \*[^*\n]+\*\n"[^"\n]+"$', text, re.M)) == 4


@pytest.mark.parametrize("prompt", ["Write a poem about two turns.", "Ana and Ben took 2 turns.", "Write 2 turns."])
def test_near_misses_get_no_script(prompt: str) -> None:
    assert ":" not in answer(Chat("gpt-4o", (user(prompt),))).text
