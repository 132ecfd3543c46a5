"""Many trials from some: what a program would use on all its specs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import sqrt
from random import Random
from typing import Any, TypeVar

from groundswell.engine.spending import Range
from groundswell.estimate.figures import Estimate, Load
from groundswell.estimate.rehearsal import USUAL, Rehearsed, Shared, Use, rehearse_trial
from groundswell.program.trial import Program

S = TypeVar("S")

SAMPLE = 2000
"""So many specs are rehearsed; where there are more, as many of them, drawn by the seed."""
MOST_WORK = 250_000
FEWEST = 10
"""After so many messages of prompts, a second or two, no further spec is begun, if at least so many were rehearsed."""
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
    """What a program would use on specs: each is run with made-up replies, short ones and ones as long as they may be.

    `replies` says how many tokens short ones have, and long ones where a request sets no `max_tokens`.

    All of them, as a rule; of more than 2,000, or where conversations are long, some are drawn, and the ranges widened
    by what that leaves unsure. There may be millions: they are only counted.
    """
    span = USUAL if replies is None else Range(*replies)
    rng = Random(seed)
    drawn, count = reservoir(enumerate(specs), SAMPLE, rng)
    rehearsed = rehearse_some(program, drawn, rng, seed, span)
    return scaled(rehearsed, count, replicates).assuming(*assumed(rehearsed, count, program, replies))


def rehearse_some(
    program: Program[S, Any],
    numbered: Iterable[tuple[int, S]],
    rng: Random,
    seed: int,
    replies: Range = USUAL,
    *,
    work: int = 0,
) -> list[Rehearsed]:
    """Rehearse specs, any of them first, until that is too much work (so much was done before); in their order."""
    found = dict[int, Rehearsed]()
    for number, spec in rng.sample(kept := list(numbered), len(kept)):
        if work > MOST_WORK and len(found) >= FEWEST:
            break
        found[number] = rehearse_trial(program, spec, f"rehearsal/{number}", seed, replies)
        work += found[number].work
    return [found[number] for number in sorted(found)]


def assumed(
    rehearsed: Sequence[Rehearsed], count: int, program: Program[Any, Any], replies: tuple[float, float] | None = None
) -> list[str]:
    """What the figures of a program on so many specs rest on."""
    some = [f"{len(rehearsed):,} of {count:,} specs of {program.name} were rehearsed"] * (count > len(rehearsed))
    low, _ = replies or (USUAL.low, USUAL.high)
    asked = any(each.uses for each in rehearsed)
    least = "1 token" if low == 1 else f"{low:g} tokens"
    lengths = f"replies in {program.name} have at least {least}, and at most max_tokens"
    notes = dict.fromkeys(note for each in rehearsed for note in each.notes)
    return [*some, *([lengths, TOKENS] if asked else []), *notes]


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
        totals = [_total([use[column] for use in uses], count) * replicates for column in range(3)]
        spared = _spared(
            [one for each in rehearsed for one in each.shared if one.model == model], count / len(uses), replicates
        )
        calls, read, written = (
            Range(max(0.0, total.low - less), total.high) for total, less in zip(totals, spared, strict=True)
        )
        turns = reduce(Range.longer, (use.turns for use in uses))
        prompt = max(use.prompt.high for use in uses)
        loads.append(Load(model, calls, read, written, turns, prompt))
    return Estimate(trials, tuple(loads), reduce(Range.longer, (each.turns for each in rehearsed)))


def _spared(shared: list[Shared], times: float, replicates: int) -> tuple[float, float, float]:
    """Calls, tokens in and tokens out that are not used, at the most, since equal requests share a reply. Replies that
    are made up are equal: requests that hold them are seldom as equal in earnest.
    """
    every = [(1.0, one.input, one.output) for one in shared]
    once = {one.print: (1.0, one.input, one.output) for one in shared}.values()
    calls, read, written = (
        sum(figures[column] for figures in every) * times * replicates - sum(figures[column] for figures in once)
        for column in range(3)
    )
    return calls, read, written


def _total(figures: list[Range], count: int) -> Range:
    """The sum over all trials. Where some stand for more of them, it may be less or more by chance."""
    low, high = [each.low for each in figures], [each.high for each in figures]
    if count == len(figures):
        return Range(sum(low), sum(high))
    least, most = sum(low) / len(low) - _doubt(low, count), sum(high) / len(high) + _doubt(high, count)
    return Range(max(0.0, least) * count, most * count)


def _doubt(figures: list[float], count: int) -> float:
    n = len(figures)
    if n < 2:
        return 0.0
    mean = sum(figures) / n
    spread = sqrt(sum((figure - mean) ** 2 for figure in figures) / (n - 1))
    return SURE * spread * sqrt((1 - n / count) / n)
