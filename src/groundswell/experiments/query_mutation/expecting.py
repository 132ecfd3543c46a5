"""Estimates of steps for the drivers: a sample of steps with each mutation is rehearsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from random import Random

import msgspec

from groundswell.engine.spending import Range
from groundswell.estimate.figures import Estimate
from groundswell.estimate.made_up import words
from groundswell.estimate.rehearsal import Rehearsed
from groundswell.estimate.sample import TOKENS, rehearse, rehearse_some, scaled
from groundswell.experiments.query_mutation.guards import Exchange
from groundswell.experiments.query_mutation.guessing import Guessing, guess
from groundswell.experiments.query_mutation.mutators import USUAL
from groundswell.experiments.query_mutation.stepping import Encode, Step, encode, step
from groundswell.experiments.query_mutation.task import Ordinary, Task
from groundswell.experiments.query_mutation.usefulness import ordinary, ordinary_queries

SHORTEST = 5
"""Tokens of a short reply."""
ENOUGH, ENOUGH_LONG = 16, 6
"""Number of rehearsed steps per mutation: first steps, and last steps of maximum length."""


MOST_TOKENS = 500
"""Tokens of the longest reply that is rehearsed: longer ones take long to score. Their tokens are extrapolated."""
MOST_EXCHANGES = 20
"""Exchanges of the longest conversation that is rehearsed. Longer ones are extrapolated, too."""


def expected_encoding(task: Task) -> Estimate:
    """The estimate for embedding the queries of a task."""
    found = rehearse(encode, [Encode(task.embedder, task.width, tuple(dict.fromkeys(task.queries)))])
    return msgspec.structs.replace(found, assumptions=())


def expected_steps(task: Task, count: Range, after_each_other: Range) -> Estimate:
    """The estimate for `count` steps, of which `after_each_other` run in sequence.

    The choices of a learner are unknown, so the range goes from the mutation with the fewest requests to that with the
    most.
    """
    given, task = task, _shortened(task)
    some = [_rehearsed(task, mutator, long=long) for mutator in task.mutators for long in (False, True)]
    ends = [round(many) for many in (count.low, count.high)]
    found = reduce(or_, (scaled(each[:many], many) for each in some for many in ends))
    loads = tuple(msgspec.structs.replace(load, turns=_times(load.turns, after_each_other)) for load in found.loads)
    turns = _times(found.turns, after_each_other)
    notes = dict.fromkeys(note for each in some for one in each for note in one.notes)
    return _lengthened(Estimate(count, loads, turns), given).assuming(*_assumed(given), *notes)


def expected_ordinary(task: Task, queries: Sequence[Ordinary], *, together: bool) -> Estimate:
    """The estimate for asking every guard of the task each ordinary query."""
    given, task = task, _shortened(task)
    specs = [spec for _, spec in ordinary_queries(task, queries, 0)]
    found = rehearse(ordinary, specs, replies=(min(SHORTEST, task.max_tokens), task.max_tokens))
    found = _lengthened(msgspec.structs.replace(found, assumptions=()), given)
    if together:
        return found
    many = Range(len(specs), len(specs))
    loads = tuple(msgspec.structs.replace(load, turns=_times(load.turns, many)) for load in found.loads)
    return msgspec.structs.replace(found, loads=loads, turns=_times(found.turns, many))


def expected_guesses(task: Task, guesser: str, count: int, *, together: bool) -> Estimate:
    """The estimate for one guess after each of `count` episodes, of one query or of the maximum length."""
    given, task = task, _shortened(task)
    longest = words(task.max_tokens)
    goals = sorted(task.queries, key=len)
    short = Guessing(guesser, (Exchange(goals[0], ""),))
    long = Guessing(guesser, (Exchange(max(goals[-1], longest, key=len), longest),) * task.max_steps)
    ends = [scaled(rehearse_some(guess, [(0, spec)], Random(0), 0), count) for spec in (short, long)]
    found = reduce(or_, ends)
    after = Range(1, 1) if together else Range(count, count)
    loads = tuple(msgspec.structs.replace(load, turns=_times(load.turns, after)) for load in found.loads)
    return _lengthened(Estimate(found.trials, loads, _times(found.turns, after)), given)


def _shortened(task: Task) -> Task:
    """The task with replies and episodes that are short enough for a rehearsal."""
    tokens, steps = min(task.max_tokens, MOST_TOKENS), min(task.max_steps, MOST_EXCHANGES + 1)
    return msgspec.structs.replace(task, max_tokens=tokens, max_steps=steps)


def _lengthened(found: Estimate, task: Task) -> Estimate:
    """The estimate for the replies and episodes of the task. Tokens grow at most as fast as they do."""
    short = _shortened(task)
    ratio = task.max_tokens / short.max_tokens * task.max_steps / short.max_steps

    def longer(tokens: Range) -> Range:
        return Range(tokens.low, tokens.high * ratio)

    loads = [
        msgspec.structs.replace(
            load,
            input_tokens=longer(load.input_tokens),
            output_tokens=longer(load.output_tokens),
            longest_prompt=load.longest_prompt * ratio,
        )
        for load in found.loads
    ]
    return found if ratio == 1 else msgspec.structs.replace(found, loads=tuple(loads))


def _rehearsed(task: Task, mutator: str, *, long: bool) -> list[Rehearsed]:
    replies = Range(min(SHORTEST, task.max_tokens), task.max_tokens)
    return rehearse_some(step, enumerate(_steps(task, mutator, long=long)), Random(0), 0, replies)


def _steps(task: Task, mutator: str, *, long: bool) -> Iterator[Step]:
    """First steps of episodes, or last steps of episodes whose queries and responses have maximum length."""
    draw, reads = Random(0), task.multi_turn or mutator not in USUAL
    for _ in range(ENOUGH_LONG if long else ENOUGH):
        goal = draw.choice(task.queries)
        query = max(goal, words(task.max_tokens), key=len) if long else goal
        talk = (Exchange(query, words(task.max_tokens)),) * (task.max_steps - 1) if long and reads else ()
        yield Step.of(task, mutator, query, goal, draw.choice(task.secrets), draw.choice(task.guards), talk=talk)


def _times(one: Range, other: Range) -> Range:
    return Range(one.low * other.low, one.high * other.high)


def _assumed(task: Task) -> list[str]:
    shared = ["equal requests share one reply at temperature 0; the number of equal requests is not known in advance"]
    return [
        "the range covers every choice of mutations; guards are used equally often",
        f"replies have {min(SHORTEST, task.max_tokens)} to {task.max_tokens} tokens",
        TOKENS,
        *(shared if task.temperature == 0 else []),
    ]
