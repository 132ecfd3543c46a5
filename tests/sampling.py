"""Of many similar cases `make test` runs some, and `make test-all` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], every: int) -> list[Any]:
    """All cases; those that are not the first of `every` in a row are marked slow."""
    return [case if at % every == 0 else _slow(case) for at, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
