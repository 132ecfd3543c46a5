"""What replies cost. Rates are looked up when a run begins and kept with it: what is decided by them stays decided."""

from __future__ import annotations

import msgspec

from groundswell.engine.run import Run
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Usage

KEPT = "rates"
MILLION = 1_000_000
SAMPLE = 1_000
"""Tokens of a request that rates are taken from: long ones cost more a token at some providers."""


class Rate(msgspec.Struct, frozen=True):
    """Dollars for a million tokens."""

    input: float
    output: float


class Costs(msgspec.Struct, frozen=True):
    """By model; None where a price is not known."""

    rates: dict[str, Rate | None]

    def of(self, model: str, input_tokens: float, output_tokens: float) -> float | None:
        """What a reply costs that took so many tokens."""
        rate = self.rates[model]
        return None if rate is None else (rate.input * input_tokens + rate.output * output_tokens) / MILLION

    def check(self, usd: float | None) -> None:
        """Find out whether a limit in dollars can be kept."""
        unknown = next((model for model, rate in self.rates.items() if rate is None), None)
        if usd is not None and unknown is not None:
            raise SettingsError(
                f"usd {usd:g}: the price of {unknown} is not known, so nobody can say when so much is spent: put it "
                "under [prices] in groundswell.toml, or limit the asks instead",
                field="usd",
            )


def added(one: float | None, other: float | None) -> float | None:
    """A sum; not known where a part of it is not."""
    return None if one is None or other is None else one + other


async def costs_of(run: Run, models: tuple[str, ...]) -> Costs:
    """The rates of a run, as they were when it began."""
    if (body := run.kept(KEPT)) is not None:
        return msgspec.json.decode(body, type=Costs)
    found = Costs({model: _rate(run, model) for model in dict.fromkeys(models)})
    await run.keep(KEPT, msgspec.json.encode(found).decode())
    return found


def _rate(run: Run, model: str) -> Rate | None:
    asked = Chat(model, ())
    read, written = (run.price(asked, usage) for usage in (Usage(SAMPLE, 0), Usage(0, SAMPLE)))
    return None if read is None or written is None else Rate(read * MILLION / SAMPLE, written * MILLION / SAMPLE)
