"""The settings of a run, as its record stores them: a statistical batch or a tournament."""

from __future__ import annotations

from typing import Literal

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.agents import Agent
from groundswell.experiments.secret_game.played import HEADLINE, TIERS, Tier
from groundswell.experiments.secret_game.schedule import Pairing, Table, check_agents, round_robin
from groundswell.experiments.secret_game.words import Pool


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statistical batch: `interactions` interactions per pair of agents."""

    agents: tuple[Agent, ...]
    interactions: int = 100
    table: Table = Table()
    tier: Tier = HEADLINE
    words: Pool | None = None
    own: bool = False
    """Whether agents also play against themselves."""
    stop_at_width: float | None = None

    def __post_init__(self) -> None:
        check_agents(self.agents)
        _check(self.interactions, self.tier, self.table)

    @property
    def pairings(self) -> list[Pairing]:
        """All pairs of agents."""
        return round_robin(self.agents, self.interactions, own=self.own)

    @property
    def trials(self) -> int:
        """Number of interactions of all pairs."""
        return len(self.pairings) * self.interactions


class Tournament(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tournament of `interactions` interactions in all, played in rounds."""

    agents: tuple[Agent, ...]
    interactions: int = 100
    table: Table = Table()
    tier: Tier = HEADLINE
    words: Pool | None = None
    memory: Literal["long", "short"] = "long"
    target: str | None = None
    """The agent whose secret is the designated one; None draws one."""

    def __post_init__(self) -> None:
        check_agents(self.agents)
        _check(self.interactions, self.tier, self.table)
        if self.target is not None and self.target not in {agent.id for agent in self.agents}:
            raise SettingsError(f"target {self.target!r}: no agent has this id")

    @property
    def trials(self) -> int:
        """Number of interactions."""
        return self.interactions

    @property
    def rounds(self) -> int:
        """Number of rounds. The last may be shorter."""
        return -(-self.interactions // (len(self.agents) // 2))


def _check(interactions: int, tier: Tier, table: Table) -> None:
    if interactions < 1:
        raise SettingsError(f"num_interactions {interactions}: must be at least 1")
    if tier not in TIERS:
        raise SettingsError(f"tier {tier!r}: unknown; use one of {', '.join(TIERS)}")
    if tier == "judged" and table.judge is None:
        raise SettingsError("tier 'judged': needs a judge; set judge to a model")
