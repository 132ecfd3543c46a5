"""What was found, in sentences. What is not shown is not claimed: it is called open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groundswell.experiments.prompt_evolution.analysis import SEED, Ahead, Analysis, Gain, Searched, Tested, mean_of
from groundswell.experiments.prompt_evolution.evolving import EVOLUTION
from groundswell.experiments.prompt_evolution.racing import Scores
from groundswell.experiments.prompt_evolution.settings import Evolution
from groundswell.experiments.reporting import numbers
from groundswell.stats import clusters
from groundswell.stats.compare import difference
from groundswell.stats.rates import Interval, Rate

NAMES = {SEED: "seed prompt", EVOLUTION: "evolved prompt", "random": "random search", "best_of_n": "best of N"}
ONE_OF_EACH = "This is about one search of each kind: another seed may come out otherwise."
LEVEL = "95%"
MUCH = 1.1
"""A budget that is larger than another by so much is told to be."""


class Gap(NamedTuple):
    """By how much a prompt did better on the validation set than on the sealed test."""

    value: float | None
    low: float | None = None
    high: float | None = None


def name_of(name: str) -> str:
    """What somebody is called in a report."""
    return NAMES.get(name, name)


def search_of(name: str) -> str:
    """What a search is called."""
    return name if name == EVOLUTION else name_of(name)


def points(value: float | None, signed: bool = True) -> str:
    """A difference of shares, in percentage points."""
    return numbers.NONE if value is None else numbers.number(100 * value, 1, signed)


def between(low: float | None, high: float | None) -> str:
    """Where a difference lies, in percentage points."""
    return numbers.NONE if low is None or high is None else f"{points(low)} to {points(high)}"


def headline(analysis: Analysis) -> str:
    """How good the evolved prompt is on the sealed test, and whether it is better than others."""
    evolved = next(each for each in analysis.tested if each.name == analysis.evolution.name)
    if evolved.accuracy is None:
        return "Nothing can be said of the evolved prompt: all its problems of the sealed test are missing."
    where = numbers.interval(evolved.low, evolved.high)
    first = (
        f"On the sealed test the evolved prompt scores {numbers.percent(evolved.accuracy)} "
        f"({LEVEL} interval {where}; {numbers.plural(evolved.n, 'problem')})."
    )
    alone = ONE_OF_EACH if analysis.searches[1:] else ""
    said = [first, *_standings(analysis), _of_gap(evolved), _of_births(analysis), _of_budgets(analysis), alone]
    return " ".join(each for each in said if each)


def _standings(analysis: Analysis) -> list[str]:
    same = [each.over for each in analysis.gains if is_same(analysis, each.over)]
    found = []
    for standing, words in (("ahead", "It is better than {}."), ("behind", "It is worse than {}.")):
        some = [each for each in analysis.gains if analysis.standing(each.over) == standing]
        found += [words.format(_listed(some))] if some else []
    if SEED in same:
        found.append("It is the seed prompt itself: the search found nothing that was better.")
    if others := [name_of(name) for name in same if name != SEED]:
        found.append(f"{_and(others).capitalize()} came to the same prompt.")
    unknown = [each for each in analysis.gains if analysis.standing(each.over) == "open" and each.over not in same]
    if unknown:
        found.append(f"Whether it is better than {_listed(unknown)} is open.")
    return found


def _of_births(analysis: Analysis) -> str:
    """A search in which most births failed has not been tried: whoever is better than that has not shown much."""
    some = [
        f"{failed_births(each):,} of the {len(each.members):,} births of {the_search(each.name)}"
        for each in analysis.searches
        if 2 * failed_births(each) > len(each.members)
    ]
    return f"Most births failed: {_and(some)}." if some else ""


def failed_births(search: Searched) -> int:
    """How many births came to no prompt, or to one of which too much is missing."""
    return sum(each.fate == "failed" for each in search.members)


def the_search(name: str) -> str:
    """What a search is called in a sentence."""
    return f"the {name}" if name == EVOLUTION else name_of(name)


def _of_budgets(analysis: Analysis) -> str:
    """Others stop at the evolution's asks. In a small search the last birth may be a lot; some find no new prompt."""
    asks = analysis.evolution.asks
    others = [
        f"{search_of(each.name)} had {each.asks:,}"
        for each in analysis.searches[1:]
        if not asks / MUCH <= each.asks <= MUCH * asks
    ]
    return f"The budgets are not the same: {_and(others)} asks, and the evolution {asks:,}." if others else ""


def _of_gap(evolved: Tested) -> str:
    if evolved.validation is None or evolved.accuracy is None:
        return ""
    apart = evolved.validation - evolved.accuracy
    how = "as much" if abs(apart) < 0.0005 else f"{points(abs(apart), False)} points {'more' if apart > 0 else 'less'}"
    return f"On the validation set, which chose it, it had {numbers.percent(evolved.validation)}: {how}."


def _listed(some: Sequence[Gain]) -> str:
    return _and([f"{the(each.over)} ({_figures(each)})" for each in some])


def the(name: str) -> str:
    """With an article, where it is a prompt."""
    called = name_of(name)
    return f"the {called}" if called.endswith("prompt") else called


def _figures(gain: Gain) -> str:
    if gain.value is None:
        return "no problem was met by both"
    return f"{points(gain.value)} points, {between(gain.low, gain.high)}; {p_of(gain.p)}"


def p_of(p: float) -> str:
    """A p in a sentence."""
    shown = numbers.p_value(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def is_same(analysis: Analysis, over: str) -> bool:
    """Whether somebody came to the very prompt that evolved."""
    prompts = {each.name: each.genome for each in analysis.tested}
    return prompts.get(over) == prompts[analysis.evolution.name]


def standing(analysis: Analysis, over: str) -> str:
    """How the evolved prompt stands to another, in a word or two."""
    if is_same(analysis, over):
        return "the same prompt"
    found: Ahead = analysis.standing(over)
    return {"ahead": "better", "behind": "worse", "open": "open"}[found]


def gap(validated: Scores, tested: Tested) -> Gap:
    """Validation less test, with its interval where the scores are there: the sets have no problem in common."""
    there, judged = ([score for score in some if score is not None] for some in (validated, tested.scores))
    if not there or not judged:
        known = tested.validation is not None and tested.accuracy is not None
        return Gap((tested.validation or 0.0) - (tested.accuracy or 0.0)) if known else Gap(None)
    value = (mean_of(there) or 0.0) - (mean_of(judged) or 0.0)
    if all(score in (0, 1) for score in (*there, *judged)):
        one, other = (Rate(round(sum(some)), len(some)) for some in (there, judged))
        return Gap(value, *difference(one, other))
    each = list(range(len(there) + len(judged)))
    both = clusters.rows([*there, *judged], each, each, [[at] for at in each])
    first = both.who < len(there)
    found = clusters.difference(both.among(first), both.among(~first), bounds=Interval(-1.0, 1.0))
    return Gap(found.value, found.low, found.high)


def is_accuracy(settings: Evolution) -> bool:
    """Whether fitness is accuracy and nothing else."""
    parts = settings.fitness
    return not (parts.consistency or parts.efficiency or parts.diversity or parts.length)


def fitness(value: float | None, settings: Evolution) -> str:
    """A fitness as it is shown: accuracy in percent, anything else as a number."""
    return numbers.percent(value) if is_accuracy(settings) else numbers.number(value, 3)
