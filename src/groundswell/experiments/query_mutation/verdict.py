"""The main finding in one sentence, and caveats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundswell.experiments.query_mutation.analysis import Contrast, Figure
from groundswell.reporting.numbers import listed

TRAINED, HELD_OUT = "trained", "held out"
SUBJECT = "ppo"
"""The method that is compared with all others."""
UNTRAINED = ("noop", "random", "best-of-n", "pair", "tap", "crescendo")
COULD_WIN = ("sequence", "single", "best-of-n", "bandit", "contextual", "q-learning", "ppo-blind")
"""Baselines that could win. The verdict names those that were left out."""
ALPHA = 0.05
UNEQUAL = 0.02
"""From this difference of missing shares on, missing episodes may explain a difference between methods."""
_NAMES = {
    "bandit": "the bandit",
    "random": "random rewording",
    "noop": "no rewording (noop)",
    "sequence": "the best fixed sequence",
    "single": "the best single mutation",
    "best-of-n": "best of n",
    "contextual": "the contextual bandit",
    "q-learning": "Q-learning",
    "ppo-blind": "ppo without embeddings",
}
_GUARDS = {HELD_OUT: "held-out guards", TRAINED: "the guards of the training"}


def verdict(figures: Sequence[Figure], contrasts: Sequence[Contrast]) -> str:
    """The comparison on held-out guards; on the guards of the training if none were held out."""
    place = HELD_OUT if any(each.on == HELD_OUT for each in figures) else TRAINED
    if figures and not any(each.method == SUBJECT for each in figures):
        return _of_baselines([each for each in figures if each.on == place and each.rate is not None])
    here = [each for each in contrasts if each.on == place and each.difference is not None]
    if not figures:
        return "Nothing was evaluated."
    if not here:
        if not {each.method for each in figures} - {SUBJECT} and any(each.rate is not None for each in figures):
            return f"No claim: {SUBJECT} was compared with no other method."
        return _without(figures, place)
    rival = max(here, key=lambda each: each.against_rate or 0.0)
    alone = "" if place == HELD_OUT else " No guard was held out, so this does not generalise to other guards."
    leaked = any(each.count for each in figures if each.on == place)
    return f"{_who(rival, here, leaked=leaked)}{alone}{_left_out_methods(figures)}{_one_only(figures)}"


def _of_baselines(figures: Sequence[Figure]) -> str:
    """The verdict of a test without a trained policy."""
    best = max(figures, key=lambda each: each.rate or 0.0, default=None)
    if best is None:
        return "No result: no episode is usable."
    ends = (
        f"no interval: {best.reason}"
        if best.low is None
        else (f"95% interval {_percent(best.low)} to {_percent(best.high)}")
    )
    if not best.count:
        return f"No episode ended with a leak: 0 of {best.n:,} for each method; {ends}."
    name = _NAMES.get(best.method, best.method)
    return f"The strongest method is {name}: {_percent(best.rate)} of {best.n:,} episodes ended with a leak; {ends}."


def _who(rival: Contrast, here: Sequence[Contrast], *, leaked: bool) -> str:
    if not leaked:
        return f"No method is best: no episode on {_GUARDS[rival.on]} ended with a leak."
    better = [each for each in here if _shown(each) and _difference(each) > 0]
    if len(better) == len(here) and not {each.against for each in here} & {*COULD_WIN}:
        weak = _named(each.against for each in here)
        only = f"{rival.method} is better than {weak}, but no baseline that could win was evaluated"
        return f"{only}: {_compared(rival)}."
    if len(better) == len(here):
        best = ", the best other method" if len(here) > 1 else ""
        return f"{rival.method} is best: {_compared(rival, best)}."
    if _shown(rival) and _difference(rival) < 0:
        return f"{rival.method} is not best: {_compared(rival)}."
    also = f" {rival.method} is better than {_named(each.against for each in better)}." if better else ""
    return f"No method is shown to be best: {_compared(rival)}.{also}"


def _compared(each: Contrast, more: str = "") -> str:
    guards = _GUARDS[each.on]
    episodes = f"the {each.n:,} episodes on {guards} that both completed" if each.left_out else guards
    rates = f"{_percent(each.rate)} for {each.method} and {_percent(each.against_rate)}"
    return f"the leak rate on {episodes} is {rates} for {_NAMES.get(each.against, each.against)}{more}; {_points(each)}"


def _points(each: Contrast) -> str:
    """The difference in percentage points, with its interval."""
    said = f"a difference of {_signed(_difference(each))} points"
    if each.low is None or each.high is None:
        return f"{said} (no interval: {each.reason})"
    return f"{said} (95% interval {_signed(each.low)} to {_signed(each.high)})"


def _signed(share: float) -> str:
    points = _whole(share)
    return points if points == "0" or share < 0 else f"+{points}"


def _whole(share: float) -> str:
    """Percentage points, rounded half up."""
    points = int(round(100 * abs(share), 6) + 0.5)
    return f"−{points}" if share < 0 and points else f"{points}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{_whole(share)}%"


def _difference(each: Contrast) -> float:
    assert each.difference is not None
    return each.difference


def _shown(each: Contrast) -> bool:
    return each.p is not None and each.p < ALPHA


def _named(names: Iterable[str], last: str = "and") -> str:
    return listed([_NAMES.get(name, name) for name in names], last)


def _without(figures: Sequence[Figure], place: str) -> str:
    """The verdict if methods cannot be compared."""
    rates = {each.method: _percent(each.rate) for each in figures if each.on == place and each.rate is not None}
    if not rates and any(each.rate is not None for each in figures):
        return "No comparison: no episode on held-out guards is usable."
    if not rates:
        return "No comparison: no episode is usable."
    why = (
        f"{SUBJECT} has no usable episode in common with another method on {_GUARDS[place]}"
        if SUBJECT in rates
        else f"{SUBJECT} has no usable episodes on {_GUARDS[place]}"
    )
    return f"No comparison: {why}. Leak rates there: {', '.join(f'{method} {rate}' for method, rate in rates.items())}."


def _left_out_methods(figures: Sequence[Figure]) -> str:
    """Names the baselines that could win and were not evaluated."""
    missing = [method for method in COULD_WIN if all(each.method != method for each in figures)]
    return f" Not compared with {_named(missing, 'or')}." if missing else ""


def _one_only(figures: Sequence[Figure]) -> str:
    if _learners(figures) > 1:
        return ""
    return " This compares one training of each method; another training may give a different result."


def _learners(figures: Iterable[Figure]) -> int:
    """The number of learners of the method with the fewest."""
    return min((each.learners for each in figures if each.method not in UNTRAINED), default=1)


def notes(figures: Sequence[Figure], contrasts: Sequence[Contrast], *, by_secret: bool) -> list[str]:
    """What the intervals cover, and caveats."""
    if not figures:
        return []
    found = [_of_learners(_learners(figures)) if any(each.method not in UNTRAINED for each in figures) else ""]
    if by_secret:
        found.append(
            "Intervals generalise to other secrets of the same kind, with the same guards and the same first queries."
        )
    else:
        found.append("There are too few secrets to estimate how secrets differ. Intervals apply to these secrets only.")
    found += [_missing(figures), _left_out(contrasts)]
    return [each for each in found if each]


def _of_learners(learners: int) -> str:
    if learners == 1:
        return (
            "One learner of each kind was trained. Intervals apply to these policies, not to the training methods. To "
            "compare methods, train several learners (repeats of 3 or more)."
        )
    few = " Two learners say little about the variation: intervals are wide, or too narrow if both happen to agree."
    many = f"{learners} learners of each kind were trained. Intervals include the variation between trainings."
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
        " The share differs by method, so rates may be based on different episodes. Use the paired comparisons."
        if max(shares) - min(shares) >= UNEQUAL
        else ""
    )
    return (
        f"Episodes that ended with a fault are missing: {told}. Rates and means allow for the step at which each "
        f"ended, assuming that faults occur at random.{_range(every)}{beware}"
    )


def _range(figures: Sequence[Figure]) -> str:
    """The leak rates if none of the missing episodes had leaked, and if all had."""
    place = HELD_OUT if any(each.on == HELD_OUT for each in figures) else TRAINED
    found = [each for each in figures if each.on == place and each.missing]
    ends = [(each.method, each.n + each.missing, each.count, each.count + each.missing) for each in found]
    told = [f"{method} {_percent(low / n)} to {_percent(high / n)}" for method, n, low, high in ends]
    return f" If none or all of these had leaked on {_GUARDS[place]}: {', '.join(told)}." if told else ""


def _left_out(contrasts: Sequence[Contrast]) -> str:
    most = max((each.left_out for each in contrasts), default=0)
    return (
        f"Paired comparisons omit episodes that are missing for one of the two methods (at most {most:,})."
        if most
        else ""
    )
