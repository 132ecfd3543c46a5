"""What very small models need to be of use in a conversation."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {"repeat_penalty": 1.1, "repeat_last_n": 256}
"""What keeps a very small model from saying the same again and again; llama.cpp knows it, providers do not."""


def extras_of(model: str) -> dict[str, Any] | None:
    """What is passed through to whoever runs a model."""
    return SMALL if model.startswith("local/") else None
