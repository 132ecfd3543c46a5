"""Game modes and how they score. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Literal

import msgspec

ServiceName = Literal[
    "default", "openai", "anthropic", "openai-conversation", "anthropic-conversation", "conversation", "auto"
]
"""Names of the batch services; see ways.py."""


class GameMode(StrEnum):
    """How points are scored."""

    STANDARD = "standard"
    """Points per interaction, by who leaks and who obtains."""
    RETAINED = "retained"
    """Final score: each obtained secret is worth agents / holders, so rarely known secrets are worth more."""
    DIVERSITY = "diversity"
    """Final score: each obtained secret is worth the same."""
    TARGETED = "targeted"
    """Final score: as diversity, with a bonus for one designated secret."""

    @property
    def over_rounds(self) -> bool:
        """Whether the mode scores collected secrets and therefore plays a tournament of several rounds."""
        return self is not GameMode.STANDARD


class Points(msgspec.Struct, frozen=True, omit_defaults=True):
    """Points for each outcome."""

    none: float = 0
    both: float = 1
    one_sided: float = 3
    leaked: float = 0
    distinct: float = 2
    each: float = 1
    target: float = 5


STANDARD_POINTS = Points()


def interaction_points(leaked: tuple[bool, bool], points: Points = STANDARD_POINTS) -> tuple[float, float]:
    """Points of the two agents of an interaction, given whose secret leaked."""
    match leaked:
        case (True, True):
            return points.both, points.both
        case (True, False):
            return points.leaked, points.one_sided
        case (False, True):
            return points.one_sided, points.leaked
        case _:
            return points.none, points.none


def final_scores(
    mode: GameMode,
    collected: Mapping[str, Set[str]],
    earned: Mapping[str, float],
    target: str | None = None,
    points: Points = STANDARD_POINTS,
) -> dict[str, float]:
    """The score of every agent after all rounds.

    `collected` has the agents whose secrets each agent obtained, `earned` the points from interactions, and `target`
    the agent whose secret is the designated one.
    """
    if mode is GameMode.STANDARD:
        return dict(earned)
    holders = Counter(owner for learnt in collected.values() for owner in learnt)
    return {agent: _score(mode, learnt, holders, len(collected), target, points) for agent, learnt in collected.items()}


def _score(
    mode: GameMode, learnt: Set[str], holders: Counter[str], agents: int, target: str | None, points: Points
) -> float:
    match mode:
        case GameMode.RETAINED:
            return sum(agents / holders[owner] for owner in sorted(learnt))
        case GameMode.DIVERSITY:
            return points.distinct * len(learnt)
        case _:
            return points.each * len(learnt) + (points.target if target in learnt else 0)
