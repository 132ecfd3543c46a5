"""The bill of a driver: its estimate with prices and times, from the settings of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from groundswell.engine.driver import Driver
from groundswell.estimate.bill import Bill, bill
from groundswell.estimate.declared import estimate_of
from groundswell.estimate.measured import Known, Measured
from groundswell.estimate.terms import Terms, terms_of
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices


def billed(
    driver: Driver,
    settings: Any,
    *,
    seed: int = 0,
    account: Sequence[str] = (),
    max_concurrent: int | None = None,
    measured: Measured | None = None,
) -> Bill:
    """Estimate a run of a driver, with prices and times. No request is sent and no key is needed."""
    accounts = cache(lambda: load_here(account))
    prices = ModelPrices(accounts)

    @cache
    def terms(model: str) -> Terms:
        return terms_of(model, accounts, prices, max_concurrent)

    estimate = estimate_of(driver, settings, seed=seed, known=Known(terms, measured))
    return bill(estimate, {load.model: terms(load.model) for load in estimate.loads}, measured)
