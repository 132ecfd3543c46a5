"""Estimates of simulation batches and runs."""

from __future__ import annotations

from functools import cache, reduce
from typing import Any

import msgspec

from groundswell.engine.driver import Driver
from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate.bill import Bill, bill
from groundswell.estimate.declared import estimate_of
from groundswell.estimate.terms import terms_of
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.driving import simulate
from groundswell.experiments.simulations.reading import countable
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.web.settings import ServerSettings


class Estimated(msgspec.Struct, frozen=True):
    """The estimate of a simulation batch. Ranges are lists of the lowest and the highest value."""

    combinations: int | str
    simulations: int
    asks: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range | None
    seconds: Range
    bill: Bill


def billed(driver: Driver, settings: Any, server: ServerSettings) -> Bill:
    """Rehearse a run with made-up replies, and price its requests."""
    estimate = estimate_of(driver, settings)
    accounts = cache(lambda: load_here(server.account))
    prices = ModelPrices(accounts)
    terms = {load.model: terms_of(load.model, accounts, prices, server.max_concurrent) for load in estimate.loads}
    return bill(estimate, terms)


def estimated(batch: Batch, server: ServerSettings) -> Estimated:
    """The estimate of a simulation batch."""
    found = billed(simulate, batch, server)
    return Estimated(
        combinations=countable(batch.combinations),
        simulations=batch.num_simulations,
        asks=_sum([model.calls for model in found.models]),
        input_tokens=_sum([model.input_tokens for model in found.models]),
        output_tokens=_sum([model.output_tokens for model in found.models]),
        usd=found.ways.live.usd,
        seconds=found.ways.live.seconds,
        bill=found,
    )


def _sum(ranges: list[Range]) -> Range:
    return reduce(Range.__add__, ranges, NOTHING)
