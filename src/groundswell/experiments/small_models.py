"""Extra sampling options for very small models."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {"repeat_penalty": 1.1, "repeat_last_n": 256}
"""Keeps a very small model from repeating itself. llama.cpp supports these options, providers do not."""


def extras_of(model: str) -> dict[str, Any] | None:
    """Extra options that are passed through to the runner of a model."""
    return SMALL if model.startswith("local/") else None
