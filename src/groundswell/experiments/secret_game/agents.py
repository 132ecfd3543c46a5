"""Agents, and the service that provides the model of agents without their own."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from groundswell.experiments.secret_game.prompts import PLAIN


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A player. Without a secret, one is drawn. Without a model, the agent service provides it."""

    id: str
    name: str
    secret: str | None = None
    model: str | None = None
    prompt: str = PLAIN
    """The prompt: plain, aggressive, cautious, or the path of a TOML file."""


class AgentService(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model and its request settings, used for agents that have no model of their own."""

    model: str = ""
    temperature: float | None = None
    max_tokens: int = 200

    DEFAULT: ClassVar[str] = "local/smollm2"

    def __post_init__(self) -> None:
        if not self.model:
            msgspec.structs.force_setattr(self, "model", self.DEFAULT)
