"""The ledger: requests, charges and refusals by account and model.

For every entry `received = requests + free + refused + unanswered`: each request that came in was charged, was free
(files, batches, lists), was refused with a status, or was left without an answer. The requests inside batches are
counted separately, when they are processed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from groundswell.emulator.prices import Price, nano_dollars
from groundswell.program.request import Usage

NANO = 1e9


class Entry:
    """The counts of one account and model."""

    __slots__ = (
        "abandoned",
        "batch_nano",
        "batch_paid_again",
        "batch_requests",
        "cache_write_tokens",
        "cached_tokens",
        "faults",
        "free",
        "in_flight",
        "input_tokens",
        "limits_broken",
        "nano",
        "output_tokens",
        "paid",
        "paid_again",
        "peak_in_flight",
        "received",
        "refused",
        "requests",
        "unanswered",
    )

    def __init__(self) -> None:
        self.received = self.requests = self.free = self.batch_requests = 0
        self.unanswered = self.abandoned = self.paid_again = self.batch_paid_again = 0
        self.input_tokens = self.output_tokens = self.cached_tokens = self.cache_write_tokens = 0
        self.nano = self.batch_nano = 0
        self.in_flight = self.peak_in_flight = 0
        self.refused: Counter[int] = Counter()
        self.faults: Counter[str] = Counter()
        self.limits_broken: Counter[str] = Counter()
        self.paid: dict[bytes, int] = {}

    def pay(self, print_: bytes, usage: Usage, price: Price, *, hour: int = 0, batch: bool = False) -> None:
        """Charge for a reply that was made, whether it arrives or not."""
        times = self.paid.get(print_, 0)
        if batch:
            self.batch_requests += 1
            self.batch_paid_again += times > 0
            self.batch_nano += nano_dollars(price, usage, hour=hour, batch=True)
        else:
            self.requests += 1
            self.nano += nano_dollars(price, usage, hour=hour)
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight + 1)
        self.paid[print_] = times + 1
        self.paid_again += times > 0

    def break_off(self) -> None:
        """The emulator itself failed and answers 500. Charges so far stay."""
        settled = self.requests + self.free + self.refused.total() + self.unanswered
        if settled < self.received:
            self.refused[500] += 1

    def enter(self) -> None:
        """A reply is being sent."""
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def leave(self, sent: bool) -> None:
        """A reply was sent, or the client had disconnected."""
        self.in_flight -= 1
        if not sent:
            self.abandoned += 1

    def show(self, *, each: bool = False) -> dict[str, Any]:
        """The entry as JSON; with `each`, how often every single request was charged."""
        shown = {
            "received": self.received,
            "requests": self.requests,
            "batch_requests": self.batch_requests,
            "free": self.free,
            "refused": {str(status): count for status, count in sorted(self.refused.items())},
            "unanswered": self.unanswered,
            "abandoned": self.abandoned,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "dollars": (self.nano + self.batch_nano) / NANO,
            "batch_dollars": self.batch_nano / NANO,
            "paid_again": self.paid_again,
            "batch_paid_again": self.batch_paid_again,
            "distinct_requests": len(self.paid),
            "paid_times": {str(times): count for times, count in sorted(Counter(self.paid.values()).items())},
            "limits_broken": dict(self.limits_broken),
            "faults": dict(self.faults),
            "peak_in_flight": self.peak_in_flight,
        }
        if each:
            shown["paid"] = {print_.hex(): times for print_, times in self.paid.items()}
        return shown


SUMS = (
    *("received", "requests", "batch_requests", "free", "unanswered", "abandoned", "paid_again", "batch_paid_again"),
    *("input_tokens", "output_tokens"),
)


class Ledger:
    """All entries."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}

    def entry(self, account: str, model: str) -> Entry:
        """The entry of an account and a model."""
        found = self._entries.get((account, model))
        if found is None:
            found = self._entries[account, model] = Entry()
        return found

    def show(self, *, each: bool = False) -> dict[str, Any]:
        """The ledger as JSON."""
        accounts: dict[str, dict[str, Any]] = {}
        for (account, model), entry in sorted(self._entries.items()):
            accounts.setdefault(account, {})[model] = entry.show(each=each)
        return {"accounts": accounts, "totals": self.totals()}

    def totals(self) -> dict[str, Any]:
        """The sums over all accounts and models."""
        entries = self._entries.values()
        sums: dict[str, Any] = {name: sum(getattr(entry, name) for entry in entries) for name in SUMS}
        sums["refused"] = sum(entry.refused.total() for entry in entries)
        sums["distinct_requests"] = sum(len(entry.paid) for entry in entries)
        sums["batch_dollars"] = sum(entry.batch_nano for entry in entries) / NANO
        sums["dollars"] = sum(entry.nano + entry.batch_nano for entry in entries) / NANO
        sums["limits_broken"] = sum(entry.limits_broken.total() for entry in entries)
        return sums
