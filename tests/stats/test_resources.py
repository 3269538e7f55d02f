"""Differences of cost and time."""

from __future__ import annotations

import random

import pytest

from evalwright.errors import UsageError
from evalwright.stats import resource_difference


def test_unknown_values_are_counted_and_never_taken_for_0() -> None:
    result = resource_difference({"a": [1.0, None], "b": [None], "c": [2.0]}, {"a": [3.0, 3.0], "b": [9.0], "c": [None, 4.0]})
    assert (result.difference, result.pairs) == (2.0, 2)
    assert (result.unknown_first, result.unknown_second) == (2, 1)
    assert (result.mean_first, result.mean_second, result.ratio) == (1.5, 3.5, pytest.approx(7 / 3))


def test_nothing_known_leaves_everything_unknown() -> None:
    result = resource_difference({"a": [None]}, {"a": [0.5]})
    assert (result.difference, result.interval, result.ratio, result.mean_first, result.pairs) == (None, None, None, None, 0)


def test_a_ratio_to_nothing_is_unknown() -> None:
    assert resource_difference({"a": [0.0]}, {"a": [0.5]}).ratio is None


def test_the_interval_covers_the_true_difference() -> None:
    covered = 0
    for seed in range(200):
        generator = random.Random(seed)
        first = {str(case): [generator.lognormvariate(0, 0.7) for _ in range(2)] for case in range(25)}
        second = {case: [value + generator.gauss(0.3, 0.5) for value in cell] for case, cell in first.items()}
        interval = resource_difference(first, second, resamples=300, seed=seed).interval
        assert interval is not None
        covered += interval.low <= 0.3 <= interval.high
    assert 180 <= covered <= 199


def test_a_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(UsageError, match="case 'a'"):
        resource_difference({"a": [float("inf")]}, {"a": [1.0]})
