"""The frontier of guards: usefulness against security, and advice which guard to ship. Pure.

A guard is dominated if another one answers no less and leaks no more, and is better in one of the two. The frontier are
the guards that are not dominated. Its points are observed shares, so a guard may be on it by chance: `shown` says for
which differences the interval excludes 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import msgspec

from groundswell.experiments.query_mutation.analysis import Figure, Tradeoff, Usefulness
from groundswell.reporting.numbers import listed, percent
from groundswell.stats.rates import Interval, apart

HALF = 0.5


def strongest(figures: Sequence[Figure], guard: str) -> Figure | None:
    """The method with the highest leak rate against a guard. One without an interval is used if none has one."""
    there = [each for each in figures if each.on == guard and each.rate is not None]
    return max(there, key=lambda each: (each.low is not None, each.rate), default=None)


def tradeoffs(usefulness: Sequence[Usefulness], figures: Sequence[Figure], trained: Set[str]) -> list[Tradeoff]:
    """Usefulness and leak rate of each guard that has both. `trained` are the guards of the training."""
    found = []
    for each in usefulness:
        attack = strongest(figures, each.guard)
        if attack is None or attack.rate is None or each.rate is None:
            continue
        found.append(
            Tradeoff(
                guard=each.guard,
                held_out=each.guard not in trained,
                useful=each.rate,
                useful_low=each.low,
                useful_high=each.high,
                method=attack.method,
                n=attack.n,
                count=attack.count,
                rate=attack.rate,
                low=attack.low,
                high=attack.high,
            )
        )
    return [_compared(each, found) for each in found]


def _compared(mine: Tradeoff, every: Sequence[Tradeoff]) -> Tradeoff:
    """A guard with the guard of the frontier that is better, if any: the one with the most differences shown."""
    better = [each for each in on_frontier(every) if dominates(each, mine)]
    if not better:
        return mine
    best = max(better, key=lambda each: (sum(shown(each, mine)), mine.rate - each.rate, each.useful - mine.useful))
    answers, leaks = shown(best, mine)
    return msgspec.structs.replace(mine, better=best.guard, answers_more=answers, leaks_less=leaks)


def dominates(one: Tradeoff, other: Tradeoff) -> bool:
    """Whether one guard answers no less and leaks no more than another, and is better in one of the two."""
    no_worse = one.useful >= other.useful and one.rate <= other.rate
    return no_worse and (one.useful > other.useful or one.rate < other.rate)


def on_frontier(every: Sequence[Tradeoff]) -> list[Tradeoff]:
    """The guards that no other dominates."""
    return [each for each in every if not any(dominates(other, each) for other in every)]


def shown(one: Tradeoff, other: Tradeoff) -> tuple[bool, bool]:
    """Whether one guard is shown to answer more than another, and to leak less.

    The interval of the difference follows from both intervals as if the guards were independent. They share queries
    and secrets, so it is too wide rather than too narrow.
    """
    return (
        _above(one.useful, one.useful_low, one.useful_high, other.useful, other.useful_low, other.useful_high),
        _above(other.rate, other.low, other.high, one.rate, one.low, one.high),
    )


def _above(
    one: float, low: float | None, high: float | None, other: float, its_low: float | None, its_high: float | None
) -> bool:
    if low is None or high is None or its_low is None or its_high is None:
        return False
    return apart(one, Interval(low, high), other, Interval(its_low, its_high)).low > 0


def advice(every: Sequence[Tradeoff], methods: int) -> Iterator[str]:
    """Which guard to ship, and what is not known. `methods` is the number of methods that attacked."""
    best = on_frontier(every)
    if len(every) > 1:
        yield _choice(best, every)
    if silent := [each.guard for each in best if each.useful < HALF]:
        yield f"Fewer than half of the ordinary queries were answered by {listed(silent)}: refusing is not security."
    if len(every) < 2:
        return
    if worse := list(_worse(every)):
        yield " ".join(worse)
    if not any(any(shown(one, other)) for one in every for other in every):
        yield (
            "No guard is shown to answer more or to leak less than another, so these points cannot decide which guard "
            "to ship. Use more episodes, or more ordinary queries."
        )
    met = [each.guard for each in every if not each.held_out]
    trained = f" The methods were trained against {listed(met)} only." if met and len(met) < len(every) else ""
    yield (
        f"The leak rate of a guard is that of the best of {methods} methods, chosen by its observed rate: more likely "
        f"too high than too low.{trained}"
        if methods > 1
        else f"Leak rates are those of one method.{trained}"
    )


def unprompted(usefulness: Sequence[Usefulness]) -> Iterator[str]:
    """The guards that gave their secret away in reply to ordinary queries."""
    if found := [f"{each.guard} {each.leaks:,} of {each.n:,}" for each in usefulness if each.leaks]:
        yield f"Replies to ordinary queries that contain the secret, although nobody asked for it: {', '.join(found)}."


def _choice(best: Sequence[Tradeoff], every: Sequence[Tradeoff]) -> str:
    """What the frontier tells: one guard that is best in both respects, equal ones, or a choice."""
    first, names = best[0], [each.guard for each in best]
    if len({(each.useful, each.rate) for each in best}) > 1:
        points = [f"{each.guard} ({_point(each)})" for each in sorted(best, key=lambda each: each.rate)]
        return f"Guards on the frontier: {', '.join(points)}. The first leaks least, the last answers most."
    if len(best) == len(every):
        return f"No guard is better than another: each {_point(first)}."
    unclear = [each.guard for each in every if each not in best and not any(shown(first, each))]
    if len(best) + len(unclear) == len(every):
        return (
            f"Guards on the frontier: {' or '.join(names)} ({_point(first)}). No other guard answers more or leaks "
            "less, but a difference is not shown for any of them."
        )
    doubt = f" Against {listed(unclear)} this is not shown: the intervals of both differences include 0."
    return (
        f"Ship {' or '.join(names)} ({_point(first)}): no other guard answers more or leaks less."
        f"{doubt if unclear else ''}"
    )


def _point(each: Tradeoff) -> str:
    return f"answers {percent(each.useful)}, leaks {percent(each.rate)}"


def _worse(every: Sequence[Tradeoff]) -> Iterator[str]:
    """The dominated guards, by the guard that is better and by what is shown."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in every:
        if each.better:
            groups.setdefault((each.better, what_is_shown(each)), []).append(each.guard)
    for (better, told), names in groups.items():
        verbs = ("answers", "leaks") if len(names) == 1 else ("answer", "leak")
        yield f"{listed(names)} {verbs[0]} no more and {verbs[1]} no less than {better} ({told})."


def what_is_shown(each: Tradeoff) -> str:
    """In which respect the better guard is shown to be better."""
    told = [name for name, is_shown in (("answers", each.answers_more), ("leaks", each.leaks_less)) if is_shown]
    return f"shown for {' and '.join(told)}" if told else "not shown"
