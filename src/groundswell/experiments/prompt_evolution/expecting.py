"""The estimate of an evolution. Low: candidates are evaluated once. High: all parents are evaluated much further.

After a pilot, the sizes of prompts and replies and the speed are measured, and parents are evaluated further as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import ceil, inf, sqrt
from operator import or_
from random import Random
from typing import Any, NamedTuple

import msgspec

from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate.bill import cost, latency
from groundswell.estimate.figures import Estimate, Load
from groundswell.estimate.measured import Known, Measured, Sent
from groundswell.estimate.sample import SURE, TOKENS, rehearse_some, scaled
from groundswell.experiments.prompt_evolution.breeding import PARENTS, Breeding, Case, breed
from groundswell.experiments.prompt_evolution.costs import LONGER
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.problems import Problem
from groundswell.experiments.prompt_evolution.searching import DEEPEST, FLAWLESS, GATE, KEPT, LEAST
from groundswell.experiments.prompt_evolution.settings import ABLATED, AUTO, MOST_PARTS, Evolution, Stops
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
TURNS = 2
"""Requests of a birth that follow one another: for writing and for evaluating a prompt."""
ONE = Range(1, 1)
LETTER = "x"
"""Filler for prompts that are not written yet."""
CANDIDATES = 10
"""Number of candidates of a pilot."""
SHRINKS, GROWS, GROWS_REPLY = 1.0, 1.5, 1.25
"""Later requests compared with those of a pilot: with the mean, with the longest prompt, with the longest replies."""
MORE = 1 / 16
"""Share of the maximum length by which replies may become longer, for example because a prompt asks for steps."""
USED = 0.5
"""Share of a limit in dollars that a run uses at least, because a birth starts only if the rest covers it."""
FASTER, SLOWER = 0.5, 1.75
"""Seconds per request, compared with a pilot."""
AT_ONCE = Range(2, 8)
"""How many times as many requests are sent at once for judging as in a search."""
LATER = (
    f"later prompts are up to {GROWS:g} times as long as the longest measured one; with short replies, later ones may "
    "be longer"
)


class Asks(NamedTuple):
    """Numbers of evaluations and of written prompts, and the length of the longest chain of dependent requests."""

    solved: Range
    written: Range
    turns: Range = NOTHING
    shared: float = 0.0
    """With a budget in requests: requests per evaluation. What the writer uses is then taken from the evaluations."""

    @property
    def whole(self) -> Range:
        """All requests, if an evaluation is one."""
        both = self.solved + self.written
        return Range(both.low, both.high - (self.written.high - self.written.low) * bool(self.shared))


def expected_evolution(settings: Evolution, known: Known | None = None) -> Estimate:
    """Estimate an evolution with its baselines, validation and held-out test.

    If requests were measured, sizes of prompts and replies follow from them, and parents are evaluated as usual.
    """
    measured = None if known is None else known.measured
    solving = [_solving(settings, model, measured) for model in settings.models]
    writing, usual = _writing(settings, measured), measured is not None
    ends = limited(settings, solving, known)
    found = reduce(or_, (_whole_run(each, solving, writing, usual=usual) for each in ends))
    pace = None if measured is None else measured.pace
    seconds = None
    if pace is not None:
        row = reduce(or_, (_in_a_row(each, solving, usual=usual) for each in ends))
        seconds = Range(FASTER * pace * row.low, SLOWER * pace * row.high)
    found = msgspec.structs.replace(
        found, seconds=seconds, usd=_dollars(settings), pilot=_pilot(settings, _asks_of(solving).high)
    )
    return found.assuming(*_assumed(settings, measured))


def _whole_run(settings: Evolution, solving: list[Estimate], writing: Estimate, *, usual: bool) -> Estimate:
    main = expected_search(settings, _asks_of(solving), usual=usual)
    others = [expected_baseline(settings, name, main, usual=usual) for name in settings.baselines]
    compared = reduce(Estimate.beside, (_used(solving, writing, asks) for asks in others), Estimate(NOTHING))
    judging = expected_judging(settings, usual=usual)
    return _used(solving, writing, main) + compared + _used(solving, writing, judging)


def _in_a_row(settings: Evolution, solving: list[Estimate], *, usual: bool) -> Range:
    """Requests that take as long as those of a pilot. Baselines run at the same time; judging is done all at once."""
    main = expected_search(settings, _asks_of(solving), usual=usual)
    others = [expected_baseline(settings, name, main, usual=usual).whole for name in settings.baselines]
    judging = expected_judging(settings, usual=usual).whole
    judged = Range(judging.low / AT_ONCE.high, judging.high / AT_ONCE.low)
    return main.whole + reduce(Range.longer, others, NOTHING) + judged


def limited(settings: Evolution, solving: list[Estimate], known: Known | None) -> list[Evolution]:
    """The settings with the fewest and with the most requests that a limit in dollars or seconds allows.

    Without such a limit, these are the settings themselves.
    """
    if known is None or (settings.stops.usd is None and settings.stops.seconds is None):
        return [settings]
    spans = [Range(settings.shape.asks or inf, settings.shape.asks or inf)]
    if settings.stops.usd is not None:
        spans.append(_for_dollars(settings, known))
    if settings.stops.seconds is not None:
        spans.append(_for_seconds(settings, solving, known))
    low, high = min(each.low for each in spans), min(each.high for each in spans)
    enough = settings.reserved * len(settings.models) + 2 * settings.whole
    return [
        msgspec.structs.replace(
            settings,
            stops=msgspec.structs.replace(settings.stops, asks=max(enough, int(asks)), usd=None, seconds=None),
            ablation=settings.ablation and (settings.stops.usd is None or asks > AUTO["light"]),
        )
        for asks in (AUTO[settings.auto] if each == inf else each for each in (low, high))
    ]


def _for_dollars(settings: Evolution, known: Known) -> Range:
    """Requests of each search under a limit in dollars, by the price of the seed prompt, as the driver computes it."""
    usd, searches = settings.stops.usd or 0.0, 1 + len(settings.baselines)
    seeds = [_seed_solving(settings, model, known.measured) for model in settings.models]
    costs = [cost(load, (terms := known.terms(load.model)).live, terms) for one in seeds for load in one.loads]
    calls = sum((load.calls for one in seeds for load in one.loads), NOTHING)
    low, high = (LONGER * sum(getattr(each, end) for each in costs if each) for end in ("low", "high"))
    tested = (searches + 1) * len(settings.problems.test)
    return Range(
        inf if not high else max(0.0, usd / high - tested) * calls.high / searches,
        inf if not low else max(0.0, usd / low - tested) * calls.high / searches,
    )


def _for_seconds(settings: Evolution, solving: list[Estimate], known: Known) -> Range:
    """Requests of the evolution in the seconds that it may take. Those that choose its winner come on top."""
    seconds = (settings.stops.seconds or 0.0) / (1 + len(settings.baselines))
    reserved = settings.reserved * len(settings.models)
    if known.measured is not None and (pace := known.measured.pace) is not None:
        return Range(seconds / pace / SLOWER + reserved, seconds / pace / FASTER + reserved)
    replies = [latency(load, known.terms(load.model)) for one in solving for load in one.loads]
    turns = Range(seconds / max(each.high for each in replies), seconds / min(each.low for each in replies))
    span = _evaluations(settings, usual=False)
    each = [problems * len(settings.models) / TURNS for problems in (span.low, span.high)]
    window = settings.shape.window
    return Range(turns.low * window * min(each) + reserved, turns.high * window * max(each) + reserved)


def _dollars(settings: Evolution) -> Range | None:
    """What a limit in dollars lets the run cost. If nothing else ends it, it uses most of that."""
    stops = settings.stops
    if stops.usd is None:
        return None
    only = settings.max_generations is None and stops == Stops(usd=stops.usd)
    return Range(USED * stops.usd if only else 0, stops.usd)


def _pilot(settings: Evolution, each: float) -> int:
    """The number of requests for the seed prompts and the first few candidates."""
    train = len(settings.problems.train)
    first = min(train, LEAST) if settings.races else train
    problems = len(settings.seeds) * first + CANDIDATES * min(train, GATE + KEPT)
    return ceil(problems * len(settings.models) * each) + CANDIDATES


def expected_search(settings: Evolution, each: Range = ONE, *, usual: bool = False) -> Asks:
    """Estimate the evolution itself. An evaluation takes `each` requests: more than one if the metric asks a model."""
    shape, models, span = settings.shape, len(settings.models), _evaluations(settings, usual=usual)
    gate, whole, fewest = span.low * models, span.high * models, fewest_births(settings)
    if shape.asks is not None:
        left = settings.reserved * models + _unspent(settings, usual=usual)
        low = max(models, min(shape.asks - left * each.high, fewest * gate))
        high = max(low, shape.asks - settings.reserved * models * each.low)
        births = Range(low / (1 + whole), min(high / (1 + gate), shape.births or inf))
        written = _drawn(births, settings)
        solved = Range(max(0.0, low - written.high) / each.high, (high - written.low) / each.low)
    else:
        births = Range(fewest, shape.births or fewest)
        written = _drawn(births, settings)
        new = NEW if settings.races else 1.0
        solved = Range(new * births.low * gate, births.high * whole)
    shared = each.low if shape.asks is not None else 0.0
    return Asks(solved, written, _chain(settings, births, bool(written.high)), shared)


def _chain(settings: Evolution, births: Range, written: float) -> Range:
    """The longest chain of dependent requests of these births: some for writing, then one for evaluating."""
    window = settings.shape.window
    return Range(births.low / window, ceil(births.high / window) * (1 + written))


def _evaluations(settings: Evolution, *, usual: bool) -> Range:
    """The number of evaluations of a birth, of the child and of a candidate that is evaluated further."""
    train, block = len(settings.problems.train), settings.shape.block
    if not settings.races:
        return Range(train, train)
    first = min(train, max(GATE + KEPT, block))
    if usual:
        return Range(first + block / 2, min(2 * train, first + block))
    return Range(first, min(2 * train, first + FLAWLESS * block))


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


def expected_baseline(settings: Evolution, name: str, main: Asks, *, usual: bool = False) -> Asks:
    """Estimate a baseline search. Evaluations that it shares with the evolution, such as the seeds, count once."""
    each = _model_share(settings) * (1 + DEEPEST) / 2 if name == "random" else 1.0
    span, models = _evaluations(settings, usual=usual), len(settings.models)
    first, whole = span.low * models, span.high * models
    low, high = max(0.0, main.whole.low - _unspent(settings, usual=usual)), main.whole.high
    solved = Range(low * first / (first + each), high * whole / (whole + each))
    written = Range(low * each / (whole + each), high * each / (first + each))
    births = Range(low / (whole + each), high / (first + each))
    return Asks(solved, written, _chain(settings, births, ceil(each)), main.shared)


def _unspent(settings: Evolution, *, usual: bool) -> int:
    """The most that a search leaves of its budget: what one more birth might need."""
    return ceil(_evaluations(settings, usual=usual).high) * len(settings.models) + DEEPEST + 1


def expected_judging(settings: Evolution, *, usual: bool = False) -> Asks:
    """Estimate validation, held-out test and ablation."""
    searches, problems, shape = 1 + len(settings.baselines), settings.problems, settings.shape
    fewest = 1 + searches * shape.finalists // 4 if usual else 1
    finalists = Range(fewest, searches * shape.finalists + 1 + settings.polish)
    validated = finalists * (shape.validation * len(settings.models))
    tested = Range(1 + usual, searches + 1) * (len(problems.test) * len(settings.models))
    ablated = Range(0, MOST_PARTS * settings.ablation) * (min(ABLATED, shape.validation) * len(settings.models))
    return Asks(validated + tested + ablated, Range(0, settings.polish), Range(2, 5))


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


def _asks_of(solving: list[Estimate]) -> Range:
    """The number of requests per evaluation."""
    found = [sum((load.calls for load in one.loads), NOTHING) for one in solving]
    return Range(max(1.0, min(each.low for each in found)), max(1.0, *(each.high for each in found)))


def _used(solving: list[Estimate], writing: Estimate, asks: Asks) -> Estimate:
    """The use of these requests, with evaluations split evenly between the models."""
    more = asks.written.high - asks.written.low
    if not asks.shared or not more:
        return _parts(solving, writing, asks)
    few, many = (Range(written, written) for written in (asks.written.low, asks.written.high))
    fewer = Range(asks.solved.low, max(asks.solved.low, asks.solved.high - more / asks.shared))
    return _parts(solving, writing, asks._replace(written=few)) | _parts(
        solving, writing, asks._replace(solved=fewer, written=many)
    )


def _parts(solving: list[Estimate], writing: Estimate, asks: Asks) -> Estimate:
    parts = [_times(each, asks.solved * (1 / len(solving))) for each in solving]
    if asks.written.high:
        parts.append(_times(writing, asks.written))
    found = reduce(Estimate.beside, parts)
    loads = tuple(msgspec.structs.replace(load, turns=asks.turns) for load in found.loads)
    return msgspec.structs.replace(found, loads=loads, turns=asks.turns)


def _times(one: Estimate, count: Range) -> Estimate:
    """The use of this many trials, each of which uses `one`."""
    loads = tuple(
        msgspec.structs.replace(
            load,
            calls=_product(load.calls, count),
            input_tokens=_product(load.input_tokens, count),
            output_tokens=_product(load.output_tokens, count),
        )
        for load in one.loads
    )
    return msgspec.structs.replace(one, trials=count, loads=loads)


def _product(one: Range, other: Range) -> Range:
    return Range(one.low * other.low, one.high * other.high)


def _solving(settings: Evolution, model: str, measured: Measured | None) -> Estimate:
    """One evaluation: as measured on the first candidates, or else from a short prompt to a long one."""
    found = {} if measured is None else _attempts(measured, model)
    seeds = {seed.text for seed in settings.seeds}
    new = {prompt: some for prompt, some in found.items() if prompt not in seeds}
    if found:
        own = settings.program is not msgspec.UNSET  # a program has token limits of its own
        return _measured_trial(list((new or found).values()), None if own else settings.max_tokens)
    sizes = [_size(seed) for seed in settings.seeds]
    ends = min(sizes) // 2, max(*sizes, _long(settings))
    return _rehearsed_solving(settings, model, [_of_size(settings, size) for size in ends])


def _seed_solving(settings: Evolution, model: str, measured: Measured | None) -> Estimate:
    """One evaluation of the seed prompt."""
    found = {} if measured is None else _attempts(measured, model)
    some = [found[seed.text] for seed in settings.seeds if seed.text in found]
    if some:
        return _mean_trial([one for each in some for one in each])
    return _rehearsed_solving(settings, model, settings.seeds)


def _attempts(measured: Measured, model: str) -> dict[str, list[list[Sent]]]:
    """The measured evaluations of a model, by prompt: the requests of each one."""
    trials: dict[str, list[Sent]] = {}
    for each in measured.requests:
        if each.program in (solve.id, execute.id):
            trials.setdefault(each.trial, []).append(each)
    found: dict[str, list[list[Sent]]] = {}
    for some in trials.values():
        kind: type[Attempt | Execution] = Attempt if some[0].program == solve.id else Execution
        spec = msgspec.json.decode(some[0].spec, type=kind)
        if spec.model == model:
            text = spec.prompt if isinstance(spec, Attempt) else Genome.named(spec.texts).text
            found.setdefault(text, []).append(some)
    return found


def _mean_trial(trials: Sequence[Sequence[Sent]]) -> Estimate:
    """The mean of measured trials."""
    loads = []
    for model in dict.fromkeys(each.model for some in trials for each in some):
        sent = [each for some in trials for each in some if each.model == model]
        figures = len(sent), sum(each.input_tokens for each in sent), sum(each.output_tokens for each in sent)
        calls, read, written = (Range(figure / len(trials), figure / len(trials)) for figure in figures)
        loads.append(Load(model, calls, read, written, longest_prompt=max(each.input_tokens for each in sent)))
    return Estimate(ONE, tuple(loads), ONE)


def _measured_trial(groups: Sequence[Sequence[Sequence[Sent]]], max_tokens: int | None) -> Estimate:
    """A trial as measured in groups, one for each prompt. Later prompts are longer, and so may be their replies."""
    mean = _mean_trial([some for group in groups for some in group])
    longest = reduce(or_, (_mean_trial(group) for group in groups))
    highs = {load.model: load for load in longest.loads}
    loads = tuple(
        msgspec.structs.replace(
            load,
            input_tokens=Range(SHRINKS * load.input_tokens.low, GROWS * highs[load.model].input_tokens.high),
            output_tokens=Range(
                SHRINKS * load.output_tokens.low,
                _longer_reply(load.output_tokens.low, highs[load.model].output_tokens.high, load.calls.low, max_tokens),
            ),
        )
        for load in mean.loads
    )
    return msgspec.structs.replace(mean, loads=loads)


def _longer_reply(mean: float, longest: float, calls: float, max_tokens: int | None) -> float:
    """The highest mean length of replies: above the longest seen, or longer by a share of the maximum."""
    if max_tokens is None:
        return GROWS_REPLY * longest
    most = max_tokens * calls
    return max(mean, min(most, max(GROWS_REPLY * longest, mean + most * MORE)))


def _rehearsed_solving(settings: Evolution, model: str, genomes: Sequence[Genome]) -> Estimate:
    """One evaluation, from a short prompt and reply to a long one."""
    problems = settings.problems
    some = [*problems.train, *problems.validation, *problems.test][:ENOUGH]
    replies = Range(min(SHORTEST, settings.max_tokens), settings.max_tokens)
    return reduce(or_, (_rehearsed(*_evaluating(settings, model, genome, some), replies) for genome in genomes))


def _evaluating(
    settings: Evolution, model: str, genome: Genome, problems: Sequence[Problem]
) -> tuple[Program[Any, Any], list[Any]]:
    """The program that evaluates a prompt or the texts of a program, with its specs."""
    if settings.program is msgspec.UNSET:
        how = settings.metric, settings.temperature, settings.max_tokens
        return solve, [Attempt(model, genome.text, problem, *how) for problem in problems]
    return execute, [Execution(settings.program, genome.texts, problem, model, settings.metric) for problem in problems]


def _of_size(settings: Evolution, size: int) -> Genome:
    """A prompt of this length, or texts of this length."""
    names = settings.seeds[0].texts
    return Genome.named(dict.fromkeys(names, LETTER * size)) if names else Genome(LETTER * size)


def _writing(settings: Evolution, measured: Measured | None) -> Estimate:
    """One written prompt: as measured, or else from a short prompt without failures to a long one with all."""
    sent = [] if measured is None else [[each] for each in measured.requests if each.program == breed.id]
    how = settings.writing
    if sent:
        return _measured_trial([[each] for each in sent], how.max_tokens)
    also = {"reflect"} if "best_of_n" in settings.baselines else set()
    used = [name for name in PARENTS if settings.operators.get(name) or name in also]
    hard = max(settings.problems.train, key=lambda each: len(each.question))
    turns = LETTER * SHOWN_TURNS if settings.program else ""
    case = Case(hard.question, hard.answer, LETTER * SHOWN_OF_A_REPLY, hard.working, turns=turns)
    failures = (case,) * how.failures
    shortest = min(settings.seeds, key=_size)
    return reduce(
        or_,
        (
            _rehearsed(
                breed,
                [
                    Breeding(
                        *(name, (parent,) * PARENTS[name], settings.by, shown if name == "reflect" else (), 0),
                        max_tokens=how.max_tokens,
                        successes=shown[: how.successes] if name == "reflect" else (),
                        text=next(iter(shortest.texts), ""),
                    )
                    for name in used or ["reflect"]
                ],
                WRITTEN,
            )
            for parent, shown in ((shortest, ()), (_of_size(settings, _long(settings)), failures))
        ),
    )


def _long(settings: Evolution) -> int:
    """The length of a long prompt, in characters."""
    return max(LONG, *(2 * _size(seed) for seed in settings.seeds))


def _size(genome: Genome) -> int:
    """The length of a prompt, or of the longest text of a program, in characters."""
    return max(len(genome.part(name).text) for name in genome.texts or [""])


def _rehearsed(program: Program[Any, Any], specs: list[Any], replies: Range) -> Estimate:
    """The use of one trial, by rehearsing these specs."""
    found = rehearse_some(program, enumerate(specs), Random(0), 0, replies)
    found = [each._replace(shared=()) for each in found]  # prompts differ, so no reply is shared
    notes = dict.fromkeys(note for each in found for note in each.notes)
    share = 1 / len(found)
    return _times(scaled(found, len(found)), Range(share, share)).assuming(*notes)


def _assumed(settings: Evolution, measured: Measured | None) -> list[str]:
    racing = "low: half of the candidates repeat a known prompt; high: all parents are evaluated on many problems"
    if measured is not None:
        span = _evaluations(settings, usual=True)
        racing = f"a candidate takes {span.low:.0f} to {span.high:.0f} evaluations on average, with those of its parent"
    stops = "low: the search stops as early as it can; high: it runs all generations"
    lengths = f"replies have {min(SHORTEST, settings.max_tokens)} to {settings.max_tokens} tokens, prompts up to "
    lengths += f"{_long(settings) // CHARACTERS}"
    shape, limits = settings.shape, settings.stops
    if shape.asks is not None:
        racing = f"each search uses its budget of {shape.asks:,} requests; it ends sooner if a prompt solves everything"
    elif limits.usd is not None or limits.seconds is not None:
        racing = "each search uses its share of the limit; it ends sooner if a prompt solves everything"
    early = shape.births is not None and fewest_births(settings) < shape.births
    return [
        racing if settings.races else "every candidate is evaluated on all problems: racing is off",
        *([stops] if early else []),
        "duplicate prompts are not evaluated again; their number cannot be predicted",
        *([lengths, TOKENS] if measured is None else [LATER]),
    ]
