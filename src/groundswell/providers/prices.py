"""Prices of models: the user's own, else those of the package genai-prices.

The rates of a model are looked up once; after that, pricing a reply takes a few multiplications. They are looked up
again every ten minutes, because some prices change by date or by the hour of the day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from groundswell.program.request import Usage
from groundswell.providers.accounts.account import Account, Target
from groundswell.providers.accounts.config import Accounts
from groundswell.providers.accounts.settings import Rates
from groundswell.providers.registry import IN_PROCESS, PROVIDERS

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

Price = Callable[[Usage], float | None]

MILLION = 1e6
LOOK_UP_EVERY = 600.0


class Rate(NamedTuple):
    """Dollars per token, for prompts of more than `above` tokens."""

    above: float
    input: float
    cached: float
    cache_write: float
    output: float
    reasoning: float


class ModelPrices:
    """The `Prices` of the engine. Models may be named by an alias, `provider/model` or `account/model`."""

    def __init__(self, accounts: Callable[[], Accounts], now: Callable[[], float] = time.time) -> None:
        self._accounts = accounts
        self._now = now
        self._known: dict[tuple[str, str], Price] = {}
        self._stale = 0.0

    def __call__(self, model: str, usage: Usage, transport: str) -> float | None:
        """The cost of a request in US dollars, by model, usage and transport. None if the price is unknown."""
        now = self._now()
        if now >= self._stale:
            self._known.clear()
            self._stale = (now // LOOK_UP_EVERY + 1) * LOOK_UP_EVERY
        price = self._known.get((model, transport))
        if price is None:
            price = self._known[model, transport] = self._find(model, batch="batch" in transport)
        return price(usage)

    def _find(self, model: str, *, batch: bool) -> Price:
        if model.partition("/")[0] in IN_PROCESS:
            return _nothing
        accounts = self._accounts()
        full = accounts.resolve(model)
        if full.partition("/")[0] in IN_PROCESS:
            return _nothing
        target = accounts.whose(full)
        own = _own_rates(accounts.prices, (model, full, f"{target.account.provider}/{target.model}"))
        if own is not None:
            return _priced(_by_user(own, target.account, batch=batch))
        provider = PROVIDERS.get(target.account.provider or "")
        if provider is None:
            return _unknown
        if not provider.hosted:
            return _nothing
        return _priced(_listed(target, datetime.fromtimestamp(self._now(), UTC), batch=batch))


def _nothing(usage: Usage) -> float:
    return 0.0


def _unknown(usage: Usage) -> None:
    return None


def _priced(rates: list[Rate]) -> Price:
    """A price from rates sorted by `above`. Unknown if there are none."""
    if not rates:
        return _unknown
    below = _linear(rates[0])
    if len(rates) == 1:
        return below
    first, steps = rates[1].above, [(rate.above, _linear(rate)) for rate in reversed(rates)]

    def price(usage: Usage) -> float:
        size = usage.input_tokens
        return below(usage) if size <= first else next(step(usage) for above, step in steps if size > above)

    return price


def _linear(rate: Rate) -> Callable[[Usage], float]:
    _, into, cached, write, out, thought = rate

    def price(usage: Usage) -> float:
        read, written, thoughts = usage.cached_tokens, usage.cache_write_tokens, usage.reasoning_tokens
        plain = (usage.input_tokens - read - written) * into + (usage.output_tokens - thoughts) * out
        return plain + read * cached + written * write + thoughts * thought

    return price


def _own_rates(prices: Mapping[str, Rates], names: tuple[str, ...]) -> Rates | None:
    """The user's own price: by the model's name, else by the first pattern that matches one of its names."""
    named = next((prices[name] for name in names if name in prices), None)
    fitting = (rates for pattern, rates in prices.items() if any(fnmatchcase(name, pattern) for name in names))
    return named or next(fitting, None)


def _by_user(rates: Rates, account: Account, *, batch: bool) -> list[Rate]:
    usual = _batch_price(account)
    share = (rates.batch if rates.batch is not None else usual) if batch else 1.0
    if share is None:
        return []
    cached = rates.input if rates.cached is None else rates.cached
    write = rates.input if rates.cache_write is None else rates.cache_write
    per_token = [each * share / MILLION for each in (rates.input, cached, write, rates.output, rates.output)]
    return [Rate(-1, *per_token)]


def _listed(target: Target, when: datetime, *, batch: bool) -> list[Rate]:
    """The rates of a model in genai-prices. None if the package does not have it."""
    found = _look_up(target)
    if found is None:
        return []
    model, own = found
    hour = target.account.encode_options.get("prompt_cache") == "1h"
    live = model.get_prices(when)
    if not batch:
        return _rates(live, hour=hour)
    price = model.get_prices(when, {"processing": "batch"}) if own else live
    if price != live:
        rates = _rates(price, hour=hour)
        return _without_cache(rates) if _as_live(target.account, price, live) else rates
    share = _batch_price(target.account)
    if share is None:
        return []
    return [Rate(above, *(each * share for each in rest)) for above, *rest in _rates(live, hour=hour)]


def _batch_price(account: Account) -> float | None:
    """The price of the provider's batch API as a fraction of the live price, for models without a batch price."""
    provider = PROVIDERS.get(account.provider or "")
    return None if provider is None else provider.batch_price


def _as_live(account: Account, price: ModelPrice, live: ModelPrice) -> bool:
    """Whether the list has no batch price for cached tokens, so that genai-prices returns the live one.

    OpenAI gives no discount on them then. (Google's list has such prices, and some equal those of live requests.)
    """
    provider = PROVIDERS.get(account.provider or "")
    cheaper = provider is None or provider.batch_cache
    return not cheaper and price.cache_read_mtok == live.cache_read_mtok


def _without_cache(rates: list[Rate]) -> list[Rate]:
    return [rate._replace(cached=rate.input) for rate in rates]


def _look_up(target: Target) -> tuple[ModelInfo, bool] | None:
    """The model's entry, and whether it belongs to the provider itself; its batch prices apply only there."""
    row = PROVIDERS.get(target.account.provider or "")
    name = None if row is None else row.price_list or row.name
    providers = _snapshot()
    provider = next((each for each in providers if each.id == name), None)
    if provider is None or (model := provider.find_model(target.model, all_providers=providers)) is None:
        return None
    return model, any(model is each for each in provider.models)


def _snapshot() -> list[Provider]:
    from genai_prices.data_snapshot import get_snapshot  # the import takes a third of a second

    return get_snapshot().providers


def _rates(price: ModelPrice, *, hour: bool) -> list[Rate]:
    """Rates per token, one for each prompt size at which a price changes."""
    if price.input_mtok is None and price.output_mtok is None:
        return []
    into = price.input_mtok or 0
    written = price.cache_write_mtok if price.cache_write_mtok is not None else into
    kept = price.cache_write_1h_mtok if hour and price.cache_write_1h_mtok is not None else written
    out = price.output_mtok or 0
    columns = (
        into,
        into if price.cache_read_mtok is None else price.cache_read_mtok,
        kept,
        out,
        out if price.output_reasoning_mtok is None else price.output_reasoning_mtok,
    )
    steps = sorted({-1, *(start for column in columns for start in _starts(column))})
    return [Rate(above, *(_at(column, above) / MILLION for column in columns)) for above in steps]


def _starts(price: Any) -> Iterator[int]:
    """The prompt sizes above which a price changes."""
    yield from (tier.start for tier in getattr(price, "tiers", ()))


def _at(price: Any, above: float) -> float:
    """The price for prompts just above a size."""
    if not hasattr(price, "tiers"):
        return float(price)
    reached = [tier.price for tier in price.tiers if tier.start <= above]
    return float(reached[-1] if reached else price.base)
