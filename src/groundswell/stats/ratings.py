"""Strengths of models: attack and defence from who leaked to whom, and overall strength from who beat whom.

Both are logistic models, fitted by maximum likelihood to the data and to many bootstrap samples at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit  # type: ignore[import-untyped]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FIRM = 1e3
"""Penalty that keeps the sum of strengths near 0 during the fit. The results are centred exactly."""
ALIKE = 6
"""Strengths that agree to this many decimals share a rank."""
RIDGE = 0.01
"""Every parameter has a normal prior with a standard deviation of 10. On the scale of log odds that is negligible, but
it keeps strengths finite for models that never or always leaked.
"""
LOOSE = 0.01
"""The part of the ridge that is kept in the second fit, which shows what only the ridge bounds ..."""
HELD = 0.5
"""... A parameter that moves by more than this in the second fit is bounded by the ridge and not by data. With a single
event on the other side it moves by a tenth or two; an unbounded one moves by two or more, whatever the number of rows.
"""
STEPS = 60
CLOSE = 1e-8
HALVINGS = 12
LONGEST = 4.0
ROOM = 4_000_000
"""Data sets are fitted together as long as their matrices have at most this many entries."""


class Meeting(NamedTuple):
    """Interactions in which `first` spoke first: counts of those in which both secrets leaked, one, or neither.

    `first_only` counts those in which only the first speaker's secret leaked.
    """

    first: str
    second: str
    both: int
    first_only: int
    second_only: int
    neither: int


class Contest(NamedTuple):
    """How often each of two won. If seats count, `first` had the first seat."""

    first: str
    second: str
    first_won: int
    second_won: int


class Estimate(msgspec.Struct, frozen=True):
    """An estimate on the scale of log odds; no interval if the data do not bound it."""

    value: float
    low: float | None
    high: float | None


class Standing(msgspec.Struct, frozen=True):
    """A strength on the scale of log odds, centred to a mean of 0, and its rank: 1 is the strongest.

    No value if the data do not determine it; no interval if the data do not bound it.
    """

    value: float | None
    low: float | None
    high: float | None
    best: int
    worst: int


class Strength(msgspec.Struct, frozen=True):
    """How well a model obtains others' secrets (attack), keeps its own (defence), and the sum of both."""

    model: str
    attack: Standing
    defence: Standing
    overall: Standing


class Strengths(msgspec.Struct, frozen=True):
    """The result of `strengths`.

    models: the strongest first.
    base: the log odds of a leak between average models.
    seat: how much higher they are for the first speaker; None if the meetings do not separate it from the strengths,
    for instance if each pair met in one order only. Then the strengths include the effect of the seat.
    connected: whether all models are connected by meetings. If not, there are no strengths: rate each group separately.
    apart: whether attack and defence can be separated. That needs self-play, or three models that all met, or
    another odd cycle; overall strengths need neither.
    separated: models with an unbounded strength: they never or always leaked, or never or always obtained secrets.
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
    """The result of `bradley_terry`, the strongest first; the other fields are as in `Strengths`."""

    players: tuple[Rated, ...]
    seat: Estimate | None
    connected: bool
    separated: tuple[str, ...]
    contests: int


def strengths(meetings: Iterable[Meeting], *, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> Strengths:
    """Attack and defence of every model, by maximum likelihood.

    The log odds that a model's secret leaks are base + attack of the other - defence of the model, + seat / 2 if it
    spoke first and - seat / 2 if it spoke second: the model of R. A. Bradley and M. E. Terry, Biometrika 39 (1952)
    324-345, with two strengths each. Intervals are percentiles of a bootstrap over the interactions of each meeting.
    Both secrets of an interaction are resampled together, since they are correlated.
    """
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
    """The models, the pairs that met (as indices) and their counts, in an order that does not depend on the input's."""
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
    """The counts of each row (first axis), resampled as often as asked (second axis)."""
    random = np.random.default_rng(seed)
    n = counts.sum(axis=1)
    shares = counts / np.maximum(n, 1)[:, None]
    shares[n == 0, 0] = 1
    return np.stack([random.multinomial(of, share, size=resamples) for of, share in zip(n, shares, strict=True)])


def _leaks(counts: Ints) -> Floats:
    """Leaks of the first and of the second speaker, in alternating rows; counts as `_redrawn` returns them."""
    first, second = counts[:, :, 0] + counts[:, :, 1], counts[:, :, 0] + counts[:, :, 2]
    return np.stack([first, second], axis=1).reshape(2 * len(counts), -1).astype(float)


def _talks(pairs: Ints, size: int) -> Design:
    """Two rows per meeting: the first speaker defends, then the second."""
    selves, others = pairs.ravel(), pairs[:, ::-1].ravel()
    ones = np.ones(len(selves))
    columns = np.stack([0 * selves, 1 + others, 1 + size + selves, 0 * selves + 2 * size + 1], axis=1)
    factors = np.stack([ones, ones, -ones, np.tile([0.5, -0.5], len(pairs))], axis=1)
    return Design(columns, factors, 2 * size + 2)


def _wins(pairs: Ints, size: int) -> Design:
    columns = np.column_stack([pairs, np.full(len(pairs), size)])
    return Design(columns, np.tile([1.0, -1.0, 1.0], (len(pairs), 1)), size + 1)


def _telling(design: Design, n: Ints) -> Design:
    """The design for rows with data; without the seat, the last parameter, if the data do not determine it."""
    seen, seat = design.seen(n), design.size - 1
    return seen if seen.tells(_unit(design.size, seat)).all() else seen.without(seat)


def _penalty(size: int, *groups: range) -> Floats:
    penalty = RIDGE * np.eye(size)
    for group in groups:
        penalty[group.start : group.stop, group.start : group.stop] += FIRM
    return penalty


def _parts(found: Fitted, size: int) -> tuple[Figures, Figures, Figures, Figures, Figures]:
    """Attack, defence, overall, base and seat. Centring the strengths moves their mean to the base."""
    whole = 2 * size + 2
    attack, defence = _centred(whole, range(1, size + 1)), _centred(whole, range(size + 1, 2 * size + 1))
    base = _unit(whole, 0)
    base[0, 1 : size + 1], base[0, size + 1 : 2 * size + 1] = 1 / size, -1 / size
    sums = (attack, defence, attack + defence, base, _unit(whole, whole - 1))
    first, second, third, fourth, fifth = (found.figures(each) for each in sums)
    return first, second, third, fourth, fifth


def _centred(size: int, group: range) -> Floats:
    """For each of a group of parameters, the weights that subtract the mean of the group."""
    sums = np.eye(size)[group.start : group.stop]
    sums[:, group.start : group.stop] -= 1 / len(group)
    return sums


def _unit(size: int, column: int) -> Floats:
    return np.eye(size)[[column]]


def _standings(figures: Figures, level: float) -> list[Standing]:
    values, drawn, told, held = figures
    tail = (1 - level) / 2
    lows, highs = np.quantile(drawn, [tail, 1 - tail], axis=1)
    best, worst = _ranks(drawn, tail) if told.all() else (np.ones(len(values)), np.full(len(values), len(values)))
    for unbounded in (held & (values > 0), held & (values <= 0)):  # only the ridge separates these
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
    """The best and worst rank of each row over the draws, without the tails; ties could have either rank."""
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


class Design(NamedTuple):
    """The parameters of each row with their factors, and the number of parameters."""

    columns: Ints
    factors: Floats
    size: int

    def seen(self, n: Ints) -> Design:
        """The design without empty rows."""
        return self._replace(factors=self.factors * (n > 0)[:, None])

    def without(self, column: int) -> Design:
        """The design without one parameter."""
        return self._replace(factors=self.factors * (self.columns != column))

    def tells(self, sums: Floats) -> Bools:
        """Whether the rows determine weighted sums of parameters, one row of weights for each."""
        told: Bools = np.abs(sums @ _hidden(_matrices(self)[0])).max(axis=1, initial=0.0) < CLOSE
        return told


class Fitted(NamedTuple):
    """The parameters of the data (one column), the same almost without ridge, and those of bootstrap samples."""

    found: Floats
    loose: Floats
    drawn: Floats
    design: Design

    def figures(self, sums: Floats) -> Figures:
        """Weighted sums of parameters, one row of weights for each."""
        told = self.design.tells(sums)
        moves = (sums @ (self.loose - self.found))[:, 0]
        if len(moves) > 1:  # those that are measured from the mean of all move with one that runs away
            moves = moves - np.median(moves)
        return Figures((sums @ self.found)[:, 0], sums @ self.drawn, told, told & (np.abs(moves) > HELD))


class Figures(NamedTuple):
    """Values, their draws, whether the rows determine each, and whether each is unbounded without the ridge."""

    values: Floats
    drawn: Floats
    told: Bools
    held: Bools


def fitted(design: Design, passed: Floats, drawn: Floats, n: Floats, penalty: Floats) -> Fitted:
    """Fit the model to rows in which `passed` of n passed, and to bootstrap samples (a column each)."""
    rows, squares = _matrices(design)
    found = _climb(rows, squares, passed[:, None], n[:, None], penalty, np.zeros((design.size, 1)))
    loosened = penalty - (1 - LOOSE) * RIDGE * np.eye(design.size)
    loose = _climb(rows, squares, passed[:, None], n[:, None], loosened, found)
    at_once = max(1, ROOM // design.size**2)
    again = [
        _climb(rows, squares, part, n[:, None], penalty, np.repeat(found, part.shape[1], axis=1))
        for part in (drawn[:, i : i + at_once] for i in range(0, drawn.shape[1], at_once))
    ]
    return Fitted(found, loose, np.concatenate(again, axis=1), design)


def _climb(rows: Any, squares: Any, passed: Floats, n: Floats, penalty: Floats, found: Floats) -> Floats:
    """Newton's method on the penalised likelihood, which is concave. A step that does not improve it is halved."""

    def height(at: Floats) -> Floats:
        logits = rows @ at
        likelihood = (passed * logits - n * np.logaddexp(0, logits)).sum(axis=0)
        reached: Floats = likelihood - (at * (penalty @ at)).sum(axis=0) / 2
        return reached

    for _ in range(STEPS):
        share = expit(rows @ found)
        slope = rows.T @ (passed - n * share) - penalty @ found
        step = np.linalg.solve(_bend(squares, share, n, penalty), slope.T[:, :, None])[:, :, 0].T
        longest = np.abs(step).max(axis=0, initial=0.0)
        if longest.max(initial=0.0) < CLOSE:
            break
        found = _stepped(found, step * np.minimum(1, LONGEST / np.maximum(longest, CLOSE)), height)
    return found


def _stepped(found: Floats, step: Floats, height: Callable[[Floats], Floats]) -> Floats:
    before = height(found)
    for _ in range(HALVINGS):
        fell = height(found + step) < before - CLOSE * (1 + np.abs(before))
        if not fell.any():
            break
        step = np.where(fell, step / 2, step)
    return found + step


def _bend(squares: Any, share: Floats, n: Floats, penalty: Floats) -> Floats:
    """The penalised information, a matrix for each data set."""
    size = len(penalty)
    information: Floats = (squares @ (n * share * (1 - share))).T.reshape(-1, size, size)
    return information + penalty


def _hidden(rows: Any) -> Floats:
    """The directions of parameters that no row determines, a column each."""
    lengths, directions = np.linalg.eigh((rows.T @ rows).toarray())
    nowhere: Floats = directions[:, lengths < CLOSE * max(1.0, lengths.max())]
    return nowhere


def _matrices(design: Design) -> tuple[Any, Any]:
    """The design as a sparse matrix, and the matrix that sums all products of two columns over rows."""
    from scipy import sparse  # type: ignore[import-untyped]

    columns, factors, size = design
    count, each = columns.shape
    index = np.repeat(np.arange(count), each)
    rows = sparse.csr_array((factors.ravel(), (index, columns.ravel())), shape=(count, size))
    places = columns[:, :, None] * size + columns[:, None, :]
    products = factors[:, :, None] * factors[:, None, :]
    index = np.repeat(np.arange(count), each * each)
    squares = sparse.csr_array((products.ravel(), (places.ravel(), index)), shape=(size * size, count))
    return rows, squares
