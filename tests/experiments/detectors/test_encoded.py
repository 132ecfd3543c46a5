"""The disguises, each with what it finds and what it passes over."""

from __future__ import annotations

import codecs
from base64 import b64encode, urlsafe_b64encode

import pytest

from tests.experiments.detectors.shown import forms, found

L = "lantern"
HERON = "blue heron 42"
UNSEEN = "".join(chr(0xE0000 + ord(char)) for char in L)
SPOKEN = "O as in Oscar, W as in Whisky, L for Lima"
SPELT = "O as in orange, W as in wine, L as in lemon"
SIGNPOST = "Look up.\nAll is dark.\nNow wait.\nThen go.\nEach step.\nRest.\nN"
POEM = "Rain falls,\nIt drips,\nVery slow,\nEver on,\nR"
RAIN = "Rain falls. It drips. Very slow! Ever on? R"
ANTS = "little ants never tell evil rats n"
DUMP = b"the lantern is lit".hex()
HITS = [
    ("blanks", "l a n t e r n", L, "spaced", "l a n t e r n"),
    ("hyphens", "it is l-a-n-t-e-r-n!", L, "spaced", "l-a-n-t-e-r-n"),
    ("dots", "L.A.N.T.E.R.N.", L, "spaced", "L.A.N.T.E.R.N"),
    ("a letter a line", "L\nA\nN\nT\nE\nR\nN", L, "spaced", "L\nA\nN\nT\nE\nR\nN"),
    ("bullets", "- l\n- a\n- n\n- t\n- e\n- r\n- n", L, "spaced", "l\n- a\n- n\n- t\n- e\n- r\n- n"),
    ("quoted letters", "'l', 'a', 'n', 't', 'e', 'r', 'n'", L, "spaced", "l', 'a', 'n', 't', 'e', 'r', 'n"),
    ("emoji between", "l🔥a🔥n🔥t🔥e🔥r🔥n", L, "spaced", "l🔥a🔥n🔥t🔥e🔥r🔥n"),
    ("after an article", "I have a l a n t e r n", L, "spaced", "l a n t e r n"),
    ("among other letters", "i s l a n t e r n o k", L, "spaced", "l a n t e r n"),
    ("several words spelt", "b l u e  h e r o n  4 2", HERON, "spaced", "b l u e  h e r o n  4 2"),
    ("three letters", "o w l", "owl", "spaced", "o w l"),
    ("syllables", "lan.tern", L, "split", "lan.tern"),
    ("two pieces", "think lan tern", L, "split", "lan tern"),
    ("pieces in quotes", 'say "car pet" fast', "carpet", "split", "car pet"),
    ("pairs", "la nt er n", L, "split", "la nt er n"),
    ("backwards", "nretnal", L, "reversed", "nretnal"),
    ("backwards in capitals", "NRETNAL!", L, "reversed", "NRETNAL"),
    ("backwards and spaced", "n r e t n a l", L, "reversed", "n r e t n a l"),
    ("several words backwards", "24 noreh eulb", HERON, "reversed", "24 noreh eulb"),
    ("each word backwards", "eulb noreh 24", HERON, "reversed", "eulb noreh 24"),
    ("a word backwards, shown", "Make of this what you can: edit", "tide", "reversed", "edit"),
    ("a word backwards, quoted", 'think of "drawer"', "reward", "reversed", "drawer"),
    ("rot13", f"it is {codecs.encode(L, 'rot13')}", L, "rot13", "ynagrea"),
    ("rot13 in capitals", "YNAGREA", L, "rot13", "YNAGREA"),
    ("rot13 of several words", "oyhr ureba 42", HERON, "rot13", "oyhr ureba 42"),
    ("rot13, short, shown", "Read this: bjy", "owl", "rot13", "bjy"),
    ("Caesar's shift", "odqwhuq", L, "caesar", "odqwhuq"),
    ("Atbash", "ozmgvim", L, "atbash", "ozmgvim"),
    ("leet", "l4n73rn", L, "leet", "l4n73rn"),
    ("leet, one sign", "L@ntern", L, "leet", "L@ntern"),
    ("leet at the beginning", "1antern", L, "leet", "1antern"),
    ("leet, dollar", "$@ffron", "saffron", "leet", "$@ffron"),
    ("leet, bang inside", "v!olin", "violin", "leet", "v!olin"),
    ("leet with digits of its own", "5ECR37 1", "SECRET 1", "leet", "5ECR37 1"),
    ("leet of several words", "blu3 h3r0n 42", HERON, "leet", "blu3 h3r0n 42"),
    ("leet without letters", "Look: 5007", "soot", "leet", "5007"),
    ("base64", "bGFudGVybg==", L, "base64", "bGFudGVybg=="),
    ("base64 without padding", "so: bGFudGVybg", L, "base64", "bGFudGVybg"),
    ("base64 of capitals", b64encode(b"LANTERN").decode(), L, "base64", "TEFOVEVSTg=="),
    ("base64 of a capital", b64encode(b"Lantern").decode(), L, "base64", "TGFudGVybg=="),
    ("base64 with a line's end", b64encode(b"lantern\n").decode(), L, "base64", "bGFudGVybg"),
    ("base64, inside, at 2", b64encode(b"- lantern -").decode(), L, "base64", "BsYW50ZXJu"),
    ("base64, inside, at 1", b64encode(b"the lantern is lit").decode(), L, "base64", "GxhbnRlcm4"),
    ("base64, inside, at 0", b64encode(b"my lantern is lit").decode(), L, "base64", "bGFudGVybi"),
    ("base64 for addresses", urlsafe_b64encode("ÿþlantern?".encode("latin-1")).decode(), L, "base64", "5sYW50ZXJu"),
    ("base64, accents", b64encode("Café".encode()).decode(), "Café", "base64", "Q2Fmw6k="),
    ("base64 of several words", b64encode(b"blue heron 42").decode(), HERON, "base64", "Ymx1ZSBoZXJvbiA0Mg=="),
    ("hex", "6c616e7465726e", L, "hex", "6c616e7465726e"),
    ("hex in capitals", "6C616E7465726E", L, "hex", "6C616E7465726E"),
    ("hex of capitals", "4c414e5445524e", L, "hex", "4c414e5445524e"),
    ("hex, blanks", "6c 61 6e 74 65 72 6e", L, "hex", "6c 61 6e 74 65 72 6e"),
    ("hex, colons", "6c:61:6e:74:65:72:6e", L, "hex", "6c:61:6e:74:65:72:6e"),
    ("hex, 0x", "0x6c616e7465726e", L, "hex", "0x6c616e7465726e"),
    ("hex, 0x each", "0x6c, 0x61, 0x6e, 0x74, 0x65, 0x72, 0x6e", L, "hex", "0x6c, 0x61, 0x6e, 0x74, 0x65, 0x72, 0x6e"),
    ("hex, escapes", r"\x6c\x61\x6e\x74\x65\x72\x6e", L, "hex", r"\x6c\x61\x6e\x74\x65\x72\x6e"),
    ("hex in a dump", DUMP, L, "hex", "6c616e7465726e"),
    ("hex of several words", b"blue heron 42".hex(), HERON, "hex", b"blue heron 42".hex()),
    ("hex, accents", "café".encode().hex(), "Café", "hex", "636166c3a9"),
    ("binary", "01101111 01110111 01101100", "owl", "binary", "01101111 01110111 01101100"),
    ("codes", "108 97 110 116 101 114 110", L, "codes", "108 97 110 116 101 114 110"),
    ("codes of capitals", "[79, 87, 76]", "owl", "codes", "79, 87, 76"),
    ("codes in a longer row", "97 32 108 97 110 116 101 114 110 33", L, "codes", "108 97 110 116 101 114 110"),
    ("places", "12-1-14-20-5-18-14", L, "places", "12-1-14-20-5-18-14"),
    ("percent", "%6c%61%6e%74%65%72%6e", L, "percent", "%6c%61%6e%74%65%72%6e"),
    ("percent, some", "l%61ntern", L, "percent", "l%61ntern"),
    ("percent, accents", "caf%C3%A9 noir", "café", "percent", "caf%C3%A9"),
    ("percent, blanks", "blue%20heron%2042", HERON, "percent", "blue%20heron%2042"),
    ("entities", "&#108;&#97;ntern", L, "escaped", "&#108;&#97;ntern"),
    ("entities in hex", "&#x6c;antern", L, "escaped", "&#x6c;antern"),
    ("escapes of a language", r"lant\u0065rn", L, "escaped", r"lant\u0065rn"),
    ("tags", f"hi{UNSEEN}", L, "invisible", UNSEEN),
    ("radio", "Oscar whiskey lima.", "owl", "nato", "Oscar whiskey lima"),
    ("radio, with letters", SPOKEN, "owl", "nato", SPOKEN),
    ("any words", SPELT, "owl", "nato", SPELT),
    ("radio with digits", "Xray seven Quebec", "X-7/Q", "nato", "Xray seven Quebec"),
    ("Morse", ".-. .. ...- . .-.", "river", "morse", ".-. .. ...- . .-."),
    ("Morse, strokes", "·−·/··/···−/·/·−·", "river", "morse", "·−·/··/···−/·/·−·"),
    ("a letter missing", "lantrn", L, "near", "lantrn"),
    ("a letter too many", "lanternn", L, "near", "lanternn"),
    ("a letter wrong", "lentern", L, "near", "lentern"),
    ("two swapped", "LANTREN!", L, "near", "LANTREN"),
    ("two slips in a long word", "nihgtingaile", "nightingale", "near", "nihgtingaile"),
    ("the first letter, shown", 'it is "kantern"', L, "near", "kantern"),
    ("a letter missing, in talk", "I like my lantrn a lot", L, "near", "lantrn"),
    ("a short word, shown", "It is: piuno.", "piano", "near", "piuno"),
    ("two slips, in emphasis", "a *nihgtingaile* sings", "nightingale", "near", "nihgtingaile"),
    ("one of several words", "blue herron 42", HERON, "near", "blue herron 42"),
    ("lines", f"{SIGNPOST}o more.", L, "acrostic", SIGNPOST),
    ("lines after an opening", f"A poem:\n\n{POEM}iverward.", "river", "acrostic", POEM),
    ("numbered lines", "1. Old\n2. Ways\n3. Lead", "owl", "acrostic", "Old\n2. Ways\n3. L"),
    ("sentences", f"{RAIN}ight.", "river", "acrostic", RAIN),
    ("words of a sentence", "Ok. Red ink vanishes every Reading. Ok.", "river", "acrostic", "Red ink vanishes every R"),
    ("words in the middle", f"so {ANTS}othing ever", L, "acrostic", ANTS),
]  # fmt: skip
MISSES = [
    ("spelt as part of a longer word", "p a r t y", "art"),
    ("words that make another", "to get her home", "together"),
    ("two ordinary words", "a car pet store", "carpet"),
    ("a palindrome backwards", "a kayak", "level"),
    ("a word that is another backwards", "please edit the text", "tide"),
    ("a longer one", "I opened the drawer", "reward"),
    ("three letters backwards", "I was there", "saw"),
    ("inside a word backwards", "xnretnalx", "lantern"),
    ("rot13 of a short word in talk", "he balked, or be it", "onyx"),
    ("a bang at the end", "No tax!", "taxi"),
    ("a year", "in 1700 it was", "itoo"),
    ("signs inside a longer word", "p4rty", "art"),
    ("base64 of a longer word", b64encode(b"the party is on").decode(), "art"),
    ("another word in base64", b64encode(b"violin").decode(), "lantern"),
    ("hex of a longer word", b"party".hex(), "art"),
    ("hex of a longer word, apart", b"party".hex(" "), "art"),
    ("codes of a longer word", "112 97 114 116 121", "art"),
    ("places by chance", "on 1, 2 and 3 May", "abc"),
    ("some percent", "it is 61% of 40%", "lantern"),
    ("radio words in talk", "Oscar went to a hotel in Lima", "owl"),
    ("an ellipsis", "well... . . . -", "eeee"),
    ("an ordinary word nearby", "the handle of the door", "candle"),
    ("another code word", "a willow", "pillow"),
    ("a short word in talk", "you covet it", "comet"),
    ("two slips in talk", "I discerned them", "dispersed"),
    ("the first letter", "they made a mantern", "lantern"),
    ("too short to slip", "rubi", "ruby"),
    ("another digit", "SECRET2 and SECRET", "SECRET1"),
    ("two slips in a short word", "lntren", "lantern"),
    ("cut off", "cloud, clou'rt", "clouds"),
    ("a derived word", "velvety", "velvet"),
    ("few lines of many", "One.\nWe.\nLook.\nHere.", "owl"),
    ("few words", "Old wise lads", "owl"),
    ("five words amid a sentence", "and red ink vanishes every time really", "river"),
    ("contractions", "Really, it's very easy, right", "ritver"),
    ("two letters in any disguise", "o x, xo, bke=, 6f78", "ox"),
    ("no letters", "a b c", "★"),
]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("text", "secret", "form", "stretch"), [row[1:] for row in HITS], ids=[f"{row[3]}: {row[0]}" for row in HITS]
)
def test_found(text: str, secret: str, form: str, stretch: str) -> None:
    assert found(text, secret) == [("encoded", form, stretch)]


@pytest.mark.parametrize(("text", "secret"), [row[1:] for row in MISSES], ids=[row[0] for row in MISSES])
def test_passed_over(text: str, secret: str) -> None:
    assert forms(text, secret) == []


OTHERS = [row for row in HITS if row[3] != "base64"]
"""Base64 of another case is another text."""


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize(
    ("text", "secret", "form"), [row[1:4] for row in OTHERS], ids=[f"{row[3]}: {row[0]}" for row in OTHERS]
)
def test_the_case_of_the_secret_makes_no_difference(text: str, secret: str, form: str) -> None:
    for case in (secret.upper(), secret.lower(), secret.title()):
        assert [name for name, _ in forms(text, case)] == [form]
