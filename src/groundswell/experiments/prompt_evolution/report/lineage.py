"""Who descends from whom: the line from a seed to a winner, all its ancestors, and who is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groundswell.experiments.prompt_evolution.population import LIVING, Member

MOST_DRAWN = 400
"""Genomes in a drawing, beside the line of the winner."""


def by_birth(members: Iterable[Member]) -> dict[int, Member]:
    """Members by the number of their birth."""
    return {each.born: each for each in members}


def line(members: Mapping[int, Member], born: int) -> list[Member]:
    """From a seed to this one: each was made from the one before it, and may have something of a second parent."""
    found = list[Member]()
    at: int | None = born
    while at is not None and at in members:
        each = members[at]
        found.append(each)
        at = next((parent for parent in each.parents[:1] if parent < at), None)
    return found[::-1]


def ancestors(members: Mapping[int, Member], born: int) -> set[int]:
    """All whom this one has something of, and itself."""
    found, going = set[int](), [born]
    while going:
        at = going.pop()
        if at in found or at not in members:
            continue
        found.add(at)
        going += [parent for parent in members[at].parents if parent < at]
    return found


def drawn(members: Sequence[Member], wanted: set[int], most: int = MOST_DRAWN) -> list[Member]:
    """Those who lived, in order of birth; where they are too many, the wanted ones and every so manieth of the rest."""
    lived = [each for each in members if each.fate in LIVING or each.born in wanted]
    rest = [each.born for each in lived if each.born not in wanted]
    step = -(-len(rest) // most) if most else 1
    kept = wanted | set(rest[:: max(1, step)])
    return [each for each in lived if each.born in kept]


def record_breakers(members: Iterable[Member]) -> set[int]:
    """Those who were fitter than everybody born before them."""
    found, best = set[int](), float("-inf")
    for each in members:
        if each.fate == "lives" and each.fitness > best:
            found.add(each.born)
            best = each.fitness
    return found
