"""Embeddings from hashed words and letter triples, so that similar texts have similar vectors."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from functools import lru_cache
from math import hypot
from zlib import crc32

from groundswell.emulator import tokens
from groundswell.program.request import Embed, Embedding, Usage

WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
WIDTH = 384
WIDEST = 4096

WORD_WEIGHT = 1.0
COMMON_WEIGHT = 0.2
TRIPLE_WEIGHT = 0.5
_COMMON = (
    "a an and are as at be but by can could do does for from had has have he her his i if in is it its me my not of on"
    " or our she so that the their them then there they this to was we were what which who will with would you your"
)
COMMON = frozenset(_COMMON.split())
_WORD = re.compile(r"\w+")
LONGEST_KEPT = 40
_SPREAD = 2654435761


def answer(request: Embed) -> Embedding:
    """The embedding that a request asks for."""
    wanted = request.dimensions or WIDTHS.get(request.model.removesuffix(":latest"), WIDTH)
    width = min(max(wanted, 1), WIDEST)
    packed = b"".join(vector.tobytes() for vector in embed(request.texts, width))
    return Embedding(packed, width, Usage(input_tokens=tokens.count_request(request)), request.model)


def embed(texts: Iterable[str], width: int = WIDTH) -> list[array[float]]:
    """One vector of length 1 per text."""
    return [_vector(text, width) for text in texts]


def _vector(text: str, width: int) -> array[float]:
    """Every feature adds its weight, with a sign, at a place; both come from its hash."""
    sums: dict[int, float] = {}
    for word in _WORD.findall(text.casefold()):
        for place, weight in _kept(word, width) if len(word) <= LONGEST_KEPT else _places(word, width):
            sums[place] = sums.get(place, 0.0) + weight
    length = hypot(*sums.values())
    if length == 0.0:
        sums, length = {0: 1.0}, 1.0
    vector = array("f", bytes(4 * width))
    for place, value in sums.items():
        vector[place] = value / length
    return vector


def _places(word: str, width: int) -> list[tuple[int, float]]:
    """The places and weights of a word, and of its letter triples if it is not a stop word."""
    coded = word.encode("utf-8", "surrogatepass")
    if word in COMMON:
        return [_place(coded, COMMON_WEIGHT, width)]
    framed = b"<%b>" % coded
    triples = [_place(framed[at : at + 3], TRIPLE_WEIGHT, width) for at in range(len(framed) - 2)]
    return [_place(coded, WORD_WEIGHT, width), *triples]


_kept = lru_cache(maxsize=8192)(_places)
"""Words repeat."""


def _place(feature: bytes, weight: float, width: int) -> tuple[int, float]:
    """A place and a signed weight, both from the feature's hash."""
    spread = (crc32(feature) * _SPREAD) & 0xFFFFFFFF
    return (spread >> 1) % width, weight if spread & 1 else -weight
