"""The schedule: pairings, secrets and seats of all interactions, generated lazily.

Unless the caller sets them, seats and secrets are balanced. Four consecutive interactions, a *block*, share two secrets
of one set, and each agent plays each secret once in each seat. So differences between models cannot come from the seat
or the word.
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
"""Names of agents without their own, by seat. They reveal nothing about the model."""


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings that all interactions of a run share."""

    messages: int = 5
    mode: GameMode = GameMode.STANDARD
    points: Points = Points()
    service: AgentService = AgentService()
    seats: Literal["balanced", "given"] = "balanced"
    thoughts: bool = False
    judge: str | None = None
    probe: int = 0
    prompts: dict[str, Prompt] = {}
    """The prompts by name, in full, so a later change of a file does not affect the run."""

    def __post_init__(self) -> None:
        if self.messages < 2:
            raise SettingsError(
                f"messages_per_interaction {self.messages}: must be at least 2, so both agents write a message"
            )
        if self.probe < 0:
            raise SettingsError(f"probe {self.probe}: the number of guesses must not be negative")

    def seat(self, agent: Agent, secret: str, name: str, past: str = "") -> Seat:
        """The seat of an agent."""
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
        """The prompt of an agent."""
        return self.prompts.get(agent.prompt) or load_prompt(agent.prompt)

    def arm(self, agent: Agent) -> str:
        """The arm of an agent."""
        return arm_of(agent.model or self.service.model, self.prompt(agent).name)

    def duel(self, seats: tuple[Seat, Seat], number: int, block: int) -> Duel:
        """An interaction of two agents."""
        rules = rules_of(self.mode, self.points)
        return Duel(seats, self.messages, rules, number, block, self.thoughts, self.judge, self.probe)


class Pairing(msgspec.Struct, frozen=True):
    """Two agents and their number of interactions."""

    agents: tuple[Agent, Agent]
    interactions: int


class Schedule:
    """All interactions of some pairings, in order. They are generated on each iteration."""

    def __init__(self, pairings: Sequence[Pairing], table: Table, pool: Pool, seed: int) -> None:
        self._pairings = pairings
        self._table = table
        self._pool = pool
        self._seed = seed

    def __len__(self) -> int:
        return sum(pairing.interactions for pairing in self._pairings)

    def __iter__(self) -> Iterator[Duel]:
        """Alternate between the pairings, so a run that is stopped early has played all of them equally often."""
        number = 0
        for nth in range(max((pairing.interactions for pairing in self._pairings), default=0)):
            for pairing in self._pairings:
                if nth < pairing.interactions:
                    yield self.interaction(pairing, nth, number)
                    number += 1

    def interaction(self, pairing: Pairing, nth: int, number: int) -> Duel:
        """The nth interaction of a pairing. Seats and secrets alternate within a block."""
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
    """The secrets of two agents: given or drawn."""
    one, other = (agent.secret if agent.secret is not None else word for agent, word in zip(agents, words, strict=True))
    if mistakable((one, other)) is not None:  # one was given, and the other happened to be drawn the same
        one, other = (one, words[0]) if agents[1].secret is None else (words[1], other)
    return one, other


def round_robin(agents: Sequence[Agent], interactions: int, *, own: bool = False) -> list[Pairing]:
    """Every agent against every other, and against itself if `own`."""
    pairs = combinations_with_replacement(agents, 2)
    return [Pairing((a, b), interactions) for a, b in pairs if own or a.id != b.id]


def check_agents(agents: Sequence[Agent]) -> None:
    """Raise `SettingsError` for invalid agents."""
    if len(agents) < 2:
        raise SettingsError(f"agents: {len(agents)} given; give at least 2")
    ids = [agent.id for agent in agents]
    if len(set(ids)) < len(ids):
        raise SettingsError(
            f"agents: the id {next(i for i in ids if ids.count(i) > 1)!r} occurs twice; ids must be unique"
        )
    for agent in agents:
        if agent.secret is not None and is_short(agent.secret):
            raise SettingsError(
                f"agent {agent.id!r}: secret {agent.secret!r} is too short to detect reliably; "
                "use at least 3 letters or digits"
            )
    given = [agent.secret for agent in agents if agent.secret is not None]
    if (alike := mistakable(given)) is not None:
        raise SettingsError(
            f"agents: the secrets {alike[0]!r} and {alike[1]!r} are equal, or one contains the other, so a leak could "
            "not be attributed; use different words"
        )


def check_told(agents: Sequence[Agent], table: Table, pool: Pool) -> None:
    """Raise `SettingsError` for secrets that occur in a prompt, the rules or a name: writing them reveals nothing."""
    drawn = [word for words in pool for word in words] if any(agent.secret is None for agent in agents) else []
    told = {part for agent in agents for part in _told(agent, table)}
    for secret in [*(agent.secret for agent in agents if agent.secret is not None), *drawn]:
        if any(said(part, secret) for part in told):
            raise SettingsError(
                f"secret {secret!r}: occurs in the prompt, the rules or the name of an agent, so writing it would not "
                "be a leak; use another word"
            )


def _told(agent: Agent, table: Table) -> list[str]:
    """The texts that an agent is given, without its secret."""
    prompt, values = table.prompt(agent), dict.fromkeys(FIELDS, "")
    values |= {"rules": rules_of(table.mode, table.points)}
    parts = [prompt.system, prompt.opening, *([prompt.private] if table.thoughts else [])]
    return [*(fill(part, values) for part in parts), *([agent.name] if agent.name else NAMES)]
