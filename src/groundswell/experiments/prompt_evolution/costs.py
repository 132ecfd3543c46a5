"""The cost of replies. Prices are looked up once and stored with the run, so that resuming makes the same decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from groundswell.engine.run import Run
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Embed, Usage

KEPT = "rates"
LONGER = 1.5
"""Evolved prompts are longer than the seed prompt: a request is expected to cost this many times as much."""
MILLION = 1_000_000
SAMPLE = 1_000
"""Tokens of the request that prices are computed for. Some providers charge more per token for long requests."""


class Rate(msgspec.Struct, frozen=True):
    """Dollars per million tokens."""

    input: float
    output: float


_RATES = dict[str, Rate | None]


class Costs:
    """The cost of replies by model; None if a price is unknown. `usd` is a limit, which needs prices."""

    def __init__(self, run: Run, usd: float | None = None) -> None:
        self.total = 0.0
        """Dollars of all replies so far, as far as prices are known."""
        self._run = run
        self._usd = usd
        kept = run.kept(KEPT)
        self._rates: dict[str, Rate | None] = {} if kept is None else msgspec.json.decode(kept, type=_RATES)

    async def learn(self, models: Iterable[str], *, judges: bool = False) -> None:
        """Look up the prices of these models, unless they are known, and store them with the run.

        Judges may be embedding models.
        """
        if new := [model for model in dict.fromkeys(models) if model not in self._rates]:
            found = {model: (_rate_of_judge if judges else _rate)(self._run, Chat(model, ())) for model in new}
            self._check(found)
            self._rates |= found
            await self._run.keep(KEPT, msgspec.json.encode(self._rates).decode())

    def charge(self, model: str, input_tokens: float, output_tokens: float) -> float | None:
        """Add the cost of a reply to the total, and return it."""
        rate = self._rates.get(model)
        if rate is None:
            return None
        usd = (rate.input * input_tokens + rate.output * output_tokens) / MILLION
        self.total += usd
        return usd

    def _check(self, rates: Mapping[str, Rate | None]) -> None:
        """Refuse a limit in dollars if a price is unknown."""
        unknown = next((model for model, rate in rates.items() if rate is None), None)
        if self._usd is not None and unknown is not None:
            raise SettingsError(
                f"usd {self._usd:g}: the price of {unknown} is unknown, so this limit cannot be checked. Add the price "
                "under [prices] in groundswell.toml, or limit the number of requests instead",
                field="usd",
            )


class Spent(NamedTuple):
    """Requests and their cost; None if a price is unknown."""

    asks: int = 0
    usd: float | None = 0.0

    def and_(self, other: Spent) -> Spent:
        """The sum of two."""
        return Spent(self.asks + other.asks, added(self.usd, other.usd))


def added(one: float | None, other: float | None) -> float | None:
    """A sum; None if a part is None."""
    return None if one is None or other is None else one + other


def _rate_of_judge(run: Run, asked: Chat) -> Rate | None:
    try:
        return _rate(run, asked)
    except SettingsError:
        return _rate(run, Embed(asked.model, ()))


def _rate(run: Run, asked: Chat | Embed) -> Rate | None:
    read, written = (run.price(asked, usage) for usage in (Usage(SAMPLE, 0), Usage(0, SAMPLE)))
    return None if read is None or written is None else Rate(read * MILLION / SAMPLE, written * MILLION / SAMPLE)
