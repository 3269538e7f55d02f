"""Means over a suite, their errors and intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats import Estimate, macro_mean, rate, wilson

suites = st.dictionaries(st.text(max_size=3), st.lists(st.sampled_from([0.0, 1.0]), max_size=4), max_size=6)


def test_wilson_gives_the_published_interval() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    for successes, trials, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        interval = wilson(successes, trials)
        assert interval is not None
        assert (interval.low, interval.high) == pytest.approx((low, high), abs=6e-5)


def test_no_trials_have_no_rate_and_no_interval() -> None:
    assert wilson(0, 0) is None
    nothing = rate({"a": []}, attempted=3)
    assert (nothing.micro, nothing.macro, nothing.micro_interval, nothing.cases) == (None, None, None, 0)
    assert (nothing.over_attempted, nothing.attempted, nothing.scored) == (0.0, 3, 0)
    assert rate({}).over_attempted is None


def test_both_denominators_are_shown_when_the_harness_lost_values() -> None:
    outcomes = {f"c{number}": [float(number < 80)] for number in range(90)}
    result = rate(outcomes, attempted=100)

    assert result.micro == pytest.approx(80 / 90)
    assert result.over_attempted == pytest.approx(0.8)
    assert (result.attempted, result.scored, result.cases) == (100, 90, 90)


def test_an_attempt_that_left_nothing_lowers_only_the_rate_over_attempted() -> None:
    result = rate({"a": [1.0], "b": [1.0], "c": [1.0]}, attempted=4)
    assert (result.micro, result.over_attempted) == (1.0, 0.75)


def test_repeats_of_a_case_are_not_independent() -> None:
    result = rate({"passes": [1.0] * 5, "fails": [0.0] * 5})
    assert result.micro == 0.5
    assert result.micro_error == pytest.approx(0.5)
    assert result.macro_error == pytest.approx(0.5)


def test_micro_weighs_values_and_macro_weighs_cases() -> None:
    result = rate({"often": [1.0] * 9 + [0.0], "seldom": [1.0, 0.0, 0.0, 0.0]})
    assert (result.micro, result.macro) == (pytest.approx(10 / 14), pytest.approx(0.575))


def test_the_mean_of_groups_carries_the_error_of_the_mean_of_groups() -> None:
    total = macro_mean({"large": Estimate(0.9, 0.03, 100), "small": Estimate(0.5, 0.25, 4)})
    assert (total.mean, total.count) == (pytest.approx(0.7), 104)
    assert total.error == pytest.approx(0.1259, abs=5e-5)
    assert macro_mean({"known": Estimate(0.9, 0.03, 100), "single": Estimate(1.0, None, 1)}).error is None
    with pytest.raises(UsageError, match="no group"):
        macro_mean({})


def test_one_repeat_of_passes_has_wilsons_interval() -> None:
    outcomes = {f"c{number}": [float(number < 15)] for number in range(148)}
    assert rate(outcomes).micro_interval == wilson(15, 148)


def test_repeats_widen_an_interval_that_would_take_them_for_cases() -> None:
    outcomes = {f"c{number}": [float(number % 2)] * 5 for number in range(20)}
    clustered, naive = rate(outcomes).micro_interval, wilson(50, 100)
    assert clustered is not None
    assert naive is not None
    assert clustered.high - clustered.low > 2 * (naive.high - naive.low)


def test_cases_that_all_pass_count_as_so_many_cases_not_as_so_many_repeats() -> None:
    assert rate({"a": [1.0] * 10, "b": [1.0] * 10}).micro_interval == wilson(2, 2)
    assert rate({"a": [1.0] * 10}).micro_interval == wilson(1, 1)


def test_a_metric_of_one_case_or_without_spread_has_no_interval() -> None:
    assert rate({"a": [0.3, 0.4]}).micro_interval is None
    assert rate({"a": [0.3], "b": [0.3]}).macro_interval is None


def test_a_metric_has_students_interval() -> None:
    interval = rate({"a": [1.5], "b": [2.5], "c": [3.5]}).macro_interval
    half = 4.302652729749462 / math.sqrt(3)
    assert interval is not None
    assert (interval.low, interval.high, interval.confidence) == pytest.approx((2.5 - half, 2.5 + half, 0.95))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_by_name(value: float) -> None:
    with pytest.raises(UsageError, match="case 'bad'"):
        rate({"good": [1.0], "bad": [0.5, value]})


def test_calls_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="attempted is 1"):
        rate({"a": [1.0, 0.0]}, attempted=1)
    with pytest.raises(UsageError, match="confidence is 95"):
        rate({"a": [1.0]}, confidence=95)


@given(suites)
def test_a_rate_lies_in_its_interval_and_all_lie_between_0_and_1(outcomes: dict[str, list[float]]) -> None:
    result = rate(outcomes)
    assert result.scored == sum(map(len, outcomes.values()))
    for value, interval in [(result.micro, result.micro_interval), (result.macro, result.macro_interval)]:
        if value is None:
            assert interval is None
        else:
            assert interval is not None
            assert 0 <= interval.low <= value + 1e-12
            assert value - 1e-12 <= interval.high <= 1
