"""Two raters of the same items."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats import agreement, mcnemar

labels = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("abc")), max_size=12)


def rated(table: dict[tuple[str, str], int]) -> tuple[list[str], list[str]]:
    """Return both raters' labels for a confusion table."""
    pairs = [pair for pair, count in table.items() for _ in range(count)]
    return [one for one, _ in pairs], [other for _, other in pairs]


def test_kappa_and_its_error_are_the_published_ones() -> None:
    # Fleiss, "Statistical methods for rates and proportions" (1981), table 13.1: kappa 0.68, standard error 0.087.
    table = {("p", "p"): 75, ("p", "n"): 1, ("p", "o"): 4, ("n", "p"): 5, ("n", "n"): 4, ("n", "o"): 1, ("o", "o"): 10}
    result = agreement(*rated(table))

    assert (result.items, result.accuracy) == (100, pytest.approx(0.89))
    assert result.confusion == dict(sorted(table.items()))
    assert result.kappa == pytest.approx(0.676, abs=5e-4)
    assert result.kappa_interval is not None
    assert (result.kappa_interval.high - result.kappa_interval.low) / 2 / 1.959964 == pytest.approx(0.0877, abs=1e-3)


def test_agreement_that_chance_explains_has_kappa_0() -> None:
    assert agreement(*rated({("a", "a"): 25, ("a", "b"): 25, ("b", "a"): 25, ("b", "b"): 25})).kappa == pytest.approx(0)


def test_kappa_is_null_where_it_says_nothing() -> None:
    assert agreement([], []).accuracy is None
    same = agreement(["a", "a"], ["a", "a"])
    assert (same.accuracy, same.kappa, same.kappa_interval) == (1.0, None, None)
    whole = agreement(["a", "b"], ["a", "b"])
    assert (whole.kappa, whole.kappa_interval) == (1.0, None)
    with pytest.raises(UsageError, match="1 labels against 2"):
        agreement(["a"], ["a", "b"])


@given(labels)
def test_kappa_is_the_same_from_either_side_and_lies_in_its_interval(pairs: list[tuple[str, str]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    result, turned = agreement(first, second), agreement(second, first)
    assert result.kappa == pytest.approx(turned.kappa)
    if result.kappa is not None:
        assert -1 <= result.kappa <= 1
    if result.kappa_interval is not None:
        assert result.kappa is not None
        assert result.kappa_interval.low <= result.kappa <= result.kappa_interval.high


def test_mcnemars_test_is_two_sided_and_exact() -> None:
    assert mcnemar(0, 0).p == 1.0
    assert mcnemar(5, 5).p == 1.0
    assert mcnemar(7, 1).p == mcnemar(1, 7).p == pytest.approx(0.0703125)
    assert mcnemar(0, 6).p == pytest.approx(2 / 64)
    with pytest.raises(UsageError, match="lost is -1"):
        mcnemar(3, -1)
