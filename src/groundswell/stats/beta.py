"""The beta distribution without scipy: rates and tests of a plain installation need no more of it than this."""

from __future__ import annotations

from math import exp, lgamma, log, log1p

TINY = 1e-300
CLOSE = 1e-14
STEPS = 1200
"""Halving alone comes to the least number above 0 in so many."""


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def share_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function: how much of Beta(a, b) lies below x. Both must be above 0."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(a * log(x) + b * log1p(-x) - log_beta(a, b))
    # The fraction converges fast on this side of the mean alone; the other side is its mirror image.
    if x < (a + 1) / (a + b + 2):
        return front / (a * _fraction(x, a, b))
    return 1.0 - front / (b * _fraction(1 - x, b, a))


def at_least(k: float, n: float, p: float) -> float:
    """The probability that k or more of n happen, each with probability p; in between, where k and n are not whole."""
    if k <= 0:
        return 1.0
    return share_below(p, k, n - k + 1) if k <= n else 0.0


def point_below(share: float, a: float, b: float) -> float:
    """Where that share of Beta(a, b) lies below: Newton's method, halving where it would leave what is left."""
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(STEPS):
        off = share_below(x, a, b) - share
        low, high = (x, high) if off < 0 else (low, x)
        slope = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - log_beta(a, b))
        closer = x - off / slope if slope > TINY else -1.0
        if not low < closer < high:
            closer = (low + high) / 2
        if abs(closer - x) <= CLOSE * x:
            return closer
        x = closer
    return x


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 8.17.22 of the NIST Handbook of Mathematical Functions, by the method of Lentz."""
    value, c, d, i = 1.0, 1.0, 0.0, 0
    while True:
        i += 1
        term = _coefficient(i, x, a, b)
        d = 1 / ((1 + term * d) or TINY)
        c = (1 + term / c) or TINY
        value *= c * d
        if abs(c * d - 1) < CLOSE:
            return value


def _coefficient(i: int, x: float, a: float, b: float) -> float:
    m = i // 2
    if i % 2 == 0:
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
