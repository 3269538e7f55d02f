"""Quantiles of the normal distribution and of Student's t."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from evalwright.stats.outcomes import at_least, fraction

_NORMAL = NormalDist()
_TINY = 1e-300


def normal_cdf(x: float) -> float:
    """Return P(Z <= x) of the standard normal distribution, with full relative accuracy in the lower tail."""
    return math.erfc(-x / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return x with P(Z <= x) = p, by Wichura's algorithm AS 241 (Applied Statistics 37, 1988)."""
    return _NORMAL.inv_cdf(fraction(p, "probability"))


def t_cdf(x: float, df: float) -> float:
    """Return P(T <= x) of Student's t with ``df`` degrees of freedom; Abramowitz and Stegun (1964), 26.7.1."""
    tail = _t_tail(abs(x), df)
    return tail if x < 0 else 1 - tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """Return x with P(T <= x) = p for ``df`` >= 1 degrees of freedom, by bisection to the last bit but a few."""
    at_least(df, 1, "degrees of freedom")
    tail = min(fraction(p, "probability"), 1 - p)
    if tail == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while _t_tail(high, df) > tail:
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return -middle if p < 0.5 else middle
        low, high = (middle, high) if _t_tail(middle, df) > tail else (low, middle)


def _t_tail(x: float, df: float) -> float:
    """Return P(T > x) for x >= 0."""
    square = x * x
    if square < df:
        return 0.5 - _incomplete_beta(0.5, df / 2, square / (df + square)) / 2
    return _incomplete_beta(df / 2, 0.5, df / (df + square)) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b); DLMF 8.17.22, evaluated as Lentz (1976) does."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    return front * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1 / _off_zero(1 + term * d)
            c = _off_zero(1 + term / c)
            step = c * d
            result *= step
        if abs(step - 1) < 1e-16:
            break
    return result


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
