"""The drivers of the game, which `groundswell play` and `compare` run.

play         a statistical batch: independent interactions of given pairs, ended early by an optional stopping rule
tournament   rounds: agents are shuffled and paired, and keep what they learn and remember
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from math import inf
from random import Random

import msgspec

from groundswell.engine.run import Run
from groundswell.errors import RunStopped
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.made_up import words
from groundswell.estimate.sample import rehearse
from groundswell.experiments.secret_game import figures
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.analysis import Analysis, Interactions
from groundswell.experiments.secret_game.duel import duel
from groundswell.experiments.secret_game.modes import final_scores
from groundswell.experiments.secret_game.played import Duel, Played
from groundswell.experiments.secret_game.schedule import Schedule, Table, check_told
from groundswell.experiments.secret_game.settings import Batch, Tournament
from groundswell.experiments.secret_game.stopping import StoppingRule
from groundswell.experiments.secret_game.tally import Tally
from groundswell.experiments.secret_game.words import built_in_pool, draw_many
from groundswell.experiments.settled import settled
from groundswell.program.request import Chat, Fault

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
    tally = Tally(settings.tier, settings.table.points)
    rule = _rule(settings)
    try:
        async with aclosing(run.map(duel, schedule)) as outcomes:
            async for outcome in outcomes:
                leaked = tally.add(outcome.spec, outcome.result, outcome.fault)
                if rule is not None and leaked is not None and rule.add(outcome.spec, leaked):
                    break
    except RunStopped:
        tally = await _recount(run, settings, schedule)
    return _analyse(run, settings, tally, len(schedule), rule)


async def tournament(run: Run, settings: Tournament) -> Analysis:
    """Play rounds. Agents keep the secrets they obtain, and remember conversations if their memory is long."""
    check_models(run, settings.agents, settings.table)
    check_told(settings.agents, settings.table, settings.words or built_in_pool())
    scene = Scene(settings, run.record.seed)
    tally = Tally(settings.tier, settings.table.points)
    try:
        for number in range(settings.rounds):
            async for outcome in run.map(duel, scene.round(number)):
                tally.add(outcome.spec, outcome.result, outcome.fault)
                if outcome.result is not None:
                    scene.learn(outcome.spec, outcome.result)
    except RunStopped:
        pass  # analyse what was played so far
    return _analyse(run, settings, tally, settings.interactions, None, scene.scores(tally))


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


def _rule(settings: Batch) -> StoppingRule | None:
    if settings.stop_at_width is None:
        return None
    return StoppingRule(settings.stop_at_width, [settings.table.arm(agent) for agent in settings.agents])


async def _recount(run: Run, settings: Batch, schedule: Schedule) -> Tally:
    """Count the finished interactions of a stopped run, in order. Unfinished ones are neither usable nor missing."""
    tally = Tally(settings.tier, settings.table.points)
    async for spec, _, found in settled(run, duel, ((spec, spec) for spec in schedule)):
        if isinstance(found, Played):
            tally.add(spec, found)
        elif isinstance(found, Fault):
            tally.add(spec, None, found)
    return tally


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
    reached = rule is not None and rule.reached
    unfinished = 0 if reached else planned - tally.usable - lost
    used = [settings.table.prompt(agent) for agent in settings.agents]
    return Analysis(
        mode=settings.table.mode.value,
        tier=settings.tier,
        level=figures.LEVEL,
        prompts={prompt.name: prompt.digest for prompt in used},
        messages_per_interaction=settings.table.messages,
        interactions=Interactions(planned, tally.usable, lost, unfinished),
        overall=figures.overall(tally),
        agents=figures.agents(tally, settings.agents, scores or {}),
        models=figures.models(tally),
        pairs=figures.pairs(tally),
        tiers=figures.tiers(tally),
        comparisons=figures.comparisons(tally),
        seats=figures.seats(tally),
        strengths=figures.ratings(tally, run.record.seed),
        survival_p=figures.survival_p(tally),
        forms=dict(tally.forms.most_common()),
        missing=figures.missing(tally),
        turns=figures.turns(tally),
        cut=tally.cut,
        stopping=None if rule is None else rule.report(),
    )
