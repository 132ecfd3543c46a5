"""What a user says that models cost, in the table `[prices]` of groundswell.toml. Pure."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from groundswell.accounts.addresses import Unfit
from groundswell.accounts.settings import shown, suggestion


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars per million tokens. None: as input tokens; for `batch`, the share of the live price, not known."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    batch: float | None = None


FIELDS = Rates.__struct_fields__
EXAMPLE = "{ input = 0.10, output = 0.40 }"


def rates(value: Any) -> Rates:
    """The prices of a model; an error says which of them is wrong."""
    if not isinstance(value, dict):
        raise Unfit(f"must be a table of dollars per million tokens, such as {EXAMPLE}")
    for name, price in value.items():
        if name not in FIELDS:
            raise Unfit(f"there is no such price as {shown(name)}; {suggestion(name, FIELDS)}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < math.inf:
            raise Unfit(f"{name}: must be a number that is not negative")
    for name in ("input", "output"):
        if name not in value:
            raise Unfit(f"{name} is missing: write it as {EXAMPLE}, in dollars per million tokens")
    if value.get("batch", 0) > 1:
        raise Unfit("batch: must be a share of the live price, such as 0.5 for half of it")
    return Rates(**{name: float(price) for name, price in value.items()})
