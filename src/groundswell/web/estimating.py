"""Estimates of simulation batches and runs."""

from __future__ import annotations

from functools import reduce

import msgspec

from groundswell.engine.spending import NOTHING, Range
from groundswell.estimate.bill import Bill
from groundswell.estimate.billing import billed
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.driving import simulate
from groundswell.experiments.simulations.reading import countable
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


def estimated(batch: Batch, server: ServerSettings) -> Estimated:
    """The estimate of a simulation batch."""
    found = billed(simulate, batch, account=server.account, max_concurrent=server.max_concurrent)
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
