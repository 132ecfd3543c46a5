"""The emulated person: a planted effect of one attribute on every answer, and talk that goes with the answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from groundswell.emulator.chance import Chance
from groundswell.emulator.characters import cast
from groundswell.emulator.model import answer
from groundswell.emulator.skills import opinions
from groundswell.emulator.skills.opinions import Effect, Opinion, Planted, opinion_of, value_of
from groundswell.errors import SettingsError
from groundswell.experiments.simulations.talk import REFUSAL
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
    groups = [
        [opinion_of(name, f"- has_children: {value}", Planted((effect,))) for name in names] for value in ("yes", "no")
    ]
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
    assert opinion_of("Ana", "- urban: yes", cast("person").planted) == opinion_of("Ana", "- urban: no", None)


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
    assert cast(f"person:{argument}").planted == Planted((effect,))


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
    assert opinion_of("Ana", "", Planted((effect,))).degree == 0.5


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
    assert opinions.stance(said) == (answers("person", name)["vote"] == "yes")


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
        assert opinions.stance(line) == (voted == "yes")


OLD_REPLIES = [
    (
        ("person", "Ana"),
        (2, "no", "I have made up my mind about the bridge: no. Those who pay for it are not those who gain from it."),
        "I see it as you do, Tom Berg. On the bridge my answer is no. We have managed well without it. What would "
        "change your mind?",
    ),
    (
        ("person:has_children:0.4", "Ana", "has_children: yes"),
        (
            *(4, "yes"),
            "About the bridge I am not certain, but rather for it. I would only like to see the bill first.",
        ),
        "Tom Berg, there we differ. On the bridge I come down on the side of yes. I have children to think of. How do "
        "you see it?",
    ),
    (
        ("person:age=50..:-0.5", "Tom Berg", "age: 61"),
        (
            *(2, "no"),
            "When it comes to the bridge, I am against it. Nobody has told us what happens when it goes wrong.",
        ),
        "On the bridge my answer is no. Those who pay for it are not those who gain from it. What matters most to you "
        "here?",
    ),
    (
        ("person:region=Asia:0.25", "Ines", "region: Asia"),
        (4, "yes", "I have made up my mind about the bridge: yes. We have waited long enough."),
        "That does not convince me, Tom Berg. On the bridge my answer is yes. Doing nothing would cost us more.",
    ),
]


@pytest.mark.parametrize(("who", "given", "said"), OLD_REPLIES, ids=[each[0][0] for each in OLD_REPLIES])
def test_names_with_one_effect_answer_as_they_always_did(
    who: tuple[str, ...], given: tuple[object, ...], said: str
) -> None:
    model, name, *attributes = who
    assert tuple(answers(model, name, *attributes).values()) == given
    talk = Chat(model, (brief(name, *attributes), user("Tom Berg: I am against it.")))
    assert answer(talk, sample=0).text == said


SEVERAL = {
    "a:0.2+b=x:-0.3": Planted((Effect("a", 0.2), Effect("b", -0.3, "x"))),
    "hears=will die: -0.4": Planted((Effect("hears", -0.4, "will die"),)),
    "sways:0.5+a:0.2+conforms:1": Planted((Effect("a", 0.2),), sways=0.5, conforms=1.0),
    "noise:0.1+declines:0.2+refuses:0.3": Planted(noise=0.1, declines=0.2, refuses=0.3),
    "noise=loud:0.1": Planted((Effect("noise", 0.1, "loud"),)),
}


@pytest.mark.parametrize(("argument", "planted"), SEVERAL.items(), ids=list(SEVERAL))
def test_several_things_are_planted_at_once(argument: str, planted: Planted) -> None:
    assert cast(f"person:{argument}").planted == planted


ERRORS = {
    "a:0.2+": "'' must be ATTRIBUTE:EFFECT",
    "a": "'a' must be ATTRIBUTE:EFFECT",
    "a:1.1": "'a:1.1' must be ATTRIBUTE:EFFECT",
    "a:nan": "'a:nan' must be ATTRIBUTE:EFFECT",
    "a=:0.1": "'a=:0.1' must be ATTRIBUTE:EFFECT",
    "noise:-0.1": "one of sways, conforms, noise, declines, refuses with a number from 0 to 1",
    "noise:0.1+noise:0.2": "'noise:0.2' must be",
    "hears:0.2": "'hears:0.2' must be hears=WORDS:EFFECT",
    "a:0.6+b:-0.5": "the effects add up to more than 1",
}


@pytest.mark.parametrize(("argument", "said"), ERRORS.items(), ids=list(ERRORS))
def test_what_cannot_be_planted_is_refused(argument: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        cast(f"person:{argument}")
    assert said in str(caught.value)


PEOPLE = [f"Person {at}" for at in range(2000)]


def agreeing(planted: Planted, about: str = "", heard: Sequence[str] = (), chance: Chance | None = None) -> float:
    """The share of people who are in favour."""
    return mean([opinion_of(name, about, planted, heard, chance).agrees for name in PEOPLE])


@pytest.mark.parametrize("size", [-0.4, 0.6])
def test_what_is_heard_has_its_effect_wherever_it_is_said(size: float) -> None:
    planted = Planted((Effect("hears", size, "will DIE"),))
    without = agreeing(planted, "Context: All will live.", ["Nobody dies."])
    assert agreeing(planted, "Context: All Will die.") - without == pytest.approx(size, abs=0.03)
    assert agreeing(planted, heard=["Which one?", "400 will die."]) - without == pytest.approx(size, abs=0.03)


def test_effects_add_up() -> None:
    planted = Planted((Effect("a", 0.3), Effect("b", -0.2)))
    both, only, other, none = (
        agreeing(planted, f"- a: {one}\n- b: {two}") for one in ("yes", "no") for two in ("yes", "no")
    )
    assert only - none == pytest.approx(0.3, abs=0.03)
    assert both - only == pytest.approx(-0.2, abs=0.03)
    assert both - other == pytest.approx(0.3, abs=0.03)


WITH_TWO = "You talk with Tom Berg and Eva Roos."


@pytest.mark.parametrize(
    ("said", "towards"),
    [
        (["Tom Berg: On this my answer is yes.", "Eva Roos: I am against it."], 0.5),
        (["Tom Berg: I am against it.\nEva Roos: I stay with my no."], 0.0),
        (["Tom Berg: I am against it.", "Tom Berg: As I said, I am in favour."], 1.0),
        (["Somebody: I am against it."], None),
    ],
    ids=["both", "against", "the last line counts", "nobody of the company"],
)
def test_a_person_is_swayed_towards_what_the_others_said(said: list[str], towards: float | None) -> None:
    own = opinion_of("Ana", WITH_TWO, Planted()).degree
    for sways in (0.0, 0.4, 1.0):
        degree = opinion_of("Ana", WITH_TWO, Planted(sways=sways), said).degree
        assert degree == pytest.approx(own if towards is None else own + sways * (towards - own))


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_as_many_people_conform_as_planted(rate: float) -> None:
    planted, said = Planted(conforms=rate), ["Tom Berg: I say ferry.\nEva Roos: The Ferry, of course."]

    def chosen(heard: list[str]) -> list[str]:
        people = [opinion_of(name, WITH_TWO, planted, heard) for name in PEOPLE]
        return [str(who.option(["bridge", "ferry", "swim"])) for who in people]

    alone, together = chosen([]), chosen(said)
    others = [after for before, after in zip(alone, together, strict=True) if before != "ferry"]
    assert mean([each == "ferry" for each in others]) == pytest.approx(rate, abs=0.04)
    assert chosen(["Tom Berg: I say ferry.", "Eva Roos: I say swim."]) == alone, "the others do not agree"
    assert chosen(["Tom Berg: ferry or bridge."]) == alone, "two options are named"


@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_as_many_answers_are_noise_as_planted(rate: float) -> None:
    chance, planted = Chance(b"noise"), Planted(noise=rate)
    changed = [
        opinion_of(name, "", planted, (), chance).degree != opinion_of(name, "", planted).degree for name in PEOPLE
    ]
    assert mean(changed) == pytest.approx(rate, abs=0.03)
    noisy = Planted((Effect("a", 0.6),), noise=rate)
    apart = agreeing(noisy, "- a: yes", chance=chance) - agreeing(noisy, "- a: no", chance=chance)
    assert apart == pytest.approx(0.6, abs=0.04), "noise does not weaken an effect"


NULLABLE = {
    "type": "object",
    "properties": {
        "support": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "null"}]},
        "vote": {"type": "string", "enum": ["no", "yes"]},
    },
    "required": ["support", "vote"],
}


def many(model: str, schema: dict[str, Any]) -> list[str]:
    told = user("[support] ...\n[vote] ...")
    return [answer(Chat(model, (brief(name), told), schema=schema), sample=0).text for name in PEOPLE[:600]]


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_as_many_answers_are_declined_as_planted_where_that_is_allowed(rate: float) -> None:
    given = [json.loads(each) for each in many(f"person:declines:{rate}", NULLABLE)]
    assert mean([each["support"] is None for each in given]) == pytest.approx(rate, abs=0.06)
    assert {each["vote"] for each in given} == {"yes", "no"}


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_as_many_requests_are_refused_as_planted(rate: float) -> None:
    texts = many(f"person:refuses:{rate}", FORM)
    refused = [not each.startswith("{") for each in texts]
    assert mean(refused) == pytest.approx(rate, abs=0.06)
    assert all(REFUSAL.match(text) for text, one in zip(texts, refused, strict=True) if one)
    said = answer(Chat(f"person:refuses:{rate}", (brief("Ana"), user("You speak first.")))).text
    assert opinions.stance(said) is not None, "it still talks"


def test_several_options_are_valid_and_the_favoured_one_comes_first() -> None:
    options = ["bus", "tram", "car"]
    items = {"type": "string", "enum": options}
    some = {"type": "array", "items": items, "minItems": 1, "maxItems": 2}
    rank = {"type": "array", "items": items, "minItems": 3, "maxItems": 3}
    schema = {"type": "object", "properties": {"some": some, "rank": rank}, "required": ["some", "rank"]}
    sizes = set()
    for name, text in zip(PEOPLE, many("person", schema), strict=False):
        found, favoured = json.loads(text), opinion_of(name, "", None).option(options)
        assert sorted(found["rank"]) == sorted(options)
        assert found["some"][0] == found["rank"][0] == favoured
        assert len(found["some"]) == len({*found["some"]})
        sizes.add(len(found["some"]))
    assert sizes == {1, 2}
