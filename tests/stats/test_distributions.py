"""Quantiles against published values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats.distributions import normal_cdf, normal_quantile, t_cdf, t_quantile

# Closed forms: df 1 is tan(pi (p - 1/2)); df 2 is (2 p - 1) / sqrt(2 p (1 - p)). The others are R's qt.
PUBLISHED = [
    (0.975, 1, math.tan(math.pi * 0.475)),
    (0.9995, 1, math.tan(math.pi * 0.4995)),
    (0.975, 2, 0.95 / math.sqrt(2 * 0.975 * 0.025)),
    (0.6, 2, 0.2 / math.sqrt(2 * 0.6 * 0.4)),
    (0.975, 3, 3.182446305284263),
    (0.975, 5, 2.570581835636314),
    (0.975, 10, 2.228138851964939),
    (0.995, 10, 3.169272672616842),
    (0.975, 30, 2.042272456301238),
    (0.95, 100, 1.660234326065506),
]


@pytest.mark.parametrize(("p", "df", "expected"), PUBLISHED)
def test_t_quantile_is_the_published_one(p: float, df: int, expected: float) -> None:
    assert t_quantile(p, df) == pytest.approx(expected, rel=1e-10)
    assert t_quantile(1 - p, df) == pytest.approx(-expected, rel=1e-10)


@pytest.mark.parametrize("df", [2, 4, 30, 100, 1000])
def test_t_quantile_solves_the_finite_series_for_even_degrees(df: int) -> None:
    # Abramowitz and Stegun (1964), 26.7.4.
    t = t_quantile(0.975, df)
    term, cosine = 1.0, df / (df + t * t)
    terms = [term := term * (2 * number - 1) / (2 * number) * cosine for number in range(1, df // 2)]
    assert t / math.sqrt(df + t * t) * math.fsum([1.0, *terms]) == pytest.approx(0.95, abs=1e-12)


def test_t_of_many_degrees_is_nearly_normal() -> None:
    assert t_quantile(0.975, 10**7) == pytest.approx(normal_quantile(0.975), abs=1e-6)
    assert t_quantile(0.5, 4) == 0.0


def test_normal_quantile_and_tail_are_the_published_ones() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, rel=1e-14)
    assert normal_cdf(-10) == pytest.approx(7.619853024160527e-24, rel=1e-12)


@given(st.floats(0.001, 0.999), st.integers(1, 200))
def test_t_cdf_undoes_t_quantile(p: float, df: int) -> None:
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-12)


def test_a_probability_of_0_or_1_has_no_quantile() -> None:
    with pytest.raises(UsageError, match="probability is 1"):
        t_quantile(1.0, 3)
    with pytest.raises(UsageError, match="degrees of freedom is 0"):
        t_quantile(0.9, 0)
