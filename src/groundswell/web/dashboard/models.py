"""The models that can be used, what is missing for the others, and how the endpoints of accounts do.

Keys are never shown, nor are the addresses of your own servers and paths on this machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from groundswell.engine.records import EndpointFigures
from groundswell.errors import SettingsError
from groundswell.known_models import examine
from groundswell.program.request import Usage
from groundswell.providers.accounts.config import load_here
from groundswell.providers.prices import ModelPrices
from groundswell.web.dashboard.pages import page
from groundswell.web.services import Here, Services

router = APIRouter(include_in_schema=False)

SAMPLE = 1_000
"""Tokens that are priced to find the price of a million. Larger prompts may have another price."""
LIMITS = {
    "max_concurrent_requests": "requests at once",
    "rate_limit_per_minute": "requests per minute",
    "token_limit_per_minute": "tokens per minute",
    "output_token_limit_per_minute": "output tokens per minute",
}


class AccountRow(NamedTuple):
    """An account. `lacks` are variables to set, `key` is the name of the variable that has the key."""

    name: str
    usable: bool
    trusted: bool
    key: str | None
    lacks: Sequence[str]
    hint: str
    limits: Sequence[str]
    broken: bool
    official: bool


class NameRow(NamedTuple):
    """A short name or alias, and its price in dollars for a million tokens, if it is known."""

    name: str
    model: str
    usable: bool
    input: str
    output: str


class EndpointRow(NamedTuple):
    """An endpoint: the host of a provider, or the number of your own server."""

    account: str
    place: str
    figures: EndpointFigures


@router.get("/models")
async def models(here: Here, request: Request) -> Response:
    """What can be used, and what is missing."""
    values = await here.heavy(lambda: _values(here))
    return page(here, request, "models.html", title="Models", active="models", **values)


def _values(here: Services) -> dict[str, Any]:
    found = examine(here.settings.account)
    accounts = [_account(one) for one in found["accounts"]]
    return {
        "default": here.model,
        "local": [one for one in (*found["local"], found["sentences"]) if not one["model"].endswith("/PATH")],
        "accounts": sorted(accounts, key=lambda one: not one.usable),
        "names": list(_names(here, found, {one.name for one in accounts if one.usable})),
        "emulated": found["emulated"],
        "broken": bool(found["problems"]),
        "endpoints": endpoint_rows(here.background.endpoints, {one.name for one in accounts if one.official}),
    }


def endpoint_rows(
    endpoints: Mapping[str, Sequence[EndpointFigures]], official: Collection[str] = ()
) -> list[EndpointRow]:
    """Endpoints, with the host of an official account. Addresses of your own servers are not shown."""
    return [
        EndpointRow(account, urlsplit(each.url).hostname or "" if account in official else f"server {number}", each)
        for account, some in sorted(endpoints.items())
        for number, each in enumerate(some, 1)
    ]


def _account(one: dict[str, Any]) -> AccountRow:
    limits = [f"{value:,.0f} {LIMITS[name]}" for name, value in one["limits"].items() if name in LIMITS]
    name = one["model"].partition("/")[0]
    broken = one["problem"] is not None and not one["lacks"] and one["trusted"]
    return AccountRow(
        name,
        one["usable"],
        one["trusted"],
        one["key"],
        one["lacks"],
        one["hint"] or "",
        limits,
        broken,
        one["official"],
    )


def _names(here: Services, found: dict[str, Any], usable: set[str]) -> Iterable[NameRow]:
    """All short names and aliases. The user's own come first."""
    prices = ModelPrices(lambda: load_here(here.settings.account))
    named: dict[str, str] = found["aliases"] | found["short_names"] | found["aliases"]
    inside = {"local", "emulated", "scripted", "sentences"}
    for name, model in named.items():
        into, out = (_per_million(prices, name, usage) for usage in (Usage(SAMPLE, 0), Usage(0, SAMPLE)))
        full = named.get(model, model)
        yield NameRow(name, model, full.partition("/")[0] in usable | inside, into, out)


def _per_million(prices: ModelPrices, model: str, usage: Usage) -> str:
    try:
        found = prices(model, usage, "live")
    except SettingsError:
        found = None
    if found is None:
        return "unknown"
    usd = found * 1e6 / SAMPLE
    return f"${usd:,.2f}" if usd >= 1 or usd == round(usd, 2) else f"${usd:.3g}"
