"""Many trials from some: what a program would use on all its specs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from math import sqrt
from random import Random
from typing import Any, TypeVar

from groundswell.engine.ranges import Range
from groundswell.estimate.figures import Estimate, Load
from groundswell.estimate.rehearsal import USUAL, Rehearsed, Shared, Use, rehearse_trial
from groundswell.program.trial import Program

S = TypeVar("S")

SAMPLE = 200
"""So many specs are rehearsed; where there are more, as many of them, drawn by the seed."""
MOST_WORK = 500_000
FEWEST = 10
"""After so many messages of prompts no further spec is begun, if at least so many were rehearsed."""
SURE = 3.0
"""Standard errors by which a range is widened where not all specs were rehearsed."""

TOKENS = "a token is three to six characters of English, up to 8 more frame a message"


def rehearse(
    program: Program[S, Any],
    specs: Iterable[S],
    *,
    replies: tuple[float, float] | None = None,
    replicates: int = 1,
    seed: int = 0,
) -> Estimate:
    """What a program would use on specs: each is run with made-up replies of so many tokens, short and long ones.

    Of more than 200 specs, 200 are drawn, and the ranges widened by what that leaves unsure. There may be millions:
    they are only counted.
    """
    span = USUAL if replies is None else Range(*replies)
    rng = Random(seed)
    drawn, count = reservoir(specs, SAMPLE, rng)
    rng.shuffle(drawn)  # there may be too much work for all of them
    rehearsed = list(_rehearsed(program, drawn, seed, span))
    found = scaled(rehearsed, count, replicates)
    if count > len(rehearsed):
        found = found.assuming(f"{len(rehearsed):,} of {count:,} specs of {program.name} were rehearsed")
    return found.assuming(*assumed(rehearsed, program, replies))


def _rehearsed(program: Program[S, Any], specs: Iterable[S], seed: int, replies: Range) -> Iterator[Rehearsed]:
    work = 0
    for number, spec in enumerate(specs):
        if work > MOST_WORK and number >= FEWEST:
            return
        found = rehearse_trial(program, spec, f"rehearsal/{number}", seed, replies)
        work += found.work
        yield found


def assumed(
    rehearsed: Iterable[Rehearsed], program: Program[Any, Any], replies: tuple[float, float] | None
) -> list[str]:
    """What the figures of a program rest on."""
    low, high = replies or (USUAL.low, USUAL.high)
    asked = any(each.uses for each in rehearsed)
    lengths = f"replies in {program.name} have {low:g} to {high:g} tokens, or max_tokens where that is less"
    notes = dict.fromkeys(note for each in rehearsed for note in each.notes)
    return [*([lengths, TOKENS] if asked else []), *notes]


def reservoir(specs: Iterable[S], most: int, rng: Random) -> tuple[list[S], int]:
    """A sample in which every spec is as likely as any other, in one pass; and how many there were."""
    kept, count = list[S](), 0
    for spec in specs:
        if count < most:
            kept.append(spec)
        elif (place := rng.randrange(count + 1)) < most:
            kept[place] = spec
        count += 1
    return kept, count


def scaled(rehearsed: list[Rehearsed], count: int, replicates: int = 1) -> Estimate:
    """The figures of `count` trials, each with replicates, from those that were rehearsed."""
    trials = Range(count * replicates, count * replicates)
    if not rehearsed:
        return Estimate(trials)
    loads = []
    for model in dict.fromkeys(model for each in rehearsed for model in each.uses):
        uses = [each.uses.get(model, Use()) for each in rehearsed]
        totals = [_total([use[column] for use in uses], count) for column in range(3)]
        shared = [call for each in rehearsed for call in each.shared if call.model == model]
        firsts = list({call.fingerprint: call for call in shared}.values())
        calls, read, written = (
            _asked_once(total, _lows(shared, column), _lows(firsts, column), count / len(uses), replicates)
            for column, total in enumerate(totals)
        )
        turns = reduce(Range.longer, (use.turns for use in uses))
        loads.append(Load(model, calls, read, written, turns))
    return Estimate(trials, tuple(loads), reduce(Range.longer, (each.turns for each in rehearsed)))


def _total(figures: list[Range], count: int) -> Range:
    """The sum over all trials. Where some stand for more of them, it may be less or more by chance."""
    low, high = [each.low for each in figures], [each.high for each in figures]
    if count == len(figures):
        return Range(sum(low), sum(high))
    least, most = sum(low) / len(low) - _doubt(low, count), sum(high) / len(high) + _doubt(high, count)
    return Range(max(0.0, least) * count, most * count)


def _lows(calls: list[Shared], column: int) -> float:
    return sum(call.use[column].low for call in calls)


def _asked_once(total: Range, shared: float, firsts: float, each_for: float, replicates: int) -> Range:
    """A total with replicates. At the least, those who ask the same share a reply, where replies are shared at all.

    `shared` and `firsts` are of the trials that were rehearsed, each of which stands for so many. Where none asks what
    another asks, nor do the others; where some do, nobody knows how many different calls the others would add.
    """
    once = shared * each_for if firsts == shared else firsts
    low = max(0.0, total.low - shared * each_for) * replicates + min(once, total.low * replicates)
    return Range(low, total.high * replicates)


def _doubt(figures: list[float], count: int) -> float:
    n = len(figures)
    if n < 2:
        return 0.0
    mean = sum(figures) / n
    spread = sqrt(sum((figure - mean) ** 2 for figure in figures) / (n - 1))
    return SURE * spread * sqrt((1 - n / count) / n)
