"""The number of examples of property tests."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> int:
    """The count in `make test-all`, a sixth of it in `make test`, ten times as many in the profile `thorough`."""
    return max(1, count * settings().max_examples // 60)


def full() -> bool:
    """Whether all examples run, and not only those of `make test`."""
    return settings().max_examples >= 60
