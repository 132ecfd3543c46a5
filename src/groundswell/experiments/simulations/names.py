"""Given names and family names of people by region, from names.toml, and the gender of given names."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

Gender = Literal["woman", "man"]
_GENDERS: dict[str, Gender] = {
    "woman": "woman",
    "female": "woman",
    "f": "woman",
    "man": "man",
    "male": "man",
    "m": "man",
}
INITIALS = "ABCDEFGHJKLMNPRSTVW"


class NameList(NamedTuple):
    """The names of one language of a region."""

    region: str
    language: str
    women: tuple[str, ...]
    men: tuple[str, ...]
    family: tuple[str, ...]


def gender_in(value: object) -> Gender | None:
    """The gender that the value of an attribute says: woman, female or f; man, male or m."""
    return _GENDERS.get(str(value).casefold())


def gender_of(name: str) -> Gender | None:
    """The gender that the given name at the start of a full name says, if it is known."""
    women, men = known_given_names()
    for given in (name.rpartition(" ")[0], name.partition(" ")[0]):
        if given in women or given in men:
            return "woman" if given in women else "man"
    return None


@cache
def name_lists() -> tuple[NameList, ...]:
    """All lists."""
    return tuple(
        NameList(each["region"], each["language"], *(tuple(each[kind].split()) for kind in ("women", "men", "family")))
        for each in _read()["lists"]
    )


@cache
def regions() -> tuple[str, ...]:
    """The regions that have lists."""
    return tuple(dict.fromkeys(each.region for each in name_lists()))


@cache
def lists_of(region: str) -> tuple[NameList, ...]:
    """The lists of a region. A region that is not known has all of them."""
    return tuple(each for each in name_lists() if each.region.casefold() == region.casefold()) or name_lists()


@cache
def known_given_names() -> tuple[frozenset[str], frozenset[str]]:
    """The given names of women and of men; no name is in both."""
    others = _read()["others"]
    women = frozenset(name for each in name_lists() for name in each.women)
    men = frozenset(name for each in name_lists() for name in each.men)
    return women | set(others["women"]), men | set(others["men"])


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
