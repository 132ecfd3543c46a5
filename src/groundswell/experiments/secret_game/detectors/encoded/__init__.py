"""The disguises, in the order in which they are looked for: what an earlier one has found, a later one need not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from groundswell.experiments.secret_game.detectors.encoded import acrostic, ciphers, escapes, numbers, pieces, spoken
from groundswell.experiments.secret_game.detectors.encoded.base64 import base64
from groundswell.experiments.secret_game.detectors.encoded.leet import leet
from groundswell.experiments.secret_game.detectors.encoded.near import near
from groundswell.experiments.secret_game.detectors.reading import Reading
from groundswell.experiments.secret_game.detectors.secret import Secret
from groundswell.experiments.secret_game.detectors.spans import Span

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
