"""Prices of the emulator: US dollars per million tokens, summed in whole nano-dollars so that sums are exact."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from groundswell.errors import SettingsError
from groundswell.program.request import Usage


class Price(msgspec.Struct, frozen=True):
    """Dollars per million tokens for input and output. The others are fractions of the input price.

    A batch costs half of everything, including cached tokens. If the provider's list differs, `batch_cached` is the
    price of a cached token in a batch, as a fraction of a live input token.
    """

    input: float
    output: float
    cached: float = 0.5
    cache_write: float = 1.0
    cache_hour: float = 1.0
    batch_cached: float | None = None


CLAUDE = {"cached": 0.1, "cache_write": 1.25, "cache_hour": 2.0}
CLAUDE_5_5 = CLAUDE | {"cached": 0.05}
UNCACHED = {"cached": 1.0}
HALF = {"cached": 0.5, "batch_cached": 0.5}
"""Before GPT-5, OpenAI gave no discount for cached tokens in batches: they cost as much as any token there."""
QUARTER = {"cached": 0.25, "batch_cached": 0.5}
TENTH = {"cached": 0.1}
WRITTEN = {"cached": 0.1, "cache_write": 1.25, "cache_hour": 1.25}
"""Since GPT-5.6, OpenAI charges for writing to the cache."""
GPT_6_1 = WRITTEN | {"cached": 0.05}

PRICES: dict[str, Price] = {
    "gpt-3.5-turbo*": Price(0.50, 1.50, **UNCACHED),
    "gpt-4-turbo*": Price(10.00, 30.00, **UNCACHED),
    "gpt-4": Price(30.00, 60.00, **UNCACHED),
    "gpt-4o-mini*": Price(0.15, 0.60, **HALF),
    "gpt-4o-2024-05-13": Price(5.00, 15.00, **UNCACHED),
    "gpt-4o*": Price(2.50, 10.00, **HALF),
    "gpt-4.1-mini*": Price(0.40, 1.60, **QUARTER),
    "gpt-4.1-nano*": Price(0.10, 0.40, **QUARTER),
    "gpt-4.1*": Price(2.00, 8.00, **QUARTER),
    "gpt-5-mini*": Price(0.25, 2.00, **TENTH),
    "gpt-5-nano*": Price(0.05, 0.40, **TENTH),
    "gpt-5-pro*": Price(15.00, 120.00, **UNCACHED),
    "gpt-5.1*": Price(1.25, 10.00, **TENTH),
    "gpt-5.2-pro*": Price(21.00, 168.00, **UNCACHED),
    "gpt-5.2*": Price(1.75, 14.00, **TENTH),
    "gpt-5.3*": Price(1.75, 14.00, **TENTH),
    "gpt-5.4-mini*": Price(0.75, 4.50, **TENTH),
    "gpt-5.4-nano*": Price(0.20, 1.25, **TENTH),
    "gpt-5.4-pro*": Price(30.00, 180.00, **UNCACHED),
    "gpt-5.4*": Price(2.50, 15.00, **TENTH, batch_cached=0.052),  # $0.13 in the list
    "gpt-5.5-pro*": Price(30.00, 180.00, **UNCACHED),
    "gpt-5.5*": Price(5.00, 30.00, **TENTH),
    "gpt-5.6-luna*": Price(0.20, 1.20, **WRITTEN),
    "gpt-5.6-sol*": Price(4.00, 20.00, **WRITTEN),
    "gpt-5.6-terra*": Price(2.00, 12.00, **WRITTEN),
    "gpt-5": Price(1.25, 10.00, **TENTH),
    "gpt-5-20*": Price(1.25, 10.00, **TENTH),
    "gpt-6-astra*": Price(10.00, 50.00, **WRITTEN),
    "gpt-6-luna*": Price(0.10, 0.50, **WRITTEN),
    "gpt-6-sol*": Price(2.00, 10.00, **WRITTEN),
    "gpt-6.1-sol*": Price(2.00, 10.00, **GPT_6_1),
    "gpt-6.1-terra*": Price(1.00, 5.00, **GPT_6_1),
    "o1": Price(15.00, 60.00, **HALF),
    "o3-mini*": Price(1.10, 4.40, **HALF),
    "o3-pro*": Price(20.00, 80.00, **UNCACHED),
    "o3": Price(2.00, 8.00, **QUARTER),
    "o4-mini*": Price(1.10, 4.40, **QUARTER),
    "text-embedding-3-small": Price(0.02, 0.0, **UNCACHED),
    "text-embedding-3-large": Price(0.13, 0.0, **UNCACHED),
    "text-embedding-ada-002": Price(0.10, 0.0, **UNCACHED),
    "claude-3-haiku*": Price(0.25, 1.25, cached=0.12, cache_write=1.2, cache_hour=2.0),
    "claude-3-5-haiku*": Price(0.80, 4.00, **CLAUDE),
    "claude-haiku-4*": Price(1.00, 5.00, **CLAUDE),
    "claude-haiku-5-5*": Price(0.10, 0.50, **CLAUDE),
    "claude-3-opus*": Price(15.00, 75.00, **CLAUDE),
    "claude-opus-4-0*": Price(15.00, 75.00, **CLAUDE),
    "claude-opus-4-1*": Price(15.00, 75.00, **CLAUDE),
    "claude-opus-4-20*": Price(15.00, 75.00, **CLAUDE),
    "claude-opus-4-*": Price(5.00, 25.00, **CLAUDE),
    "claude-opus-5-5*": Price(4.00, 20.00, **CLAUDE_5_5),
    "claude-opus-5*": Price(5.00, 25.00, **CLAUDE),
    "claude-fable-5-1*": Price(10.00, 50.00, **CLAUDE | {"cached": 0.025}),
    "claude-fable-5*": Price(10.00, 50.00, **CLAUDE),
    "claude-sonnet-5-5*": Price(2.00, 10.00, **CLAUDE_5_5),
    "claude-sonnet-5*": Price(2.00, 10.00, **CLAUDE),
    "claude-*": Price(3.00, 15.00, **CLAUDE),
}
"""List prices of November 2026. Surcharges for very long prompts are not included."""

OTHERS = Price(1.00, 4.00)
FREE = Price(0.0, 0.0)


def price_of(model: str, given: dict[str, Price], otherwise: Price | None = None) -> Price:
    """The price of a model: the user's own, else `otherwise`, else the table's."""
    for pattern, price in given.items():
        if fnmatchcase(model, pattern):
            return price
    return otherwise or _listed(model)


@lru_cache(maxsize=1024)
def _listed(model: str) -> Price:
    return next((price for pattern, price in PRICES.items() if fnmatchcase(model, pattern)), OTHERS)


def nano_dollars(price: Price, usage: Usage, *, hour: int = 0, batch: bool = False) -> int:
    """The cost of a reply; `hour` of the tokens written to the prompt cache are kept for an hour."""
    read, written = usage.cached_tokens, usage.cache_write_tokens
    share = price.cached if not batch or price.batch_cached is None else price.batch_cached * 2
    cached = read * share + (written - hour) * price.cache_write + hour * price.cache_hour
    weighed = usage.input_tokens - read - written + cached
    whole = (weighed * price.input + usage.output_tokens * price.output) * 1000
    return round(whole / 2 if batch else whole)


def parse_price(text: str) -> tuple[str, Price]:
    """Read `MODEL=INPUT/OUTPUT` in dollars per million tokens."""
    model, _, numbers = text.partition("=")
    try:
        into, out = map(float, numbers.split("/"))
    except ValueError:
        raise SettingsError(
            f"price {text!r}: expected MODEL=INPUT/OUTPUT in dollars per million tokens, for example gpt-*=0.15/0.6"
        ) from None
    if not (0 <= into < float("inf") and 0 <= out < float("inf")):
        raise SettingsError(f"price {text!r}: a price must be a finite number, 0 or more")
    return model, msgspec.structs.replace(_listed(model), input=into, output=out)
