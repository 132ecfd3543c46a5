"""The duration of a reply. Pure: seconds from a description, a seed and the reply's length."""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec

from groundswell.emulator.chance import draw
from groundswell.errors import SettingsError

_NORMAL = NormalDist()
LONGEST = 1e6
WIDEST = 10.0
"""Largest spread: one standard deviation is then more than four orders of magnitude."""
EXAMPLES = "0.05 | lognormal:0.8,0.5 | lognormal:0.8,0.5,0.01x20 | any of them +0.002/char"


class Latency(msgspec.Struct, frozen=True):
    """Seconds until a reply: `median`, spread by `sigma`, plus the time per character.

    A share of stragglers takes `factor` times as long.
    """

    median: float = 0.0
    sigma: float = 0.0
    stragglers: float = 0.0
    factor: float = 10.0
    per_char: float = 0.0

    def check(self) -> Latency:
        """The same, or a SettingsError that names the invalid number."""
        for name, value in msgspec.structs.asdict(self).items():
            most = {"sigma": WIDEST, "stragglers": 1.0}.get(name, LONGEST)
            if not 0 <= value <= most:
                raise SettingsError(f"latency: {name} {value:g} must be between 0 and {most:g}")
        return self

    def first(self, *about: object) -> float:
        """Seconds until the reply starts; `about` identifies the random draw."""
        if not self.sigma and not self.stragglers:
            return self.median
        spread = math.exp(self.sigma * _NORMAL.inv_cdf(draw("latency", *about) or 0.5)) if self.sigma else 1.0
        slow = self.factor if self.stragglers and draw("straggler", *about) < self.stragglers else 1.0
        return self.median * spread * slow


def parse_latency(text: str) -> Latency:
    """Read `SECONDS` or `lognormal:MEDIAN,SIGMA[,SHARExFACTOR]`, with `+SECONDS/char` after either."""
    base, _, per_char = text.partition("+")
    try:
        found = Latency(**_parse_base(base.strip()), per_char=_parse_per_char(per_char.strip()))
    except ValueError:
        raise SettingsError(f"latency {text!r}: expected {EXAMPLES}") from None
    if not all(math.isfinite(number) and number >= 0 for number in msgspec.structs.astuple(found)):
        raise SettingsError(f"latency {text!r}: the numbers must be finite and not negative")
    if found.stragglers > 1:
        raise SettingsError(f"latency {text!r}: the share of stragglers, {found.stragglers:g}, must be between 0 and 1")
    return found.check()


def _parse_base(base: str) -> dict[str, float]:
    name, colon, numbers = base.partition(":")
    if not colon:
        return {"median": float(base) if base else 0.0}
    if name != "lognormal":
        raise ValueError(name)
    median, sigma, *slow = numbers.split(",")
    found = {"median": float(median), "sigma": float(sigma)}
    if slow:
        (only,) = slow
        share, _, factor = only.partition("x")
        found |= {"stragglers": float(share), "factor": float(factor)}
    return found


def _parse_per_char(text: str) -> float:
    if not text:
        return 0.0
    seconds, slash, unit = text.partition("/")
    if not slash or unit.strip() != "char":
        raise ValueError(text)
    return float(seconds)
