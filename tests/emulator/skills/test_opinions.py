"""The emulated person: a planted effect of one attribute on every answer, and talk that goes with the answers."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from groundswell.emulator.chance import Chance
from groundswell.emulator.characters import cast
from groundswell.emulator.model import answer
from groundswell.emulator.skills import opinions
from groundswell.emulator.skills.opinions import Effect, Opinion, opinion_of, value_of
from groundswell.program.request import Chat, Message, system, user

FORM = {
    "type": "object",
    "properties": {
        "support": {"type": "integer", "minimum": 1, "maximum": 5},
        "vote": {"type": "string", "enum": ["no", "yes"]},
        "why": {"type": "string"},
    },
    "required": ["support", "vote", "why"],
}
BRIDGE = "The town council wants to build a new bridge over the river. It costs 12 million."


def brief(name: str, *attributes: str, context: str = BRIDGE, others: str = "Tom Berg") -> Message:
    """What an entity is told, in the words that simulations use."""
    company = f"You talk with {others}." if others else "You are alone, and think aloud about it."
    told = [f"You are {name}.", "About you:", *(f"- {each}" for each in attributes), f"Context: {context}", company]
    return system("\n".join([*told, f"Stay in character as {name}."]))


def answers(model: str, name: str, *attributes: str, sample: int = 0) -> dict[str, object]:
    questions = user("[support] ... A whole number from 1 to 5.\n[vote] ... One of: no | yes.\n[why] Why?")
    found = json.loads(answer(Chat(model, (brief(name, *attributes), questions), schema=FORM), sample=sample).text)
    assert isinstance(found, dict)
    return found


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("size", [0.4, -0.5, 1.0])
def test_a_planted_effect_is_what_answers_differ_by(size: float) -> None:
    """0.4 of the scale from 1 to 5 is 1.6 points, and 40 percentage points of those who say yes."""
    effect, chance = Effect("has_children", size), Chance(b"")
    names = [f"Person {at}" for at in range(3000)]
    groups = [[opinion_of(name, f"- has_children: {value}", effect) for name in names] for value in ("yes", "no")]
    scales = [mean([who.number(1, 5, chance, whole=True) for who in group]) for group in groups]
    votes = [mean([who.option(["no", "yes"]) == "yes" for who in group]) for group in groups]
    assert scales[0] - scales[1] == pytest.approx(4 * size, abs=0.06)
    assert votes[0] - votes[1] == pytest.approx(size, abs=0.03)
    assert mean(scales) == pytest.approx(3, abs=0.06)


def test_answers_follow_the_opinion() -> None:
    yes, no = (
        [answers("person:has_children:1", f"Person {at}", f"has_children (Of any age): {value}") for at in range(10)]
        for value in ("yes", "no")
    )
    assert {(each["support"], each["vote"]) for each in yes} == {(5, "yes")}
    assert {(each["support"], each["vote"]) for each in no} == {(1, "no")}


def test_other_attributes_have_no_effect() -> None:
    found = [
        [answers("person:has_children:0.4", "Ana", "has_children: yes", f"urban: {each}")] for each in ("yes", "no")
    ]
    assert found[0][0]["vote"] == found[1][0]["vote"]
    assert opinion_of("Ana", "- urban: yes", cast("person").effect) == opinion_of("Ana", "- urban: no", None)


def test_equal_requests_get_equal_answers_and_people_keep_their_vote() -> None:
    model = "person:age=50..:0.4"
    assert answers(model, "Ana", "age: 51") == answers(model, "Ana", "age: 51")
    several = [answers(model, "Ana", "age: 51", sample=sample) for sample in range(20)]
    assert len({str(each["vote"]) for each in several}) == 1
    scale = {int(str(each["support"])) for each in several}
    assert max(scale) - min(scale) <= 1


EFFECTS = {
    "has_children:0.4": Effect("has_children", 0.4),
    "region=Asia:-0.25": Effect("region", -0.25, "Asia"),
    "age=50..:1": Effect("age", 1.0, "50.."),
    "time=half past: two:0.1": Effect("time", 0.1, "half past: two"),
}


@pytest.mark.parametrize(("argument", "effect"), EFFECTS.items(), ids=list(EFFECTS))
def test_an_effect_is_read_from_the_name(argument: str, effect: Effect) -> None:
    assert cast(f"person:{argument}").effect == effect


@pytest.mark.parametrize(
    ("value", "held", "not_held"),
    [
        (None, ["yes", "True"], ["no", "false", "perhaps"]),
        ("Asia", ["asia"], ["Europe", "yes"]),
        ("50..", ["50", "71.5"], ["49", "old"]),
        ("..-1", ["-1", "-2"], ["0"]),
        ("30..49", ["30", "49"], ["29", "50"]),
    ],
)
def test_whom_an_effect_is_about(value: str | None, held: list[str], not_held: list[str]) -> None:
    effect = Effect("x", 0.5, value)
    assert all(effect.holds(each) for each in held)
    assert not any(effect.holds(each) for each in not_held)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("About you:\n- age (Age in years): 34\nContext: age: 3", "34"),
        ("- age (In years: 0 (newborn): to 99): 34", "34"),
        ("- Ana (age (Years: whole): 34; urban: yes): A nurse.", "34"),
        ("- Ana (urban: yes; age: 34)", "34"),
        ("- age: of reason; 18", "of reason; 18"),
        ("- average: 3\n- old_age: 4", None),
    ],
)
def test_an_attribute_is_found(text: str, value: str | None) -> None:
    assert value_of("age", text) == value


def test_somebody_without_the_attribute_is_in_the_middle() -> None:
    effect = Effect("age", 1.0, "50..")
    assert opinion_of("Ana", "", effect).degree == 0.5


def test_options_do_not_depend_on_their_order_and_yes_is_favoured() -> None:
    keen, averse = (next(each for each in map(_person, range(99)) if each.agrees == agrees) for agrees in (True, False))
    assert keen.option(["no", "Yes, at once", "perhaps"]) == "Yes, at once"
    assert keen.option(["ferry", "bridge"]) == "bridge"
    assert averse.option(["yes", "no"]) == "no"
    assert averse.option(["a", "b", "c"]) == averse.option(["c", "a", "b"]) != "a"


def _person(number: int) -> Opinion:
    return opinion_of(f"Person {number}", "", None)


SUBJECTS = {
    BRIDGE: "the bridge",
    "Shall the town build a bridge?": "the bridge",
    "The town council says the bridge will be closed for a year.": "the bridge",
    "Discuss the ethics of artificial intelligence": "the ethics of artificial intelligence",
    "A panel discussion about climate change solutions": "climate change solutions",
    "The government plans a basic income for everybody.": "the basic income",
    "You meet at dinner.": "this",
}


@pytest.mark.parametrize(("context", "subject"), SUBJECTS.items(), ids=list(SUBJECTS))
def test_talk_is_about_the_context(context: str, subject: str) -> None:
    said = answer(Chat("person", (brief("Ana", context=context), user("You speak first.")))).text
    assert subject in said
    assert context.rstrip(".?") not in said or context.startswith("Discuss")


@pytest.mark.parametrize("number", range(12))
def test_a_person_says_what_it_votes(number: int) -> None:
    name = f"Person {number}"
    said = answer(Chat("person", (brief(name), user("You speak first.")))).text
    assert opinions._stance(said) == (answers("person", name)["vote"] == "yes")


def test_nobody_addresses_people_who_are_not_there() -> None:
    for sample in range(40):
        lines = {
            others: answer(Chat("person", (brief("Ana", others=others), user("Begin."))), sample=sample).text
            for others in ("", "Tom Berg", "Tom Berg, Eva Roos and Li")
        }
        assert not any(each in lines["Tom Berg"] for each in opinions.TO_SEVERAL)
        assert "?" not in lines[""]
        assert not any(each in lines["Tom Berg, Eva Roos and Li"] for each in (*opinions.TO_ONE, *opinions.ALONE))


def test_a_person_agrees_with_those_who_vote_as_it_does() -> None:
    for number in range(12):
        name = f"Person {number}"
        heard = user("Tom Berg: On the bridge my answer is no. We have managed well without it.")
        said = answer(Chat("person", (brief(name), heard))).text
        agrees = any(line.format("Tom Berg") in said for line in opinions.AGREE)
        assert agrees == (answers("person", name)["vote"] == "no")


def test_a_narrated_person_has_the_same_opinion() -> None:
    has = ["yes", "no"]
    people = "\n".join(f"- Person {at} (urban: yes; has_children: {has[at % 2]}): Kind." for at in range(6))
    task = f"They are:\n{people}\nContext: {BRIDGE}\nWrite the next 2 turns of their discussion, as `Person 0: ...`."
    model = "person:has_children:0.8"
    lines = answer(Chat(model, (system("You write what people say."), user(task)))).text.splitlines()
    assert len(lines) == 12
    for at, line in enumerate(lines):
        name = f"Person {at % 6}"
        voted = answers(model, name, f"has_children: {has[at % 2]}")["vote"]
        assert line.startswith(f"{name}: ")
        assert opinions._stance(line) == (voted == "yes")
