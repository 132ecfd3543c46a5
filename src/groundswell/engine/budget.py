"""What a run may spend: calls, tokens, money, time; what is in flight counts as spent. Pure."""

from __future__ import annotations

import msgspec

from groundswell.program.request import Chat, Embed, Request, Usage


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most that a run may spend; None means no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


class Spending(msgspec.Struct):
    """An amount of everything that is limited."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


class Budget:
    """Counts what was spent and what is reserved for asks in flight."""

    def __init__(self, limits: Limits, started: float, spent: Spending | None = None) -> None:
        self.limits = limits
        self.spent = spent or Spending()
        self.reserved = Spending()
        self._started = started

    def refusal(self, now: float, calls: int, tokens: int, usd: float) -> str | None:
        """Why this much more may not be sent, or None if it may."""
        limits, spent, held = self.limits, self.spent, self.reserved
        if limits.seconds is not None and now - self._started >= limits.seconds:
            return f"the time limit of {limits.seconds:g} s is over"
        if limits.calls is not None and spent.calls + held.calls + calls > limits.calls:
            return f"the budget of {limits.calls} calls is used up"
        if limits.tokens is not None and spent.tokens + held.tokens + tokens > limits.tokens:
            return f"the budget of {limits.tokens} tokens is used up ({spent.tokens} spent, {held.tokens} in flight)"
        if limits.usd is not None and spent.usd + held.usd + usd > limits.usd:
            return f"the budget of ${limits.usd:g} is used up (${spent.usd:.4f} spent, ${held.usd:.4f} in flight)"
        return None

    def reserve(self, tokens: int, usd: float) -> None:
        """One ask leaves."""
        self.reserved.calls += 1
        self.reserved.tokens += tokens
        self.reserved.usd += usd

    def rejoin(self) -> None:
        """One ask that an earlier session counted as spent is still in flight."""
        self.spent.calls -= 1
        self.reserved.calls += 1

    def settle(self, tokens: int, usd: float, used_tokens: int, used_usd: float) -> None:
        """One ask came back: give back what was reserved for it, count what it used."""
        self.reserved.calls -= 1
        self.reserved.tokens -= tokens
        self.reserved.usd -= usd
        self.spent.calls += 1
        self.spent.tokens += used_tokens
        self.spent.usd += used_usd


def expected_usage(request: Request) -> Usage:
    """A cautious guess at what a request will use: four characters a token, and the whole reply."""
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
