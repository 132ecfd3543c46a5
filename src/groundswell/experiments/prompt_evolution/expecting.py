"""The estimate of an evolution. Low: candidates are evaluated once. High: all parents are evaluated further too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import ceil, inf, sqrt
from operator import or_
from random import Random
from typing import Any, NamedTuple

import msgspec

from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate.figures import Estimate, Load
from groundswell.estimate.rehearsal import Rehearsed
from groundswell.estimate.sample import SURE, TOKENS, rehearse_some, scaled
from groundswell.experiments.prompt_evolution.breeding import PARENTS, Breeding, Case, breed
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.searching import DEEPEST, FLAWLESS, GATE, KEPT
from groundswell.experiments.prompt_evolution.settings import ABLATED, MOST_PARTS, Evolution
from groundswell.experiments.prompt_evolution.solving import SHOWN as SHOWN_OF_A_REPLY
from groundswell.experiments.prompt_evolution.solving import SHOWN_TURNS, Attempt, Execution, execute, solve
from groundswell.program.trial import Program

SHORTEST = 5
"""Tokens of a short reply."""
ENOUGH = 48
"""Number of problems that are rehearsed, with a short prompt and with a long one."""
WRITTEN = Range(20, inf)
"""Tokens of a prompt that a model writes. The request sets the maximum."""
CHARACTERS = 4
"""Characters per token."""
LONG = 4_000
"""Length of a long prompt that a model writes, in characters."""
NEW = 0.5
"""Minimum share of candidates that are new. Others repeat a known prompt and are not evaluated."""
ONE = Range(1, 1)
LETTER = "x"
"""Filler for prompts that are not written yet."""


class Asks(NamedTuple):
    """Numbers of evaluations and of written prompts, and the length of the longest chain of dependent requests."""

    solved: Range
    written: Range
    turns: Range = NOTHING

    @property
    def whole(self) -> Range:
        """All requests."""
        return self.solved + self.written


def expected_evolution(settings: Evolution) -> Estimate:
    """Estimate an evolution with its baselines, validation and held-out test."""
    samples = [_solving(settings, model) for model in settings.models], _writing(settings)
    main = expected_search(settings, _asks_of(samples[0]))
    others = [expected_baseline(settings, name, main) for name in settings.baselines]
    compared = reduce(Estimate.beside, (_used(*samples, asks) for asks in others), Estimate(NOTHING))
    found = _used(*samples, main) + compared + _used(*samples, expected_judging(settings))
    return found.assuming(*_assumed(settings))


def expected_search(settings: Evolution, each: Range = ONE) -> Asks:
    """Estimate the evolution itself. An evaluation takes `each` requests: more than one if the metric asks a model."""
    shape, first, most, models = settings.shape, _first(settings), _most(settings), len(settings.models)
    fewest = fewest_births(settings)
    if shape.asks is not None:
        left = settings.reserved * models + _unspent(settings)
        low = max(models, min(shape.asks - left * each.high, fewest * first * _new(settings)))
        high = max(low, shape.asks - settings.reserved * models * each.low)
        births = Range(low / (1 + most), min(high / (1 + first), shape.births or inf))
        written = _drawn(births, settings)
        solved = Range(max(0.0, low - written.high) / each.high, high / each.low)
    else:
        births = Range(fewest, shape.births or fewest)
        written = _drawn(births, settings)
        solved = Range(births.low * first * _new(settings), births.high * most)
    turns = Range(births.low / shape.window, ceil(births.high / shape.window) * (1 + (written.high > 0)))
    return Asks(solved, written, turns)


def fewest_births(settings: Evolution) -> float:
    """The minimum number of births, if no budget in requests ends the evolution."""
    stops, shape = settings.stops, settings.shape
    ends = [] if shape.births is None else [shape.births]
    on_their_way = shape.window - 1
    if stops.plateau is not None:
        ends.append(stops.plateau * shape.population_size + on_their_way)
    if stops.least_spread is not None:
        ends.append(shape.population_size + on_their_way)
    if stops.target is not None or stops.usd is not None or stops.seconds is not None:
        ends.append(min(len(settings.seeds), shape.window))
    return min(ends, default=inf)


def expected_baseline(settings: Evolution, name: str, main: Asks) -> Asks:
    """Estimate a baseline search. Evaluations that it shares with the evolution, such as the seeds, count once."""
    each = _model_share(settings) * (1 + DEEPEST) / 2 if name == "random" else 1.0
    window, most, first = settings.shape.window, _most(settings), _first(settings)
    low, high = max(0.0, main.whole.low - _unspent(settings)), main.whole.high
    solved = Range(low * first / (first + each), high * most / (most + each))
    written = Range(low * each / (most + each), high * each / (first + each))
    births = Range(low / (most + each), high / (first + each))
    turns = Range(births.low / window, ceil(births.high / window) * (1 + ceil(each)))
    return Asks(solved, written, turns)


def _unspent(settings: Evolution) -> int:
    """The most that a search leaves of its budget: what one more birth might need."""
    return int(_most(settings)) + DEEPEST + 1


def expected_judging(settings: Evolution) -> Asks:
    """Estimate validation, held-out test and ablation."""
    searches, problems, shape = 1 + len(settings.baselines), settings.problems, settings.shape
    finalists = Range(1, searches * shape.finalists + 1 + settings.polish)
    validated = finalists * (shape.validation * len(settings.models))
    tested = Range(1, searches + 1) * (len(problems.test) * len(settings.models))
    ablated = Range(0, MOST_PARTS * settings.ablation) * (min(ABLATED, shape.validation) * len(settings.models))
    return Asks(validated + tested + ablated, Range(0, settings.polish), Range(2, 5))


def _first(settings: Evolution) -> float:
    """The requests for evaluating a child."""
    whole, block = len(settings.problems.train), settings.shape.block
    problems = min(whole, max(GATE + KEPT, block)) if settings.rules.racing else whole
    return float(problems * len(settings.models))


def _new(settings: Evolution) -> float:
    return NEW if settings.rules.racing else 1.0


def _most(settings: Evolution) -> float:
    """The maximum number of evaluations of a birth: a child, and another candidate that is evaluated further."""
    whole, more = len(settings.problems.train), FLAWLESS * settings.shape.block
    return _first(settings) + (min(whole, more) * len(settings.models) if settings.rules.racing else 0)


def _model_share(settings: Evolution) -> float:
    """The share of model operators."""
    mix = settings.operators
    return sum(weight for name, weight in mix.items() if name in PARENTS) / sum(mix.values())


def _drawn(births: Range, settings: Evolution) -> Range:
    """How many of these births use a model operator. The share changes if rates adapt to what has worked."""
    share, seeds = _model_share(settings), len(settings.seeds)
    births = Range(max(0.0, births.low - seeds), max(0.0, births.high - seeds))
    if settings.adapt and 0 < share < 1:
        return Range(0.0, births.high)
    low, high = (SURE * sqrt(each * share * (1 - share)) for each in (births.low, births.high))
    return Range(max(0.0, births.low * share - low), min(births.high, births.high * share + high))


class Sample(NamedTuple):
    """Rehearsed trials: short ones and long ones."""

    short: list[Rehearsed]
    long: list[Rehearsed]


def _asks_of(solving: list[Sample]) -> Range:
    """The number of requests per evaluation."""
    found = [
        sum((use.calls for use in each.uses.values()), NOTHING)
        for sample in solving
        for some in sample
        for each in some
    ]
    return Range(max(1.0, min(each.low for each in found)), max(1.0, *(each.high for each in found)))


def _used(solving: list[Sample], writing: Sample, asks: Asks) -> Estimate:
    """The use of these requests, with evaluations split evenly between the models."""
    parts = [_times(each, asks.solved * (1 / len(solving))) for each in solving]
    if asks.written.high:
        parts.append(_times(writing, asks.written))
    found = reduce(Estimate.beside, parts)
    loads = tuple(msgspec.structs.replace(load, turns=asks.turns) for load in found.loads)
    return msgspec.structs.replace(found, loads=loads, turns=asks.turns)


def _solving(settings: Evolution, model: str) -> Sample:
    """Rehearse problems with a prompt half as long as the shortest seed, and with a long one."""
    sizes, problems = [_size(seed) for seed in settings.seeds], settings.problems
    some = [*problems.train, *problems.validation, *problems.test][:ENOUGH]
    replies = Range(min(SHORTEST, settings.max_tokens), settings.max_tokens)
    short, long = (
        _rehearsed(*_evaluations(settings, model, size, some), replies)
        for size in (min(sizes) // 2, max(*sizes, _long(settings)))
    )
    return Sample(short, long)


def _evaluations(
    settings: Evolution, model: str, size: int, problems: Sequence[Problem]
) -> tuple[Program[Any, Any], list[Any]]:
    """The evaluation of a prompt, or of texts, of this size on each problem."""
    if settings.program is msgspec.UNSET:
        how = settings.metric, settings.temperature, settings.max_tokens
        return solve, [Attempt(model, LETTER * size, problem, *how) for problem in problems]
    texts = dict.fromkeys(settings.seeds[0].texts, LETTER * size)
    return execute, [Execution(settings.program, texts, problem, model, settings.metric) for problem in problems]


def _writing(settings: Evolution) -> Sample:
    """Rehearse model operators on a short prompt without failures, and on a long one with all failures."""
    also = {"reflect"} if "best_of_n" in settings.baselines else set()
    used = [name for name in PARENTS if settings.operators.get(name) or name in also]
    hard, how = max(settings.problems.train, key=lambda each: len(each.question)), settings.writing
    turns = LETTER * SHOWN_TURNS if settings.program else ""
    case = Case(hard.question, hard.answer, LETTER * SHOWN_OF_A_REPLY, hard.working, turns=turns)
    failures = (case,) * how.failures
    shortest = min(settings.seeds, key=_size)
    names = settings.seeds[0].texts
    longest = Genome.named(dict.fromkeys(names, LETTER * _long(settings))) if names else None
    short, long = (
        _rehearsed(
            breed,
            [
                Breeding(
                    *(name, (parent,) * PARENTS[name], settings.by, shown if name == "reflect" else (), 0),
                    max_tokens=how.max_tokens,
                    successes=shown[: how.successes] if name == "reflect" else (),
                    text=next(iter(names), ""),
                )
                for name in used or ["reflect"]
            ],
            WRITTEN,
        )
        for parent, shown in ((shortest, ()), (longest or Genome(LETTER * _long(settings)), failures))
    )
    return Sample(short, long)


def _long(settings: Evolution) -> int:
    """The length of a long prompt, in characters."""
    return max(LONG, *(2 * _size(seed) for seed in settings.seeds))


def _size(genome: Genome) -> int:
    """The length of a prompt, or of the longest text of a program, in characters."""
    return max(len(genome.part(name).text) for name in genome.texts or [""])


def _rehearsed(program: Program[Any, Any], specs: list[Any], replies: Range) -> list[Rehearsed]:
    found = rehearse_some(program, enumerate(specs), Random(0), 0, replies)
    return [each._replace(shared=()) for each in found]  # prompts differ, so no reply is shared


def _times(sample: Sample, count: Range) -> Estimate:
    """The use of this many trials, from short ones to long ones."""
    found = reduce(or_, (scaled(some, len(some)) for some in sample))
    of = len(sample.short)
    loads = tuple(
        Load(
            load.model,
            _each(load.calls, of, count),
            _each(load.input_tokens, of, count),
            _each(load.output_tokens, of, count),
            longest_prompt=load.longest_prompt,
        )
        for load in found.loads
    )
    notes = dict.fromkeys(note for some in sample for each in some for note in each.notes)
    return Estimate(count, loads, found.turns, tuple(notes))


def _each(figure: Range, of: int, count: Range) -> Range:
    return Range(figure.low / of * count.low, figure.high / of * count.high)


def _assumed(settings: Evolution) -> list[str]:
    racing = "low: half of the candidates repeat a known prompt; high: all parents are evaluated on many problems"
    stops = "low: the search stops as early as it can; high: it runs all generations"
    lengths = f"replies have {min(SHORTEST, settings.max_tokens)} to {settings.max_tokens} tokens, prompts up to "
    lengths += f"{_long(settings) // CHARACTERS}"
    shape = settings.shape
    if shape.asks is not None:
        racing = f"each search uses its budget of {shape.asks:,} requests; it ends sooner if a prompt solves everything"
    early = shape.births is not None and fewest_births(settings) < shape.births
    return [
        racing if settings.rules.racing else "every candidate is evaluated on all problems: racing is off",
        *([stops] if early else []),
        lengths,
        TOKENS,
    ]
