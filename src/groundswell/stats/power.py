"""Before a run: how many trials are needed to detect a difference, and what a given number can detect.

Exact powers are those of the tests in `compare.py`, summed over all likely outcomes. Beyond `EXACT` outcomes a normal
approximation is used; every result says which. Exact power does not grow steadily with n, since counts are whole
numbers: the n that is returned is enough, and one fewer is not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, isnan, sqrt
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtr, stdtrit, xlog1py, xlogy  # type: ignore[import-untyped]

from groundswell.stats.compare import Floats, log_ways
from groundswell.stats.rates import Rate

EXACT = 200_000
"""Up to this many outcomes, powers of independent rates are exact: about six hundred rows per arm at rates of a half,
nearly twenty thousand at a hundredth.
"""
EXACT_PAIRED = 10_000_000
"""Up to this many rows, powers of paired rates are exact."""
EXACT_TABLES = 40
"""Up to this many people, powers of two shares of the same people are exact."""
MOST = 10**9
FINE = 1e-4
"""Precision of the search for a difference."""

Method = Literal["exact", "normal"]


class Power(msgspec.Struct, frozen=True):
    """The probability that n rows (per arm, if there are two) show a difference, and the method of computing it."""

    n: int
    power: float
    method: Method


class Detectable(msgspec.Struct, frozen=True):
    """The nearest rates below and above that n rows can distinguish from a rate; None if there is none."""

    below: float | None
    above: float | None


def width(rate: float, n: int, level: float = 0.95) -> float:
    """The expected width of the interval of a rate."""
    _check_rate(rate)
    _check_n(n)
    low, high = Rate(min(n, floor(rate * n + 0.5)), n).interval(level)
    return high - low


def n_for_width(rate: float, at_most: float, level: float = 0.95) -> int:
    """Number of trials until the interval of a rate is at most this wide."""
    if not 0 < at_most < 1:
        raise ValueError(f"width {at_most}: must be greater than 0 and less than 1")
    return _smallest(lambda n: width(rate, n, level) <= at_most)


def power_of_two(one: float, other: float, n: int, *, n_other: int | None = None, alpha: float = 0.05) -> Power:
    """The power of Fisher's test for two independent rates, with n rows each, or n and n_other."""
    _check(one, other, alpha)
    arms = n, n if n_other is None else n_other
    _check_n(min(arms))
    totals = _totals(one, other, *arms)
    if len(totals) * min(*arms, totals[-1]) <= EXACT:
        return Power(n, _fisher_power(one, other, *arms, alpha), "exact")
    return Power(n, _normal_power(one, other, *arms, alpha), "normal")


def n_for_two(one: float, other: float, *, power: float = 0.8, alpha: float = 0.05) -> Power:
    """Rows per arm needed to distinguish two independent rates with that power."""
    _check(one, other, alpha, power)
    _check_apart(one, other)
    n = _smallest(lambda n: power_of_two(one, other, n, alpha=alpha).power >= power)
    return power_of_two(one, other, n, alpha=alpha)


def detectable(rate: float, n: int, *, power: float = 0.8, alpha: float = 0.05) -> Detectable:
    """The nearest rates that n rows per arm can distinguish from this one with that power."""
    _check(rate, rate, alpha, power)
    return _nearest(rate, lambda other: power_of_two(rate, other, n, alpha=alpha).power >= power)


def power_of_paired(
    one: float,
    other: float,
    n: int,
    *,
    discordance: float | None = None,
    correlation: float = 0.0,
    alpha: float = 0.05,
) -> Power:
    """The power of McNemar's test for two rates on the same n rows.

    `discordance` is the share of rows in which the two differ. By default it is derived from the correlation (phi).
    """
    _check(one, other, alpha)
    _check_n(n)
    first, second = _discordant(one, other, discordance, correlation)
    if n <= EXACT_PAIRED:
        return Power(n, _mcnemar_power(first, second, n, alpha), "exact")
    return Power(n, _normal_mcnemar_power(first, second, n, alpha), "normal")


def n_for_paired(
    one: float,
    other: float,
    *,
    discordance: float | None = None,
    correlation: float = 0.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> Power:
    """Rows needed to distinguish two rates on the same rows with that power."""
    _check(one, other, alpha, power)
    _check_apart(one, other)

    def found(n: int) -> Power:
        return power_of_paired(one, other, n, discordance=discordance, correlation=correlation, alpha=alpha)

    return found(_smallest(lambda n: found(n).power >= power))


def power_of_t(effect: float, error: float, df: float, alpha: float = 0.05) -> float:
    """The power of a two-sided t-test of an effect with this standard error."""
    reach, shift = -float(stdtrit(df, alpha / 2)), abs(effect) / error
    return 1 - _t_below(df, shift, reach) + _t_below(df, shift, -reach)


def _t_below(df: float, shift: float, at: float) -> float:
    """The probability of a noncentral t below a value. SciPy gives NaN for some probabilities of next to nothing."""
    found = float(nctdtr(df, shift, at))
    return 0.0 if isnan(found) else found


def power_of_share_difference(
    rate: float, effect: float, n: int, n_other: int, *, correlation: float | None = None, alpha: float = 0.05
) -> float:
    """The power to distinguish the share of n people from a share of n_other people that is lower by `effect`.

    `rate` is the lower share. The test is that of `clusters.p_of_shares` where each person gives one value, or with a
    correlation (phi), one value to each share. Then, beyond `EXACT_TABLES` people, the number of those with two values
    of 1 is taken at its mean given how many change.
    """
    higher, lower = min(1.0, rate + effect), rate
    if correlation is None:
        _check_n(min(n, n_other))
        first, second = _around(n, higher)[:, None], _around(n_other, lower)[None, :]
        one, other = first / n, second / n_other
        chances = _binomial(n, higher, first) * _binomial(n_other, lower, second)
        found = _is_apart(one, other, _wilson(one, n, alpha, exact=True), _wilson(other, n_other, alpha, exact=True))
        return min(1.0, float(chances[found].sum()))
    if n != n_other:
        raise ValueError(f"n {n} and {n_other}: must be equal where the same people give both values")
    _check_n(n)
    low, high = _correlations(higher, lower)
    rates = _discordant(higher, lower, None, min(max(correlation, low), high))
    first, second = _around(n, rates.first)[:, None, None], _around(n, rates.second)[None, :, None]
    same, rest = np.maximum(n - first - second, 0), 1 - rates.first - rates.second
    yes = min(1.0, max(0.0, (higher - rates.first) / rest)) if rest > 1e-12 else 0.0
    both: NDArray[Any] = np.arange(n + 1) if n <= EXACT_TABLES else same * yes
    # The second count is binomial among those who are not in the first, and so on.
    left = min(1.0, rates.second / (1 - rates.first)) if rates.first < 1 else 0.0
    chances = _binomial(n, rates.first, first) * _binomial(np.maximum(n - first, second), left, second)
    if n <= EXACT_TABLES:
        chances = chances * _binomial(np.maximum(same, both), yes, both)
    one, other, possible = (both + first) / n, (both + second) / n, (first + second <= n) & (both <= same)
    one, other, neither = np.minimum(one, 1.0), np.minimum(other, 1.0), np.maximum(same - both, 0)
    phi = _phi(both, first, second, neither, n)
    found = _is_apart(one, other, _wilson(one, n, alpha), _wilson(other, n, alpha), phi)
    return min(1.0, float(chances[found & possible].sum()))


def _around(n: int, share: float) -> NDArray[np.int64]:
    """The likely counts of n: all others together have a probability below one in a hundred thousand."""
    reach = 4.5 * sqrt(n * share * (1 - share)) + 10
    return np.arange(max(0, floor(n * share - reach)), min(n, ceil(n * share + reach)) + 1)


def _wilson(share: Floats, n: int, alpha: float, *, exact: bool = False) -> tuple[Floats, Floats]:
    """Wilson's intervals; with `exact`, exact ones for shares of 0 and 1."""
    z = NormalDist().inv_cdf(1 - alpha / 2)
    more = z * z / n
    middle, half = share + more / 2, z * np.sqrt(share * (1 - share) / n + more / (4 * n))
    low, high = (middle - half) / (1 + more), (middle + half) / (1 + more)
    if exact:
        end = (alpha / 2) ** (1 / n)
        low, high = np.where(share == 1, end, low), np.where(share == 0, 1 - end, high)
    return np.minimum(np.maximum(low, 0.0), share), np.maximum(np.minimum(high, 1.0), share)


def _is_apart(
    one: Floats,
    other: Floats,
    its: tuple[Floats, Floats],
    others: tuple[Floats, Floats],
    rho: Floats | float = 0.0,
) -> NDArray[np.bool_]:
    """Whether the interval of `rates.apart` excludes 0."""

    def reach(a: Floats, b: Floats) -> Floats:
        found: Floats = np.sqrt(np.maximum(0.0, a * a - 2 * rho * a * b + b * b))
        return found

    above, below = reach(one - its[0], others[1] - other), reach(its[1] - one, other - others[0])
    found: NDArray[np.bool_] = (one - other > above) | (other - one > below)
    return found


def _phi(both: NDArray[Any], first: NDArray[Any], second: NDArray[Any], neither: NDArray[Any], n: int) -> Floats:
    """The correlation of two values of the same people, with the shrinkage of `rates.Paired`."""
    below = (both + first) * (second + neither) * (both + second) * (first + neither)
    above = both * neither - first * second
    corrected = np.where(above < 0, above, np.maximum(0.0, above - n / 2))
    found: Floats = np.where(below > 0, corrected / np.sqrt(np.maximum(below, 1e-300)), 0.0)
    return found


def interactions_for(secrets: int, correlation: float = 0.0) -> int:
    """Number of interactions of a model with itself that are worth this many independent secrets, two per interaction.

    With a correlation of 0 between the two secrets of an interaction that is half the number; with 1, the same number.
    """
    return ceil(secrets * (1 + _check_correlation(correlation)) / 2)


def secrets_worth(interactions: int, correlation: float = 0.0) -> int:
    """Number of independent secrets that interactions of a model with itself are worth, rounded down."""
    _check_n(interactions)
    return floor(2 * interactions / (1 + _check_correlation(correlation)) + 1e-9)


def _check_correlation(correlation: float) -> float:
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation {correlation}: must be between 0 and 1 for the secrets of a model with itself")
    return correlation


def _totals(one: float, other: float, n: int, n_other: int) -> range:
    """The likely totals of both arms."""
    variance = n * one * (1 - one) + n_other * other * (1 - other)
    return _likely(n * one + n_other * other, variance, n + n_other)


def _fisher_power(one: float, other: float, n: int, n_other: int, alpha: float) -> float:
    found = 0.0
    for passed in _totals(one, other, n, n_other):
        first = np.arange(max(0, passed - n_other), min(n, passed) + 1)
        rejected = first[_rejected(_hypergeometric(first, passed, n, n_other), alpha)]
        found += float(_binomial(n, one, rejected) @ _binomial(n_other, other, passed - rejected))
    return min(1.0, found)


def _rejected(shares: Floats, alpha: float) -> NDArray[np.bool_]:
    """The outcomes that Fisher's test rejects.

    These are the least likely ones, as long as their total probability is at most alpha.
    """
    order = np.argsort(shares, kind="stable")
    # Treat equally likely outcomes alike, up to rounding, as scipy does.
    together = np.searchsorted(shares[order], shares * (1 + 1e-7), side="right")
    ps = np.concatenate([[0.0], np.cumsum(shares[order])])[together]
    rejected: NDArray[np.bool_] = ps <= alpha
    return rejected


def _hypergeometric(first: NDArray[np.int64], passed: int, n: int, n_other: int) -> Floats:
    logs = log_ways(n, first) + log_ways(n_other, passed - first) - log_ways(n + n_other, np.array([passed]))
    shares: Floats = np.exp(logs)
    return shares


def _binomial(n: int | NDArray[np.int64], p: float, k: NDArray[np.int64]) -> Floats:
    """Binomial probabilities of the counts k of n. (scipy's overflow for the smallest p.)"""
    shares: Floats = np.exp(log_ways(n, k) + xlogy(k, p) + xlog1py(n - k, -p))
    return shares


def _likely(mean: float, variance: float, most: int) -> range:
    """The counts around a mean. All others together have a probability below one in a billion."""
    reach = 8 * sqrt(variance) + 20
    return range(max(0, floor(mean - reach)), min(most, ceil(mean + reach)) + 1)


def _normal_power(one: float, other: float, n: int, n_other: int, alpha: float) -> float:
    """With continuity correction, like Fisher's test:

    J. L. Fleiss, A. Tytun and H. K. Ury, Biometrics 36 (1980) 343-346.
    """
    apart, ratio = abs(one - other), n_other / n
    if not apart:
        return alpha
    corrected = max(0.0, n - (ratio + 1) / (2 * ratio * apart)) ** 2 / n
    pooled = (one + ratio * other) / (1 + ratio)
    under = sqrt((1 + 1 / ratio) * pooled * (1 - pooled))
    real = sqrt(one * (1 - one) + other * (1 - other) / ratio)
    return _normal(apart * sqrt(corrected), under, real, alpha)


def _mcnemar_power(first: float, second: float, n: int, alpha: float) -> float:
    from scipy.stats import binom  # type: ignore[import-untyped]

    if first + second <= 0:
        return 0.0
    either = min(1.0, first + second)
    likely = _likely(n * either, n * either * (1 - either), n)
    differ = np.arange(likely.start, likely.stop)
    # The largest count on the smaller side with which the exact test still rejects; below 0 if none.
    most = binom.ppf(alpha / 2, differ, 0.5)
    most = np.where(2 * binom.cdf(most, differ, 0.5) <= alpha, most, most - 1)
    share = first / (first + second)
    rejected = binom.cdf(most, differ, share) + binom.cdf(most, differ, 1 - share)
    return min(1.0, float(_binomial(n, either, differ) @ rejected))


def _normal_mcnemar_power(first: float, second: float, n: int, alpha: float) -> float:
    """R. J. Connor, Sample size for testing differences in proportions for the paired-sample design, Biometrics 43
    (1987) 207-211."""
    differ, apart = first + second, abs(first - second)
    if not apart:
        return alpha if differ else 0.0
    return _normal(apart * sqrt(n), sqrt(differ), sqrt(max(0.0, differ - apart**2)), alpha)


def _normal(shift: float, under: float, real: float, alpha: float) -> float:
    """The probability that a normal variable exceeds the critical value at alpha."""
    missing = NormalDist().inv_cdf(1 - alpha / 2) * under - shift
    return 1 - NormalDist().cdf(missing / real) if real else float(missing <= 0)


class _Discordant(NamedTuple):
    first: float
    second: float


def _discordant(one: float, other: float, discordance: float | None, correlation: float) -> _Discordant:
    """The shares of rows with only the first finding and with only the second."""
    if discordance is None:
        lowest, highest = _correlations(one, other)
        if not lowest - 1e-9 <= correlation <= highest + 1e-9:
            raise ValueError(
                f"correlation {correlation}: must be between {lowest:.3f} and {highest:.3f} at rates {one} and {other}"
            )
        both = one * other + correlation * _scale(one, other)
        return _Discordant(max(0.0, one - both), max(0.0, other - both))
    least, most = abs(one - other), min(one + other, 2 - one - other)
    if not least - 1e-9 <= discordance <= most + 1e-9:
        raise ValueError(
            f"discordance {discordance}: must be between {least:.3f} and {most:.3f} at rates {one} and {other}"
        )
    return _Discordant(max(0.0, (discordance + one - other) / 2), max(0.0, (discordance + other - one) / 2))


def _correlations(one: float, other: float) -> tuple[float, float]:
    """The least and greatest possible correlation of two rates. 0 is always possible.

    For rates next to 0 or 1 both are so small that rounding may put them on the same side of 0.
    """
    scale = _scale(one, other)
    if not scale:
        return 0.0, 0.0
    lowest, highest = max(0.0, one + other - 1) - one * other, min(one, other) - one * other
    return min(0.0, lowest / scale), max(0.0, highest / scale)


def _scale(one: float, other: float) -> float:
    return sqrt(one * (1 - one) * other * (1 - other))


def _smallest(enough: Callable[[int], bool]) -> int:
    few, many = 0, 1
    while not enough(many):
        if many > MOST:
            raise ValueError(f"more than {MOST:,} trials would be needed; choose a larger difference or width")
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def _nearest(rate: float, enough: Callable[[float], bool]) -> Detectable:
    def towards(end: float) -> float | None:
        if not enough(end):
            return None
        near, far = rate, end
        while abs(far - near) > FINE:
            middle = (near + far) / 2
            near, far = (near, middle) if enough(middle) else (middle, far)
        return far

    return Detectable(towards(0.0) if rate > 0 else None, towards(1.0) if rate < 1 else None)


def _check(one: float, other: float, alpha: float, power: float = 0.8) -> None:
    _check_rate(one)
    _check_rate(other)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha {alpha}: must be greater than 0 and less than 1")
    if not 0 < power < 1:
        raise ValueError(f"power {power}: must be greater than 0 and less than 1")


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate {rate}: must be between 0 and 1")


def _check_n(n: int) -> None:
    if n < 1:
        raise ValueError(f"n {n}: must be 1 or more")


def _check_apart(one: float, other: float) -> None:
    if one == other:
        raise ValueError(f"rates {one} and {other}: must differ; the test needs two different rates")
