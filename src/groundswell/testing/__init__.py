"""Tools for tests of experiments, transports and stores. They ship with the package.

clock.py        FakeClock: hours pass instantly
batch.py        a provider that keeps its ledger in a file, with batch-like and live-like transports
provider.py     batches like those of real providers, with limits and with faults of your choice
conformance.py  checks for every Transport and every Journal, to run on your own
                (transport_checks.py, journal_checks.py)
crash.py        commits that fail and processes that kill themselves, at a moment of your choice
experiments.py  check_experiment: checks an experiment in one call
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell.testing.experiments import check_experiment

__all__ = ["check_experiment"]


def __getattr__(name: str) -> Any:
    """Import it on first use, because it needs the command line and the server."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.experiments").check_experiment
