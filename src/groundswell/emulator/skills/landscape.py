"""How well a prompt makes the model do: a documented landscape over prompts, with a known optimum.

merit   = sum of the weights of the virtues shown, less the faults shown
          (checking counts fully only where steps are asked for)
ability = FLOOR + SPAN * (1 - exp(-merit / SCALE)), less LENGTH_PENALTY times how far the length is off,
          kept within [0.02, 0.98]
chance  = 1 / (1 + exp(-STEEPNESS * (ability - difficulty)))
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import exp
from typing import NamedTuple

FLOOR = 0.30
SPAN = 0.65
SCALE = 1.6
LENGTH_PENALTY = 0.20
SHORTEST, LONGEST, ENDLESS = 8, 120, 400
STEEPNESS = 8.0
LONGEST_KEPT = 20_000
LONGEST_SEEN = 8_000

VIRTUES: dict[str, float] = {
    "steps": 1.0,
    "example": 0.8,
    "check": 0.6,
    "format": 0.5,
    "careful": 0.4,
    "list": 0.4,
    "role": 0.2,
}
CHECK_ALONE = 0.1
FAULTS: dict[str, float] = {"hurry": 0.7, "guess": 0.8, "contradiction": 0.9}

_SHOWS: dict[str, re.Pattern[str]] = {
    "steps": re.compile(
        r"step[ -]by[ -]step|\bsteps\b|show (?:your|the) (?:work|reasoning)|one (?:step|thing) at a time", re.I
    ),
    "example": re.compile(
        r"(?:\bexample\b|\bfor instance\b|\bQ(?:uestion)?:)[^=]{0,400}(?:=|####|\bA(?:nswer)?:|\\boxed|the answer is)",
        re.I,
    ),
    "check": re.compile(r"\b(?:double[ -])?check\b|\bverify\b|\bmake sure\b|\bgo over\b", re.I),
    "format": re.compile(
        r"####|\\boxed|\bAnswer:|\b(?:only|just) (?:the|a|one) (?:final )?(?:number|result)|\bfinal answer\b"
        r"|\bbare number\b",
        re.I,
    ),
    "careful": re.compile(r"\bcareful(?:ly)?\b|\battenti(?:on|vely)\b|\bclosely\b", re.I),
    "list": re.compile(
        r"\b(?:list|write down|note|name|identify|extract)\b[^.\n]{0,30}\b(?:quantit\w+|numbers|givens?|known\w*"
        r"|values|facts)\b",
        re.I,
    ),
    "role": re.compile(r"\b(?:mathematician|teacher|tutor|accountant|expert|professor)\b", re.I),
    "hurry": re.compile(r"\b(?:quick(?:ly)?|fast|hurry|rush|immediately|right away|as soon as possible)\b", re.I),
    "guess": re.compile(r"\b(?:guess|estimate|roughly|approximate(?:ly)?|ballpark)\b", re.I),
    "silence": re.compile(
        r"\b(?:no|without|skip|omit|do not (?:show|write|give)|don't (?:show|write|give))\b[^.\n]{0,20}"
        r"\b(?:steps?|explanations?|explain\w*|reasoning|work(?:ing)?)\b",
        re.I,
    ),
}


class Traits(NamedTuple):
    """The traits of a prompt; `off` is how far its length is from the ideal, 0 to 1."""

    shown: frozenset[str]
    off: float = 0.0


def traits(prompt: str) -> Traits:
    """What a prompt shows. Asking for steps and forbidding them is a contradiction."""
    return _kept(prompt) if len(prompt) <= LONGEST_KEPT else _traits(prompt)


def _traits(prompt: str) -> Traits:
    seen = prompt[:LONGEST_SEEN]
    shown = {name for name, pattern in _SHOWS.items() if pattern.search(seen)}
    if "silence" in shown:
        shown.remove("silence")
        if "steps" in shown:
            shown.add("contradiction")
    return Traits(frozenset(shown), _off(len(prompt.split())))


_kept = lru_cache(maxsize=2048)(_traits)


def _off(words: int) -> float:
    """0 from SHORTEST to LONGEST words; 1 for none, and from ENDLESS words on."""
    if words < SHORTEST:
        return 1.0 - words / SHORTEST
    return min(1.0, max(0, words - LONGEST) / (ENDLESS - LONGEST))


def ability_of(found: Traits) -> float:
    """The ability that follows from what a prompt shows."""
    shown = found.shown
    merit = sum([weight for name, weight in VIRTUES.items() if name in shown])
    if "check" in shown and "steps" not in shown:
        merit -= VIRTUES["check"] - CHECK_ALONE
    merit -= sum([weight for name, weight in FAULTS.items() if name in shown])
    raw = FLOOR + SPAN * (1.0 - exp(-merit / SCALE)) - LENGTH_PENALTY * found.off
    return min(0.98, max(0.02, raw))


def ability(prompt: str) -> float:
    """The ability that a prompt gives the model, between 0 and 1."""
    return ability_of(traits(prompt))


def chance(ability: float, difficulty: float) -> float:
    """The probability that a problem of this difficulty is solved."""
    return 1.0 / (1.0 + exp(-STEEPNESS * (ability - difficulty)))


SEED_PROMPT = "Solve the following word problem and give the number."
OPTIMUM = (
    "You are a patient maths teacher. Read the problem carefully and list the quantities it gives. "
    "Work step by step, and check every step before you go on. "
    "End with a line of the form: #### number\n"
    "Example: Tom has 3 pens and buys 4 more. How many pens does he have? 3 + 4 = 7\n#### 7"
)
SEED_ABILITY = ability(SEED_PROMPT)
OPTIMUM_ABILITY = ability(OPTIMUM)
