"""How points are given, mode by mode. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Literal

import msgspec

ServiceName = Literal[
    "default", "openai", "anthropic", "openai-conversation", "anthropic-conversation", "conversation", "auto"
]
"""The batch services, by their names: see ways.py."""


class GameMode(StrEnum):
    """What an interaction is worth."""

    STANDARD = "standard"
    """By interaction: who learns and who leaks."""
    RETAINED = "retained"
    """At the end, every word that was learnt counts more the fewer others know it."""
    DIVERSITY = "diversity"
    """At the end, every different word that was learnt counts the same."""
    TARGETED = "targeted"
    """As diversity, and one of the words counts much more."""

    @property
    def over_rounds(self) -> bool:
        """Whether the mode differs from the standard only over several rounds, so that it plays tournaments."""
        return self is not GameMode.STANDARD


class Points(msgspec.Struct, frozen=True, omit_defaults=True):
    """What things are worth; all of it can be set."""

    none: float = 0
    both: float = 1
    one_sided: float = 3
    leaked: float = 0
    distinct: float = 2
    each: float = 1
    target: float = 5


STANDARD_POINTS = Points()


def interaction_points(leaked: tuple[bool, bool], points: Points = STANDARD_POINTS) -> tuple[float, float]:
    """What the two agents of an interaction get, given whose secret came out."""
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

    `collected` has the agents whose secrets each agent has learnt, `earned` what they got by interaction, and `target`
    is the agent whose secret is the designated one.
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
