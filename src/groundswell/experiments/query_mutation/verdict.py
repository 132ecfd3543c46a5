"""Who wins, in a sentence; and what there is to know before one believes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundswell.experiments.query_mutation.analysis import Contrast, Figure

TRAINED, HELD_OUT = "trained", "held out"
SUBJECT = "ppo"
"""Who is compared with everybody else."""
UNTRAINED = ("noop", "random")
ALPHA = 0.05
UNEQUAL = 0.02
"""From this difference on, missing episodes may be why methods differ."""
_NAMES = {"bandit": "the bandit", "random": "random rewording", "noop": "asking again (noop)"}
_EPISODES = {HELD_OUT: "held-out episodes", TRAINED: "episodes of the guards that it was trained on"}


def verdict(figures: Sequence[Figure], contrasts: Sequence[Contrast]) -> str:
    """Who wins on the guards that no training met; on those that it met, if there are no others."""
    place = HELD_OUT if any(each.on == HELD_OUT for each in figures) else TRAINED
    here = [each for each in contrasts if each.on == place and each.difference is not None]
    if not here:
        return _without(figures, place)
    rival = max(here, key=lambda each: each.against_rate or 0.0)
    alone = "" if place == HELD_OUT else " No guard was held out: this says nothing of others."
    return f"{_who(rival, here)}{alone}{_one_only(figures)}"


def _who(rival: Contrast, here: Sequence[Contrast]) -> str:
    if not any(each.rate or each.against_rate for each in here):
        return f"Nobody wins: none of the {_EPISODES[rival.on]} ended with a leak, whoever reworded."
    better = [each for each in here if _shown(each) and _difference(each) > 0]
    if len(better) == len(here):
        best = ", the best of the others" if len(here) > 1 else ""
        return f"{rival.method} wins: it {_compared(rival, best)}."
    if _shown(rival) and _difference(rival) < 0:
        return f"{rival.method} loses: it {_compared(rival)}."
    also = f" It does better than {_listed(each.against for each in better)}." if better else ""
    return f"Nobody is shown to be best: {rival.method} {_compared(rival)}.{also}"


def _compared(each: Contrast, more: str = "") -> str:
    episodes = f"the {each.n:,} {_EPISODES[each.on]} that both have" if each.left_out else _EPISODES[each.on]
    rates = f"{_percent(each.rate)} of {episodes} against {_percent(each.against_rate)}"
    return f"leaks in {rates} for {_NAMES.get(each.against, each.against)}{more}: {_points(each)}"


def _points(each: Contrast) -> str:
    """So many points more or less, and from how many to how many, in that direction."""
    sign = -1 if _difference(each) < 0 else 1
    value = _whole(abs(_difference(each)))
    said = f"{value} point{'' if value == '1' else 's'} {'less' if sign < 0 else 'more'}"
    if each.low is None or each.high is None:
        return f"{said} (no interval: {each.reason})"
    ends = sorted((sign * each.low, sign * each.high))
    return f"{said} (95% interval {' to '.join(_whole(end) for end in ends)})"


def _whole(share: float) -> str:
    """In points: a half goes up, so that differences of what is shown are as good as they can be."""
    points = int(round(100 * abs(share), 6) + 0.5)
    return f"−{points}" if share < 0 and points else f"{points}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{_whole(share)}%"


def _difference(each: Contrast) -> float:
    assert each.difference is not None
    return each.difference


def _shown(each: Contrast) -> bool:
    return each.p is not None and each.p < ALPHA


def _listed(names: Iterable[str]) -> str:
    every = [_NAMES.get(name, name) for name in names]
    return " and ".join([", ".join(every[:-1]), every[-1]] if len(every) > 1 else every)


def _without(figures: Sequence[Figure], place: str) -> str:
    """What is said where nothing can be compared."""
    rates = {each.method: _percent(each.rate) for each in figures if each.on == place and each.rate is not None}
    if not rates and any(each.rate is not None for each in figures):
        return "No held-out episode is usable, so nothing can be said about guards that no training met."
    if not rates:
        return "No episode is usable, so nothing can be said of anybody."
    why = (
        f"no usable episode of {SUBJECT} is one that others have"
        if SUBJECT in rates
        else f"{SUBJECT} has no usable episodes"
    )
    return f"Nothing to compare: {why}. Leak rates: {', '.join(f'{method} {rate}' for method, rate in rates.items())}."


def _one_only(figures: Sequence[Figure]) -> str:
    if _learners(figures) > 1:
        return ""
    return " This is about one training of each: another may come out otherwise."


def _learners(figures: Iterable[Figure]) -> int:
    """How many of each kind were trained, where there are fewest."""
    return min((each.learners for each in figures if each.method not in UNTRAINED), default=1)


def notes(figures: Sequence[Figure], contrasts: Sequence[Contrast], *, by_secret: bool) -> list[str]:
    """What the intervals speak of, and what to beware of."""
    found = [_of_learners(_learners(figures)) if any(each.method not in UNTRAINED for each in figures) else ""]
    if by_secret:
        found.append(
            "Intervals are for other secrets like these, behind the same guards and asked for by the same queries."
        )
    else:
        found.append("There are too few secrets to tell how secrets differ: intervals are for these secrets alone.")
    found += [_missing(figures), _left_out(contrasts)]
    return [each for each in found if each]


def _of_learners(learners: int) -> str:
    if learners == 1:
        return (
            "One learner of each kind was trained. Intervals speak of these policies and not of the methods that made "
            "them: train several (repeats of 3 or more) to compare methods."
        )
    few = " Two tell little about how they differ: intervals are wide, or too narrow if both happen to agree."
    many = f"{learners} learners of each kind were trained. Their intervals allow for other trainings."
    return many + (few if learners == 2 else "")


def _missing(figures: Sequence[Figure]) -> str:
    every = [each for each in figures if each.on in (HELD_OUT, TRAINED)]
    planned, missing = dict[str, int](), dict[str, int]()
    for each in every:
        planned[each.method] = planned.get(each.method, 0) + each.n + each.missing
        missing[each.method] = missing.get(each.method, 0) + each.missing
    if not any(missing.values()):
        return ""
    told = ", ".join(f"{method} {missing[method]:,} of {planned[method]:,}" for method in planned)
    shares = [missing[method] / planned[method] for method in planned if planned[method]]
    beware = (
        " They differ from method to method: rates may be of different episodes, so go by the contrasts."
        if max(shares) - min(shares) >= UNEQUAL
        else ""
    )
    return f"Episodes that a fault broke off are missing and count for nothing: {told}.{beware}"


def _left_out(contrasts: Sequence[Contrast]) -> str:
    most = max((each.left_out for each in contrasts), default=0)
    return f"Contrasts leave out episodes that one side lacks, {most:,} at the most." if most else ""
