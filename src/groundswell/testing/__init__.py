"""What tests of experiments, transports and stores are made of; it ships with the product.

clock.py        FakeClock: hours pass in no time
batch.py        a provider that keeps books in a file: batch-like and live-like transports over it
provider.py     its batches as real providers have them: with limits, and with mishaps of your choice
conformance.py  what every Transport and every Journal must do, as checks to run over your own
                (transport_checks.py, journal_checks.py)
crash.py        commits that fail and processes that kill themselves, at a moment of your choice
experiments.py  check_experiment: what every experiment must do, in one call
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell.testing.experiments import check_experiment

__all__ = ["check_experiment"]


def __getattr__(name: str) -> Any:
    """Import it when it is used: it needs the command line and the server."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.experiments").check_experiment
