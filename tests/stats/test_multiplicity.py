"""Many arms and many looks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats import compare, holm, look_alpha


def test_holm_adjusts_step_by_step() -> None:
    # R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == {
        "a": pytest.approx(0.03),
        "b": pytest.approx(0.06),
        "c": pytest.approx(0.06),
        "d": pytest.approx(0.02),
    }
    assert holm({}) == {}
    with pytest.raises(UsageError, match="'a' has the p value"):
        holm({"a": float("nan")})


@given(st.dictionaries(st.text(max_size=2), st.floats(0, 1), max_size=6))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values: dict[str, float]) -> None:
    adjusted = holm(p_values)
    assert all(p_values[name] <= adjusted[name] <= 1 for name in p_values)
    order = sorted(p_values, key=p_values.__getitem__)
    assert [adjusted[name] for name in order] == sorted(adjusted.values())


def test_all_looks_together_spend_no_more_than_alpha() -> None:
    assert sum(look_alpha(0.05, look) for look in range(1, 10_000)) <= 0.05
    assert sum(look_alpha(0.05, look, planned=9) for look in range(1, 10)) == pytest.approx(0.05)
    assert look_alpha(0.05, 1, planned=1) == pytest.approx(0.05)
    assert look_alpha(0.05, 4, planned=3) == 0.0
    with pytest.raises(UsageError, match="look is 0"):
        look_alpha(0.05, 0)


def test_nine_looks_at_growing_repeats_raise_no_more_false_alarms_than_one() -> None:
    experiments, rounds = 200, random.Random(9)
    spent = careless = 0
    for _ in range(experiments):
        rates = [rounds.random() for _ in range(12)]
        arms: list[dict[str, list[float]]] = [{f"c{number}": [] for number in range(12)} for _ in range(2)]
        p_values: list[float] = []
        for _ in range(9):
            for arm in arms:
                for number, rate in enumerate(rates):
                    arm[f"c{number}"].append(float(rounds.random() < rate))
            p_values.append(compare(*arms, resamples=200, flips=200).p)
        spent += any(p < look_alpha(0.05, look) for look, p in enumerate(p_values, 1))
        careless += any(p < 0.05 for p in p_values)

    assert spent <= experiments * 0.05 + 2 * (experiments * 0.05 * 0.95) ** 0.5
    assert careless > spent
