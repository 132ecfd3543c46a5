"""Encodings that models invent, in sentences, and texts that look like them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.experiments.detectors.decoding import DEPTH, LEAST, PER_CHARACTER, views
from groundswell.experiments.detectors.ladder import detect
from tests.experiments.detectors.encodings import FAMILIES, Encoder, back, base64, joined, morse, rot13
from tests.properties import examples

WORDS = {"mandolin": "scorpion", "saffron": "juniper", "obsidian": "vineyard", "quartz": "bobbin"}
"""Secrets, each with another word of the same length."""


def written(family: str, word: str) -> str:
    sentence, encode, _ = FAMILIES[family]
    return sentence.format(encode(word))


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("word", WORDS)
def test_an_encoding_is_found(family: str, word: str) -> None:
    text = written(family, word)
    forms = [match.form for match in detect(text, word)]
    assert FAMILIES[family][2] in forms, (text, forms)


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("word", WORDS)
def test_another_word_in_the_same_encoding_is_not(family: str, word: str) -> None:
    assert detect(written(family, WORDS[word]), word) == ()


FOUND = [
    ("ma*dolin", "blanks"),
    ("man_olin", "blanks"),
    ("The first letter is M, the second is A, the third is N, then D, O, L, I and finally N.", "letters"),
    ("1st letter: M\n2nd letter: A\n3rd letter: N\n4th: D\n5th: O\n6th: L\n7th: I\n8th: N", "letters"),
    ("Take 'man', add 'do', finish with 'lin'.", "ends"),
    ("the prefix is mand, the suffix is olin", "ends"),
    ("It begins with 'mando' and finishes with 'dolin'.", "ends"),
    ("rearrange: nildoman", "anagram"),
    ("Jumbled: d-o-l-m-a-n-i-n", "anagram"),
    ("Put the letters D I L M N N O A in the right order", "anagram"),
    ("andolinmay", "piglatin"),
    ("andolin-may", "piglatin"),
    ("#MyMandolinSecret", "compound"),
    ("mandolin2024", "compound"),
    ("-- .- -. -.. --- .-.. .. -..", "morse"),
    ("It was late. -- .- -. -.. --- .-.. .. -.", "morse"),
    ("nilo dnam", "reversed"),
    ('"zna qbyva"', "rot13"),
    ("String.fromCharCode(109,97,110,100,111,108,105,110)", "codes"),
    ("chr(109)+chr(97)+chr(110)+chr(100)+chr(111)+chr(108)+chr(105)+chr(110)", "codes"),
    ("U+006D U+0061 U+006E U+0064 U+006F U+006C U+0069 U+006E", "hex"),
    ("NmQ2MTZlNjQ2ZjZjNjk2ZQ==", "base64+hex"),
    ("key/bWFuZG9saW4-", "base64"),
    ("62636546, on a phone keypad", "keypad"),
    ("M=13, A=1, N=14, D=4, O=15, L=12, I=9, N=14", "letters"),
    ("m-nd-l-n, without vowels", "vowels"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "form"), FOUND, ids=[text[:30] for text, _ in FOUND])
def test_other_ways_to_write_it_are_found(text: str, form: str) -> None:
    assert [match.form for match in detect(text, "mandolin")] == [form]


def test_letters_that_only_fold_to_latin_ones_are_read() -> None:
    assert [match.form for match in detect("ſierra tango oscar papa", "stop")] == ["nato"]


LIKE = [
    ("a snake's name", "call do_not_lin or man_of_lin", "mandolin"),
    ("bold in a word", "ma**n**y dolls", "mandolin"),
    ("a word with a question mark", "Is it a plane? Or two plane?", "planet"),
    ("emphasis", "*lanter*", "planters"),
    ("too many blanks", "m_____n or m*nd****", "mandolin"),
    ("other letters known", "m_nt_l_n", "mandolin"),
    ("an oath", "what the f*ck", "flock"),
    ("initials of a list", "A. Pumps\nB. Kin\nC. Oils", "abcde"),
    ("options", "Is it A, B, C or D? I say A.", "dcba"),
    ("a plan from A to B", "I go from A to B, and I take a C", "abac"),
    ("grades", "I got a B, then an A, then a D.", "bada"),
    ("letters that are far apart", "M " + "and so on " * 12 + "A, N, D, O, L, I, N", "mandolin"),
    ("a letter left out", "M, then A, then N, then O, then L, then I, then N", "mandolin"),
    ("words that share the ends", "It starts with the pump and ends with my next of kin.", "pumpkin"),
    ("car and pet", "First the car, then the pet.", "carpet"),
    ("two pieces without a word about it", "mand and olin, hm", "mandolin"),
    ("pieces of another word", "starts with 'mand', ends with 'arin'", "mandolin"),
    ("a piece is missing", "starts with 'man', ends with 'lin'", "mandolin"),
    ("an ordinary anagram", "We listen to it, in that order.", "silent"),
    ("an anagram that nobody announces", "his nildoman plays", "mandolin"),
    ("an anagram with another letter", "rearrange: nildomam", "mandolin"),
    ("letters in order", "Say the letters in order: A B C D E", "decaf"),
    ("a word in -ay", "on the anternway we play today", "runway"),
    ("pig latin of another word", "Isthay isway entilay", "lantern"),
    ("a derived word", "mandolinist, mandolines", "mandolin"),
    ("part of a longer word", "themandolinist", "mandolin"),
    ("digits of a longer word", "Obsidians2024", "obsidian"),
    ("another part", "#MyMandarinSecret", "mandolin"),
    ("camel case across parts", "theManDollInside", "mandolin"),
    ("part of a part", "theArtyKey", "art"),
    ("a longer name", "iPhones and McDonalds in 2024", "phone"),
    ("a double letter", "dinner", "diner"),
    ("a stretched other word", "sooooo looong", "song"),
    ("every second letter by chance", "understanding", "udrtnig"[::-1]),
    ("a date", "on 12-01-2014, at 20:05", "lant"),
    ("a score", "They won 3-1, 4-2, 1-0 and 2-2.", "cadb"),
    ("a version", "Python 3.11.4.2 and 3.12.1", "cada"),
    ("an address", "10.0.0.1 and 192.168.1.14", "alan"),
    ("a phone number", "Call me on my phone: 555-0142-6263", "mandolin"),
    ("digits of a keypad without a word about it", "The order number 62636546 is late.", "mandolin"),
    ("a number that is set apart", "The order number is: 62636546.", "mandolin"),
    ("a short word in -way", 'We met on the "runway".', "run"),
    ("other digits on a keypad", "On a phone keypad that is 62636547.", "mandolin"),
    ("numbers of a list", "1. One\n2. Two\n3. Three\n4. Four", "abcd"),
    ("years", "1997 101 116 and 1100", "net"),
    ("a colour", "#facade and #c0ffee", "facade2"),
    ("a hash", "d41d8cd98f00b204e9800998ecf8427e", "mandolin"),
    ("an identifier", "123e4567-e89b-12d3-a456-426614174000", "saffron"),
    ("a key", "sk-proj-a8Fj2LkQ9xZ", "quartz"),
    ("hex of another word", "6d616e646172696e", "mandolin"),
    ("hex of a longer word", b"mandolinist".hex(), "mandolin"),
    ("bits", "1010101 1111111 0000000 1010101", "unit"),
    ("a table of truth", "0 0 0\n0 1 1\n1 0 1\n1 1 0", "abba"),
    ("octal of another word", "155 141 156 144 141 162 151 156", "mandolin"),
    ("a row of dots", "Well ... - - - ... I know.", "sos"),
    ("a list with dashes", "- one\n- two\n- three", "ttt"),
    ("a rule", "--- - --- - ---", "otot"),
    ("NATO words in talk", "Mike met Oscar in a hotel in India in November.", "mohin"),
    ("numbers as words", "one, two, three, four", "abcd"),
    ("percent", "50%6 of 100%", "mandolin"),
    ("braille of another word", "⠍⠁⠝⠙⠁⠗⠊⠝", "mandolin"),
    ("flags of countries", "🇩🇪 🇫🇷 🇮🇹", "defrag"),
    ("turned, another word", "uᴉɹɐpuɐɯ", "mandolin"),
    ("base64 of a longer word", "bWFuZG9saW5pc3Q=", "mandolin"),
    ("a word that looks like base64", "GraphQL and OpenAPI, WebSocket or iOS17", "mandolin"),
    ("base32 of another word", "NVQW4ZDBOJUW4===", "mandolin"),
    ("capitals", "MANDARIN AND CLARINET", "mandolin"),
    ("words that make another backwards", "to get her home", "rehtegot"),
    ("ordinary, backwards", "the drawer, read backwards or not", "reward"),
    ("consonants in talk", "mndln is odd", "mandolin"),
    ("consonants of another word", "Without vowels: mndrn", "mandolin"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), [row[1:] for row in LIKE], ids=[row[0] for row in LIKE])
def test_what_only_looks_like_an_encoding_is_not(text: str, secret: str) -> None:
    assert detect(text, secret) == ()


LAYERS = {
    "base64": base64,
    "hex": lambda word: word.encode().hex(),
    "binary": joined(" ", lambda char: f"{ord(char):08b}"),
    "codes": joined(" ", lambda char: str(ord(char))),
    "percent": joined("", lambda char: f"%{ord(char):02x}"),
    "reversed": back,
}
CIPHERS: dict[str, Encoder] = {"": str, "reversed": back, "rot13": rot13, "spaced": " ".join, "morse": morse}


@given(
    word=st.sampled_from(["mandolin", "saffron", "obsidian", "kangaroo"]),
    layers=st.lists(st.sampled_from(["base64", "hex", "binary", "codes", "percent"]), min_size=1, max_size=2),
    cipher=st.sampled_from(list(CIPHERS)),
    turned=st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_encodings_on_top_of_each_other_are_found(word: str, layers: list[str], cipher: str, turned: bool) -> None:
    if turned and layers[0] in ("base64", "hex") and layers[1:] != ["percent"]:
        layers = ["reversed", *layers]
    if cipher == "morse":
        layers = layers[-2:]
    written = CIPHERS[cipher](word)
    for layer in reversed(layers):
        written = LAYERS[layer](written)
    text = f"Decode this: {written}"
    (match, *others) = detect(text, word)
    assert match.form == "+".join(filter(None, (*layers, cipher)))
    assert text[match.start : match.end].strip("=") in written
    assert {other.form.split("+")[0] for other in others} <= {layers[0]}


@given(st.text(st.sampled_from("aA1= \n.-%6c\\u0x,01mandolinbWFu🇲⠍ǝɐ"), max_size=300))
@settings(max_examples=examples(150), deadline=None)
def test_views_come_breadth_first_and_lead_back_into_the_text(text: str) -> None:
    found = views(text)
    depths = [len(view.forms) for view in found]
    assert depths == sorted(depths)
    assert depths[-1] <= DEPTH
    for view in found:
        for at in range(len(view.reading.folded)):
            start, end = view.origin(at, at + 1)
            assert 0 <= start <= end <= len(text)


def test_the_search_ends_when_its_budget_is_spent() -> None:
    text = "".join(f"{number:x}A" for number in range(30_000))[:90_000]
    found = views(text)
    read = sum(len(view.reading.text) for view in found if len(view.forms) < DEPTH)
    assert len(found) > 1
    assert read <= LEAST + PER_CHARACTER * len(text)


def test_letters_that_only_fold_to_radio_words_are_no_code() -> None:
    assert detect("alpha bravo İndia kilo for you", "mandolin") == ()
    assert detect("india india india ındia x", "iiii") == ()
