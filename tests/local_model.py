"""The real local model in tests: whether it is here, and keeping it loaded while several tests ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groundswell.transports import weights
from groundswell.transports.local import POOL

WEIGHTS = weights.find("smollm2")
MODEL = "local/smollm2"
needs_model = pytest.mark.skipif(
    WEIGHTS is None or not weights.runner_installed(),
    reason="needs xllamacpp (pip install 'groundswell[local]') and weights (groundswell models add smollm2)",
)


@pytest.fixture(scope="session")
def held_model() -> Iterator[None]:
    """Somebody uses the model all the time: engines that open and close do not load it anew."""
    assert WEIGHTS is not None
    key, _ = POOL.acquire(WEIGHTS)
    yield
    POOL.release(key)
