"""Cost and time of an estimate: live, by batch, and mixed. Pure."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor

import msgspec

from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate import speeds
from groundswell.estimate.figures import Estimate, Load
from groundswell.estimate.measured import Measured, pilot_size
from groundswell.estimate.speeds import SPEEDS
from groundswell.estimate.terms import Price, Terms
from groundswell.program.request import Usage

CACHED_FROM = 1024
"""Tokens of a prompt from which it may be long enough for a provider's prompt cache."""


class Way(msgspec.Struct, frozen=True):
    """Cost and time of a run, live, by batch or mixed. `usd` is None if the price of a model is unknown."""

    usd: Range | None
    seconds: Range


class Model(msgspec.Struct, frozen=True):
    """The share of one model."""

    model: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    turns: Range
    live_usd: Range | None
    batch_usd: Range | None


class Ways(msgspec.Struct, frozen=True):
    """Live, batch and mixed. The last two are None if no model has a batch API."""

    live: Way
    batch: Way | None
    mixed: Way | None


class Pilot(msgspec.Struct, frozen=True):
    """A pilot that would narrow the estimate. `usd` is None if the price of a model is unknown."""

    requests: int
    usd: Range | None


class Basis(msgspec.Struct, frozen=True):
    """What an estimate was measured on: some requests of a run, and what the run has cost and how long it took."""

    run: str
    requests: int
    usd: float | None
    seconds: float


class Bill(msgspec.Struct, frozen=True):
    """The object that `--estimate --json` prints. `pilot` is None if the run is too small, or was measured already."""

    trials: Range
    models: tuple[Model, ...]
    ways: Ways
    assumptions: tuple[str, ...]
    pilot: Pilot | None = None
    measured: Basis | None = None


def bill(estimate: Estimate, terms: dict[str, Terms], measured: Measured | None = None) -> Bill:
    """Add prices and times to an estimate."""
    pairs = [(load, terms[load.model]) for load in estimate.loads]
    models = tuple(_model(load, known, estimate.usd) for load, known in pairs)
    batched = [pair for pair in pairs if pair[1].batch is not None]
    straight = [pair for pair in pairs if pair[1].batch is None]
    seconds = estimate.seconds or live_seconds(pairs, estimate.turns)
    live = Way(_limited(_sum([model.live_usd for model in models]), estimate.usd), seconds)
    ways = Ways(live, None, None)
    if batched:
        waves = _waves(batched, estimate.turns)
        beside = live_seconds(straight, estimate.turns)
        usd = _sum([model.live_usd if terms[model.model].batch is None else model.batch_usd for model in models])
        usd = _limited(usd, estimate.usd)
        batch = Way(usd, _times(waves, speeds.BATCH_WAVE) + beside)
        mixed = Way(_mixed(usd, live.usd), _times(waves, speeds.MIXED_WAVE) + beside)
        ways = Ways(live, batch, mixed)
    said = (*estimate.assumptions, *_assumed(pairs, bool(batched), timed=estimate.seconds is not None))
    if measured is not None:
        basis = Basis(measured.run, len(measured.requests), measured.usd, measured.seconds)
        return Bill(estimate.trials, models, ways, said, measured=basis)
    size = pilot_size(estimate)
    return Bill(estimate.trials, models, ways, said, Pilot(size, _share(size, models, live.usd)) if size else None)


def _model(load: Load, terms: Terms, limit: Range | None) -> Model:
    live, batch = cost(load, terms.live, terms), None if terms.batch is None else cost(load, terms.batch, terms)
    most = limit and Range(0, limit.high)
    live, batch = _limited(live, most), _limited(batch, most)
    return Model(load.model, load.calls, load.input_tokens, load.output_tokens, load.turns, live, batch)


def _limited(usd: Range | None, limit: Range | None) -> Range | None:
    """A cost within what the settings of a run let it cost."""
    if usd is None or limit is None:
        return usd
    high = min(usd.high, limit.high)
    return Range(min(high, max(usd.low, limit.low)), high)


def _share(size: int, models: tuple[Model, ...], usd: Range | None) -> Range | None:
    """What this many of all requests cost."""
    calls = sum((model.calls for model in models), NOTHING)
    return usd and Range(usd.low * size / calls.low if calls.low else 0.0, usd.high * size / calls.high)


def cost(load: Load, price: Price, terms: Terms) -> Range | None:
    """What the calls of a load cost; None where the price is not known."""
    cached = _cacheable(load)
    low = _priced(load.calls.low, load.input_tokens.low, load.output_tokens.low, price, floor, read=cached)
    written = terms.writes and (cached or load.longest_prompt >= CACHED_FROM)
    high = _priced(load.calls.high, load.input_tokens.high, load.output_tokens.high, price, ceil, written=written)
    return None if low is None or high is None else Range(low, max(low, high))


def _priced(
    calls: float,
    tokens: float,
    output: float,
    price: Price,
    whole: Callable[[float], int],
    *,
    read: bool = False,
    written: bool = False,
) -> float | None:
    """So many calls, each of the average size: what a token costs may depend on the size of its prompt."""
    size = max(calls, 1.0)
    into, out = (whole(each / size) for each in (tokens, output))
    one = price(Usage(into, out, into if read else 0, 0, into if written else 0))
    return None if one is None else one * calls


def _cacheable(load: Load) -> bool:
    return load.input_tokens.high >= CACHED_FROM * max(load.calls.high, 1)


def _sum(costs: list[Range | None]) -> Range | None:
    known = [each for each in costs if each is not None]
    return sum(known, NOTHING) if len(known) == len(costs) else None


def _mixed(batch: Range | None, live: Range | None) -> Range | None:
    if batch is None or live is None:
        return None
    share = speeds.MIXED_LIVE
    return Range(batch.low, batch.high * (1 - share) + live.high * share)


def _waves(batched: list[tuple[Load, Terms]], turns: Range) -> Range:
    """How many batches wait for each other."""
    low = max(load.turns.low for load, _ in batched)
    return Range(low, max(low, min(turns.high, sum(load.turns.high for load, _ in batched))))


def _times(count: Range, each: Range) -> Range:
    return Range(count.low * each.low, count.high * each.high)


def live_seconds(pairs: list[tuple[Load, Terms]], turns: Range) -> Range:
    """At least the longest chain and the busiest account; at the most all of the chain after all of the work."""
    if not pairs:
        return NOTHING
    calls = [latency(load, terms) for load, terms in pairs]
    work = [_work(load, terms) for load, terms in pairs]
    low = max(turns.low * min(call.low for call in calls), *(each.low for each in work))
    return Range(low, max(low, turns.high * max(call.high for call in calls) + sum(each.high for each in work)))


def latency(load: Load, terms: Terms) -> Range:
    """Seconds of one call."""
    if terms.kind == "local":
        return _local(_per_call(load.input_tokens, load.calls), _per_call(load.output_tokens, load.calls))
    wait, speed = SPEEDS[terms.kind]
    reply = _per_call(load.output_tokens, load.calls)
    return Range(wait.low + reply.low / speed.high, wait.high + reply.high / speed.low)


def _work(load: Load, terms: Terms) -> Range:
    """Seconds that all requests of a load take at the maximum concurrency."""
    if terms.kind == "local":
        return _local(load.input_tokens, load.output_tokens)
    call = latency(load, terms)
    sure = terms.at_once if terms.said else min(terms.at_once, speeds.START)
    minutes = [_minutes(load.calls.low, load, terms).low, _minutes(load.calls.high, load, terms).high]
    return Range(
        max(load.calls.low * call.low / terms.at_once, 60 * minutes[0]),
        max(load.calls.high * call.high / sure, 60 * minutes[1]),
    )


def _minutes(calls: float, load: Load, terms: Terms) -> Range:
    """Minutes that a load takes under the rate limits of an account. The first minute's quota may be sent at once."""
    low = max(
        calls / terms.requests_per_minute,
        load.input_tokens.low / terms.tokens_per_minute,
        load.output_tokens.low / terms.output_per_minute,
    )
    high = max(
        calls / terms.requests_per_minute,
        (load.input_tokens.high + load.output_tokens.high) / terms.tokens_per_minute,
        load.output_tokens.high / terms.output_per_minute,
    )
    return Range(max(0.0, low - 1), high)


def _local(tokens: Range, output: Range) -> Range:
    fast = tokens.low / speeds.LOCAL_PROMPT.high + output.low / speeds.LOCAL_REPLY.high
    slow = tokens.high / speeds.LOCAL_PROMPT.low + output.high / speeds.LOCAL_REPLY.low
    return Range(fast, slow)


def _per_call(tokens: Range, calls: Range) -> Range:
    return Range(tokens.low / max(calls.low, 1), tokens.high / max(calls.high, 1))


def _assumed(pairs: list[tuple[Load, Terms]], batched: bool, *, timed: bool) -> list[str]:
    kinds = dict.fromkeys(terms.kind for load, terms in pairs)
    said = [] if timed else [speeds.SENTENCES[kind] for kind in kinds]
    if any(_cacheable(load) for load, terms in pairs if terms.kind == "hosted"):
        said.append(speeds.CACHED)
    return [*said, speeds.BATCHES, speeds.MIXED] if batched else said
