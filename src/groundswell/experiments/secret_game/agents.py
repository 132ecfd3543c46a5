"""Agents, and who speaks for those that have no model of their own."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from groundswell.experiments.secret_game.prompts import PLAIN


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One who plays. What is left out is made up: a secret is drawn, and the model is that of the agent service."""

    id: str
    name: str
    secret: str | None = None
    model: str | None = None
    prompt: str = PLAIN
    """The variant of the prompt: plain, aggressive, cautious, or a file of your own."""


class AgentService(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model with its settings: it speaks for the agents that have no model of their own."""

    model: str = ""
    temperature: float | None = None
    max_tokens: int = 200

    DEFAULT: ClassVar[str] = "local/smollm2"

    def __post_init__(self) -> None:
        if not self.model:
            msgspec.structs.force_setattr(self, "model", self.DEFAULT)
