"""What the asks of a run may cost, do cost, and did cost: prices and the budget at work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from groundswell.engine.budget import Budget, Limits, Spending, expected_usage
from groundswell.engine.lanes import Lane
from groundswell.engine.opened import Pending, request_of
from groundswell.engine.ports import Prices
from groundswell.program.request import Embedding, Reply, Request, Settlement, Usage

if TYPE_CHECKING:
    from groundswell.engine.run import Run


class Purse:
    """Counts one run's spending. What is in flight counts as spent."""

    def __init__(self, run: Run, prices: Prices | None) -> None:
        counters = run.counters
        self._counters = counters
        self._prices = prices
        self._limited = run.options.limits != Limits()
        spent = Spending(counters.sent, counters.input_tokens + counters.output_tokens, counters.usd)
        self._budget = Budget(run.options.limits, run.clock.now(), spent)

    def affords(self, lane: Lane, asks: Iterable[Pending], wanted: int, now: float) -> tuple[int, str | None]:
        """How many of the next asks may be sent, and why no more."""
        if not self._limited:
            return wanted, None
        allowed, tokens, usd = 0, 0, 0.0
        for pending in asks:
            if allowed == wanted:
                break
            self._estimate(lane, pending)
            tokens, usd = tokens + pending.tokens, usd + pending.usd
            refusal = self._budget.refusal(now, allowed + 1, tokens, usd)
            if refusal is not None:
                return allowed, refusal
            allowed += 1
        return allowed, None

    def reserve(self, pendings: Iterable[Pending]) -> None:
        """Asks leave."""
        if self._limited:
            for pending in pendings:
                self._budget.reserve(pending.tokens, pending.usd)

    def rejoin(self) -> None:
        """One ask that an earlier session counted as spent is still in flight."""
        self._budget.rejoin()

    def give_back(self) -> None:
        """Nothing came of such an ask."""
        self._budget.settle(0, 0.0, 0, 0.0)

    def spend(self, lane: Lane, pending: Pending, settlement: Settlement) -> None:
        """Count what an attempt used."""
        tokens, usd = 0, 0.0
        if type(settlement) is Reply or type(settlement) is Embedding:
            counters, usage = self._counters, settlement.usage
            tokens = usage.input_tokens + usage.output_tokens
            counters.input_tokens += usage.input_tokens
            counters.output_tokens += usage.output_tokens
            price = self._price(lane, request_of(pending), usage)
            if price is None:
                counters.unknown_cost += 1
            else:
                usd = price
                counters.usd += price
        if self._limited:
            self._budget.settle(pending.tokens, pending.usd, tokens, usd)

    def _price(self, lane: Lane, request: Request, usage: Usage) -> float | None:
        return None if self._prices is None else self._prices(request.model, usage, lane.transport.name)

    def _estimate(self, lane: Lane, pending: Pending) -> None:
        """What an ask may use at most, as far as can be told; reserved while it is in flight."""
        if not pending.tokens:
            request = request_of(pending)
            usage = expected_usage(request)
            pending.tokens = usage.input_tokens + usage.output_tokens
            price = self._price(lane, request, usage)
            pending.usd = price or 0.0
