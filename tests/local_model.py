"""The local model in tests: whether it is installed, and keeping it loaded for several tests."""

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
    """Keep the model loaded, so that engines that open and close do not load it again."""
    assert WEIGHTS is not None
    key, _ = POOL.acquire(WEIGHTS)
    yield
    POOL.release(key)
