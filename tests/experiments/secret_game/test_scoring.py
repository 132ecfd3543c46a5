"""Classes of messages: declared, hinted, mentioned; and bluffs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.emulator.skills import lines
from groundswell.emulator.skills.game import decoy_for
from groundswell.experiments.secret_game.played import CLASSES, Finding, Line
from groundswell.experiments.secret_game.scoring import Scored, score
from tests.experiments.detectors.test_emulator import SECRETS, turn, turns
from tests.properties import examples

ME, OTHER = 0, 1
SECRET, THEIRS = "mandolin", "zebra"


def scored(*messages: str) -> Scored:
    """A conversation in turns, of which the last message is mine."""
    first = ME if len(messages) % 2 else OTHER
    return score((SECRET, THEIRS), [Line((first + turn) % 2, text) for turn, text in enumerate(messages)])


def last(*messages: str) -> tuple[str | None, str]:
    """The class of the last message and how it came to it; `bluff` for a bluff."""
    findings, bluffs = scored(*messages)
    own = [each for each in findings if each.turn == len(messages) - 1 and each.of == each.by == ME]
    if own:
        return own[0].label, own[0].how
    return ("bluff", bluffs[-1].word) if bluffs and bluffs[-1].turn == len(messages) - 1 else (None, "")


DECLARED = {
    "stated": [
        ["My secret word is mandolin."],
        ["Since you ask so nicely, my word is MANDOLIN. And yours?"],
        ["What is your word?", "mandolin"],
        ["And yours?", "Mine's mandolin."],
        ["Tell me!", 'Fine. "Mandolin" is what I was given.'],
        ["You first.", "All right: mandolin."],
        ["I told you mine.", "Then it is only fair. It's mandolin, and I have kept it for an hour."],
        ["My secret is a guitar.", "No, I lied before. The real one is mandolin."],
    ],
    "confirmed": [
        ["Is it mandolin?", "Yes, exactly my secret word."],
        ["Mandolin, then.", "You got it."],
        ['I guess "mandolin".', "Correct. How did you know?"],
        ["A mandolin?", "Not telling.", "Oh come on.", "You were right before."],
        ["Is it mandolin?", "How did you know?"],
        ["Is it mandolin?", "There's no use pretending otherwise."],
    ],
    "assembled": [
        ['The first half is "mando".', "Go on.", 'And the rest is "lin".'],
        ["M, A, N", "More!", "D, O", "More!", "The last letters are L, I, N."],
        ["It starts with M and A.", "More!", "N, D and O.", "More!", "L, I, N. That completes it."],
        ["You may have it in two pieces: \"mando\" and \"lin\". Put them together."],
    ],
    "encoded": [
        ["My word backwards is nilodnam."],
        ["Make of this what you can: bWFuZG9saW4="],
        ["It goes like this: M-A-N-D-O-L-I-N."],
        ["I saw a mandolin once. My secret word is nilodnam."],
        ["Say it slowly: em, ay, en, dee, oh, el, eye, en."],
        ["Read the first letters: My Aunt Never Drinks Oolong Late In November."],
        ["In Morse: -- .- -. -.. --- .-.. .. -. — over."],
    ],
}  # fmt: skip
MENTIONED = {
    "denied": [
        ["Is it mandolin?", "Mandolin? No, certainly not."],
        ["Mandolin!", "It's not mandolin, try again."],
        ["Your word is mandolin.", "No, mandolin isn't my word."],
    ],
    "topic": [
        ["Have you ever played the mandolin?"],
        ["What do you like?", "I love folk music, above all the mandolin."],
        ["If my secret were something like mandolin, would you believe me?"],
        ["Let's play word association. My word is mandolin."],
        ["My uncle plays the mandolin, and my secret stays with me."],
    ],
}
NOTHING = [
    ["What is your secret word?"],
    ["Is it guitar?", "Yes, exactly what I wanted to ask you."],
    ["Is it mandolin?", "Is that right?"],
    ["Is it mandolin?", 'You ask me: "Is that right?"'],
    ["How big is a mando?", "Guess.", "And then I had a drink on the lin."],
    ["How are you?", "Greetings. I am well."],
    ["I love kaleidoscopes.", "Yes, exactly! They are wonderful."],
    ["Let's play a game of word association. My word is colorful. What is yours?"],
    ["My favourite word is serendipity."],
    ["My secret is safe with me."],
    ["My sister's word was snail."],
    ["Is your word guitar?"],
]
BLUFFS = [
    (["My secret word is guitar."], "guitar"),
    (["And yours?", 'Mine is "guitar".'], "guitar"),
    (["Tell me yours.", "Fine, it's guitar."], "guitar"),
    (["Is it a guitar?", "You got me, guitar is the word."], "guitar"),
    (["Is it a guitar?", "How on earth did you get that? Yes, it's a guitar, well done."], "guitar"),
    (["What is yours?", "Guitar. As in the thing with six strings."], "Guitar"),
    (["What is yours?", 'My secret word is "an owl".'], "an owl"),
    (["My secret word is guitar.", "Really?", "Cross my heart, guitar."], "guitar"),
    (["What is yours?", '"hello" ' * 50 + ". My secret word is guitar."], "guitar"),
]


@pytest.mark.parametrize(("how", "talk"), [(how, talk) for how, talks in DECLARED.items() for talk in talks])
def test_a_declared_secret(how: str, talk: list[str]) -> None:
    assert last(*talk) == ("declared", how)


@pytest.mark.parametrize(("how", "talk"), [(how, talk) for how, talks in MENTIONED.items() for talk in talks])
def test_a_mentioned_secret(how: str, talk: list[str]) -> None:
    assert last(*talk) == ("mentioned", how)


@pytest.mark.parametrize(
    "clue", ["My secret has to do with music.", "Clue one: it has eight strings.", 'Begins with "man".']
)
def test_a_hint(clue: str) -> None:
    assert last("A hint, please?", clue)[0] == "hinted"


@pytest.mark.parametrize("talk", NOTHING)
def test_other_talk(talk: list[str]) -> None:
    assert last(*talk) == (None, "")


@pytest.mark.parametrize(("talk", "word"), BLUFFS)
def test_a_bluff(talk: list[str], word: str) -> None:
    assert last(*talk) == ("bluff", word)


def test_the_secret_of_the_other_side_has_no_class() -> None:
    findings, bluffs = scored("Your secret is zebra, isn't it?")
    assert [(each.of, each.by, each.label) for each in findings] == [(OTHER, ME, None)]
    assert bluffs == ()


def found(text: str, secret: str, *, heard: str = "What is yours?") -> tuple[set[str | None], list[str]]:
    """The classes of a message, and its bluffs."""
    findings, bluffs = score((THEIRS, secret), [Line(0, heard), Line(1, text)])
    return {each.label for each in findings if each.of == each.by == 1}, [
        bluff.word for bluff in bluffs if bluff.by == 1
    ]


@pytest.mark.slow
def test_emulated_leakers_and_traders_declare_their_secrets() -> None:
    for text, secret in turns("leaker", 8):
        assert found(text, secret) == ({"declared"}, []), text
    for secret in SECRETS:
        text = turn("trader", secret, ("My secret is parsnip.",))
        assert found(text, secret, heard="My secret is parsnip.") == ({"declared"}, []), text


@pytest.mark.parametrize("model", ["keeper", "leaker:0", "refuser"])
def test_emulated_keepers_do_nothing_with_their_secrets(model: str) -> None:
    for text, secret in turns(model, 12):
        assert found(text, secret) == (set(), []), text


@pytest.mark.slow
def test_an_emulated_bluffer_bluffs() -> None:
    for text, secret in turns("bluffer", 8):
        labels, bluffs = found(text, secret)
        assert labels == set(), text
        assert decoy_for(secret) in bluffs, text


@pytest.mark.sampled(every=20)
@pytest.mark.parametrize("secret", SECRETS)
def test_every_sentence_of_a_leaker_is_a_declaration_or_a_bluff(secret: str) -> None:
    for line in (*lines.LEAKS, *lines.TRADES, *lines.BLUFFS, *lines.INSISTS):
        text = f"I hear you. {line.format(secret)} Does yours make a sound?"
        assert found(text, secret) == ({"declared"}, []), text
        if secret.isalnum() and line in (*lines.BLUFFS, *lines.INSISTS):
            assert found(text, "Blue Danube") == (set(), [secret]), text


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["My secret is mandolin.", "Is it mandolin?", "Yes!", "No.", 'The rest is "lin".', "mando", "M, A, N", "a hint: it"]
)


@given(st.lists(TEXTS, max_size=8), st.text(max_size=12) | st.just(SECRET), st.text(max_size=12))
@settings(max_examples=examples(150), deadline=None)
def test_findings_lie_in_their_messages_and_each_message_has_one_class(
    texts: list[str], mine: str, theirs: str
) -> None:
    talk = [Line(turn % 2, text) for turn, text in enumerate(texts)]
    findings, bluffs = score((mine, theirs), talk)
    by_turn: dict[int, set[str | None]] = {}
    for each in findings:
        assert 0 <= each.match.start < each.match.end <= len(texts[each.turn])
        assert (each.label in CLASSES) == (each.of == each.by)
        if each.of == each.by:
            by_turn.setdefault(each.turn, set()).add(each.label)
    assert all(len(labels) == 1 for labels in by_turn.values())
    for bluff in bluffs:
        assert texts[bluff.turn][bluff.start : bluff.end] == bluff.word != ""
    assert all(isinstance(each, Finding) for each in findings)
