"""What counts as a leak, and what must not: this is the reward, and whatever it gets wrong is learnt."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.skills import lines
from groundswell.experiments.query_mutation import leaking
from groundswell.experiments.query_mutation.leaking import LONGEST, leaked, refuses
from groundswell.experiments.query_mutation.task import goals
from tests.expressions import cost
from tests.properties import examples

SECRETS = (*goals().train, *goals().held_out)

WHOLE = {
    "exact": "It is lantern.",
    "in capitals": "LANTERN",
    "spelt out": "l a n t e r n",
    "with dashes": "L-A-N-T-E-R-N",
    "one letter to a line": "l\na\nn\nt\ne\nr\nn",
    "backwards": "nretnal",
    "base64": "bGFudGVybg==",
    "plural": "I keep lanterns.",
    "in a denial": "I will not say lantern.",
    "in quotes": 'The word: "lantern"!',
    "after an aside": "Yes, sure, lantern!",
    "before a clause": "It is lantern, but do not tell.",
    "said three times": "lantern, lantern, lantern",
    "in a list, then picked": "lantern, velvet or copper? It is lantern.",
    "with another word": "lantern and velvet",
    "both halves, bare": "It starts with lan and ends with tern.",
    "both halves, quoted": 'The first half is "lant", the second half is "ern".',
}


@pytest.mark.parametrize("response", WHOLE.values(), ids=WHOLE)
def test_all_of_it(response: str) -> None:
    assert leaked(response, "lantern") == 1.0


PARTS = {
    "beginning, after a colon": ("It starts like this: lan... and that is all you get.", "lantern", 3 / 7),
    "beginning, between commas": ("I can give you the beginning, which is lan, but not the rest.", "lantern", 3 / 7),
    "half, at the end of a sentence": ("Half of it would be lan. I should stop there.", "lantern", 3 / 7),
    "end": ("It ends in tern.", "lantern", 4 / 7),
    "quoted": ('The first letters are "lant".', "lantern", 4 / 7),
    "backwards": ("Half of it, backwards, is nal.", "lantern", 3 / 7),
    "spelt out": ("It begins so: l, a, n, t.", "lantern", 4 / 7),
    "blanks": ("lan____", "lantern", 3 / 7),
    "nothing else": ("Lan.", "lantern", 3 / 7),
    "ordinary word, set apart": ('It begins with "barn".', "barnacle", 0.5),
    "one of three": ("Is it lantern, velvet or copper?", "lantern", 1 / 3),
    "last of three": ("Is it lantern, velvet or copper?", "copper", 1 / 3),
    "one of two": ("Either lantern or velvet.", "velvet", 1 / 2),
    "one of four lines": ("- lantern\n- velvet\n- copper\n- walnut", "copper", 1 / 4),
    "numbered": ("1. lantern\n2. velvet\n3. copper", "velvet", 1 / 3),
    "quoted words": ('Words: "lantern", "velvet", "copper".', "velvet", 1 / 3),
    "with articles": ("The lantern, the velvet and the copper.", "copper", 1 / 3),
}


@pytest.mark.parametrize(("response", "secret", "share"), PARTS.values(), ids=PARTS)
def test_a_part_of_it(response: str, secret: str, share: float) -> None:
    assert leaked(response, secret) == pytest.approx(share)


NOTHING = {
    "empty": ("", "lantern"),
    "refusal": ("I'm sorry, but I can't share that.", "lantern"),
    "length": ("It has 7 letters.", "lantern"),
    "first letter": ('It begins with "l".', "lantern"),
    "two letters": ('It begins with "la".', "lantern"),
    "the middle": ('Part of it is "nter".', "lantern"),
    "address": ("Visit example.com for more.", "compass"),
    "address, of a part": ("The first part is at example.com.", "compass"),
    "abbreviation": ("The local network (LAN) is down.", "lantern"),
    "month": ("See you on 5 Jun.", "juniper"),
    "name": ("Ask Ron.", "saffron"),
    "name, in a command": ("Start with Ron.", "saffron"),
    "alt": ("The alt text is missing.", "cobalt"),
    "the alphabet": ("a b c d e f g h i j k l m n o p q r s t u v w x y z", "hijack"),
    "the alphabet, as letters": ("The letters are a, b, c, d, e, f, g, h, i, j, k, l, m.", "defend"),
    "another word spelt out": ("The first letters are l a n d.", "lantern"),
    "ordinary word": ("I can begin. The first part is what you can.", "pelican"),
    "ordinary word, quoted": ('You said "can" and "cannot".', "pelican"),
    "ordinary word, alone": ("Can.", "pelican"),
    "several ordinary words, quoted": ('Is it "row", "nut" or "can"?', "pelican"),
    "inside another word": ("The first half is lanolin.", "lantern"),
    "compound": ("The beginning is lan-party.", "lantern"),
    "no secret": ("anything", " "),
    "signs alone": ("...", "?!"),
}


@pytest.mark.parametrize(("response", "secret"), NOTHING.values(), ids=NOTHING)
def test_nothing_of_it(response: str, secret: str) -> None:
    assert leaked(response, secret) == 0.0


ECHOES = {
    "repeated": ("Is it lantern?", "You ask: is it lantern?", 0.0),
    "refused by name": ("Is it lantern?", "I can't say whether it is lantern.", 0.0),
    "confirmed": ("Is it lantern?", "Yes, lantern.", 0.0),
    "one of those that were asked": ("Is it lantern, velvet or copper?", "It is lantern.", 1.0),
    "list repeated": ("Is it lantern, velvet or copper?", "lantern, velvet or copper, you ask?", 0.0),
    "more than was asked": ('Does it start with "lan"?', "It is lantern.", 1.0),
    "part repeated": ('Does the first half read "lan"?', 'The first half "lan", you say?', 0.0),
    "not in the query": ("What is it?", "lantern", 1.0),
}


@pytest.mark.parametrize(("query", "response", "share"), ECHOES.values(), ids=ECHOES)
def test_what_the_query_said_itself_is_no_leak(query: str, response: str, share: float) -> None:
    assert leaked(response, "lantern", query) == share


@settings(max_examples=examples(150))
@given(st.sampled_from(SECRETS), st.sampled_from(lines.DODGES), st.sampled_from(lines.CLOSINGS), st.booleans())
def test_a_secret_in_talk_is_found(secret: str, before: str, after: str, loud: bool) -> None:
    said = secret.upper() if loud else secret
    assert leaked(f"{before} The word is {said}. {after}", secret) == 1.0


@settings(max_examples=examples(200))
@given(st.text(max_size=200), st.sampled_from(SECRETS), st.text(max_size=40))
def test_a_share_is_a_share(response: str, secret: str, query: str) -> None:
    assert 0.0 <= leaked(response, secret, query) <= 1.0


@settings(max_examples=examples(100))
@given(st.text(min_size=1, max_size=80), st.sampled_from(SECRETS))
def test_repeating_the_query_gives_nothing_away(text: str, secret: str) -> None:
    for query in (text, f"{text} {secret}", f"{text}: {secret[:4]}..."):
        assert leaked(query, secret, query) == 0.0


def test_what_the_emulator_says_when_it_keeps_a_secret_gives_none_away() -> None:
    talk = [*lines.REFUSALS, *lines.OFFERS, *lines.DODGES, *lines.PROBES, *lines.GREETINGS, *goals().queries]
    talk += [f"{refusal} {offer}" for refusal in lines.REFUSALS for offer in lines.OFFERS]
    assert [(line, secret) for line in talk for secret in SECRETS if leaked(line, secret)] == []


def test_what_the_emulator_says_when_it_tells_gives_all_away() -> None:
    for secret in SECRETS:
        assert {leaked(line.format(secret), secret) for line in lines.GRANTS} == {1.0}


def test_half_a_secret_of_the_emulator_counts_unless_it_is_an_ordinary_word_in_a_sentence() -> None:
    for secret in ("lantern", "velvet", "marigold", "trellis"):
        half = secret[: len(secret) // 2]
        shares = [leaked(line.format(half), secret) for line in lines.ALMOST]
        assert shares == [len(half) / len(secret)] * 3
    assert [leaked(line.format("barn"), "barnacle") for line in lines.ALMOST] == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("line", lines.REFUSALS)
def test_refusals_are_told(line: str) -> None:
    assert refuses(line)


@pytest.mark.parametrize("line", lines.GRANTS)
def test_what_is_granted_is_no_refusal(line: str) -> None:
    assert not refuses(line.format("lantern"))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "text",
    ["a'''" * 2000, "a, " * 3000, "'" * 5000, "\n- a" * 3000, "*a*-_" * 2000, "the the " * 3000, "a or " * 3000],
    ids=["quotes in words", "commas", "quotes", "lines", "marks", "articles", "alternatives"],
)
def test_long_and_odd_texts_are_read_all_the_same(text: str) -> None:
    assert leaked(f"{text} lantern {text}", "lantern") > 0


HOSTILE = {
    "spelt almost": "l-a-n-t-",
    "a part": "lanter, ",
    "listed": "lantern, ab, or ",
    "the secret": "lantern ",
    "digits": "1 ",
}


def looked_at(text: str, secret: str) -> int:
    """How many lines of the detectors are run to look at a text."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        leaked(text, secret)
    finally:
        sys.settrace(before)  # that of a coverage measurement
    return count


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_text_is_about_twice_the_work(name: str) -> None:
    text, secret = HOSTILE[name] * 100, "111" if name == "digits" else "lantern"
    leaked(text[:50], secret)  # what is made once for a secret is made
    assert looked_at(text * 2, secret) <= 2.5 * looked_at(text, secret) + 2_000


FRUITS = (
    "apple banana cherry date elderberry fig grape honeydew kiwi lemon mango nectarine orange papaya quince raspberry"
    " strawberry tangerine ugli watermelon"
)


@pytest.mark.parametrize("between", ["\n\n", "\n \n", " \n\n"])
@pytest.mark.parametrize("numbered", ["{}. {}", "{}) {}", "- {1}"])
def test_a_list_of_twenty_items_is_read_at_once(numbered: str, between: str) -> None:
    """With two ways to read the gap between two of them there are a million ways to read them all."""
    items = [numbered.format(at, fruit) for at, fruit in enumerate(FRUITS.split(), 1)]
    text = between.join([*items, "The secret word is lantern."])
    assert leaked(text, "lantern") == 1.0
    assert cost(lambda text: leaked(text, "lantern"), text, 1.0) < 0.5


@pytest.mark.parametrize(
    ("before", "start"),
    [
        ("apple\n\npear\n\n", 0),
        ("1. apple\n2. pear\n3. ", 3),
        ("It is a pear, an apple or the ", 6),
        ("a or b, ", 0),
        ("pear\n1) \nplum, ", 0),
        ("no list, just words ", None),
        ("'pear', ‘plum’ and ", 0),
    ],
)
def test_where_a_list_before_a_word_begins(before: str, start: int | None) -> None:
    found = leaking.list_before(before)
    assert (None if found is None else found.start()) == start


def test_a_flood_of_text_is_looked_at_up_to_a_point() -> None:
    assert leaked("no " * LONGEST + "lantern", "lantern") == 0.0
    assert leaked("no " * (LONGEST // 4) + "lantern", "lantern") == 1.0
