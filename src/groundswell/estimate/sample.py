"""Estimates many trials of a program by rehearsing a sample of its specs. Pure."""

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
"""Maximum number of specs that are rehearsed. If there are more, a sample is drawn by the seed."""
MOST_WORK = 250_000
FEWEST = 10
"""Work, in prompt messages (a second or two), and minimum number of specs, after which rehearsing stops."""
SURE = 3.0
"""Standard errors by which a range is widened if not all specs were rehearsed."""

TOKENS = "one token is 3 to 6 characters of English text; each message adds up to 8 tokens"


def rehearse(
    program: Program[S, Any],
    specs: Iterable[S],
    *,
    replies: tuple[float, float] | None = None,
    replicates: int = 1,
    seed: int = 0,
) -> Estimate:
    """Estimate what a program would use on specs. No request is sent.

    The program runs with made-up replies, once with short ones and once with the longest ones that its requests allow.
    If there are more than 2,000 specs, or conversations are long, a sample is rehearsed and the ranges are widened
    accordingly. There may be millions of specs: the others are only counted.

    Args:
        program: The program.
        specs: Specs of the trials.
        replies: Tokens of a short reply, and of a long one if the request sets no `max_tokens`.
        replicates: Number of trials for each spec.
        seed: Seed of the sample and of the trials.

    Returns:
        The estimate. Combine it with others by `+`, `|` and `beside`.
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
    """Rehearse specs in random order until that is too much work; `work` was done before. Returns them in order."""
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
    """The assumptions behind the figures of a program."""
    some = [f"{len(rehearsed):,} of {count:,} specs of {program.name} were rehearsed"] * (count > len(rehearsed))
    low, _ = replies or (USUAL.low, USUAL.high)
    asked = any(each.uses for each in rehearsed)
    least = "1 token" if low == 1 else f"{low:g} tokens"
    lengths = f"replies in {program.name} have at least {least} and at most max_tokens"
    notes = dict.fromkeys(note for each in rehearsed for note in each.notes)
    return [*some, *([lengths, TOKENS] if asked else []), *notes]


def reservoir(specs: Iterable[S], most: int, rng: Random) -> tuple[list[S], int]:
    """A uniform random sample of the specs in one pass, and how many specs there were."""
    kept, count = list[S](), 0
    for spec in specs:
        if count < most:
            kept.append(spec)
        elif (place := rng.randrange(count + 1)) < most:
            kept[place] = spec
        count += 1
    return kept, count


def scaled(rehearsed: list[Rehearsed], count: int, replicates: int = 1) -> Estimate:
    """The figures of `count` trials with their replicates, extrapolated from the rehearsed ones."""
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
    """Requests, input tokens and output tokens that are saved at most, because equal requests share a reply.

    Made-up replies are all equal, so requests that contain them are equal more often than real ones.
    """
    every = [(1.0, one.input, one.output) for one in shared]
    once = {one.print: (1.0, one.input, one.output) for one in shared}.values()
    calls, read, written = (
        sum(figures[column] for figures in every) * times * replicates - sum(figures[column] for figures in once)
        for column in range(3)
    )
    return calls, read, written


def _total(figures: list[Range], count: int) -> Range:
    """The sum over all trials. If a sample was rehearsed, the range is widened."""
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
