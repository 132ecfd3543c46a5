"""Prices, limits and speed of a model. No key is needed."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from groundswell.estimate.speeds import Kind
from groundswell.program.request import Usage
from groundswell.providers.accounts.account import Account
from groundswell.providers.accounts.config import Accounts
from groundswell.providers.prices import ModelPrices
from groundswell.providers.registry import IN_PROCESS, PROVIDERS

MOST_AT_ONCE = 256

Price = Callable[[Usage], float | None]


class Terms(NamedTuple):
    """Price, limits and speed of a model.

    live, batch  price of a request; `batch` is None if the provider has no batch API
    at_once      maximum number of requests in flight; `said`: it was set explicitly
    per_minute   requests and tokens per minute; infinite if not set
    writes       whether writing prompts to the provider's cache costs extra
    """

    model: str
    kind: Kind
    live: Price
    batch: Price | None = None
    at_once: int = MOST_AT_ONCE
    said: bool = False
    requests_per_minute: float = inf
    tokens_per_minute: float = inf
    output_per_minute: float = inf
    writes: bool = False


def terms_of(model: str, accounts: Callable[[], Accounts], prices: ModelPrices, most: int | None = None) -> Terms:
    """The terms of a model, named as a user writes it. `most` is the value of --max-concurrent."""

    def live(usage: Usage) -> float | None:
        return prices(model, usage, "live")

    def batch(usage: Usage) -> float | None:
        return prices(model, usage, "batch")

    place = _inside(model) or _inside(accounts().resolve(model))
    if place is not None:
        kind: Kind = "local" if place == "local" else "inside"
        return Terms(model, kind, live, at_once=most or MOST_AT_ONCE, said=True)
    account = accounts().whose(model).account
    limits = [limit for limit in (account.max_concurrent_requests, most) if limit is not None]
    provider = PROVIDERS.get(account.provider or "")
    return Terms(
        model,
        "hosted" if provider is None or provider.hosted else "own",
        live,
        batch if provider is not None and provider.batch_price is not None else None,
        at_once=min(limits, default=MOST_AT_ONCE),
        said=bool(limits),
        requests_per_minute=account.rate_limit_per_minute or inf,
        tokens_per_minute=account.token_limit_per_minute or inf,
        output_per_minute=account.output_token_limit_per_minute or inf,
        writes=_writes(account),
    )


def _inside(model: str) -> str | None:
    place = model.partition("/")[0]
    return place if "/" in model and place in IN_PROCESS else None


def _writes(account: Account) -> bool:
    return account.encode_options.get("prompt_cache") is not None
