"""What the emulator charges: US dollars per million tokens, counted in whole nano-dollars so that sums are exact."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from groundswell.errors import SettingsError
from groundswell.program.request import Usage


class Price(msgspec.Struct, frozen=True):
    """Dollars per million tokens. A batch costs half; the rest are shares of an input token."""

    input: float
    output: float
    cached: float = 0.5
    cache_write: float = 1.0
    cache_hour: float = 1.0


CLAUDE = {"cached": 0.1, "cache_write": 1.25, "cache_hour": 2.0}

PRICES: dict[str, Price] = {
    "gpt-4o-mini*": Price(0.15, 0.60),
    "gpt-4o*": Price(2.50, 10.00),
    "gpt-4-turbo*": Price(10.00, 30.00, cached=1.0),
    "gpt-3.5-turbo*": Price(0.50, 1.50, cached=1.0),
    "text-embedding-3-small": Price(0.02, 0.0),
    "text-embedding-3-large": Price(0.13, 0.0),
    "claude-opus-4-5*": Price(5.00, 25.00, **CLAUDE),
    "claude-*opus*": Price(15.00, 75.00, **CLAUDE),
    "claude-haiku-4*": Price(1.00, 5.00, **CLAUDE),
    "claude-*haiku*": Price(0.80, 4.00, **CLAUDE),
    "claude-*": Price(3.00, 15.00, **CLAUDE),
}
"""Examples of real prices at some time: what matters is that both sides can count them."""

OTHERS = Price(1.00, 4.00)
FREE = Price(0.0, 0.0)


def price_of(model: str, given: dict[str, Price], otherwise: Price | None = None) -> Price:
    """The price of a model: what the user gave, else `otherwise`, else what the table says."""
    for pattern, price in given.items():
        if fnmatchcase(model, pattern):
            return price
    return otherwise or _listed(model)


@lru_cache(maxsize=1024)
def _listed(model: str) -> Price:
    return next((price for pattern, price in PRICES.items() if fnmatchcase(model, pattern)), OTHERS)


def nano_dollars(price: Price, usage: Usage, *, hour: int = 0, batch: bool = False) -> int:
    """What a reply costs; `hour` of the tokens written to the prompt cache are kept for an hour."""
    read, written = usage.cached_tokens, usage.cache_write_tokens
    cached = read * price.cached + (written - hour) * price.cache_write + hour * price.cache_hour
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
            f"price {text!r}: write it as MODEL=INPUT/OUTPUT in dollars per million tokens, for instance gpt-*=0.15/0.6"
        ) from None
    if not (0 <= into < float("inf") and 0 <= out < float("inf")):
        raise SettingsError(f"price {text!r}: a price is a finite number that is not negative")
    return model, msgspec.structs.replace(_listed(model), input=into, output=out)
