"""OpenAI's dialect, and that of the many servers that speak it."""

from __future__ import annotations

import re

REASONING_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_REASONERS = re.compile(r"(?:.*/)?(o\d|gpt-5)")


def wants_completion_tokens(model: str) -> bool:
    """Whether a model takes `max_completion_tokens` and rejects the older `max_tokens`."""
    return _REASONERS.match(model) is not None
