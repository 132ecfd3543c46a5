"""The drivers of simulations, used by `groundswell simulate` and by the server.

simulate   a batch: combinations of entities, drawn with the seed
converse   a single simulation or a continuation
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import reduce
from itertools import islice
from math import inf
from random import Random

import msgspec

from groundswell.engine.run import Run
from groundswell.engine.spending import Range
from groundswell.errors import RunStopped, SettingsError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.sample import assumed, rehearse_some, scaled
from groundswell.experiments.settled import settled
from groundswell.experiments.simulations import prompts
from groundswell.experiments.simulations.analysis import Analysis, Tally
from groundswell.experiments.simulations.batch import Batch, Schedule, Single
from groundswell.experiments.simulations.simulation import Line, Rules, Simulation, Talked
from groundswell.experiments.simulations.talk import SCORES_AT_ONCE, Before, Heard, Round, ask_narrator, carry_out, talk
from groundswell.program.request import Chat, Fault
from groundswell.program.trial import Trial, program

SHORTEST = 10
"""Tokens of a short line, for estimates."""
ENOUGH = 8
"""Number of simulations rehearsed for an estimate; a client of the API waits for it."""
MOST_LETTERS = 100_000_000
MOST_OF_ONE = 500_000_000
"""Maximum number of prompt characters generated for an estimate, in total and for one simulation."""
LETTERS = 6
"""Maximum number of characters per token."""


class Conversation(msgspec.Struct, frozen=True):
    """The analysis of a single simulation."""

    lines: int
    turns: int
    prompts: str


async def simulate(run: Run, batch: Batch) -> Analysis:
    """Run all simulations of a batch and analyse them."""
    check_models(run, batch.rules, (*(entity.model for entity in batch.entities), *batch.models_besides))
    schedule = Schedule(batch, run.record.seed)
    tally = Tally(batch)
    try:
        async for outcome in run.map(talk, schedule):
            tally.add(outcome.spec, outcome.result, outcome.fault)
    except RunStopped:
        tally = await _recount(run, batch, schedule)
    return await asyncio.to_thread(
        tally.analysis, planned=len(schedule)
    )  # this can take seconds; keep the event loop free


async def converse(run: Run, single: Single) -> Conversation:
    """Run one simulation."""
    spec = single.simulation
    judges = () if spec.rules.scoring is None else spec.rules.scoring.judges
    check_models(run, spec.rules, (*map(spec.model_of, range(len(spec.entities))), *judges))
    lines = turns = 0
    async for outcome in run.map(talk, [spec]):
        if outcome.result is not None:
            lines, turns = len(outcome.result.lines), outcome.result.turns
    return Conversation(lines, turns, prompts.digest())


def check_models(run: Run, rules: Rules, own: Iterable[str | None]) -> None:
    """Fail on a model that cannot be reached before anything is sent."""
    for model in dict.fromkeys([rules.model, *(each for each in own if each is not None)]):
        run.lane_of(Chat(model, ()))


async def _recount(run: Run, batch: Batch, schedule: Schedule) -> Tally:
    """Count the outcomes of a stopped run. Interrupted simulations are neither usable nor missing."""
    tally = Tally(batch)
    async for spec, _, found in settled(run, talk, ((spec, spec) for spec in schedule)):
        if isinstance(found, Talked):
            tally.add(spec, found)
        elif isinstance(found, Fault):
            tally.add(spec, None, found)
    return tally


@estimates(simulate)
def expected(batch: Batch) -> Estimate:
    """Estimate the usage of a batch from its first simulations, or from the first ones of each condition."""
    if batch.conditions:
        return reduce(Estimate.beside, (expected(part) for part in batch.parts(0)))
    many = _worth(batch.rules, batch.interaction_size, len(batch.context))
    return _rehearsed(batch.rules, islice(Schedule(batch, 0), many), batch.num_simulations)


@estimates(converse)
def expected_of_one(single: Single) -> Estimate:
    """Estimate the usage of a single simulation."""
    spec = single.simulation
    _worth(spec.rules, len(spec.entities), len(spec.context))
    return _rehearsed(spec.rules, [spec], 1)


def _worth(rules: Rules, size: int, told: int) -> int:
    """How many simulations to rehearse. Every request contains the whole conversation, so long ones are slow."""
    if not rules.n_turns:
        return ENOUGH
    besides = {"bidding": size - 1, "moderator": 1}.get(rules.speakers, 0)  # requests per line that decide who speaks
    asks = rules.simulation_rounds * (1 if rules.method == "narrator" else size * rules.n_turns * (1 + besides))
    if rules.until:
        asks += rules.simulation_rounds * rules.n_turns
    if rules.scoring is not None:
        lines = size * rules.n_turns * rules.simulation_rounds
        asks += max(1, len(rules.scoring.judges)) * (2 + lines * len(rules.scoring.lines) // SCORES_AT_ONCE)
    spoken = size * rules.n_turns * rules.simulation_rounds * rules.max_tokens * LETTERS
    work = asks * (spoken / 2 + told)
    if work > MOST_OF_ONE:
        raise SettingsError(
            f"n_turns {rules.n_turns}: a conversation of {size} entities and {rules.simulation_rounds} rounds with "
            f"up to {rules.max_tokens:,} tokens per line is too long to estimate; estimate a shorter one",
            field="n_turns",
        )
    return max(1, min(ENOUGH, int(MOST_LETTERS / work)))


def _rehearsed(rules: Rules, specs: Iterable[Simulation], count: int) -> Estimate:
    each, turns = rules.max_tokens, rules.n_turns
    program, replies = talk, (float(min(SHORTEST, each)), inf)
    if rules.method == "narrator":
        program, replies = narrated, (float(min(SHORTEST, each) * turns), inf)
    rehearsed = rehearse_some(program, enumerate(specs), Random(0), 0, Range(*replies))
    return scaled(rehearsed, count).assuming(*assumed(rehearsed, count, program, replies))


@program("simulations/rehearsed_narration", version=1)
async def narrated(trial: Trial, spec: Simulation) -> Talked:
    """A narrated conversation for estimates: the text of a made-up reply is divided among the entities."""
    return await carry_out(trial, spec, _shared_out)


async def _shared_out(trial: Trial, scene: prompts.Scene, heard: Heard, before: Before) -> Round:
    spec = scene.spec
    reply = await ask_narrator(trial, spec, scene.narration(heard[0]))
    many = spec.rules.n_turns * len(spec.entities)
    part = len(reply.text) // many + 1
    return Round(
        [
            Line(at % len(spec.entities), before.turn + at // len(spec.entities) + 1, before.round + 1, words)
            for at, words in enumerate(reply.text[at * part : (at + 1) * part] for at in range(many))
        ]
    )
