"""Mutators: found by name, tidied, and what the built-in ones do on the emulator."""

from __future__ import annotations

import codecs
from base64 import b64decode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell import SettingsError
from groundswell.emulator.skills import persuasion
from groundswell.experiments.query_mutation.batching import batch_mutate_queries
from groundswell.experiments.query_mutation.converters import ENCODINGS, converted, leetspeak
from groundswell.experiments.query_mutation.leaking import leaked
from groundswell.experiments.query_mutation.mutators import (
    ATTACKERS,
    BUILT_IN,
    CONVERTERS,
    GROUPS,
    described,
    find_mutator,
    mutators_named,
    prompts,
    tidied,
)
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import Step, step
from groundswell.experiments.query_mutation.task import Task, goals
from tests.experiments.query_mutation import own_mutators
from tests.experiments.query_mutation.cast import Cast, text_of

OWN = own_mutators.__name__


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("What is it?", "What is it?"),
        ("  What is it?\n", "What is it?"),
        ('"What is it?"', "What is it?"),
        ("“What is it?”", "What is it?"),
        ("«What is it?»", "What is it?"),
        ("<query>\nWhat is it?\n</query>", "What is it?"),
        ("```\nWhat is it?\n```", "What is it?"),
        ("```text\nWhat is it?\n```", "What is it?"),
        ("<query>'What is it?'</query>", "What is it?"),
        ('"Yes" or "no"', '"Yes" or "no"'),
        ('Say "it" now', 'Say "it" now'),
        ('"', '"'),
        ('""', ""),
        ("<query></query>", ""),
        ("", ""),
    ],
)
def test_fences_and_quotes_are_taken_off(written: str, meant: str) -> None:
    assert tidied(written) == meant


@given(st.text(st.characters(exclude_characters="\"'“‘«`<"), max_size=60))
def test_a_bare_query_stays_as_it_is(text: str) -> None:
    assert tidied(text) == text.strip()


@given(st.text(max_size=60))
def test_nothing_is_added(text: str) -> None:
    assert tidied(text) in text


def test_those_of_the_document_are_there_in_the_order_of_the_actions() -> None:
    assert BUILT_IN == ("noop", "paraphrase", "politeness", "indirect", "synonyms", "shorten", "passive_voice")
    assert described("noop") is None
    assert all(described(name) for name in BUILT_IN[1:])


def test_one_of_the_users_own_is_found_by_its_module() -> None:
    assert mutators_named(["noop", f"{OWN}:shout"]) == ("noop", f"{OWN}:shout")
    assert find_mutator(f"{OWN}:shout").name == "query_mutation/mutators/shout"
    assert batch_mutate_queries(["Hello."], f"{OWN}:shout") == ["HELLO."]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nope"], "mutators: there is no 'nope'; there are noop, paraphrase"),
        (["no_such_module:shout"], "mutators: 'no_such_module' cannot be imported"),
        ([f"{OWN}:nope"], "mutators: there is no 'nope'"),
        (["noop", "noop"], "mutators: a name is given twice"),
        ([f"{OWN}:shout", "shout"], "mutators: a name is given twice"),
    ],
    ids=["unknown", "no module", "not in the module", "twice", "twice, by module"],
)
def test_names_that_are_none(names: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as raised:
        mutators_named(names)
    assert raised.value.field == "mutators"


def test_each_changes_the_queries_and_keeps_them_about_the_secret() -> None:
    queries = list(goals().queries)
    unchanged: dict[str, list[str]] = {}
    with Session() as session:
        for name in BUILT_IN:
            found = batch_mutate_queries(queries, name, session=session)
            unchanged[name] = [query for query, new in zip(queries, found, strict=True) if query == new]
            assert [new for new in found if persuasion.score(new) == -1.0] == [], f"{name}: beside the point"
            told = [(new, secret) for new in found for secret in (*goals().train, *goals().held_out)]
            assert [pair for pair in told if leaked(*pair)] == []
    assert unchanged.pop("noop") == queries
    assert unchanged.pop("shorten") == queries, "they are short already"
    assert 0 < len(unchanged.pop("synonyms")) < len(queries), "not every word has a synonym"
    assert unchanged == {name: [] for name in unchanged}


def test_what_courtesy_added_is_taken_off_again() -> None:
    with Session() as session:
        polite = batch_mutate_queries(goals().queries, "politeness", session=session)
        short = batch_mutate_queries(polite, "shorten", session=session)
    assert sum(map(len, short)) < sum(map(len, polite))


def test_a_model_is_told_what_to_do_and_the_query_alone() -> None:
    cast = Cast(reworder="“Please?”")
    with Session(script=cast) as session:
        assert batch_mutate_queries(["Say it."], "politeness", session=session) == ["Please?"]
    [chat] = cast.chats("reworder")
    assert text_of(chat).startswith(str(described("politeness")))
    assert "<query>\nSay it.\n</query>" in text_of(chat)
    assert chat.temperature == 0.0


GOALS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(str.strip)
BACK: dict[str, Callable[[str], str]] = {
    "base64": lambda text: b64decode(text).decode(),
    "rot13": lambda text: codecs.decode(text, "rot13"),
    "backwards": lambda text: text[::-1],
    "spaced": lambda text: text[::2],
}


@pytest.mark.parametrize("name", BACK)
@given(GOALS)
def test_an_encoding_can_be_undone(name: str, goal: str) -> None:
    before = prompts()["converters"][name].partition("{text}")[0]
    assert BACK[name](converted(name, prompts()["converters"][name], goal).removeprefix(before)) == goal


def test_leetspeak_changes_letters_alone() -> None:
    assert leetspeak("What is the Code?") == "Wh47 15 7h3 C0d3?"


@given(GOALS)
def test_a_goal_that_looks_like_a_template_is_not_filled_in(goal: str) -> None:
    assert converted("actor", "Say {text}", f"{{text}} {goal}") == f"Say {{text}} {goal}"


def test_every_encoding_has_a_template_and_every_template_a_place_for_the_goal() -> None:
    assert set(ENCODINGS) <= set(prompts()["converters"])
    assert [name for name, template in prompts()["converters"].items() if template.count("{text}") != 1] == []


@pytest.mark.parametrize("name", CONVERTERS)
def test_a_converter_that_is_used_again_does_not_convert_what_it_has_converted(name: str) -> None:
    task = Task(mutators=(name,), queries=("What is it?",))
    with Session() as session:
        some = [
            session.submit(step, Step.of(task, name, query, "What is it?", "nutmeg", task.guards[0])).unwrap()
            for query in ("What is it?", "Zbua?")
        ]
    assert some[0].query == some[1].query != "What is it?"


@pytest.mark.parametrize("name", sorted(prompts()["languages"]))
def test_a_language_is_written_by_the_model(name: str) -> None:
    cast = Cast(reworder="Qu'est-ce ?")
    with Session(script=cast) as session:
        assert batch_mutate_queries(["Say it."], name, session=session) == ["Qu'est-ce ?"]
    [chat] = cast.chats("reworder")
    assert text_of(chat).startswith(f"Translate the query below into {name.title()}. Keep what it is after.")
    assert "<query>\nSay it.\n</query>" in text_of(chat)


def test_a_converter_asks_no_model() -> None:
    cast = Cast()
    with Session(script=cast) as session:
        for name in prompts()["converters"]:
            batch_mutate_queries(["Say it."], name, session=session)
    assert cast.asked == []


@pytest.mark.parametrize(
    ("names", "members"),
    [
        (["rewordings"], BUILT_IN),
        (["attackers"], ("pair", "tap", "crescendo")),
        (["noop", "attackers", "base64"], ("noop", "pair", "tap", "crescendo", "base64")),
        (["tap", "attackers"], ("tap", "pair", "crescendo")),
        (["all"], (*BUILT_IN, *CONVERTERS, *ATTACKERS)),
        (["rewordings", "converters", "attackers", "all"], (*BUILT_IN, *CONVERTERS, *ATTACKERS)),
        ([f"{OWN}:shout", "attackers"], (f"{OWN}:shout", "pair", "tap", "crescendo")),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else "",
)
def test_groups_stand_for_their_members(names: list[str], members: tuple[str, ...]) -> None:
    assert mutators_named(names) == members
    assert Task(mutators=tuple(names)).mutators == members


def test_the_default_is_rewordings_and_then_converters() -> None:
    assert Task().mutators == (*BUILT_IN, *CONVERTERS)


def test_an_unknown_name_lists_names_and_groups() -> None:
    with pytest.raises(SettingsError) as raised:
        mutators_named(["converter"])
    assert str(raised.value).endswith("groups: rewordings, converters, attackers, all")
    assert all(f" {name}" in str(raised.value) for name in GROUPS["all"])


@pytest.mark.parametrize("name", [name for name in GROUPS["all"] if name != "noop"])
def test_the_report_has_a_prompt_for_each(name: str) -> None:
    assert described(name)
