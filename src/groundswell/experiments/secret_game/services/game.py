"""What is played: the settings that all interactions of a job share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from groundswell.experiments.secret_game.agents import Agent, AgentService
from groundswell.experiments.secret_game.modes import GameMode, Points
from groundswell.experiments.secret_game.played import HEADLINE, Tier
from groundswell.experiments.secret_game.playing import Batch, Tournament
from groundswell.experiments.secret_game.prompts import PLAIN
from groundswell.experiments.secret_game.schedule import Table, with_prompts
from groundswell.experiments.secret_game.words import Pool


class GameService(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a game, and who speaks for agents without a model of their own.

        GameService(agent_service=GPT35Agent(), tier="encoded", judge="gpt-4o")

    agent_service  a model with its settings; the small local one where none is given
    points         what things are worth
    prompt         the variant of the prompt for agents that have no other: plain, aggressive, cautious, or a file
    tier           by which of the detectors' tiers a leak counts
    seats          who speaks first: everybody equally often, or as agents are given
    thoughts       whether agents write a private thought before they speak
    judge, probe   a model that says whether a secret came out; how many guesses are asked for afterwards
    words          sets of like code words that secrets are drawn from, in place of those that come with the game
    memory, target of a tournament: what agents remember, and the agent whose secret is the designated one
    """

    agent_service: AgentService = AgentService()
    points: Points = Points()
    prompt: str = PLAIN
    tier: Tier = HEADLINE
    seats: Literal["balanced", "given"] = "balanced"
    thoughts: bool = False
    judge: str | None = None
    probe: int = 0
    words: Pool | None = None
    memory: Literal["long", "short"] = "long"
    target: str | None = None

    def settings(
        self,
        agents: Sequence[Agent],
        game_mode: GameMode = GameMode.STANDARD,
        num_interactions: int = 100,
        messages_per_interaction: int = 5,
    ) -> Batch | Tournament:
        """What a driver plays: a statistical batch in the standard mode, a tournament in the others."""
        told = tuple(self._told(agent) for agent in agents)
        table = with_prompts(self.table(game_mode, messages_per_interaction), told)
        if game_mode.over_rounds:
            return Tournament(told, num_interactions, table, self.tier, self.words, self.memory, self.target)
        return Batch(told, num_interactions, table, self.tier, self.words)

    def table(self, game_mode: GameMode = GameMode.STANDARD, messages_per_interaction: int = 5) -> Table:
        """What all interactions have in common."""
        return Table(
            messages_per_interaction,
            game_mode,
            self.points,
            self.agent_service,
            self.seats,
            self.thoughts,
            self.judge,
            self.probe,
        )

    def _told(self, agent: Agent) -> Agent:
        return agent if agent.prompt != PLAIN else msgspec.structs.replace(agent, prompt=self.prompt)
