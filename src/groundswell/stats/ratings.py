"""How strong each model is: attack and defence from who leaked to whom, and strength from who beat whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from groundswell.stats.logistic import RIDGE, Design, Figures, Fitted, fitted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FIRM = 1e3
"""How firmly the fit holds strengths to a sum of 0. In the end they have it exactly."""
ALIKE = 6
"""Strengths that agree to so many decimals share a rank."""


class Meeting(NamedTuple):
    """Interactions in which `first` spoke first: in how many leaked the secrets of both, of one, of neither.

    `first_only` counts those in which the secret of the first speaker leaked and that of the second did not.
    """

    first: str
    second: str
    both: int
    first_only: int
    second_only: int
    neither: int


class Contest(NamedTuple):
    """How often each of two won. If seats count, `first` had the first."""

    first: str
    second: str
    first_won: int
    second_won: int


class Estimate(msgspec.Struct, frozen=True):
    """A figure on the scale of log odds; no interval if nothing in the data bounds it."""

    value: float
    low: float | None
    high: float | None


class Standing(msgspec.Struct, frozen=True):
    """A strength on the scale of log odds, with a mean of 0 over all, and where it ranks: 1 is the strongest.

    No value if the data cannot tell it; no interval if nothing in the data bounds it.
    """

    value: float | None
    low: float | None
    high: float | None
    best: int
    worst: int


class Strength(msgspec.Struct, frozen=True):
    """How well a model gets others' secrets, how well it keeps its own, and both together (their sum)."""

    model: str
    attack: Standing
    defence: Standing
    overall: Standing


class Strengths(msgspec.Struct, frozen=True):
    """What `strengths` finds.

    models: the strongest first.
    base: the log odds of a leak between average models.
    seat: how much higher they are for who speaks first; None if the meetings cannot tell that from strengths, as
        when each two met in one order only. Then the strengths hold what seats did, too.
    connected: whether all models met, if only through others. If not, there are no strengths: rate apart who met.
    apart: whether attack and defence can be told apart. That takes self-play, or three models that all met, or
        another odd ring; overall strengths need none.
    separated: models with a strength that has no bound: they never or always leaked, or never or always got secrets.
    """

    models: tuple[Strength, ...]
    base: Estimate | None
    seat: Estimate | None
    connected: bool
    apart: bool
    separated: tuple[str, ...]
    interactions: int


class Rated(msgspec.Struct, frozen=True):
    """A player with its strength."""

    player: str
    strength: Standing


class Ratings(msgspec.Struct, frozen=True):
    """What `bradley_terry` finds, the strongest first; the other fields are as in `Strengths`."""

    players: tuple[Rated, ...]
    seat: Estimate | None
    connected: bool
    separated: tuple[str, ...]
    contests: int


def strengths(meetings: Iterable[Meeting], *, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> Strengths:
    """Attack and defence of every model, by maximum likelihood.

    The log odds that a model's secret leaks are base + attack of the other - defence of the model, + seat / 2 if it
    spoke first and - seat / 2 if it spoke second: the model of R. A. Bradley and M. E. Terry, Biometrika 39 (1952)
    324-345, with two strengths each. Intervals are percentiles of a bootstrap that draws the interactions of each
    meeting anew: both secrets of one at once, since they hang together.
    """
    import numpy as np

    names, pairs, counts = _merged(meetings, level, resamples)
    size = len(names)
    if not size:
        return Strengths((), None, None, connected=True, apart=True, separated=(), interactions=0)
    drawn = _leaks(_redrawn(counts, resamples, seed))
    n = np.repeat(counts.sum(axis=1), 2)
    penalty = _penalty(2 * size + 2, range(1, size + 1), range(size + 1, 2 * size + 1))
    design = _telling(_talks(pairs, size), n)
    found = fitted(design, _leaks(counts[:, None])[:, 0], drawn, n, penalty)
    attack, defence, overall, base, seat = _parts(found, size)
    places = [_standings(each, level) for each in (attack, defence, overall)]
    models = [Strength(*each) for each in zip(names, *places, strict=True)]
    return Strengths(
        tuple(sorted(models, key=lambda each: _order(each.overall, each.model))),
        _estimate(base, level),
        _estimate(seat, level),
        connected=bool(overall.told.all()),
        apart=bool(attack.told.all() and defence.told.all()),
        separated=_named(names, attack.held | defence.held | overall.held),
        interactions=int(counts.sum()),
    )


def bradley_terry(
    contests: Iterable[Contest], *, seat: bool = False, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Ratings:
    """The strength of every player, by maximum likelihood, from who beat whom.

    The log odds that the first wins are its strength - that of the second, + the seat if seats count.
    """
    names, pairs, counts = _merged(contests, level, resamples)
    size = len(names)
    if not size:
        return Ratings((), None, connected=True, separated=(), contests=0)
    drawn, n = _redrawn(counts, resamples, seed)[:, :, 0], counts.sum(axis=1)
    design = _wins(pairs, size)
    design = _telling(design if seat else design.without(size), n)
    found = fitted(design, counts[:, 0].astype(float), drawn.astype(float), n, _penalty(size + 1, range(size)))
    strength = found.figures(_centred(size + 1, range(size)))
    rated = [Rated(*each) for each in zip(names, _standings(strength, level), strict=True)]
    return Ratings(
        tuple(sorted(rated, key=lambda each: _order(each.strength, each.player))),
        _estimate(found.figures(_unit(size + 1, size)), level),
        connected=bool(strength.told.all()),
        separated=_named(names, strength.held),
        contests=int(counts.sum()),
    )


def _merged(rows: Iterable[Meeting] | Iterable[Contest], level: float, resamples: int) -> tuple[list[str], Ints, Ints]:
    """Who there is, who met whom (as places in that list), and the counts; in an order that does not hang on theirs."""
    import numpy as np

    if not 0 < level < 1:
        raise ValueError(f"level {level}: must be between 0 and 1")
    if resamples < 1:
        raise ValueError(f"resamples {resamples}: must be 1 or more")
    found: dict[tuple[str, str], Counter[int]] = {}
    for first, second, *counts in rows:
        if min(counts) < 0:
            raise ValueError(f"{first} and {second} have a count of {min(counts)}: counts must not be below 0")
        found.setdefault((first, second), Counter()).update(dict(enumerate(counts)))
    names = sorted({name for pair in found for name in pair})
    pairs = sorted(found)
    counted = [[found[pair][i] for i in range(len(found[pair]))] for pair in pairs]
    places = [[names.index(name) for name in pair] for pair in pairs]
    return names, np.array(places, dtype=np.int64), np.array(counted, dtype=np.int64)


def _redrawn(counts: Ints, resamples: int, seed: int) -> Ints:
    """The counts of each row (first axis) drawn anew as often as asked (second axis)."""
    import numpy as np

    random = np.random.default_rng(seed)
    n = counts.sum(axis=1)
    shares = counts / np.maximum(n, 1)[:, None]
    shares[n == 0, 0] = 1
    return np.stack([random.multinomial(of, share, size=resamples) for of, share in zip(n, shares, strict=True)])


def _leaks(counts: Ints) -> Floats:
    """How often the first speaker leaked and how often the second, in rows by turns; counts as `_redrawn` has them."""
    import numpy as np

    first, second = counts[:, :, 0] + counts[:, :, 1], counts[:, :, 0] + counts[:, :, 2]
    return np.stack([first, second], axis=1).reshape(2 * len(counts), -1).astype(float)


def _talks(pairs: Ints, size: int) -> Design:
    """Two rows for a meeting: the first speaker defends, then the second."""
    import numpy as np

    selves, others = pairs.ravel(), pairs[:, ::-1].ravel()
    ones = np.ones(len(selves))
    columns = np.stack([0 * selves, 1 + others, 1 + size + selves, 0 * selves + 2 * size + 1], axis=1)
    factors = np.stack([ones, ones, -ones, np.tile([0.5, -0.5], len(pairs))], axis=1)
    return Design(columns, factors, 2 * size + 2)


def _wins(pairs: Ints, size: int) -> Design:
    import numpy as np

    columns = np.column_stack([pairs, np.full(len(pairs), size)])
    return Design(columns, np.tile([1.0, -1.0, 1.0], (len(pairs), 1)), size + 1)


def _telling(design: Design, n: Ints) -> Design:
    """The design as far as there are data; without the seat, the last parameter, where they cannot tell it."""
    seen, seat = design.seen(n), design.size - 1
    return seen if seen.tells(_unit(design.size, seat)).all() else seen.without(seat)


def _penalty(size: int, *groups: range) -> Floats:
    import numpy as np

    penalty = RIDGE * np.eye(size)
    for group in groups:
        penalty[group.start : group.stop, group.start : group.stop] += FIRM
    return penalty


def _parts(found: Fitted, size: int) -> tuple[Figures, Figures, Figures, Figures, Figures]:
    """Attack, defence, overall, base and seat. What is taken off strengths to centre them goes to the base."""
    whole = 2 * size + 2
    attack, defence = _centred(whole, range(1, size + 1)), _centred(whole, range(size + 1, 2 * size + 1))
    base = _unit(whole, 0)
    base[0, 1 : size + 1], base[0, size + 1 : 2 * size + 1] = 1 / size, -1 / size
    sums = (attack, defence, attack + defence, base, _unit(whole, whole - 1))
    first, second, third, fourth, fifth = (found.figures(each) for each in sums)
    return first, second, third, fourth, fifth


def _centred(size: int, group: range) -> Floats:
    """For each of a group of parameters, the weights that give it less the mean of the group."""
    import numpy as np

    sums = np.eye(size)[group.start : group.stop]
    sums[:, group.start : group.stop] -= 1 / len(group)
    return sums


def _unit(size: int, column: int) -> Floats:
    import numpy as np

    return np.eye(size)[[column]]


def _standings(figures: Figures, level: float) -> list[Standing]:
    import numpy as np

    values, drawn, told, held = figures
    tail = (1 - level) / 2
    lows, highs = np.quantile(drawn, [tail, 1 - tail], axis=1)
    best, worst = _ranks(drawn, tail) if told.all() else (np.ones(len(values)), np.full(len(values), len(values)))
    for unbounded in (held & (values > 0), held & (values <= 0)):  # only the ridge tells these from each other
        if unbounded.any():
            best[unbounded], worst[unbounded] = best[unbounded].min(), worst[unbounded].max()
    return [
        Standing(
            float(values[i]) if told[i] else None,
            float(lows[i]) if told[i] and not held[i] else None,
            float(highs[i]) if told[i] and not held[i] else None,
            int(best[i]),
            int(worst[i]),
        )
        for i in range(len(values))
    ]


def _ranks(drawn: Floats, tail: float) -> tuple[Floats, Floats]:
    """The best and the worst rank of each row over the draws, tails left out; who is alike could have either rank."""
    import numpy as np

    ascending = np.sort(np.round(drawn, ALIKE), axis=0)
    count = len(drawn)
    best, worst = np.empty(drawn.shape), np.empty(drawn.shape)
    for i, column in enumerate(np.round(drawn, ALIKE).T):
        best[:, i] = 1 + count - np.searchsorted(ascending[:, i], column, side="right")
        worst[:, i] = count - np.searchsorted(ascending[:, i], column, side="left")
    lowest: Floats = np.quantile(best, tail, axis=1, method="inverted_cdf")
    highest: Floats = np.quantile(worst, 1 - tail, axis=1, method="inverted_cdf")
    return lowest, highest


def _estimate(figures: Figures, level: float) -> Estimate | None:
    (place,) = _standings(figures, level)
    return None if place.value is None else Estimate(place.value, place.low, place.high)


def _order(place: Standing, name: str) -> tuple[float, str]:
    return -(place.value or 0.0), name


def _named(names: Sequence[str], chosen: Iterable[bool]) -> tuple[str, ...]:
    return tuple(name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen)
