"""Log probabilities of every word of a reply: invented, but deterministic, and a valid distribution. Pure."""

from __future__ import annotations

import re
from math import log
from typing import Any

from groundswell.emulator.chance import Chance

_PIECE = re.compile(r"\s*\S+|\s+")
_OTHERS = (
    " the, a, of, and, to, in, is, it, that, for, on, as, with, but, not, you, this, so, or, all, we, no, an, at, be"
)
OTHERS: tuple[str, ...] = tuple(_OTHERS.split(","))


def logprobs_of(text: str, most: int) -> list[dict[str, Any]]:
    """An entry per word, including the space before it, in the format that OpenAI and Ollama share."""
    chance = Chance(b"logprobs|" + text.encode("utf-8", "surrogatepass"))
    return [_entry(piece, most, chance) for piece in _PIECE.findall(text)]


def _entry(piece: str, most: int, chance: Chance) -> dict[str, Any]:
    """A word with at least half of the probability; each alternative has half of what is left."""
    likely = 0.5 + 0.499 * chance.share()
    start = chance.below(len(OTHERS))
    others = [other for other in (*OTHERS[start:], *OTHERS[:start]) if other != piece]
    top = [_token(piece, log(likely))]
    left = 1.0 - likely
    for other in others[: max(0, most - 1)]:
        left /= 2
        top.append(_token(other, log(left)))
    return {**top[0], "top_logprobs": top[:most]}


def _token(piece: str, logprob: float) -> dict[str, Any]:
    return {"token": piece, "logprob": logprob, "bytes": list(piece.encode("utf-8", "replace"))}
