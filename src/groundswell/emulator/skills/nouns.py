"""What the numbers of a word problem count: the nouns beside them, and which of them are the same thing."""

from __future__ import annotations

import re

_STOPS = (
    "a an the to of on in at for from with by into among between and or but then than as each every apiece per"
    " off away back more fewer less now left today yesterday tomorrow later again altogether together total there"
    " here it them him her he she they we i you who that which if when while after before during until is are was"
    " were be do does did has have had can could will would must should may might cost costs get gets got go goes"
    " come comes came leave leaves fly flew arrive arrived join joined remain remains stay stays need needs weigh"
    " weighs hold holds contain contains sit sits fit fits make makes made give gives gave eat eats ate sell sells"
    " sold buy buys bought lose loses lost find finds found break breaks broke spend spends spent pay pays paid"
    " earn earns save saves use uses travel travels run runs drive drives work works read reads monday tuesday"
    " wednesday thursday friday saturday sunday additional extra another other new out up down around about share"
    " shares split splits"
)
STOPS = frozenset(_STOPS.split())
_AFTER = re.compile(r"%?\s*((?:[A-Za-z'’-]+\s*){0,6})")
_OF_THE = re.compile(r"\s+of\s+(?:the|her|his|their|its|my|our|your|these|those)\s+", re.I)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"[A-Za-z'’-]+")
MONEY = frozenset({"dollar", "cent", "euro", "pound", "money", "buck"})
_LENGTHS = frozenset(
    {"m", "meter", "metre", "cm", "km", "kilometer", "kilometre", "foot", "feet", "inch", "mile", "yard"}
)


def stem(word: str) -> str:
    """A noun without the ending of its plural."""
    word = word.lower()
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word


def phrase(text: str, at: int) -> tuple[str, ...]:
    """The words from a place on, up to one that ends a noun phrase; stems, the noun itself last."""
    match = _AFTER.match(text, at)
    skipping, words = True, []
    for word in _WORD.findall(match[1]) if match is not None else []:
        lower = word.lower()
        if lower in STOPS or word[0].isupper():
            if skipping and lower in ("more", "fewer", "less", "other", "new", "extra", "additional"):
                continue
            break
        skipping = False
        words.append(stem(lower))
    return tuple(words)


def counted(text: str, number: str) -> tuple[str, ...]:
    """What a number of a clause counts; empty where the clause does not say."""
    for match in _NUMBER.finditer(text):
        if match[0] == number:
            of = _OF_THE.match(text, match.end())
            return phrase(text, of.end() if of is not None else match.end())
    return ()


def is_money(noun: str) -> bool:
    """Whether a noun is what prices are given in."""
    return noun in MONEY


def is_length(noun: str) -> bool:
    """Whether a noun measures a distance."""
    return noun in _LENGTHS
