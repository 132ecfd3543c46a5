"""The encoded tier: its forms, in the order of the search. Text that an earlier form matched is not matched again.

| form | what it is, and conditions that exclude chance matches |
|---|---|
| `spaced` | letter by letter; up to four letters must not be part of a longer spelled-out word |
| `split` | in other pieces, at least five letters; set apart, or pieces that are not words |
| `reversed`, `rot13` | whole words or spelled out; set apart if below five letters or an ordinary word |
| `atbash`, `caesar` | the same for at least five letters (Caesar: six, or set apart) |
| `leet` | at least one sign for a letter; signs only: at least five, or set apart |
| `base64` | the secret in common cases as a word of the decoded text, at any position |
| `hex`, `binary`, `codes`, `places` | bytes, character codes, positions in the alphabet (at least four letters) |
| `percent`, `escaped`, `invisible` | percent encoding, HTML and source code escapes, tag characters |
| `nato`, `morse` | NATO alphabet, `L as in Lima`, Morse code (at least four letters) |
| `near` | one typo from five letters, two from nine; no ordinary word; set apart, or one typo in seven letters |
| `acrostic` | first letters of five lines or sentences, or of all; of seven words, or five in whole sentences |

Set apart means in quotes, in emphasis, after a colon up to the end of a clause, or the whole text; see `marks`.
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
