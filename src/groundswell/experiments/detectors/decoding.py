"""Decoding by search: transforms that are undone one after the other, until readable text remains.

`views` decodes a text breadth-first, up to `DEPTH` transforms deep. A view is everything that one chain of transforms
decodes, with the way back to the original characters. Nothing here depends on the secret, so a text that is searched
for several secrets is decoded once. `DECODERS` is the list of transforms; ciphers with many keys are not undone, but
applied to the secret (see `matching`).

The work is bounded by the number of characters that transforms read, so results do not depend on the speed of a
machine.
"""

from __future__ import annotations

import re
from base64 import a85decode, b32decode, b64decode, b85decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from groundswell.experiments.detectors.reading import LONGEST_KEPT, Reading, read
from groundswell.experiments.detectors.spans import Span

DEPTH = 3
"""Maximum number of transforms on top of each other. The ciphers of `matching` come on top of these."""
LEAST, PER_CHARACTER = 50_000, 10
"""Number of characters that transforms may read, in any text and for each character of a text. Transforms that a text
shows no sign of do not read it."""
FEWEST_UNITS = 3
"""Minimum number of letters of a decoded stretch."""


class Decoded(NamedTuple):
    """A decoded stretch of a text, and where the characters start and end that each of its characters comes from."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


Decoder = Callable[[Reading], Iterable[Decoded]]


class View:
    """A text as some transforms decode it. The first view of a text is the text itself, without any transform."""

    def __init__(
        self, reading: Reading, forms: tuple[str, ...] = (), decoded: Decoded | None = None, of: View | None = None
    ):
        self.reading = reading
        self.forms = forms
        self._decoded = decoded
        self._of = of

    def origin(self, start: int, end: int) -> Span:
        """The original span of a span of the folded view."""
        span, view = self.reading.origin(start, end), self
        while view._decoded is not None and view._of is not None:
            _, starts, ends = view._decoded
            after = max(span.end, span.start + 1)  # the character between two stretches has no width
            span = Span(min(starts[span.start : after]), max(ends[span.start : after]))
            view = view._of
        return span

    @cached_property
    def leet(self) -> Reading | None:
        """The folded text with a letter for each digit and sign that can stand for one; None without any."""
        folded = self.reading.folded
        if self.reading.squeezed.isalpha() and _SIGNS.isdisjoint(folded):
            return None
        return Reading(_NO_LETTER.sub(" ", folded).translate(LEET))


LEET_SIGNS = {
    "a": "4@", "b": "8", "c": "¢", "e": "3€", "g": "69", "i": "1!|", "l": "1|£", "o": "0", "s": "5$", "t": "7+",
    "z": "2",
}  # fmt: skip
LEET = str.maketrans({sign: by.replace("l", "i") for by, signs in LEET_SIGNS.items() for sign in signs} | {"l": "i"})
"""From signs to letters, with `i` for `l`, because 1 stands for both."""
_SIGNS = frozenset("@$!|+€¢£")
_NO_LETTER = re.compile(r"[!+|](?!\w)")
"""Signs that end sentences stand for letters only inside a word."""


@lru_cache(maxsize=256)
def _kept(text: str) -> tuple[View, ...]:
    return tuple(_search(text))


def views(text: str) -> tuple[View, ...]:
    """All views of a text, breadth-first, the text itself first. Those of short texts are cached."""
    return _kept(text) if len(text) <= LONGEST_KEPT else tuple(_search(text))


def _search(text: str) -> Iterator[View]:
    left = LEAST + PER_CHARACTER * len(text)
    level = [View(read(text))]
    while level:
        yield from level
        deeper: list[View] = []
        for view in level if len(level[0].forms) < DEPTH else ():
            traits = _traits(view.reading)
            for form, trait, decode in DECODERS if traits else ():
                if trait in traits and not (form in ONCE and form in view.forms):
                    left -= len(view.reading.text)
                    stretches = list(decode(view.reading)) if left >= 0 else []
                    if stretches:
                        deeper.append(_view(view, form, stretches))
        level = deeper


def _view(of: View, form: str, stretches: list[Decoded]) -> View:
    """The view of all stretches that a transform decodes, one per line."""
    starts, ends = list[int](), list[int]()
    for each in stretches:
        starts += [*each.starts, each.ends[-1]]
        ends += [*each.ends, each.ends[-1]]
    text = "\n".join(each.text for each in stretches)
    return View(Reading(text), (*of.forms, form), Decoded(text, starts, ends), of)


# Runs of base64 and base32 characters, and the transforms of such a run as a whole.

_MIXED = re.compile(r"[A-Z0-9=](?:(?<=[a-z0-9][A-Z])|(?<=[A-Za-z][0-9])|(?<=[0-9])[A-Za-z]|(?<==))")
"""What base64 has and ordinary words do not have."""
_RUN = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,6}")
_PARTS = re.compile(r"[A-Za-z0-9]{4,}={0,6}")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]*+(?:[+/_-]++[A-Za-z]?[a-z]*+)*+|[A-Z]++|[0-9]{1,15}+")
_MANY_DIGITS = re.compile(r"[0-9]{16}")
"""As many digits may be bytes in hex, and not a number."""
_CODED = re.compile(r"[A-Za-z0-9+/_=-]{8,}")
_STANDARD = str.maketrans("-_", "+/")
_ROT13 = str.maketrans(
    ascii_lowercase + ascii_uppercase,
    ascii_lowercase[13:] + ascii_lowercase[:13] + ascii_uppercase[13:] + ascii_uppercase[:13],
)


def _runs(text: str) -> Iterator[re.Match[str]]:
    """Runs of base64 characters, and their parts between punctuation, unless they look like ordinary words."""
    for run in _RUN.finditer(text):
        if _PLAIN.fullmatch(run[0]) is None:
            yield run
            if not run[0].rstrip("=").isalnum():
                yield from (part for part in _PARTS.finditer(text, *run.span()) if _PLAIN.fullmatch(part[0]) is None)


def _base64(reading: Reading) -> Iterator[Decoded]:
    for run in _runs(reading.text):
        written = run[0].rstrip("=").translate(_STANDARD)
        written = written[:-1] if len(written) % 4 == 1 else written
        yield from _octets(b64decode(written + "=" * (-len(written) % 4)), 6, run)


def _base32(reading: Reading) -> Iterator[Decoded]:
    for run in _BASE32.finditer(reading.text):
        written = run[0].rstrip("=")
        written = written[:-1] if len(written) % 8 in (1, 3, 6) else written
        yield from _octets(b32decode(written + "=" * (-len(written) % 8)), 5, run)


_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{5,}+(?![A-Za-z0-9])={0,6}")


def _base85(reading: Reading) -> Iterator[Decoded]:
    for word in re.finditer(r"[!-~]{5,}", reading.text):
        written = word[0].removeprefix("<~").removesuffix("~>")
        for decode in (b85decode, a85decode):
            for way in dict.fromkeys((written, written.strip("\"'`*.,;:!?()"))):
                try:
                    octets = decode(way)
                except ValueError:
                    continue
                yield from _readable(octets, [word.start()] * len(octets), [word.end()] * len(octets))


def _octets(octets: bytes, bits: int, run: re.Match[str]) -> Iterator[Decoded]:
    """Bytes whose characters carry so many bits each. The last byte includes the padding."""
    begin, size = run.start(), len(octets)
    starts = [begin + 8 * at // bits for at in range(size)]
    ends = [begin - (-8 * at // bits) for at in range(1, size)]
    return _readable(octets, starts, [*ends, max(run.end(), begin)])


def _readable(octets: bytes, starts: Sequence[int], ends: Sequence[int]) -> Iterator[Decoded]:
    """Bytes as text, if at least half of it can be read. Bytes that are no UTF-8 stay apart from the letters."""
    text = octets.decode("utf-8", "surrogateescape")
    if not text or not (text.isprintable() or 2 * sum(map(str.isprintable, text)) >= len(text)):
        return
    if not text.isascii():
        after = list(accumulate(len(char.encode("utf-8", "surrogateescape")) for char in text))
        starts = [starts[at] for at in (0, *after[:-1])]
        ends = [ends[at - 1] for at in after]
    yield Decoded(text, starts, ends)


def _same(start: int, end: int) -> tuple[range, range]:
    """The positions of characters that stay one character each."""
    return range(start, end), range(start + 1, end + 1)


def _reversed(reading: Reading) -> Iterator[Decoded]:
    for run in _CODED.finditer(reading.text):
        if _PLAIN.fullmatch(run[0]) is None:
            yield Decoded(run[0][::-1], range(run.end() - 1, run.start() - 1, -1), range(run.end(), run.start(), -1))


def _rot13(reading: Reading) -> Iterator[Decoded]:
    for run in _CODED.finditer(reading.text):
        if _PLAIN.fullmatch(run[0]) is None:
            yield Decoded(run[0].translate(_ROT13), *_same(*run.span()))


# Sequences of units: numbers, code words, dots and dashes.

Row = list[re.Match[str]]
_GAP = re.compile(r"[\s:,;./|+–—-]{0,3}(?:and\s)?|\)\s?[+.,&]\s?chr\(")
_SPOKEN_GAP = re.compile(r"[\W_]{1,4}(?:(?:and|then)[\W_]{1,3})?")
_MORSE_GAP = re.compile(r"[ \t\n/|]{1,3}")


def _rows(text: str, unit: re.Pattern[str], gap: re.Pattern[str] = _GAP) -> Iterator[Row]:
    """Consecutive units, and those of them with the same separator: `2: 13-1-14` has a row of three."""
    row: Row = []
    for match in unit.finditer(text):
        if (
            row
            and (row[-1].end() != match.start() or gap is not _GAP)
            and not gap.fullmatch(text, row[-1].end(), match.start())
        ):
            yield from _even(text, row)
            row = []
        row.append(match)
    yield from _even(text, row)


def _even(text: str, row: Row) -> Iterator[Row]:
    if len(row) < FEWEST_UNITS:
        return
    yield row
    gaps = [text[one.end() : two.start()] for one, two in pairwise(row)]
    marks = [gap.replace("and", "").strip() for gap in gaps] if len(set(gaps)) > 1 else []
    if len(set(marks)) > 1:
        start = 0
        for at, (mark, after) in enumerate(zip(marks, [*marks[1:], None], strict=True)):
            if mark != after:
                if at + 2 - start >= FEWEST_UNITS:
                    yield row[start : at + 2]
                start = at + 1


def _positions(row: Row) -> tuple[list[int], list[int]]:
    return [match.start() for match in row], [match.end() for match in row]


def _char(code: int) -> str:
    """The character of a code; a blank where there is none, or none that can be read."""
    char = chr(code) if code < 0x110000 else " "
    return char if char.isprintable() else " "


def _coded(unit: str, char: Callable[[re.Match[str]], str]) -> Decoder:
    """A decoder of rows of units that each stand for a character."""
    pattern = re.compile(unit, re.I)

    def decode(reading: Reading) -> Iterator[Decoded]:
        for row in _rows(reading.text, pattern):
            yield Decoded("".join(map(char, row)), *_positions(row))

    return decode


_HEX = re.compile(r"(?:0x|\\x|\\u00|u\+00)?([0-9a-f]{2})", re.I)
_BITS = re.compile(r"(?<![0-9a-z])(?:0b)?([01]+)(?![0-9])", re.I)


def _hex(reading: Reading) -> Iterator[Decoded]:
    for row in _rows(reading.text, _HEX):
        yield from _readable(bytes.fromhex("".join(match[1] for match in row)), *_positions(row))


def _binary(reading: Reading) -> Iterator[Decoded]:
    for run in _BIT_RUN.finditer(reading.text):
        tokens = list(_BITS.finditer(reading.text, *run.span()))
        if all(len(token[1]) in (7, 8) for token in tokens):
            yield from _readable(bytes(int(token[1], 2) for token in tokens), *_positions(tokens))
            continue
        where = [at for token in tokens for at in range(*token.span(1))]
        for size in (7, 8):
            if len(where) % size == 0:
                bits = "".join(token[1] for token in tokens)
                starts = range(0, len(bits), size)
                octets = bytes(int(bits[at : at + size], 2) for at in starts)
                yield from _readable(octets, where[::size], [at + 1 for at in where[size - 1 :: size]])


_BIT_RUN = re.compile(r"(?<![0-9a-z])(?:0b)?[01](?:[\s,;|_.-]{0,3}(?:0b)?[01]){20,}(?![0-9])", re.I)
_KEYPAD = ("", "", "abc", "def", "ghi", "jkl", "mno", "pqrs", "tuv", "wxyz")
KEYPAD = str.maketrans({letter: str(key) for key, letters in enumerate(_KEYPAD) for letter in letters})

_RADIO = (
    "alfa bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec romeo"
    " sierra tango uniform victor whiskey xray yankee zulu"
)
_NAMES = (
    "ay", "bee", "cee see", "dee", "ee", "ef eff", "gee", "aitch", "eye", "jay", "kay", "el ell", "em", "en", "oh",
    "pee", "cue queue", "ar are", "ess", "tee", "you", "vee", "double-u", "ex", "wye why", "zee zed",
)  # fmt: skip
_NUMBERS = "zero one two three four five six seven eight nine"
RADIO: dict[str, str] = {
    **{word: word[0] for word in _RADIO.split()},
    **{"alpha": "a", "juliet": "j", "whisky": "w", "x-ray": "x"},
    **dict(zip(_NUMBERS.split(), "0123456789", strict=True)),
    **{name: letter for letter, names in zip(ascii_lowercase, _NAMES, strict=True) for name in names.split()},
}
"""The letter of each word of the NATO alphabet, and of each name of a letter."""
_AS_IN = r"[\W_]{1,3}(?:as in|is for|is as in|for|like in|like)[\W_]{1,3}"
_SPOKEN = re.compile(rf"(?<![^\W_])(?:([a-z]){_AS_IN}[a-z][^\W_]{{0,20}}+|({'|'.join(RADIO)})|([0-9]))(?![^\W_])", re.I)


def _nato(reading: Reading) -> Iterator[Decoded]:
    for row in _rows(reading.text, _SPOKEN, _SPOKEN_GAP):
        letters = (match[1] or match[3] or RADIO.get(match[2].casefold(), "") for match in row)
        yield Decoded("".join(letters), *_positions(row))


_MORSE = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
    " ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."
)
MORSE: dict[str, str] = dict(zip(_MORSE.split(), f"{ascii_lowercase}0123456789", strict=True))
_DOTS_AND_DASHES = str.maketrans("·•–—−_", "..----")
_SIGNAL = re.compile(r"(?<![\w.·•–—−-])[.·•–—−-]+(?![\w.·•–—−-])")
_SIGNALS = re.compile(r"[.·•–—−-][ \t\n/|]{1,3}[.·•–—−-]")


def _morse(reading: Reading) -> Iterator[Decoded]:
    """Morse code. The dot after its last letter may be a full stop."""
    for row in _rows(reading.text, _SIGNAL, _MORSE_GAP):
        if any("-" in match[0] for match in row):  # then a longer dash is punctuation
            row = [match for match in row if match[0] not in ("–", "—")]
        codes = [match[0].translate(_DOTS_AND_DASHES) for match in row]
        gaps = ["", *(reading.text[one.end() : two.start()].strip(" ") for one, two in pairwise(row))]
        words = len(set(gaps[1:])) > 1
        parts, starts, ends = [], list[int](), list[int]()
        for gap, code, match in zip(gaps, codes, row, strict=True):
            letter = MORSE.get(code, " ")
            parts.append(f" {letter}" if words and gap else letter)
            starts += [match.start()] * len(parts[-1])
            ends += [match.end()] * len(parts[-1])
        if len(set("".join(codes))) > 1:
            yield Decoded("".join(parts), starts, ends)
            if codes[-1].endswith(".") and codes[-1][:-1] in MORSE:
                yield Decoded("".join(parts)[:-1] + MORSE[codes[-1][:-1]], starts, [*ends[:-1], ends[-1] - 1])


# Characters that stand for others.

_BRAILLE = dict(zip("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀", f"{ascii_lowercase} ", strict=True))
_TAGS = {chr(0xE0000 + code): chr(code) for code in range(0x20, 0x7F)}
_FLIPPED = str.maketrans("ɐqɔpǝɟƃɓɥᴉıɾʞlɯuodbɹsʇnʌʍxʎz", "abcdefgghiijklmnopqrstuvwxyz")
_UPSIDE_DOWN = re.compile(r"[ɐɔǝɟƃɓɥᴉıɾʞɯɹʇʌʍʎ]")


def _mapped(chars: dict[str, str]) -> Decoder:
    """A decoder of stretches of characters that each stand for another one."""
    pattern, table = re.compile(f"[{''.join(chars)}]+"), str.maketrans(chars)

    def decode(reading: Reading) -> Iterator[Decoded]:
        for match in pattern.finditer(reading.text):
            yield Decoded(match[0].translate(table), *_same(*match.span()))

    return decode


def _flipped(reading: Reading) -> Iterator[Decoded]:
    """Text that is turned upside down, which reverses it as well."""
    if _UPSIDE_DOWN.search(reading.text):
        text = reading.text.translate(_FLIPPED)
        yield Decoded(text[::-1], range(len(text) - 1, -1, -1), range(len(text), 0, -1))


def _lookalike(reading: Reading) -> Iterator[Decoded]:
    if (alike := reading.alike) is not None:
        spans = [alike.origin(at, at + 1) for at in range(len(alike.folded))]
        yield Decoded(alike.folded, [span.start for span in spans], [span.end for span in spans])


# Escapes, decoded in the text around them.

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(
    r"&#([0-9]{1,7});|(?:&#[xX]|\\u\{|\\U000)([0-9A-Fa-f]{1,6})[;}]?|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})"
)


def _percent(reading: Reading) -> Iterator[Decoded]:
    return _within(reading.text, _PERCENT, _percent_octets)


def _percent_octets(escape: re.Match[str]) -> Decoded:
    octets = bytes.fromhex(escape[0].replace("%", ""))
    starts = range(escape.start(), escape.end(), 3)
    return next(_readable(octets, starts, [at + 3 for at in starts]), Decoded(" ", [escape.start()], [escape.end()]))


def _escaped(reading: Reading) -> Iterator[Decoded]:
    return _within(reading.text, _ESCAPE, _code_point)


def _code_point(escape: re.Match[str]) -> Decoded:
    decimal, *in_hex = escape.groups()
    code = int(decimal) if decimal else int(next(filter(None, in_hex)), 16)
    return Decoded(_char(code), [escape.start()], [escape.end()])


def _within(text: str, pattern: re.Pattern[str], decode: Callable[[re.Match[str]], Decoded]) -> Iterator[Decoded]:
    parts, starts, ends, at = [], list[int](), list[int](), 0
    for escape in (*pattern.finditer(text), None):
        until = escape.start() if escape else len(text)
        decoded = decode(escape) if escape else Decoded("", (), ())
        parts += [text[at:until], decoded.text]
        starts += [*range(at, until), *decoded.starts]
        ends += [*range(at + 1, until + 1), *decoded.ends]
        at = escape.end() if escape else until
    if len(parts) > 2:
        yield Decoded("".join(parts), starts, ends)


DECODERS: tuple[tuple[str, str, Decoder], ...] = (
    ("base64", "mixed", _base64),
    ("base32", "capitals", _base32),
    ("base85", "85", _base85),
    ("hex", "digits", _hex),
    ("binary", "digits", _binary),
    ("octal", "digits", _coded(r"(?:\\|0o|0)?([01][0-7]{2})", lambda unit: _char(int(unit[1], 8)))),
    ("codes", "digits", _coded(r"(?<!\d)\d{2,6}(?!\d)|1[01]\d|12[0-6]|[3-9]\d", lambda unit: _char(int(unit[0])))),
    ("places", "digits", _coded(r"(?<![^\W_])0?([1-9]|1\d|2[0-6])(?![^\W_])", lambda unit: chr(96 + int(unit[1])))),
    (
        "keypad",
        "digits",
        _coded(r"(?<!\d)([2-9])\1{0,3}(?!\d)", lambda unit: _KEYPAD[int(unit[1])][len(unit[0]) - 1 :][:1] or " "),
    ),
    ("percent", "escapes", _percent),
    ("escaped", "escapes", _escaped),
    ("nato", "spoken", _nato),
    ("morse", "signals", _morse),
    ("invisible", "other", _mapped(_TAGS)),
    ("braille", "other", _mapped(_BRAILLE)),
    ("flipped", "other", _flipped),
    ("lookalike", "other", _lookalike),
    ("reversed", "mixed", _reversed),
    ("rot13", "mixed", _rot13),
)
"""The transforms: form, what a text must have for it (see `_traits`), and the decoder."""
ONCE = ("reversed", "rot13", "lookalike")
"""Transforms that are undone once in a chain. `reversed` and `rot13` are undone here for runs that may be encoded."""


def _traits(reading: Reading) -> set[str]:
    """What a text has, checked once for all transforms that need it."""
    text, words = reading.text, reading.words
    spoken = sum(map(RADIO.__contains__, words)) + sum(map(reading.folded.count, (" as in ", " for ", " like ")))
    has = {
        "mixed": _MIXED.search(text) is not None or _MANY_DIGITS.search(text) is not None,
        "capitals": _BASE32.search(text) is not None,
        "digits": reading.digits >= FEWEST_UNITS,
        "escapes": "%" in text or "\\" in text or "&#" in text,
        "spoken": spoken >= FEWEST_UNITS,
        "signals": _SIGNALS.search(text) is not None,
        "other": not text.isascii(),
        "85": "85" in text or "<~" in text,
    }
    return {trait for trait, there in has.items() if there}
