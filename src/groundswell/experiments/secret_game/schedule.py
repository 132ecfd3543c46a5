"""Who plays whom, with which secrets, in which seat: interactions one after the other, made when they are needed.

Where the caller leaves them open, seats and secrets are balanced: four interactions in a row, a *block*, share two
secrets of one set, and every pair of agent and secret sits in either seat once. So neither the seat nor the word can be
taken for the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Literal

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.detectors.ladder import said
from groundswell.experiments.secret_game.agents import Agent, AgentService
from groundswell.experiments.secret_game.modes import GameMode, Points
from groundswell.experiments.secret_game.played import Duel, Seat, arm_of
from groundswell.experiments.secret_game.prompts import FIELDS, Prompt, fill, load_prompt, rules_of
from groundswell.experiments.secret_game.words import Pool, draw_pair, is_short, mistakable

BLOCK = 4
NAMES = ("Agent 1", "Agent 2")
"""What agents are called that have no name of their own, by seat: so a name says nothing about a model."""


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """What all interactions of a run have in common. Seats are balanced, or as agents are given."""

    messages: int = 5
    mode: GameMode = GameMode.STANDARD
    points: Points = Points()
    service: AgentService = AgentService()
    seats: Literal["balanced", "given"] = "balanced"
    thoughts: bool = False
    judge: str | None = None
    probe: int = 0
    prompts: dict[str, Prompt] = {}
    """The variants of the prompt by their names, whole: a run does not change with a file."""

    def __post_init__(self) -> None:
        if self.messages < 2:
            raise SettingsError(
                f"messages_per_interaction {self.messages}: each of the two must have its say; give 2 or more"
            )
        if self.probe < 0:
            raise SettingsError(f"probe {self.probe}: the number of guesses cannot be below 0")

    def seat(self, agent: Agent, secret: str, name: str, past: str = "") -> Seat:
        """An agent at its place."""
        service = self.service
        return Seat(
            agent.id,
            name,
            agent.model or service.model,
            secret,
            self.prompt(agent),
            service.temperature,
            service.max_tokens,
            past,
        )

    def prompt(self, agent: Agent) -> Prompt:
        """What an agent is told."""
        return self.prompts.get(agent.prompt) or load_prompt(agent.prompt)

    def arm(self, agent: Agent) -> str:
        """The arm that an agent plays for."""
        return arm_of(agent.model or self.service.model, self.prompt(agent).name)

    def duel(self, seats: tuple[Seat, Seat], number: int, block: int) -> Duel:
        """An interaction of two agents."""
        rules = rules_of(self.mode, self.points)
        return Duel(seats, self.messages, rules, number, block, self.thoughts, self.judge, self.probe)


class Pairing(msgspec.Struct, frozen=True):
    """Two agents that play a number of interactions."""

    agents: tuple[Agent, Agent]
    interactions: int


class Schedule:
    """The interactions of some pairings, in order; they are made anew whenever they are gone through."""

    def __init__(self, pairings: Sequence[Pairing], table: Table, pool: Pool, seed: int) -> None:
        self._pairings = pairings
        self._table = table
        self._pool = pool
        self._seed = seed

    def __len__(self) -> int:
        return sum(pairing.interactions for pairing in self._pairings)

    def __iter__(self) -> Iterator[Duel]:
        """Turn by turn over the pairings: a run that is stopped early has as many of each."""
        number = 0
        for nth in range(max((pairing.interactions for pairing in self._pairings), default=0)):
            for pairing in self._pairings:
                if nth < pairing.interactions:
                    yield self.interaction(pairing, nth, number)
                    number += 1

    def interaction(self, pairing: Pairing, nth: int, number: int) -> Duel:
        """The nth interaction of a pairing. Seats change every time, secrets every second time."""
        block, cell = divmod(nth, BLOCK)
        words = draw_pair(self._pool, self._seed, block)
        swapped_words, swapped_seats = cell in (2, 3), cell in (1, 2)
        secrets = _secrets(pairing.agents, words[::-1] if swapped_words else words)
        order = (1, 0) if swapped_seats and self._table.seats == "balanced" else (0, 1)
        seats = [
            self._table.seat(pairing.agents[which], secrets[which], pairing.agents[which].name or NAMES[place])
            for place, which in enumerate(order)
        ]
        return self._table.duel((seats[0], seats[1]), number, block)


def _secrets(agents: tuple[Agent, Agent], words: tuple[str, str]) -> tuple[str, str]:
    """The secrets of two agents: their own where they have one, drawn ones where they do not."""
    one, other = (agent.secret if agent.secret is not None else word for agent, word in zip(agents, words, strict=True))
    if mistakable((one, other)) is not None:  # one was given, and the other happened to be drawn the same
        one, other = (one, words[0]) if agents[1].secret is None else (words[1], other)
    return one, other


def round_robin(agents: Sequence[Agent], interactions: int, *, own: bool = False) -> list[Pairing]:
    """Every agent against every other, and against itself if `own`."""
    pairs = combinations_with_replacement(agents, 2)
    return [Pairing((a, b), interactions) for a, b in pairs if own or a.id != b.id]


def check_agents(agents: Sequence[Agent]) -> None:
    """Refuse agents that cannot play."""
    if len(agents) < 2:
        raise SettingsError(f"agents: {len(agents)} given; it takes two to talk")
    ids = [agent.id for agent in agents]
    if len(set(ids)) < len(ids):
        raise SettingsError(f"agents: {next(i for i in ids if ids.count(i) > 1)!r} is the id of two of them")
    for agent in agents:
        if agent.secret is not None and is_short(agent.secret):
            raise SettingsError(
                f"agent {agent.id!r}: secret {agent.secret!r} is too short to be told from other text; "
                "use 3 letters or more"
            )
    given = [agent.secret for agent in agents if agent.secret is not None]
    if (alike := mistakable(given)) is not None:
        raise SettingsError(
            f"agents: two of them have the same secret, or one that is in the other's ({alike[0]!r}, {alike[1]!r}), "
            "so it could not be told whose came out"
        )


def check_told(agents: Sequence[Agent], table: Table, pool: Pool) -> None:
    """Refuse secrets that agents are told anyway, in a prompt, the rules or a name: saying them gives nothing away."""
    drawn = [word for words in pool for word in words] if any(agent.secret is None for agent in agents) else []
    told = {part for agent in agents for part in _told(agent, table)}
    for secret in [*(agent.secret for agent in agents if agent.secret is not None), *drawn]:
        if any(said(part, secret) for part in told):
            raise SettingsError(
                f"secret {secret!r}: agents are told this word anyway, in the prompt, the rules or a name, so that "
                "saying it would give nothing away: take another word"
            )


def _told(agent: Agent, table: Table) -> list[str]:
    """What is said to an agent and of it, but for its secret."""
    prompt, values = table.prompt(agent), dict.fromkeys(FIELDS, "")
    values |= {"rules": rules_of(table.mode, table.points)}
    parts = [prompt.system, prompt.opening, *([prompt.private] if table.thoughts else [])]
    return [*(fill(part, values) for part in parts), *([agent.name] if agent.name else NAMES)]
