"""How many examples a property is tried on."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> int:
    """So many in `make test-all`, a sixth of them in `make test`, ten times as many in the profile `thorough`."""
    return max(1, count * settings().max_examples // 60)


def full() -> bool:
    """Whether all examples are wanted, and not those of `make test` alone."""
    return settings().max_examples >= 60
