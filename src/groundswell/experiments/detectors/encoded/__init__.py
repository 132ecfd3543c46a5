"""The disguises, in the order in which they are looked for: what an earlier one has found, a later one need not.

| form | what it is, and what it takes not to be chance |
|---|---|
| `spaced` | letter by letter; up to four letters must not be part of a longer word that is spelt out |
| `split` | in other pieces, five letters and more: set apart, or pieces that are no words |
| `reversed`, `rot13` | whole words or spelt out; below five letters, and for ordinary words, they must be set apart |
| `atbash`, `caesar` | the same for five letters and more (Caesar: six, or set apart) |
| `leet` | at least one sign for a letter; without any letter left, five signs or set apart |
| `base64` | the secret in its common cases as a word of what was encoded, at any place of it |
| `hex`, `binary`, `codes`, `places` | bytes, codes of characters, places in the alphabet (four letters and more) |
| `percent`, `escaped`, `invisible` | escapes of web addresses, pages and source code; tag characters |
| `nato`, `morse` | the radio alphabet, `L as in Lima`, Morse code (four letters and more) |
| `near` | a slip from five letters on, two from nine on, no ordinary or derived word; set apart, or one slip in seven |
| `acrostic` | first letters of five lines or sentences, or of all; of seven words, or five that are whole sentences |

Set apart means in quotes, in emphasis, after a colon up to the end of a clause, or the whole text: see `marks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from groundswell.experiments.detectors.encoded import acrostic, ciphers, escapes, numbers, pieces, spoken
from groundswell.experiments.detectors.encoded.base64 import base64
from groundswell.experiments.detectors.encoded.leet import leet
from groundswell.experiments.detectors.encoded.near import near
from groundswell.experiments.detectors.reading import Reading
from groundswell.experiments.detectors.secret import Secret
from groundswell.experiments.detectors.spans import Span

Finder = Callable[[Reading, Secret], Iterator[Span]]

ENCODED: tuple[tuple[str, Finder], ...] = (
    ("spaced", pieces.spaced),
    ("split", pieces.split),
    ("reversed", ciphers.backwards),
    ("rot13", ciphers.rot13),
    ("atbash", ciphers.atbash),
    ("caesar", ciphers.caesar),
    ("leet", leet),
    ("base64", base64),
    ("hex", numbers.hexed),
    ("binary", numbers.binary),
    ("codes", numbers.codes),
    ("places", numbers.places),
    ("percent", escapes.percent),
    ("escaped", escapes.escaped),
    ("invisible", escapes.invisible),
    ("nato", spoken.nato),
    ("morse", spoken.morse),
    ("near", near),
    ("acrostic", acrostic.lines),
    ("acrostic", acrostic.sentences),
    ("acrostic", acrostic.words),
)
