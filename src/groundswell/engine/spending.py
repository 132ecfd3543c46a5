"""Budget, spending and cost forecast of a run. Requests in flight count as spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappush, heappushpop
from math import ceil, sqrt

import msgspec

from groundswell.engine.context import OpenTrial, PendingAsk, RunContext
from groundswell.engine.lanes import Lane
from groundswell.engine.options import Limits
from groundswell.engine.ports import Grant, Prices
from groundswell.engine.records import Amounts, Possible, Spent
from groundswell.errors import SettingsError
from groundswell.program.request import (
    Chat,
    Embed,
    Embedding,
    Message,
    Reply,
    Request,
    Settlement,
    Text,
    Usage,
    canonical,
)


class Range(msgspec.Struct, frozen=True, array_like=True):
    """A range from a low to a high figure. In JSON it is a list of the two."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> Range:
        return Range(self.low * factor, self.high * factor)

    def __or__(self, other: Range) -> Range:
        """The smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def longer(self, other: Range) -> Range:
        """The range of the longer of two durations."""
        return Range(max(self.low, other.low), max(self.high, other.high))

    def __contains__(self, figure: float) -> bool:
        return self.low <= figure <= self.high


NOTHING = Range(0, 0)


FEWEST = 20
"""Number of trials that must have ended before there is a forecast."""


class Tally:
    """Cost of ended trials: their number, sum and sum of squares.

    Trials that used replies from the cache, the journal or a parent run do not show what a trial costs without them.
    They are only counted, in `reused`.
    """

    __slots__ = ("paid", "reused", "squares", "usd")

    def __init__(self) -> None:
        self.paid = 0
        self.reused = 0
        self.usd = 0.0
        self.squares = 0.0

    def add(self, usd: float, *, reused: bool) -> None:
        """A trial ended."""
        if reused:
            self.reused += 1
        else:
            self.paid += 1
            self.usd += usd
            self.squares += usd * usd


def forecast(spent: float, begun: float, left: int, tally: Tally) -> Range | None:
    """A 95% interval for the total cost of a run, if its trials are alike; None until enough trials have ended.

    `spent` is the cost so far, `begun` the part of it for unfinished trials, and `left` the number of unfinished
    trials. The high figure assumes that none of these uses the cache, the low one that the same share as before does.
    """
    if tally.paid < FEWEST:
        return None
    mean = tally.usd / tally.paid
    spread = sqrt(max(0.0, tally.squares - tally.usd * mean) / (tally.paid - 1))
    share = tally.paid / (tally.paid + tally.reused)
    low = spent - begun + share * left * mean - _doubt(spread, share * left, tally.paid)
    high = spent - begun + left * mean + _doubt(spread, left, tally.paid)
    return Range(max(spent, low), max(spent, high))


def _doubt(spread: float, left: float, seen: int) -> float:
    """Half the width of the interval for the sum of the remaining costs, given the observed ones."""
    freedom = seen - 1
    times = 2.2 + 2.4 / freedom  # slightly more than Student's t at 97.5 %, because costs have long tails
    return times * spread * sqrt(left * (1 + left / seen))


PER_MESSAGE = 6
PER_IMAGE = 3000
WITH_SCHEMA = 400
"""Tokens that are added for each message, for an image, and for tools and schemas."""
LONG_REPLY = 1024
LONG_THOUGHT = 8192
"""Tokens that are reserved for a reply of unknown length, and for one with reasoning ..."""
CLAUDE_REPLY = 4096
"""... and for one of Claude, where this limit is sent to Anthropic if the program sets none ..."""
ENOUGH = 16
"""... until this many replies of a model have arrived; from then on, twice the longest of them."""


class Budget:
    """Counts what was spent, what may have been spent on lost replies, and what is reserved for requests in flight.

    Limits apply to the sum of the three, and of what others may spend `elsewhere`.
    """

    def __init__(
        self, limits: Limits, started: float, spent: Amounts | None = None, possible: Possible | None = None
    ) -> None:
        self.limits = limits
        self.spent = spent or Amounts()
        self.possible = possible or Possible()
        self.reserved = Amounts()
        self.elsewhere = Amounts()
        self._started = started

    def refusal(self, now: float, calls: int, tokens: int, usd: float) -> str | None:
        """Why this much more may not be sent, or None if it may."""
        limits, others, held, possible = self.limits, self.elsewhere, self.reserved, self.possible
        spent = self.spent + others
        if limits.seconds is not None and now - self._started >= limits.seconds:
            return f"the time limit of {limits.seconds:g} s has been reached"
        if limits.calls is not None and spent.calls + possible.calls + held.calls + calls > limits.calls:
            return f"the budget of {limits.calls} calls is used up"
        if limits.tokens is not None and spent.tokens + possible.tokens + held.tokens + tokens > limits.tokens:
            lost = f"up to {possible.tokens} for lost replies, " if possible.tokens else ""
            lost += f"{others.tokens} left to other workers, " if others.tokens else ""
            left = f"{self.spent.tokens} spent, {lost}{held.tokens} in flight, and the next request may need {tokens}"
            return f"the budget of {limits.tokens} tokens is used up ({left})"
        if limits.usd is not None and spent.usd + possible.usd + held.usd + usd > limits.usd:
            lost = f"up to {_usd(possible.usd)} for lost replies, " if possible.usd else ""
            held_back = f"{_usd(held.usd)} in flight, and the next request may cost {_usd(usd)}"
            lost += f"{_usd(others.usd)} left to other workers, " if others.usd else ""
            left = f"{_usd(self.spent.usd)} spent, {lost}{held_back}"
            return f"the budget of ${limits.usd:g} is used up ({left})"
        return None

    def share(self, calls: int, tokens: int, usd: float) -> float:
        """How much of the whole this is, by the limit that it comes closest to; time does not count."""
        parts = (calls, self.limits.calls), (tokens, self.limits.tokens), (usd, self.limits.usd)
        return max((amount / limit if limit else 1.0 for amount, limit in parts if limit is not None), default=0.0)

    @property
    def used(self) -> Amounts:
        """All that counts against the limits here."""
        possible = Amounts(self.possible.calls, self.possible.tokens, self.possible.usd)
        return self.spent + self.reserved + possible

    @property
    def counts(self) -> bool:
        """Whether anything but time is limited."""
        return msgspec.structs.replace(self.limits, seconds=None) != Limits()

    def reserve(self, tokens: int, usd: float) -> None:
        """One ask leaves."""
        self.reserved.calls += 1
        self.reserved.tokens += tokens
        self.reserved.usd += usd

    def rejoin(self, tokens: int, usd: float) -> None:
        """One ask that an earlier session counted as spent is still in flight."""
        self.spent.calls -= 1
        self.reserve(tokens, usd)

    def turn_back(self, tokens: int, usd: float) -> None:
        """One ask does not leave after all."""
        self.settle(tokens, usd, 0, 0.0)
        self.spent.calls -= 1

    def unsent(self, calls: int) -> None:
        """Asks that count as sent, or are about to, never were."""
        self.spent.calls -= calls

    def settle(self, tokens: int, usd: float, used_tokens: int, used_usd: float) -> None:
        """One ask came back: give back what was reserved for it, count what it used."""
        self.reserved.calls -= 1
        self.reserved.tokens -= tokens
        self.reserved.usd = self.reserved.usd - usd if self.reserved.calls else 0.0  # sums of fractions leave a rest
        self.spent.calls += 1
        self.spent.tokens += used_tokens
        self.spent.usd += used_usd


class MostExpensive:
    """The most that some of several requests can have cost, where it is not known which of them were sent.

    `counted` are requests that are in the sum from the start, each at the cost of the cheapest.
    """

    def __init__(self, most: int, counted: Possible | None = None) -> None:
        self._most = most
        each = counted or Possible()
        self._largest = tuple([float(least)] * each.asks for least in (1, each.tokens, each.usd, each.unknown))

    def add(self, one: Possible) -> Possible:
        """One more request that may have been sent; gives by how much that raises the sum."""
        asks, tokens, usd, unknown = map(self._raised, self._largest, (one.asks, one.tokens, one.usd, one.unknown))
        return Possible(int(asks), int(asks), int(tokens), usd, int(unknown))

    def _raised(self, largest: list[float], amount: float) -> float:
        if len(largest) < self._most:
            heappush(largest, amount)
            return amount
        return amount - heappushpop(largest, amount)

    @property
    def counted(self) -> Possible:
        """How many requests are in the sum, and what the cheapest of them can have cost."""
        asks, tokens, usd, unknown = self._largest
        return Possible(len(asks), 0, int(tokens[0]), usd[0], int(unknown[0])) if asks else Possible()


class Seen:
    """What the replies of one model have used, to judge what the next one may."""

    __slots__ = ("longest", "replies", "swell")

    def __init__(self, replies: int = 0, longest: int = 0, swell: float = 1.0) -> None:
        self.replies = replies
        self.longest = longest
        self.swell = swell
        """How many times as many input tokens as were reckoned with were counted, at the most."""

    def note(self, reckoned: int, usage: Usage) -> None:
        """A reply came; so many input tokens had been reckoned with for it."""
        self.replies += 1
        self.longest = max(self.longest, usage.output_tokens)
        self.swell = max(self.swell, usage.input_tokens / max(reckoned, 1))


def most_usage(request: Request, seen: Seen) -> Usage:
    """What a request may use at the most, in practice: this much is held back while it is in flight."""
    return Usage(ceil(reckoned_input(request) * seen.swell), _longest_reply(request, seen))


def reckoned_input(request: Request) -> int:
    """The most tokens that the prompt of a request is likely to have."""
    if isinstance(request, Embed):
        return sum(_most_tokens(text) + 1 for text in request.texts)
    prompt = sum(PER_MESSAGE + _most_in(message) for message in request.messages)
    if request.tools or request.schema:
        prompt += WITH_SCHEMA + len(canonical((request.tools, request.schema))) // 3
    return prompt


def _longest_reply(request: Request, seen: Seen) -> int:
    if isinstance(request, Embed):
        return 0
    if request.max_tokens is not None:
        return request.max_tokens
    guess = unlimited_reply(request)
    return 2 * seen.longest if seen.replies >= ENOUGH else max(guess, 2 * seen.longest)


def unlimited_reply(chat: Chat) -> int:
    """The tokens that a reply is taken to have at the most if its request sets no `max_tokens` and nothing was seen."""
    if "claude" in chat.model.lower() or chat.model.startswith("anthropic/"):
        return CLAUDE_REPLY
    return LONG_REPLY if chat.reasoning is None else LONG_THOUGHT


def _most_in(message: Message) -> int:
    called = sum(_most_tokens(call.name) + _most_tokens(call.arguments) for call in message.tool_calls)
    if isinstance(message.content, str):
        return called + _most_tokens(message.content)
    return called + sum(_most_tokens(part.text) if isinstance(part, Text) else PER_IMAGE for part in message.content)


def _most_tokens(text: str) -> int:
    """Three characters of English a token; beyond ASCII, two bytes."""
    if text.isascii():
        return len(text) // 3 + 1
    size = len(text.encode(errors="surrogatepass"))
    beyond = sum(character > "\x7f" for character in text)
    return (len(text) - beyond) // 3 + (size - len(text) + beyond) // 2 + 1


def expected_usage(request: Request) -> Usage:
    """What the limiter of an account takes a request to use: four characters a token, and the whole reply."""
    if isinstance(request, Embed):
        return Usage(sum(len(text) for text in request.texts) // 4 + len(request.texts))
    return Usage(_prompt_characters(request) // 4, request.max_tokens or 256)


def _prompt_characters(chat: Chat) -> int:
    total = 0
    for message in chat.messages:
        if isinstance(message.content, str):
            total += len(message.content)
        else:
            total += sum(len(getattr(part, "text", "")) or 3000 for part in message.content)
    return total


def _usd(amount: float) -> str:
    """Dollars; small sums with two digits that mean something."""
    return f"${amount:.4f}" if amount >= 0.001 or not amount else f"${amount:.2g}"


NOTHING_SEEN = Seen()
FIRST = 8
"""How many trials a run with a budget begins before it knows what one of them takes."""


class Spending:
    """Counts one run's spending, and what its trials cost. What is in flight counts as spent."""

    def __init__(self, context: RunContext, prices: Prices | None) -> None:
        counters = context.counters
        self._context = context
        self.tally = Tally()
        self._counters = counters
        self._prices = prices
        self._seen = {
            model: Seen(spent.replies, spent.longest, spent.swell)
            for model, spent in counters.spent.items()
            if spent.longest
        }
        self.limited = context.options.limits != Limits()
        spent = Amounts(counters.sent, counters.input_tokens + counters.output_tokens, counters.usd)
        self._budget = Budget(context.options.limits, context.clock.now(), spent, counters.possible)
        self._counts = self._budget.counts
        self._left = 1.0 - self._budget.share(spent.calls, spent.tokens, spent.usd) - self._share(counters.possible)
        self._ended, self._took = 0, 0.0
        self._lacking = Amounts()
        self.lent = False
        """Whether this is a worker, which gets its part of the budget from the store, piece by piece."""
        self.being_lent = False
        """Whether that part is being changed, so that nothing may be sent."""
        self.refused: str | None = None
        """Why the last request was refused, if one was. More of the budget is then needed here."""
        self.when_refused: Callable[[], None] = lambda: None

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

    def affords(self, lane: Lane, asks: Iterable[PendingAsk], wanted: int, now: float) -> tuple[int, str | None]:
        """How many of the next asks may be sent, and why no more."""
        if not self.limited:
            return wanted, None
        if self.being_lent:
            return 0, None
        allowed, tokens, usd = 0, 0, 0.0
        for pending in asks:
            if allowed == wanted:
                break
            self._estimate(lane, pending)
            tokens, usd = tokens + pending.tokens, usd + pending.usd
            refusal = self._budget.refusal(now, allowed + 1, tokens, usd)
            if refusal is not None:
                self.refused, self._lacking = refusal, Amounts(1, pending.tokens, pending.usd)
                self.when_refused()
                return allowed, refusal
            allowed += 1
        return allowed, None

    @property
    def needs(self) -> tuple[Amounts, Amounts]:
        """What counts against the limits here, and what the next request needs besides."""
        return self._budget.used, self._lacking if self.refused else Amounts(1)

    def lend(self, grant: Grant) -> None:
        """This worker was given another part of the budget."""
        self._budget.elsewhere = grant.elsewhere
        self._left = self._took + grant.left
        if not grant.refused:
            self.refused = None

    def reserve(self, pendings: Iterable[PendingAsk]) -> None:
        """Asks leave, of a run that has limits."""
        for pending in pendings:
            self._budget.reserve(pending.tokens, pending.usd)

    def rejoin(self, lane: Lane, pending: PendingAsk) -> None:
        """One ask that an earlier session counted as spent is still in flight."""
        if self.limited:
            self._reckon(lane, pending)
        self._budget.rejoin(pending.tokens, pending.usd)

    def give_back(self, pending: PendingAsk) -> None:
        """Nothing came of such an ask."""
        self._budget.settle(pending.tokens, pending.usd, 0, 0.0)
        pending.tokens, pending.usd = 0, 0.0

    def turn_back(self, pendings: Iterable[PendingAsk]) -> None:
        """Asks do not leave after all."""
        if self.limited:
            for pending in pendings:
                self._budget.turn_back(pending.tokens, pending.usd)

    def unsent(self, calls: int) -> None:
        """So many asks were not sent, though they left."""
        self._budget.unsent(calls)

    def most(self, lane: Lane, request: Request) -> Possible:
        """The most that a request can have cost, if its reply was lost."""
        usage = self._most_usage(request)
        price = self._price(lane, request, usage)
        return Possible(1, 0, usage.input_tokens + usage.output_tokens, price or 0.0, int(price is None))

    def lose(self, lost: Possible) -> None:
        """Replies were lost that may have been paid for."""
        self._counters.possible = self._budget.possible = self._counters.possible + lost
        self._left -= self._share(lost)

    def _share(self, lost: Possible) -> float:
        return self._budget.share(lost.calls, lost.tokens, lost.usd)

    def spend(self, lane: Lane, pending: PendingAsk, settlement: Settlement) -> None:
        """Count what an attempt used."""
        tokens, usd = 0, 0.0
        if type(settlement) is Reply or type(settlement) is Embedding:
            counters, usage = self._counters, settlement.usage
            tokens = usage.input_tokens + usage.output_tokens
            counters.input_tokens += usage.input_tokens
            counters.output_tokens += usage.output_tokens
            price = self._price(lane, pending.request, usage)
            spent = self._book(pending.request.model, usage, price)
            if price is None:
                counters.unknown_cost += 1
            else:
                usd = price
                counters.usd += price
                pending.trial.usd += price
            if self.limited:
                self._learn(pending.request, usage, spent)
                self._took += self._budget.share(1, tokens, usd)
        if self.limited:
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

    def _price(self, lane: Lane, request: Request, usage: Usage) -> float | None:
        """The same. If it cannot be found out, the run ends; until then nothing that is counted may be left out."""
        try:
            return self.price(lane, request, usage)
        except Exception as error:  # noqa: BLE001  the edge of user code
            self._context.abort(error)
            return None

    def _estimate(self, lane: Lane, pending: PendingAsk) -> None:
        """What an ask may use at the most; reserved while it is in flight."""
        known = self._reckon(lane, pending)
        if not known and self._budget.limits.usd is not None:
            request = pending.request
            raise SettingsError(
                f"model {request.model!r}: its price is unknown, so a budget in dollars cannot be enforced. Add the "
                "price under [prices] in groundswell.toml, or use --max-calls or --max-tokens instead of --budget"
            )

    def _reckon(self, lane: Lane, pending: PendingAsk) -> bool:
        """Work out what an ask may use; whether its price is known."""
        request = pending.request
        usage = self._most_usage(request)
        price = self._price(lane, request, usage)
        pending.tokens, pending.usd = usage.input_tokens + usage.output_tokens, price or 0.0
        return price is not None

    def _most_usage(self, request: Request) -> Usage:
        return most_usage(request, self._seen.get(request.model) or NOTHING_SEEN)
