"""`groundswell power`: the number of interactions that an experiment needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from groundswell.cli import output
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.reporting import numbers

AS_MANY = (50, 100, 200, 400, 800, 1600)
"""Numbers of interactions in the table of `power --rate`."""


def power(
    *,
    rate: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Expected leak rate, between 0 and 1."),
        Flag(metavar="P"),
    ] = None,
    rates: Annotated[
        str | None,
        Meta(description="Two expected leak rates to distinguish, such as 0.1,0.2."),
        Flag(metavar="P,Q"),
    ] = None,
    n: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Number of interactions: show the precision or power that it gives."),
        Flag("-n", long="--interactions", metavar="N"),
    ] = None,
    width: Annotated[
        Annotated[float, Meta(ge=0.001, le=0.999)] | None,
        Meta(description="Maximum width of the confidence interval, such as 0.05. Needs --rate."),
        Flag(metavar="W"),
    ] = None,
    paired: Annotated[
        bool,
        Meta(description="Both rates come from the same interactions, because the two models play each other."),
    ] = False,
    self_play: Annotated[
        bool,
        Meta(description="Each model plays itself, so every interaction gives two secrets of the same model."),
    ] = False,
    correlation: Annotated[
        float,
        Meta(
            ge=-1,
            le=1,
            description="Correlation of the two outcomes of an interaction. With --paired, higher values need fewer "
            "interactions; with --self-play, more.",
        ),
    ] = 0.0,
    chance: Annotated[
        float,
        Meta(ge=0.01, le=0.999, description="Probability of detecting a true difference."),
        Flag(long="--power"),
    ] = 0.8,
    alpha: Annotated[float, Meta(ge=0.0001, le=0.5, description="Significance level.")] = 0.05,
    json: Annotated[bool, Meta(description="Print one JSON object on standard output.")] = False,
) -> None:
    """Compute how many interactions you need to estimate a leak rate, or to distinguish two. Sends no request."""
    if (rate is None) == (rates is None):
        raise SettingsError(
            "--rate or --rates: give one expected rate, or two rates to distinguish, such as --rates 0.1,0.2"
        )
    if paired and rates is None:
        raise SettingsError("--paired: needs two rates, such as --rates 0.1,0.2")
    if paired and self_play:
        raise SettingsError(
            "--paired and --self-play: two models that play each other do not play themselves; give one"
        )
    if correlation and not (paired or self_play):
        raise SettingsError("--correlation: needs --paired or --self-play")
    if width is not None and rates is not None:
        raise SettingsError("--width: needs one rate, such as --rate 0.3")
    try:
        with output.working("computing"):
            design = Design(self_play, correlation)
            if rate is not None:
                found = _one(rate, n, width, chance, alpha, design)
            else:
                found = _two(*_pair(rates or ""), n, chance, alpha, design, correlation=correlation if paired else None)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    if json:
        output.print_json(found)
    else:
        for line in _told(found):
            output.line(line)


def _pair(text: str) -> tuple[float, float]:
    try:
        one, other = (float(part) for part in text.split(","))
    except ValueError as error:
        raise SettingsError(f"--rates {text}: give two numbers between 0 and 1, such as 0.1,0.2") from error
    return one, other


class Design(NamedTuple):
    """How interactions give secrets. In self-play, each gives two of the same model, which are correlated."""

    self_play: bool
    correlation: float

    def interactions(self, secrets: int) -> int:
        """Interactions that give as much information as this many independent secrets of a model."""
        from groundswell.stats.power import interactions_for

        return interactions_for(secrets, self.correlation) if self.self_play else secrets

    def worth(self, interactions: int) -> int:
        """Independent secrets of a model that interactions are worth."""
        from groundswell.stats.power import secrets_worth

        return secrets_worth(interactions, self.correlation) if self.self_play else interactions

    def fields(self) -> dict[str, Any]:
        """The design in the output."""
        return {"self_play": self.self_play, **({"correlation": self.correlation} if self.self_play else {})}


def _one(
    rate: float, n: int | None, width: float | None, chance: float, alpha: float, design: Design
) -> dict[str, Any]:
    """Interval widths by n, and the rates that can be distinguished from this one."""
    from groundswell.experiments.secret_game.schedule import BLOCK
    from groundswell.experiments.secret_game.stopping import first_blocks
    from groundswell.stats import power as stats
    from groundswell.stats.sequential import expected_n, expected_width

    level, per = 1 - alpha, 2 if design.self_play else 1
    variance = rate * (1 - rate) / BLOCK * ((1 + design.correlation) / 2 if design.self_play else 1)
    found: dict[str, Any] = {"rate": rate, "level": level, **design.fields()}
    if width is not None:
        found["width"] = width
        found["n"] = design.interactions(stats.n_for_width(rate, width, level))
        found["secrets"] = per * found["n"]
        blocks = max(first_blocks(width, level), expected_n(rate, width, level, variance))
        found["n_watched"] = BLOCK * blocks
    counts = AS_MANY if n is None and width is None else (n or found["n"],)
    found["by_n"] = [
        {
            "n": many,
            "secrets": per * many,
            "width": stats.width(rate, design.worth(many), level),
            "width_watched": expected_width(rate, many / BLOCK, level, variance),
            "tells_below": (apart := stats.detectable(rate, design.worth(many), power=chance, alpha=alpha)).below,
            "tells_above": apart.above,
        }
        for many in counts
    ]
    found["power"] = chance
    return found


def _two(
    one: float, other: float, n: int | None, chance: float, alpha: float, design: Design, *, correlation: float | None
) -> dict[str, Any]:
    """The number of interactions to distinguish two rates, or the power of a given number."""
    from groundswell.stats import power as stats

    if n is not None:
        told = (
            stats.power_of_two(one, other, design.worth(n), alpha=alpha)
            if correlation is None
            else stats.power_of_paired(one, other, n, correlation=correlation, alpha=alpha)
        )
    elif correlation is None:
        told = stats.n_for_two(one, other, power=chance, alpha=alpha)
    else:
        told = stats.n_for_paired(one, other, correlation=correlation, power=chance, alpha=alpha)
    interactions = design.interactions(told.n) if n is None else n
    return {
        "rates": [one, other],
        "paired": correlation is not None,
        **design.fields(),
        "n": interactions,
        "secrets": 2 * interactions if design.self_play else interactions,
        "power": told.power,
        "alpha": alpha,
        "method": told.method,
    }


def _told(found: dict[str, Any]) -> Iterator[str]:
    yield from _told_two(found) if "rates" in found else _told_one(found)
    if found["self_play"]:
        yield (
            "Self-play: an interaction gives two secrets of a model. Their correlation is taken as "
            f"{found['correlation']:g}. At 1, twice as many interactions are needed as at 0 (--correlation)."
        )
    elif "rate" in found:
        yield "An interaction of two models gives one secret of each. If a model plays itself, add --self-play."


def _told_two(found: dict[str, Any]) -> Iterator[str]:
    one, other = found["rates"]
    test = "McNemar's test on the same interactions" if found["paired"] else "Fisher's test"
    reckoned = "" if found["method"] == "exact" else ", normal approximation"
    each, whom = (" per model", "A") if found["self_play"] else ("", "A,B")
    many = (
        f"{numbers.plural(found['n'], 'interaction')}{each}, {numbers.plural(found['secrets'], 'secret')} of each model"
    )
    yield f"{many}: power of {found['power']:.1%} to distinguish {one:.1%} from {other:.1%}"
    yield f"({test}, two-sided, significance level {found['alpha']:g}{reckoned})"
    yield f"groundswell play --models {whom} --interactions {found['n']}"


def _told_one(found: dict[str, Any]) -> Iterator[str]:
    if "n_watched" in found:
        yield f"A rate of {found['rate']:.1%} needs this many interactions for an interval {found['width']:g} wide:"
        yield f"  {found['n']:,} with a fixed number of interactions ({found['secrets']:,} secrets)"
        yield f"  about {found['n_watched']:,} with --stop-at-width {found['width']:g}"
        yield ""
    level, chance = f"{found['level']:.0%}", f"{found['power']:.0%}"
    yield f"At a rate of {found['rate']:.1%}: width of the {level} interval, and rates that differ with {chance} power"
    yield f"  {'interactions':>12}   {'secrets':>7}   {'interval':>8}   {'stop rule':>10}   {'differs from':>18}"
    for row in found["by_n"]:
        sides = [f"{row[side]:.1%}" for side in ("tells_below", "tells_above") if row[side] is not None]
        yield (
            f"  {row['n']:>12,}   {row['secrets']:>7,}   {row['width'] * 100:>6.1f}pt   "
            f"{row['width_watched'] * 100:>8.1f}pt   {' and '.join(sides):>18}"
        )
