"""The drivers of the game, which `groundswell play` and `compare` run.

play         a statistical batch: independent interactions of given pairs, ended early by an optional stopping rule
tournament   rounds: agents are shuffled and paired, and keep what they learn and remember
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from random import Random
from typing import TypeVar

import msgspec

from groundswell.engine.outcome import Outcome
from groundswell.engine.run import Run
from groundswell.errors import RunStopped
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.made_up import words
from groundswell.estimate.sample import rehearse
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis, Interactions
from groundswell.experiments.secret_game.duel import duel, duel_without_classes
from groundswell.experiments.secret_game.modes import final_scores
from groundswell.experiments.secret_game.played import Duel, Played
from groundswell.experiments.secret_game.schedule import BLOCK, Schedule, Table, check_told
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.stopping import StoppingRule
from groundswell.experiments.secret_game.tally import Tally
from groundswell.experiments.secret_game.words import built_in_pool, draw_many
from groundswell.experiments.settled import settled
from groundswell.program.request import Chat, Fault
from groundswell.program.trial import Program

REPLIES = (3, inf)
"""Tokens per message for estimates: from 3 up to the limit of the request."""


def schedule_of(settings: Batch, seed: int) -> Schedule:
    """All interactions of a batch. Sends nothing."""
    return Schedule(settings.pairings, settings.table, settings.words or built_in_pool(), seed)


async def play(run: Run, settings: Batch) -> Analysis:
    """Play all interactions, or until the stopping rule is met, and analyse them."""
    check_models(run, settings.agents, settings.table)
    check_told(settings.agents, settings.table, settings.words or built_in_pool())
    schedule = schedule_of(settings, run.record.seed)
    program, settings = program_of(run, settings)
    tally, rule = _tally(program, settings), _rule(settings)
    try:
        async for outcome in _outcomes(run, program, schedule, rule):
            leaked = tally.add(outcome.spec, outcome.result, outcome.fault)
            if rule is not None and leaked is not None:
                rule.add(outcome.spec, leaked)
        complete = rule is None
    except RunStopped:
        complete = False
    if not complete:
        tally, rule = await _recount(run, program, settings, schedule, rule)
    return _analyse(run, settings, tally, len(schedule), rule)


async def tournament(run: Run, settings: Tournament) -> Analysis:
    """Play rounds. Agents keep the secrets they obtain, and remember conversations if their memory is long."""
    check_models(run, settings.agents, settings.table)
    check_told(settings.agents, settings.table, settings.words or built_in_pool())
    program, settings = program_of(run, settings)
    scene = Scene(settings, run.record.seed)
    tally = _tally(program, settings)
    try:
        for number in range(settings.rounds):
            async for outcome in run.map(program, scene.round(number)):
                tally.add(outcome.spec, outcome.result, outcome.fault)
                if outcome.result is not None:
                    scene.learn(outcome.spec, outcome.result)
    except RunStopped:
        pass  # analyse what was played so far
    return _analyse(run, settings, tally, settings.interactions, None, scene.scores(tally))


S = TypeVar("S", Batch, Tournament)


def program_of(run: Run, settings: S) -> tuple[Program[Duel, Played], S]:
    """The program of a run, and its settings. Before release 0.1 there were no classes; normalised was usual."""
    if not (run.record.release or "").startswith("0.0."):
        return duel, settings
    tier = "normalised" if settings.tier == "declared" else settings.tier
    return duel_without_classes, msgspec.structs.replace(settings, tier=tier)


class Scene:
    """The state of a tournament: which secrets each agent has obtained, and what it remembers."""

    def __init__(self, settings: Tournament, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        given = [agent.secret for agent in settings.agents if agent.secret is not None]
        drawn = iter(draw_many(settings.words or built_in_pool(), seed, len(settings.agents) - len(given), given))
        self.secrets = {agent.id: agent.secret or next(drawn) for agent in settings.agents}
        self.target = settings.target or Random(f"{seed}/target").choice([agent.id for agent in settings.agents])
        self._learnt: dict[str, set[str]] = {agent.id: set() for agent in settings.agents}
        self._past: dict[str, list[str]] = {agent.id: [] for agent in settings.agents}

    def round(self, number: int) -> list[Duel]:
        """The interactions of a round: agents shuffled and paired. With an odd number, one agent pauses."""
        settings = self._settings
        agents = list(settings.agents)
        Random(f"{self._seed}/{number}").shuffle(agents)
        pairs = list(zip(agents[::2], agents[1::2], strict=False))
        before = number * len(pairs)
        return [
            self._duel(pair, before + place, number)
            for place, pair in enumerate(pairs[: max(0, settings.interactions - before)])
        ]

    def learn(self, spec: Duel, played: Played) -> None:
        """Update what the agents of an interaction know and remember."""
        leaked = played.leaked(self._settings.tier)
        for place, seat in enumerate(spec.seats):
            other = spec.seats[1 - place]
            if leaked[1 - place]:
                self._learnt[seat.agent].add(other.agent)
            if self._settings.memory == "long":
                self._past[seat.agent].append(_remembered(place, spec, played))

    def scores(self, tally: Tally) -> Mapping[str, float]:
        """The final score of every agent."""
        earned = {agent: tally.agents[agent].points if agent in tally.agents else 0.0 for agent in self._learnt}
        table = self._settings.table
        return final_scores(table.mode, self._learnt, earned, self.target, table.points)

    def _duel(self, pair: tuple[Agent, Agent], number: int, block: int) -> Duel:
        table = self._settings.table
        one, other = (
            table.seat(agent, self.secrets[agent.id], agent.name or f"Agent {agent.id}", self._memory(agent.id))
            for agent in pair
        )
        return table.duel((one, other), number, block)

    def _memory(self, agent: str) -> str:
        past = self._past[agent]
        return "\n".join(["You remember your earlier conversations:", *past]) if past else ""


def _remembered(place: int, spec: Duel, played: Played) -> str:
    """A conversation as one of its agents remembers it."""
    names = [seat.name for seat in spec.seats]
    said = [f"{'You' if line.seat == place else names[line.seat]}: {line.text}" for line in played.lines]
    return "\n".join([f"With {names[1 - place]}:", *said])


def check_models(run: Run, agents: Sequence[Agent], table: Table) -> None:
    """Fail on an unknown model before any request is sent."""
    for model in dict.fromkeys([*(agent.model or table.service.model for agent in agents), table.judge]):
        if model is not None:
            run.lane_of(Chat(model, ()))


@estimates(play)
def expected(settings: Batch) -> Estimate:
    """The estimate of a batch."""
    return rehearse(duel, schedule_of(settings, 0), replies=REPLIES)


@estimates(tournament)
def expected_of_rounds(settings: Tournament) -> Estimate:
    """The estimate of a tournament, with memories of the shortest and of the longest messages."""
    if settings.memory != "long":
        return rehearse(duel, _rounds(settings, 0), replies=REPLIES)
    short, long = (_rounds(settings, tokens) for tokens in (REPLIES[0], settings.table.service.max_tokens))
    return rehearse(duel, short, replies=REPLIES) | rehearse(duel, long, replies=REPLIES)


def _rounds(settings: Tournament, tokens: float) -> Iterator[Duel]:
    """The interactions of a tournament whose agents remember messages of `tokens` tokens each."""
    scene, table = Scene(settings, 0), settings.table
    longest = max((agent.name or f"Agent {agent.id}" for agent in settings.agents), key=len)
    talk = "\n".join([f"With {longest}:", *[f"{longest}: {words(tokens)}"] * table.messages])
    for number in range(settings.rounds):
        past = "\n".join(["You remember your earlier conversations:", *[talk] * number]) if tokens and number else ""
        for spec in scene.round(number):
            one, other = (msgspec.structs.replace(seat, past=past) for seat in spec.seats)
            yield msgspec.structs.replace(spec, seats=(one, other))


def _rule(settings: Batch, cohorts: Sequence[int] = ()) -> StoppingRule | None:
    if settings.stop_at_width is None:
        return None
    pairings = settings.pairings
    arms = [{settings.table.arm(agent) for agent in pairing.agents} for pairing in pairings]
    met = Counter(arm for pair in arms for arm in pair)
    sizes = {arm: BLOCK * many for arm, many in met.items()}
    planned = sum(pairing.interactions for pairing in pairings)
    return StoppingRule(settings.stop_at_width, sizes, BLOCK * len(pairings), planned, cohorts)


async def _outcomes(
    run: Run, program: Program[Duel, Played], schedule: Schedule, rule: StoppingRule | None
) -> AsyncIterator[Outcome[Played]]:
    """The outcomes in trial order. With a stopping rule, a cohort begins when the one before has ended."""
    if rule is None:
        async for outcome in run.map(program, schedule):
            yield outcome
        return
    duels = iter(schedule)
    while cohort := list(islice(duels, rule.release())):
        async for outcome in run.map(program, cohort, goes_on=True):
            yield outcome


async def _recount(
    run: Run, program: Program[Duel, Played], settings: Batch, schedule: Schedule, rule: StoppingRule | None
) -> tuple[Tally, StoppingRule | None]:
    """Count all finished interactions in order, also those that an earlier session released and this one did not.

    Unfinished ones are neither usable nor missing.
    """
    tally, rule = _tally(program, settings), _rule(settings, [] if rule is None else rule.cohorts)
    async for spec, _, found in settled(run, program, ((spec, spec) for spec in schedule)):
        if not isinstance(found, Played | Fault):
            continue
        played, fault = (found, None) if isinstance(found, Played) else (None, found)
        leaked = tally.add(spec, played, fault)
        if rule is not None and leaked is not None:
            rule.add(spec, leaked)
    return tally, rule


def _tally(program: Program[Duel, Played], settings: Batch | Tournament) -> Tally:
    return Tally(settings.tier, settings.table.points, classed=program is duel)


def _analyse(
    run: Run,
    settings: Batch | Tournament,
    tally: Tally,
    planned: int,
    rule: StoppingRule | None,
    scores: Mapping[str, float] | None = None,
) -> Analysis:
    tally.close()
    lost = sum(kinds.total() for kinds in tally.missing.values())
    stopping = None if rule is None else rule.report()
    reached = stopping is not None and stopping.reached
    unfinished = 0 if reached else planned - tally.usable - lost
    used = [settings.table.prompt(agent) for agent in settings.agents]
    found = figures.of_all(tally, run.record.seed)
    if isinstance(settings, Tournament):
        found["survival_p"] = None  # agents keep their words for all rounds, so rounds are no clusters
    return Analysis(
        mode=settings.table.mode.value,
        tier=settings.tier,
        level=figures.LEVEL,
        prompts={prompt.name: prompt.digest for prompt in used},
        messages_per_interaction=settings.table.messages,
        interactions=Interactions(planned, tally.usable, lost, unfinished),
        agents=figures.agents(tally, settings.agents, scores or {}),
        turns=figures.turns(tally),
        cut=tally.cut,
        stopping=stopping,
        **found,
    )
