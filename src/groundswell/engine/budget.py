"""What a run may spend: calls, tokens, money, time; what is in flight counts as spent. Pure."""

from __future__ import annotations

from heapq import heappush, heappushpop
from math import ceil

import msgspec

from groundswell.engine.records import Possible
from groundswell.program.request import Chat, Embed, Message, Request, Text, Usage, canonical

PER_MESSAGE = 6
PER_IMAGE = 3000
WITH_SCHEMA = 400
"""Tokens that frame a message, that an image takes, and that a provider puts before tools and schemas."""
LONG_REPLY = 1024
LONG_THOUGHT = 8192
"""Tokens that are held back for a reply of unknown length, and for one with reasoning ..."""
CLAUDE_REPLY = 4096
"""... and for one of Claude, where this is the limit that is sent to Anthropic if the program sets none ..."""
ENOUGH = 16
"""... until so many replies of a model have been seen; then twice the longest of them."""


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
    """Counts what was spent, what may have been spent for replies that were lost, and what is reserved for asks in
    flight. Limits are held against the sum of the three.
    """

    def __init__(
        self, limits: Limits, started: float, spent: Spending | None = None, possible: Possible | None = None
    ) -> None:
        self.limits = limits
        self.spent = spent or Spending()
        self.possible = possible or Possible()
        self.reserved = Spending()
        self._started = started

    def refusal(self, now: float, calls: int, tokens: int, usd: float) -> str | None:
        """Why this much more may not be sent, or None if it may."""
        limits, spent, held, possible = self.limits, self.spent, self.reserved, self.possible
        if limits.seconds is not None and now - self._started >= limits.seconds:
            return f"the time limit of {limits.seconds:g} s is over"
        if limits.calls is not None and spent.calls + possible.calls + held.calls + calls > limits.calls:
            return f"the budget of {limits.calls} calls is used up"
        if limits.tokens is not None and spent.tokens + possible.tokens + held.tokens + tokens > limits.tokens:
            lost = f"{possible.tokens} may have been paid for lost replies, " if possible.tokens else ""
            left = f"{spent.tokens} spent, {lost}{held.tokens} in flight, and the next request may take {tokens}"
            return f"the budget of {limits.tokens} tokens is used up ({left})"
        if limits.usd is not None and spent.usd + possible.usd + held.usd + usd > limits.usd:
            lost = f"{_usd(possible.usd)} may have been paid for lost replies, " if possible.usd else ""
            held_back = f"{_usd(held.usd)} in flight, and the next request may cost {_usd(usd)}"
            left = f"{_usd(spent.usd)} spent, {lost}{held_back}"
            return f"the budget of ${limits.usd:g} is used up ({left})"
        return None

    def share(self, calls: int, tokens: int, usd: float) -> float:
        """How much of the whole this is, by the limit that it comes closest to; time does not count."""
        parts = (calls, self.limits.calls), (tokens, self.limits.tokens), (usd, self.limits.usd)
        return max((amount / limit if limit else 1.0 for amount, limit in parts if limit is not None), default=0.0)

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


class Dearest:
    """The most that some of several requests can have cost, where it is not known which of them were sent."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._largest: tuple[list[float], ...] = ([], [], [], [])

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
    def asks(self) -> int:
        """How many requests are in the sum."""
        return len(self._largest[0])


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
