"""What the asks of a run may cost, do cost, and did cost: prices and the budget at work."""

from __future__ import annotations

from collections.abc import Iterable

from groundswell.engine.budget import Budget, Limits, Seen, Spending, most_usage, reckoned_input
from groundswell.engine.context import OpenTrial, Pending, RunContext, request_of
from groundswell.engine.forecast import Tally
from groundswell.engine.lanes import Lane
from groundswell.engine.ports import Prices
from groundswell.engine.records import Possible, Spent
from groundswell.errors import SettingsError
from groundswell.program.request import Embedding, Reply, Request, Settlement, Usage

NOTHING_SEEN = Seen()
FIRST = 8
"""How many trials a run with a budget begins before it knows what one of them takes."""


class Purse:
    """Counts one run's spending, and what its trials cost. What is in flight counts as spent."""

    def __init__(self, context: RunContext, prices: Prices | None) -> None:
        counters = context.counters
        self.tally = Tally()
        self._counters = counters
        self._prices = prices
        self._seen = {
            model: Seen(spent.replies, spent.longest, spent.swell)
            for model, spent in counters.spent.items()
            if spent.longest
        }
        self._limited = context.options.limits != Limits()
        spent = Spending(counters.sent, counters.input_tokens + counters.output_tokens, counters.usd)
        self._budget = Budget(context.options.limits, context.clock.now(), spent, counters.possible)
        self._counts = self._budget.counts
        self._left = 1.0 - self._budget.share(spent.calls, spent.tokens, spent.usd) - self._share(counters.possible)
        self._ended, self._took = 0, 0.0

    def trials(self, most: int) -> int:
        """How many trials to keep open. A budget that will not do for all should bring some of them to an end, rather
        than all of them halfway: no more are begun than there is enough left for. What one takes is what all have taken
        by the number of those that have ended: too much rather than too little, since the cheap ones may end first.
        """
        if not self._counts:
            return most
        if not self._ended:
            return min(most, FIRST)
        return max(1, min(most, int((self._left - self._took) * self._ended / self._took))) if self._took else most

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

    def rejoin(self, lane: Lane, pending: Pending) -> None:
        """One ask that an earlier session counted as spent is still in flight."""
        if self._limited:
            self._reckon(lane, pending)
        self._budget.rejoin(pending.tokens, pending.usd)

    def give_back(self, pending: Pending) -> None:
        """Nothing came of such an ask."""
        self._budget.settle(pending.tokens, pending.usd, 0, 0.0)
        pending.tokens, pending.usd = 0, 0.0

    def turn_back(self, pendings: Iterable[Pending]) -> None:
        """Asks do not leave after all."""
        if self._limited:
            for pending in pendings:
                self._budget.turn_back(pending.tokens, pending.usd)

    def unsent(self, calls: int) -> None:
        """So many asks were not sent, though they left."""
        self._budget.unsent(calls)

    def most(self, lane: Lane, request: Request) -> Possible:
        """The most that a request can have cost, if its reply was lost."""
        usage = self._most_usage(request)
        price = self.price(lane, request, usage)
        return Possible(1, 0, usage.input_tokens + usage.output_tokens, price or 0.0, int(price is None))

    def lose(self, lost: Possible) -> None:
        """Replies were lost that may have been paid for."""
        self._counters.possible = self._budget.possible = self._counters.possible + lost
        self._left -= self._share(lost)

    def _share(self, lost: Possible) -> float:
        return self._budget.share(lost.calls, lost.tokens, lost.usd)

    def spend(self, lane: Lane, pending: Pending, settlement: Settlement) -> None:
        """Count what an attempt used."""
        tokens, usd = 0, 0.0
        if type(settlement) is Reply or type(settlement) is Embedding:
            counters, usage = self._counters, settlement.usage
            tokens = usage.input_tokens + usage.output_tokens
            counters.input_tokens += usage.input_tokens
            counters.output_tokens += usage.output_tokens
            price = self.price(lane, request_of(pending), usage)
            spent = self._book(request_of(pending).model, usage, price)
            if price is None:
                counters.unknown_cost += 1
            else:
                usd = price
                counters.usd += price
                pending.trial.usd += price
            if self._limited:
                self._learn(request_of(pending), usage, spent)
                self._took += self._budget.share(1, tokens, usd)
        if self._limited:
            self._budget.settle(pending.tokens, pending.usd, tokens, usd)
            pending.tokens, pending.usd = 0, 0.0

    def _book(self, model: str, usage: Usage, price: float | None) -> Spent:
        """Count what a model was paid."""
        spent = self._counters.spent.get(model)
        if spent is None:
            spent = self._counters.spent[model] = Spent()
        spent.replies += 1
        spent.input_tokens += usage.input_tokens
        spent.output_tokens += usage.output_tokens
        spent.usd += price or 0.0
        spent.unknown += price is None
        spent.longest = max(spent.longest, usage.output_tokens)
        return spent

    def ended(self, trial: OpenTrial) -> None:
        """A trial ended: what it cost says what others will."""
        self.tally.add(trial.usd, reused=trial.reused)
        self._ended += 1

    def _learn(self, request: Request, usage: Usage, spent: Spent) -> None:
        if (seen := self._seen.get(request.model)) is None:
            seen = self._seen[request.model] = Seen()
        seen.note(reckoned_input(request), usage)
        spent.swell = seen.swell

    def price(self, lane: Lane, request: Request, usage: Usage) -> float | None:
        """What a request would cost that uses so much, in dollars, if that is known."""
        return None if self._prices is None else self._prices(request.model, usage, lane.transport.name)

    def _estimate(self, lane: Lane, pending: Pending) -> None:
        """What an ask may use at the most; reserved while it is in flight."""
        known = self._reckon(lane, pending)
        if not known and self._budget.limits.usd is not None:
            request = request_of(pending)
            raise SettingsError(
                f"model {request.model!r}: its price is not known, so a budget in dollars cannot be kept: put it under "
                "[prices] in groundswell.toml, or limit the run by --max-calls or --max-tokens instead of --budget"
            )

    def _reckon(self, lane: Lane, pending: Pending) -> bool:
        """Work out what an ask may use; whether its price is known."""
        request = request_of(pending)
        usage = self._most_usage(request)
        price = self.price(lane, request, usage)
        pending.tokens, pending.usd = usage.input_tokens + usage.output_tokens, price or 0.0
        return price is not None

    def _most_usage(self, request: Request) -> Usage:
        return most_usage(request, self._seen.get(request.model) or NOTHING_SEEN)
