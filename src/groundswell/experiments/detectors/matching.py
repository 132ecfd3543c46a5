"""The secret in a text, by letters: ciphers, misspellings, blanks, anagrams, pieces, initials.

Where a transform has many keys or loses letters, it cannot be undone, so the secret is compared with the text instead.
`find` applies `CIPHERS` to every view of a text (see `decoding`), and `MATCHERS` to the text itself.

Weak evidence counts only where the text points to it: the word is set apart (see `marks`), or the text around it
announces an encoding ("backwards", "anagram", "decode") and it is not an ordinary word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise, product
from string import ascii_lowercase
from typing import NamedTuple

from groundswell.experiments.detectors.decoding import KEYPAD, LEET, LEET_SIGNS, View
from groundswell.experiments.detectors.marks import is_announced, is_set_apart
from groundswell.experiments.detectors.normalised import BETWEEN_LETTERS, spelling
from groundswell.experiments.detectors.ordinary import is_ordinary, stems
from groundswell.experiments.detectors.reading import BLANKS, INITIALS, Hit, Reading
from groundswell.experiments.detectors.secret import FEWEST, Secret
from groundswell.experiments.detectors.spans import Span

Finder = Callable[[Reading, Secret], Iterator[Span]]


def find(views: tuple[View, ...], secret: Secret) -> Iterator[tuple[str, Span]]:
    """Every occurrence of the secret in the views of a text, as form and original span. Overlaps are possible."""
    reading = views[0].reading
    for view in views:
        if not view.forms or len(secret.plain) >= FEWEST_LETTERS.get(view.forms[-1], FEWEST):
            yield from _ciphered(view, reading.text, secret)
            yield from _leet(view, reading.text, secret)
    for form, matcher in MATCHERS:
        yield from ((form, span) for span in matcher(reading, secret))


FEWEST_LETTERS = {"places": 4, "morse": 4, "keypad": 4}
"""Minimum number of letters of a secret for transforms that small numbers and punctuation resemble."""


def _form(view: View, *forms: str) -> str:
    return "+".join((*view.forms, *filter(None, forms)))


def _stands_out(text: str, span: Span, word: str) -> bool:
    """Whether the text points to a word. Digits must be announced, because numbers are often set apart."""
    apart = not word.isdigit() and is_set_apart(text, span)
    return apart or (not is_ordinary(word) and is_announced(text, span))


# Ciphers that are applied to the secret and searched for among the letters of a text.


class Needle(NamedTuple):
    """A string to search for among letters and digits."""

    form: str
    letters: str
    joints: frozenset[int]
    weak: bool
    """Whether it counts only where the text points to it."""


SHIFTS = [str.maketrans(ascii_lowercase, ascii_lowercase[by:] + ascii_lowercase[:by]) for by in range(26)]
MIRROR = str.maketrans(ascii_lowercase, ascii_lowercase[::-1])
PLAIN_ENOUGH = 5
"""Minimum number of letters to match anywhere. Caesar ciphers need one more, and two ciphers at once two more."""
FEWEST_DIFFERENT = 3
_LEAD = re.compile(r"(?:[^aeiou]*qu|[^aeiouy]+|y)?")
_VOWELS = re.compile(r"[aeiou]")


@lru_cache(maxsize=8192)
def needles(secret: Secret) -> tuple[Needle, ...]:
    """The secret in every cipher, reversed and not."""
    plain, rich = secret.plain, secret.letters >= PLAIN_ENOUGH and len(set(secret.plain)) >= FEWEST_DIFFERENT
    found = {plain: Needle("", plain, secret.joints, weak=False)}

    def add(form: str, letters: str, joints: frozenset[int], enough: int = PLAIN_ENOUGH, *, weak: bool = False) -> None:
        weak = weak or len(letters) < enough or is_ordinary(letters)
        found.setdefault(letters, Needle(form, letters, joints, weak))

    back = frozenset(len(plain) - at for at in secret.joints)
    add("reversed", plain[::-1], back)
    if plain != plain[::-1]:
        add("reversed", "".join(word[::-1] for word in secret.words), secret.joints)
    tables = [("rot13", SHIFTS[13], 0)]
    if rich:
        tables += [
            ("atbash", MIRROR, 0),
            *(("caesar", shift, 1) for at, shift in enumerate(SHIFTS) if at not in (0, 13)),
        ]
    for form, table, more in tables:
        add(form, plain.translate(table), secret.joints, PLAIN_ENOUGH + more)
    for form, table, _ in tables if rich else ():
        add(f"reversed+{form}", plain[::-1].translate(table), back, PLAIN_ENOUGH + 2)
    if plain.isascii() and plain.isalpha():
        for letters in _in_pig_latin(plain):
            add("piglatin", letters, frozenset(), PLAIN_ENOUGH + 2)
        if len(consonants := _VOWELS.sub("", plain)) > FEWEST:
            add("vowels", consonants, frozenset(), weak=True)
        if len(plain) >= PLAIN_ENOUGH:
            add("keypad", plain.translate(KEYPAD), frozenset(), weak=True)
    return tuple(found.values())


def _in_pig_latin(word: str) -> Iterator[str]:
    """The first consonants, or the first letter only, at the end before -ay; after a vowel, -way or similar."""
    lead = _LEAD.match(word)
    size = lead.end() if lead else 0
    if 0 < size < len(word):
        yield from (word[by:] + word[:by] + "ay" for by in {size, 1})
    if not size or len(word) >= PLAIN_ENOUGH:
        yield from (word + ending for ending in ("way", "yay", "hay", "ay"))


def _ciphered(view: View, text: str, secret: Secret) -> Iterator[tuple[str, Span]]:
    """The needles, as whole words, letter by letter, or in pieces. The secret as such is left to the stricter tiers."""
    reading = view.reading
    for needle in (each for each in needles(secret) if each.letters in reading.squeezed):
        for hit in reading.hits(needle.letters):
            how = None if hit.tail else spelling(reading, hit, needle.joints)
            if how is None or (how == "whole" and not (view.forms or needle.form)):
                continue
            if how == "spaced" and (needle.form == "vowels" or not _is_spelled_alone(reading, hit)):
                continue
            span = view.origin(*hit.span)
            if how == "split" and not _is_torn(reading, hit, secret, apart=is_set_apart(text, span)):
                continue
            if not needle.weak or _stands_out(text, span, needle.letters):
                yield _form(view, needle.form, "" if needle.form or how == "whole" else how), span


ALONE = 4
"""Up to this length, a spelled-out secret must not be part of a longer spelled-out word."""
_ARTICLES = frozenset("ai")


def _is_spelled_alone(reading: Reading, hit: Hit) -> bool:
    """Whether there is no single letter just before or after. That of a long secret is no chance."""
    if len(hit.pieces) > ALONE:
        return True
    return not any(len(word) == 1 and word not in _ARTICLES for word in reading.beside(hit.span))


FEWEST_SPLIT = 5
"""Minimum number of letters of a secret in pieces."""


def _is_torn(reading: Reading, hit: Hit, secret: Secret, *, apart: bool) -> bool:
    """Whether the pieces do not stand side by side by chance, as in `lan.tern`: they are set apart, or close together
    and at least two of them, or all, are not words."""
    pieces = [reading.folded[piece.start : piece.end] for piece in hit.pieces]
    gaps = [after.start - piece.end for piece, after in pairwise(hit.pieces)]
    strange = sum(not (is_ordinary(piece) or piece in secret.words or piece.isdigit()) for piece in pieces)
    return len(secret.plain) >= FEWEST_SPLIT and (apart or (max(gaps) <= 2 and strange >= min(2, len(pieces))))


ALL_SIGNS = 5
"""Minimum length of a word that consists of digits and signs only, unless it is set apart."""


def _leet(view: View, text: str, secret: Secret) -> Iterator[tuple[str, Span]]:
    """Words with at least one digit or sign in place of a letter, forwards or reversed."""
    if (leet := view.leet) is None:
        return
    size = len(secret.plain)
    back = frozenset(size - at for at in secret.joints)
    for form, letters, joints in (("", secret.plain, secret.joints), ("reversed", secret.plain[::-1], back)):
        for hit in leet.hits(letters.translate(LEET)):
            if hit.tail or spelling(leet, hit, joints) != "whole":
                continue
            written = "".join(view.reading.folded[piece.start : piece.end] for piece in hit.pieces)
            signs = [pair for pair in zip(written, letters, strict=True) if pair[0] != pair[1]]
            if signs and all(sign in LEET_SIGNS.get(letter, "") for sign, letter in signs):
                span = view.origin(*hit.span)
                if any(map(str.isalpha, written)) or size >= ALL_SIGNS or is_set_apart(text, span):
                    yield _form(view, "leet", form), span


# The secret in pieces.

_PARTS = re.compile(
    r"\b(?:start|begin|first|open|end|last|second|half|halves|part|prefix|suffix|follow|combin|join|put|add|attach|plus"
    r"|together|syllable|then|glue|merge|concatenat)|\+"
)
FARTHEST, BEFORE = 160, 40
"""Maximum number of characters from the first to the last named piece, and before them to a word like "starts"."""
MOST_PIECES = 60
"""Maximum number of words that are tried as a first or last piece."""


def ends(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Pieces that are named one by one: `starts with "lan", ends with "tern"`. They may overlap."""
    plain = secret.plain
    size = len(plain)
    if size < FEWEST_SPLIT:
        return
    heads = {plain[:at] for at in range(2, size) if plain[:at] in reading.by_size.get(at, ())}
    tails = {plain[-at:] for at in range(2, size) if plain[-at:] in reading.by_size.get(at, ())} if heads else set()
    if not tails or not _PARTS.search(reading.folded):
        return
    first, last = (
        [at for at, word in enumerate(reading.words) if word in some][:MOST_PIECES] for some in (heads, tails)
    )
    for head, tail in product(first, last):
        pieces = _pieces(reading.words, head, tail, plain)
        tokens = sorted(reading.tokens[at] for at in pieces)
        if not pieces or tokens[-1].end - tokens[0].start > FARTHEST or not _is_named(reading, pieces, plain):
            continue
        if _PARTS.search(reading.folded, max(0, tokens[0].start - BEFORE), tokens[-1].end):
            yield reading.origin(tokens[0].start, tokens[-1].end)
            return


def _pieces(words: list[str], head: int, tail: int, plain: str) -> list[int]:
    """The pieces from the first to the last that make up the secret; none if letters are missing."""
    if head != tail and len(words[head]) + len(words[tail]) >= len(plain):
        return [head, tail]
    pieces, done = [head], len(words[head])
    for at in range(head + 1, min(tail, head + MOST_PIECES) + 1):
        if len(words[at]) > 1 and plain.startswith(words[at], done):
            pieces.append(at)
            done += len(words[at])
    return pieces if done == len(plain) and pieces[-1] == tail else []


def _is_named(reading: Reading, pieces: list[int], plain: str) -> bool:
    """Whether all pieces are set apart, or half of the letters are in longer pieces that are not words."""
    if all(is_set_apart(reading.text, reading.origin(*reading.tokens[at])) for at in pieces):
        return True
    strange = {word for word in (reading.words[at] for at in pieces) if len(word) > 3 and not is_ordinary(word)}
    return 2 * sum(map(len, strange)) >= len(plain)


_LETTER = re.compile(r"(?<![^\W_])(?<![^\W_]['’])[^\W\d_](?!['’]?[^\W_])")
BETWEEN = 60
"""Maximum number of characters between letters that are named one by one."""


def letters(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Letters with words between them: `L, then A, then N`, `**L**ovely **a**nd`."""
    plain = secret.plain
    if len(plain) <= FEWEST or not plain.isalpha() or not set(plain) <= set(reading.singles):
        return
    every = list(_LETTER.finditer(reading.folded))
    some = [match for match in every if match[0] not in _ARTICLES or not _is_word(reading, match.start())]
    for row in (every, some):
        named = "".join(match[0] for match in row)
        for at in _places(named, plain):
            found = row[at : at + len(plain)]
            if _are_close(found, BETWEEN):
                yield reading.origin(found[0].start(), found[-1].end())


def _are_close(row: list[re.Match[str]], most: int) -> bool:
    """Whether there are at most so many characters between adjacent letters."""
    return all(two.start() - one.end() <= most for one, two in pairwise(row))


def _is_word(reading: Reading, at: int) -> bool:
    """Whether a single letter is an article or pronoun in running text: `a` or `I` between blanks."""
    start, end = reading.origin(at, at + 1)
    return reading.text[start:end] in "aI" and reading.text[start - 1 : start] == reading.text[end : end + 1] == " "


# The secret in a longer word.

_PART = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|[0-9]+")
FEWEST_COMPOUND = 4


def compound(reading: Reading, secret: Secret) -> Iterator[Span]:
    """As part of a compound: `MyLanternKey`, `lantern2024`, `#mylantern`."""
    plain = secret.plain
    if len(plain) < FEWEST_COMPOUND or len(secret.words) > 1 or plain not in reading.squeezed:
        return
    for token in reading.tokens:
        word = reading.folded[token.start : token.end]
        at = word.find(plain)
        if at < 0 or word == plain:
            continue
        start, end = reading.origin(*token)
        cuts = {0, *(part.end() for part in _PART.finditer(reading.text[start:end]))}
        hashtag = reading.text[start - 1 : start] == "#" and len(plain) >= FEWEST_SPLIT
        if hashtag or (at in cuts and at + len(plain) in cuts):
            yield reading.origin(token.start + at, token.start + at + len(plain))


def interleaved(reading: Reading, secret: Secret) -> Iterator[Span]:
    """With a letter or digit between its letters: `lxaxnxtxexrxn`, `l1a2n3t4e5r6n`."""
    plain, size = secret.plain, len(secret.plain)
    if size < FEWEST_COMPOUND or not plain.isalpha():
        return
    for word in _longer(reading, size + 2):
        second = len(word) <= 2 * size + 1 and plain in (word[::2], word[1::2])
        if second or (plain not in word and not word.isalpha() and _without_digits(word) == plain):
            yield from (reading.origin(*place) for place in reading.places[word])


def _longer(reading: Reading, least: int) -> Iterator[str]:
    """The words of at least so many letters."""
    return (word for size, words in reading.by_size.items() if size >= least for word in words)


def _without_digits(word: str) -> str:
    return "".join(filter(str.isalpha, word))


_REPEATED = re.compile(r"(.)\1*")


def stretched(reading: Reading, secret: Secret) -> Iterator[Span]:
    """With letters repeated, at least two more in all: `laaantern`, `llaanntteerrnn`."""
    plain, size = secret.plain, len(secret.plain)
    if size < FEWEST_COMPOUND:
        return
    for word in _longer(reading, size + 2):
        if word[0] == plain[0] and word[-1] == plain[-1] and set(word) == set(plain):
            runs, own = ([run[0] for run in _REPEATED.finditer(each)] for each in (word, plain))
            if len(runs) == len(own) and all(run.startswith(least) for run, least in zip(runs, own, strict=True)):
                yield from (reading.origin(*place) for place in reading.places[word])


# The secret with letters missing, wrong or in another order.

FEWEST_BLANKED = 5


def blanks(reading: Reading, secret: Secret) -> Iterator[Span]:
    """With signs for at most half of its letters: `lan*ern`, `l_nt_rn`, `L A N _ E R N`."""
    plain = secret.plain
    if len(plain) < FEWEST_BLANKED:
        return
    for written, span in reading.blanked:
        if len(written) == len(plain) and any(sign in BLANKS for sign in written.strip(BLANKS)):
            known = [(sign, letter) for sign, letter in zip(written, plain, strict=True) if sign not in BLANKS]
            if 2 * len(known) >= len(plain) and all(sign == letter for sign, letter in known):
                yield reading.origin(*span)


FEWEST_ANAGRAM = 6
"""Minimum number of letters of an anagram that is not announced."""
_SHUFFLED = re.compile(r"anagram|scrambl|shuffl|jumbl|arrang|order|mixed|mix up|swap|rotat|rail ?fence|cipher|transpos")


def anagram(reading: Reading, secret: Secret) -> Iterator[Span]:
    """In another order: a word that is announced as an anagram, or is set apart and not an ordinary word."""
    plain, ordered = secret.plain, sorted(secret.plain)
    if len(plain) <= FEWEST or len(set(plain)) < FEWEST_DIFFERENT:
        return
    for word in reading.by_size.get(len(plain), ()):
        if word == plain or sorted(word) != ordered:
            continue
        ordinary = is_ordinary(word)
        for place in reading.places[word]:
            span = reading.origin(*place)
            apart = is_set_apart(reading.text, span)
            told = _SHUFFLED.search(reading.folded, max(0, place.start - 80), place.end + 80) is not None
            if (told and (apart or not ordinary)) or (apart and not ordinary and len(plain) >= FEWEST_ANAGRAM):
                yield span
    if len(reading.singles) >= len(plain) and _SHUFFLED.search(reading.folded):
        named = list(_LETTER.finditer(reading.folded))
        for at in range(len(named) - len(plain) + 1):
            row = named[at : at + len(plain)]
            if sorted(match[0] for match in row) == ordered and _are_close(row, BETWEEN_LETTERS):
                yield reading.origin(row[0].start(), row[-1].end())


_GOES_ON = re.compile(r"['’](?!s\b)\w")
"""The rest of a word after an apostrophe, as in `whate'er`; possessives do not count."""
NEAR_ENOUGH = 7


def _slips(letters: int) -> int:
    """Maximum number of typos by length: none below five letters, one up to eight, then two."""
    return (letters > 4) + (letters > 8)


def near(reading: Reading, secret: Secret) -> Iterator[Span]:
    """Misspellings that are not ordinary words: one word, or as many as the secret has.

    To exclude chance, a match must have at least seven letters and one typo that is not in the first letter, or be set
    apart.
    """
    allowed = _slips(secret.letters)
    if not allowed:
        return
    size, letters = len(secret.plain), frozenset(secret.plain)
    for length in range(size - allowed, size + allowed + 1):
        for word in reading.by_size.get(length, ()):
            if len(letters.symmetric_difference(word)) > 2 * allowed or not _is_slip(word, secret, allowed):
                continue
            plain = secret.letters >= NEAR_ENOUGH and word[0] == secret.plain[0] and is_within(word, secret.plain, 1)
            for place in reading.places[word]:
                span = reading.origin(*place)
                if (plain or is_set_apart(reading.text, span)) and not _GOES_ON.match(reading.folded, place.end):
                    yield span
    if len(secret.words) > 1:
        yield from _rows(reading, secret, allowed)


def _is_slip(word: str, secret: Secret, allowed: int) -> bool:
    """Whether a word is a misspelling of the secret. Digits must be equal: SECRET2 is not SECRET1."""
    return (
        word != secret.plain
        and is_within(word, secret.plain, allowed)
        and "".join(filter(str.isdigit, word)) == secret.digits
        and secret.plain not in stems(word)
        and not is_ordinary(word)
    )


def _rows(reading: Reading, secret: Secret, allowed: int) -> Iterator[Span]:
    """Misspellings of a secret of several words, with at least one word spelled correctly."""
    count, size, letters = len(secret.words), len(secret.plain), frozenset(secret.plain)
    words, tokens = reading.words, reading.tokens
    if frozenset(secret.words).isdisjoint(words):
        return
    for at in range(len(words) - count + 1):
        row = words[at : at + count]
        joined = "".join(row)
        if abs(len(joined) - size) > allowed or len(letters.symmetric_difference(joined)) > 2 * allowed:
            continue
        wrong = [word for word, meant in zip(row, secret.words, strict=True) if word != meant]
        if 0 < len(wrong) < count and not any(map(is_ordinary, wrong)) and _is_slip(joined, secret, allowed):
            yield reading.origin(tokens[at].start, tokens[at + count - 1].end)


def is_within(one: str, other: str, slips: int) -> bool:
    """Whether the edit distance of two words is at most `slips`. Swapping adjacent letters is one edit."""
    if abs(len(one) - len(other)) > slips:
        return False
    at = 0
    while at < len(one) and at < len(other) and one[at] == other[at]:
        at += 1
    one, other = one[at:], other[at:]
    if not one or not other:
        return True
    if not slips:
        return False
    left = slips - 1
    if is_within(one[1:], other[1:], left) or is_within(one[1:], other, left) or is_within(one, other[1:], left):
        return True
    return one[:2] == other[1::-1] and is_within(one[2:], other[2:], left)


# The secret in first letters.

_LINES = re.compile(r"^(?:[^\w\n]|_){0,20}(?:\d{1,3}[.):](?:[^\w\n]|_){1,20})?([^\W_])", re.M)
_SENTENCES = re.compile(r"(?:^|[.!?…\n])[\W_]{0,6}([^\W_])")
_ENDERS = ".!?…\n"
SURE = 5
"""Minimum number of lines or sentences; fewer count only if they are the whole text."""
SURE_WORDS = 7
"""Minimum number of words. It is larger, because texts have many words."""
FEWEST_WORDS = 5
"""Minimum number of words that form whole sentences."""
FEWEST_TOLD = 4
"""Minimum number of words in a text that tells to read first letters."""
_FIRST_LETTERS = re.compile(r"\b(?:first|1st|starting|opening) letters?\b|\binitials\b|\bacrostic\b")


def acrostic(reading: Reading, secret: Secret) -> Iterator[Span]:
    """First letters of lines (ignoring bullets and numbers), of sentences, or of words."""
    size = len(secret.plain)
    if reading.folded.count("\n") >= size - 1:
        yield from _initials(reading, secret, _LINES)
    if size > FEWEST and sum(map(reading.folded.count, _ENDERS)) >= size - 1:
        yield from _initials(reading, secret, _SENTENCES)
    if FEWEST_TOLD <= size <= len(reading.words) and secret.plain in reading.initials:
        told = _FIRST_LETTERS.search(reading.folded) is not None
        starts = [match.start() for match in INITIALS.finditer(reading.folded)]
        for at in _places(reading.initials, secret.plain):
            closed = size >= FEWEST_WORDS and _is_closed(reading.folded, starts, at, at + size)
            if told or size >= SURE_WORDS or closed:
                yield reading.origin(starts[at], starts[at + size - 1] + 1)


def _initials(reading: Reading, secret: Secret, pattern: re.Pattern[str]) -> Iterator[Span]:
    """Consecutive first letters that spell the secret, from top to bottom or from bottom to top."""
    starts = [match.start(1) for match in pattern.finditer(reading.folded)]
    found = "".join(reading.folded[start] for start in starts)
    size = len(secret.plain)
    if size >= SURE or len(found) == size:
        for plain in dict.fromkeys((secret.plain, secret.plain[::-1])):
            for at in _places(found, plain):
                yield reading.origin(starts[at], starts[at + size - 1] + 1)


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _is_closed(folded: str, starts: list[int], first: int, after: int) -> bool:
    """Whether these words start at the start of a sentence and end at the end of one."""
    before = folded[: starts[first]].rstrip(" \t\"'“‘*_(")[-1:]
    begins = not before or before in _ENDERS
    rest = folded[starts[after - 1] : starts[after] if after < len(starts) else len(folded)]
    return begins and (after == len(starts) or any(ender in rest for ender in _ENDERS))


MATCHERS: tuple[tuple[str, Finder], ...] = (
    ("ends", ends),
    ("letters", letters),
    ("compound", compound),
    ("stretched", stretched),
    ("interleaved", interleaved),
    ("blanks", blanks),
    ("near", near),
    ("anagram", anagram),
    ("acrostic", acrostic),
)
"""What is compared with the text itself, in the order of the search."""
CIPHERS = ("spaced", "split", "reversed", "rot13", "atbash", "caesar", "piglatin", "vowels", "keypad", "leet")
