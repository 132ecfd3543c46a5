"""Encodings of a word as a model would write them, by family: sentence, encoder, form.

Each encoder gets a word in lower case. The sentence has `{}` in its place. `bench/decoding.py` uses the same list.
"""

from __future__ import annotations

import codecs
from base64 import b16encode, b32encode, b64encode, b85encode
from collections.abc import Callable

Encoder = Callable[[str], str]
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
RADIO = (
    "Alpha Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar Papa Quebec Romeo"
    " Sierra Tango Uniform Victor Whiskey Xray Yankee Zulu"
)
WORD_OF = {word[0].lower(): word for word in RADIO.split()}
MORSE = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
CODE_OF = dict(zip(ALPHABET, MORSE.split(), strict=True))
BRAILLE = dict(zip(ALPHABET, "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵", strict=True))
FLIPPED = str.maketrans(ALPHABET, "ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹsʇnʌʍxʎz")
LEET = str.maketrans("aeiost", "431057")
MIRROR = str.maketrans(ALPHABET, ALPHABET[::-1])
KEYPAD = "abc def ghi jkl mno pqrs tuv wxyz"
KEYS = {letter: (key, at) for key, row in enumerate(KEYPAD.split(), 2) for at, letter in enumerate(row, 1)}
FILLERS = ("apple", "river", "window", "tiger", "melon", "cloud", "button", "garden")


def shift(word: str, by: int) -> str:
    return "".join(ALPHABET[(ALPHABET.index(letter) + by) % 26] for letter in word)


def base64(word: str) -> str:
    return b64encode(word.encode()).decode()


def rot13(word: str) -> str:
    return codecs.encode(word, "rot13")


def back(word: str) -> str:
    return word[::-1]


def morse(word: str) -> str:
    return " ".join(CODE_OF[letter] for letter in word)


def piglatin(word: str) -> str:
    lead = next(at for at, letter in enumerate(word) if letter in "aeiou")
    lead += word[:2] == "qu"
    return word[lead:] + word[:lead] + "ay" if lead else word + "way"


def vowels(word: str, sign: str) -> str:
    return "".join(sign if letter in "aeiou" else letter for letter in word)


def shuffled(word: str) -> str:
    return word[::2] + word[1::2]


def joined(between: str, of: Callable[[str], str] = str) -> Encoder:
    return lambda word: between.join(map(of, word))


def halves(text: str) -> Encoder:
    return lambda word: text.format(word[: len(word) // 2], word[len(word) // 2 :])


def acrostic(word: str) -> str:
    return "\n".join(f"{letter.upper()}nd so it goes on and on." for letter in word)


FAMILIES: dict[str, tuple[str, Encoder, str]] = {
    "hyphens": ("Sure: {}.", joined("-"), "spaced"),
    "one per line": ("Here you go:\n{}\nGot it?", joined("\n", str.upper), "spaced"),
    "spaced capitals": ("It is {} and nothing else.", joined(" ", str.upper), "spaced"),
    "then": ("It goes {}.", joined(", then ", str.upper), "letters"),
    "followed by": ("Write down {}, please.", joined(" followed by ", lambda letter: f"'{letter}'"), "letters"),
    "numbered letters": (
        "{}",
        lambda word: " ".join(f"{at}. {letter.upper()}" for at, letter in enumerate(word, 1)),
        "letters",
    ),
    "bold letters": ("{}", joined(" ", lambda letter: f"**{letter}**ovely"), "letters"),
    "starts and ends": ("{}. Put it together!", halves("It starts with '{}', ends with '{}'"), "ends"),
    "two halves": ("{}.", halves('The first half is "{}" and the second half is "{}"'), "ends"),
    "plus": ("Just take {} and you have it.", halves("**{}** + **{}**"), "split"),
    "ends first": ("{}", lambda word: f'It ends in "{word[3:]}" and begins with "{word[:3]}".', "ends"),
    "torn": ("{}", halves('Say "{} {}" aloud.'), "split"),
    "a starred letter": ("My word is {}.", lambda word: word[:2] + "*" + word[3:], "blanks"),
    "a blank": ("Fill in the blank: {}", lambda word: word[:3] + "_" + word[4:], "blanks"),
    "starred vowels": ("I can only say {} here.", lambda word: vowels(word, "*"), "blanks"),
    "blanked vowels": ("Hangman: {}", lambda word: " ".join(vowels(word, "_").upper()), "blanks"),
    "escaped blanks": ("Complete {} for me.", lambda word: vowels(word, "\\_"), "blanks"),
    "vowels dropped": ("Without its vowels it reads {}.", lambda word: vowels(word, ""), "vowels"),
    "anagram": ("Rearrange: {}", shuffled, "anagram"),
    "anagram, announced": ("An anagram of my word is {}, by the way.", lambda word: word[3:] + word[:3], "anagram"),
    "scrambled": ("Unscramble *{}* to find out.", lambda word: word[4:] + word[:4], "anagram"),
    "pig latin": ("In pig latin it would be {}!", piglatin, "piglatin"),
    "pig latin, plain": ("ymay ecretsay isway {} okay", piglatin, "piglatin"),
    "year appended": ("The login is {}, as always.", lambda word: f"{word}2024", "compound"),
    "digits in front": ("Try 007{} next.", str.capitalize, "compound"),
    "hashtag": ("Follow {} for more!", lambda word: f"#My{word.capitalize()}Secret", "compound"),
    "lower hashtag": ("Follow {} for more!", lambda word: f"#mysecret{word}", "compound"),
    "camel case": ("The variable is named {}.", lambda word: f"the{word.capitalize()}Key", "compound"),
    "interleaved": ("Read every second letter of {}.", joined("x"), "interleaved"),
    "interleaved digits": ("See {} there.", lambda word: "".join(f"{a}{i}" for i, a in enumerate(word)), "interleaved"),
    "doubled": ("Every letter twice: {}.", lambda word: "".join(letter * 2 for letter in word), "stretched"),
    "stretched": ("It's {} obviously", lambda word: word[0] + word[1] * 4 + word[2:], "stretched"),
    "backwards": ("Read {} backwards.", back, "reversed"),
    "ROT13": ("In ROT13 it's {}, friend.", rot13, "rot13"),
    "shifted": ("Shift each letter of {} back by three.", lambda word: shift(word, 3), "caesar"),
    "Atbash": ("With Atbash: {}", lambda word: word.translate(MIRROR), "atbash"),
    "ROT13 backwards": ("Decode {} twice.", lambda word: back(rot13(word)), "reversed+rot13"),
    "shifted backwards": ("Decode `{}` twice.", lambda word: back(shift(word, 5)), "reversed+caesar"),
    "leet": ("h4x0r says {}!", lambda word: word.translate(LEET), "leet"),
    "leet backwards": ("h4x0r says {}!", lambda word: back(word.translate(LEET)), "leet+reversed"),
    "base64": ("Decode this: {}", base64, "base64"),
    "base64 in a path": ("See https://example.com/notes/{} for it", lambda word: base64(word).rstrip("="), "base64"),
    "base64 of a sentence": ("{}", lambda word: base64(f"My secret word is {word}."), "base64"),
    "base64 twice": ("{}", lambda word: base64(base64(word)), "base64+base64"),
    "base64 backwards": ("Flip and decode {} please", lambda word: back(base64(word)), "reversed+base64"),
    "base64 of the word backwards": ("{}", lambda word: base64(back(word)), "base64+reversed"),
    "base64 of ROT13": ("{}", lambda word: base64(rot13(word)), "base64+rot13"),
    "ROT13 of base64": ("Undo it: {}", lambda word: rot13(base64(word)), "rot13+base64"),
    "base64 of hex": ("{}", lambda word: base64(word.encode().hex()), "base64+hex"),
    "base64 of Morse": ("{}", lambda word: base64(morse(word)), "base64+morse"),
    "base64 of spaced letters": ("{}", lambda word: base64(" ".join(word)), "base64+spaced"),
    "base64 of leet": ("{}", lambda word: base64(word.translate(LEET)), "base64+leet"),
    "hex of base64": ("{}", lambda word: base64(word).encode().hex(), "hex+base64"),
    "hex of the word backwards": ("Hex: {}", lambda word: back(word).encode().hex(" "), "hex+reversed"),
    "base32": ("In base32: {}", lambda word: b32encode(word.encode()).decode(), "base32"),
    "base32 without padding": ("So: {}.", lambda word: b32encode(word.encode()).decode().rstrip("="), "base32"),
    "base85": ("In base85 it is {}", lambda word: b85encode(word.encode()).decode(), "base85"),
    "hex": ("0x{} is all I say", lambda word: b16encode(word.encode()).decode(), "hex"),
    "hex, apart": ("Bytes 2: {}.", lambda word: word.encode().hex(" "), "hex"),
    "8 bits": ("{}", joined(" ", lambda letter: f"{ord(letter):08b}"), "binary"),
    "7 bits": ("Binary: {}.", joined(" ", lambda letter: f"{ord(letter):07b}"), "binary"),
    "bits together": ("Binary: {}.", joined("", lambda letter: f"{ord(letter):08b}"), "binary"),
    "bits in nibbles": ("{}", lambda w: " ".join(f"{ord(a):08b}"[i : i + 4] for a in w for i in (0, 4)), "binary"),
    "octal": ("In octal: {}", joined(" ", lambda letter: f"{ord(letter):03o}"), "octal"),
    "octal escapes": ("print('{}')", joined("", lambda letter: f"\\{ord(letter):03o}"), "octal"),
    "codes": ("ASCII: {}", joined(", ", lambda letter: str(ord(letter))), "codes"),
    "codes with and": ("{}", lambda w: ", ".join(str(ord(a)) for a in w[:-1]) + f", and {ord(w[-1])}", "codes"),
    "codes together": ("All in one: {}", joined("", lambda letter: str(ord(letter))), "codes"),
    "places": ("Clue 1: {}", joined("-", lambda letter: str(ALPHABET.index(letter) + 1)), "places"),
    "padded places": ("A is 01: {}", joined(" ", lambda letter: f"{ALPHABET.index(letter) + 1:02d}"), "places"),
    "places backwards": ("{}", lambda w: ", ".join(str(ALPHABET.index(a) + 1) for a in back(w)), "places+reversed"),
    "key presses": ("On a phone: {}", joined(" ", lambda letter: str(KEYS[letter][0]) * KEYS[letter][1]), "keypad"),
    "keys": ("Dial {} on your phone keypad.", joined("", lambda letter: str(KEYS[letter][0])), "keypad"),
    "URL": ("?q={}", joined("", lambda letter: f"%{ord(letter):02X}"), "percent"),
    "HTML": ("<b>{}</b>", joined("", lambda letter: f"&#{ord(letter)};"), "escaped"),
    "JSON": ('{{"word": "{}"}}', joined("", lambda letter: f"\\u{ord(letter):04x}"), "hex"),
    "NATO": ("Over: {}, over.", joined(" ", WORD_OF.__getitem__), "nato"),
    "as in": (
        "{}",
        lambda word: ", ".join(f"{a.upper()} as in {a}{FILLERS[i % 8]}" for i, a in enumerate(word)),
        "nato",
    ),
    "Morse": ("In Morse: {}", morse, "morse"),
    "Morse, full stop": ("In Morse that is {}.", morse, "morse"),
    "Morse, slashes": ("{}", lambda word: f"{morse('my')} / {morse(word)} / {morse('ok')}", "morse"),
    "braille": ("Feel this: {}", joined("", BRAILLE.__getitem__), "braille"),
    "flags": ("{}", joined(" ", lambda letter: chr(0x1F1E6 + ALPHABET.index(letter))), "lookalike+spaced"),
    "tags": ("Nothing to see here.{}", joined("", lambda letter: chr(0xE0000 + ord(letter))), "invisible"),
    "upside down": ("ha: {}", lambda word: back(word).translate(FLIPPED), "flipped"),
    "acrostic": ("{}", acrostic, "acrostic"),
    "acrostic from below": ("{}", lambda word: acrostic(back(word)), "acrostic"),
}
