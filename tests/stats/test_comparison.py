"""One arm against another."""

from __future__ import annotations

import math
import random
import sys
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats import Comparison, Outcomes, compare, mcnemar, variance_components
from evalwright.stats._engine import Engine, best_engine
from evalwright.stats._numpy import NumpyEngine
from evalwright.stats._pairs import pair
from evalwright.stats._python import PythonEngine
from evalwright.stats.bootstrap import bootstrap
from evalwright.stats.permutation import sign_flip_p

ENGINES = [NumpyEngine(), PythonEngine()]
values = st.lists(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-1e3, 1e3)), max_size=4)
arms = st.dictionaries(st.sampled_from("abcdefgh"), values, max_size=8)


def arm(generator: random.Random, rates: list[float], repeats: int) -> dict[str, list[float]]:
    """Return passes and fails of one case for each rate."""
    return {f"c{number}": [float(generator.random() < rate) for _ in range(repeats)] for number, rate in enumerate(rates)}


def excludes_zero(comparison: Comparison) -> bool:
    """Return whether the whole interval lies on one side of 0."""
    assert comparison.interval is not None
    return comparison.interval.low > 0 or comparison.interval.high < 0


def test_only_pairs_count_and_the_lost_cases_are_listed() -> None:
    result = compare({"c1": [0.5], "c2": [1.0]}, {"c1": [1.0], "c2": [], "c3": [1.0]})
    assert (result.difference, result.pairs, result.wins) == (0.5, 1, 1)
    assert (result.only_first, result.only_second) == (("c2",), ("c3",))
    assert (result.answer, result.p, result.interval) == ("no-evidence", 1.0, None)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"a": []}, {"a": [1.0]}),
        ({"a": [1.0, 0.0]}, {"a": [0.0, 0.0]}),
        ({"a": [1.0], "b": [0.0]}, {"a": [1.0], "b": [0.0]}),
        ({"a": [0.0, 1.0], "b": [0.0, 1.0]}, {"a": [1.0, 0.0], "b": [1.0, 0.0]}),
    ],
)
def test_nothing_to_tell_apart_is_no_evidence(engine: Engine, first: Outcomes, second: Outcomes) -> None:
    result = compare(first, second, engine=engine, min_effect=0.1)
    assert (result.answer, result.p, result.interval, result.equivalent) == ("no-evidence", 1.0, None, None)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_plain_difference_is_found_in_either_direction(engine: Engine) -> None:
    generator = random.Random(1)
    weak, strong = arm(generator, [0.2] * 40, 3), arm(generator, [0.7] * 40, 3)

    better, worse = compare(weak, strong, engine=engine), compare(strong, weak, engine=engine)

    assert (better.answer, worse.answer) == ("better", "worse")
    assert (better.wins, better.losses, better.ties) == (worse.losses, worse.wins, worse.ties)
    assert excludes_zero(better)
    assert excludes_zero(worse)
    assert compare(weak, strong, engine=engine, higher_is_better=False).answer == "worse"


def test_a_constant_shift_needs_no_interval_to_be_found() -> None:
    first = {f"c{number}": [float(number)] for number in range(20)}
    result = compare(first, {case: [value + 0.125 for value in cell] for case, cell in first.items()})
    assert (result.answer, result.interval, result.p) == ("better", None, 2 / 2**20)


@settings(max_examples=60)
@given(arms, arms, st.sampled_from([0.0, 0.1]), st.sampled_from([0.01, 0.05, 0.3]), st.integers(0, 5))
def test_answer_p_value_and_interval_never_contradict_each_other(
    first: Outcomes, second: Outcomes, min_effect: float, alpha: float, seed: int
) -> None:
    result = compare(first, second, min_effect=min_effect, alpha=alpha, resamples=100, flips=100, seed=seed)

    assert 0 <= result.permutation_p <= result.p <= 1
    assert (result.answer != "no-evidence") == (result.p < alpha)
    assert result.pairs == result.wins + result.losses + result.ties
    if result.interval is not None:
        assert math.isfinite(result.interval.low)
        assert result.interval.low <= result.interval.high
        beyond = result.interval.low > min_effect or result.interval.high < -min_effect
        assert beyond == (result.answer != "no-evidence")
    if result.answer != "no-evidence":
        assert result.difference is not None
        assert (result.difference > min_effect) == (result.answer == "better")


def test_the_same_seed_gives_the_same_answer_and_the_record_tells_what_drew_it() -> None:
    generator = random.Random(2)
    first, second = arm(generator, [0.5] * 30, 2), arm(generator, [0.6] * 30, 2)
    assert compare(first, second, seed=7) == compare(dict(reversed(first.items())), second, seed=7)
    assert compare(first, second, seed=7).interval != compare(first, second, seed=8).interval
    assert (compare(first, second).engine, best_engine().name) == ("numpy", "numpy")


@pytest.mark.parametrize(("cases", "repeats"), [(12, 3), (60, 1), (150, 4)])
def test_both_engines_agree_within_their_random_error(cases: int, repeats: int) -> None:
    generator = random.Random(cases)
    rates = [generator.random() for _ in range(cases)]
    first, second = arm(generator, rates, repeats), arm(generator, rates, repeats + 1)

    fast, plain = (compare(first, second, engine=engine, resamples=4000) for engine in ENGINES)

    assert fast.interval is not None
    assert plain.interval is not None
    width = fast.interval.high - fast.interval.low
    assert (fast.interval.low, fast.interval.high) == pytest.approx((plain.interval.low, plain.interval.high), abs=0.04 * width)
    exact = ("difference", "permutation_p", "minimum_detectable_effect", "mean_first")
    assert [getattr(fast, name) for name in exact] == pytest.approx([getattr(plain, name) for name in exact], rel=1e-9)
    assert fast.components == plain.components


def test_the_normal_sum_over_repeats_has_the_spread_of_drawn_repeats() -> None:
    generator = random.Random(3)
    pairs = pair(arm(generator, [0.5] * 100, 5), arm(generator, [0.5] * 100, 5))
    for engine in ENGINES:
        drawn = sorted(engine.resample_cells(pairs, 3000, 1))
        summed = sorted(engine.resample_moments(pairs, 3000, 2))
        for rank in (75, 500, 1500, 2500, 2925):
            assert drawn[rank] == pytest.approx(summed[rank], abs=0.012)


@given(st.lists(st.sampled_from([-1.0, -0.4, -0.2, 0.0, 0.2, 0.6]), min_size=1, max_size=9))
def test_the_sign_flip_p_value_is_the_share_of_all_ways(differences: list[float]) -> None:
    ways = [
        sum(sign * d for sign, d in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=len(differences))
    ]
    share = sum(abs(way) >= abs(sum(differences)) - 1e-9 for way in ways) / len(ways)
    assert sign_flip_p(differences, PythonEngine(), flips=100, seed=0) == (pytest.approx(share), True)


def test_differences_without_a_common_unit_are_drawn_at_random_beyond_fourteen() -> None:
    generator = random.Random(4)
    differences = [generator.gauss(0.2, 1) for _ in range(14)]
    listed, exact = sign_flip_p(differences, PythonEngine(), flips=100, seed=0)
    drawn, still_exact = sign_flip_p([*differences, 1e-6], PythonEngine(), flips=20_000, seed=0)
    assert (exact, still_exact) == (True, False)
    assert drawn == pytest.approx(listed, abs=0.02)


def test_a_drawn_p_value_is_never_0() -> None:
    differences = [1 + number / 7919 + number**2 / 104729 for number in range(60)]
    assert sign_flip_p(differences, PythonEngine(), flips=199, seed=0) == (1 / 200, False)


def test_without_numpy_the_standard_library_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evalwright.stats._numpy", None)
    assert compare({"a": [1.0], "b": [0.0]}, {"a": [0.0], "b": [0.0]}).engine == "python"


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_random_flips_agree_with_exact_counts(engine: Engine) -> None:
    generator = random.Random(5)
    differences = [generator.choice([-0.4, -0.2, 0.2, 0.4, 0.6]) for _ in range(80)]
    exact, is_exact = sign_flip_p(differences, engine, flips=100, seed=0)
    assert is_exact
    for sizes in (differences, [value + generator.uniform(-1e-7, 1e-7) for value in differences]):
        sums = engine.flip_signs([abs(value) for value in sizes], 20_000, 1)
        share = sum(abs(total) >= abs(sum(differences)) - 1e-5 for total in sums) / len(sums)
        assert share == pytest.approx(exact, abs=0.02)


@given(st.integers(0, 60), st.integers(0, 60))
def test_passes_and_fails_without_repeats_give_mcnemars_test(gained: int, lost: int) -> None:
    p, exact = sign_flip_p([1.0] * gained + [-1.0] * lost + [0.0] * 5, PythonEngine(), flips=100, seed=0)
    assert exact
    assert p == pytest.approx(mcnemar(gained, lost).p, rel=1e-9)


def test_a_bootstrap_end_never_rests_on_fewer_resamples_than_there_are() -> None:
    pairs = pair({"a": [0.0], "b": [0.0], "c": [0.0]}, {"a": [1.0], "b": [2.0], "c": [3.0]})
    resampled = bootstrap(pairs, PythonEngine(), resamples=200, seed=0)
    assert resampled is not None
    interval = resampled.interval(0.95)
    half = 4.302652729749462 / math.sqrt(3)
    assert (interval.low, interval.high) == pytest.approx((2 - half, 2 + half))
    assert resampled.p_value(interval.low) == pytest.approx(0.05)


def test_a_practical_margin_must_be_passed_and_can_be_kept() -> None:
    generator = random.Random(6)
    first = arm(generator, [0.5] * 300, 4)
    second = {case: [value + 0.05 + generator.gauss(0, 0.05) for value in cell] for case, cell in first.items()}

    assert compare(first, second).answer == "better"
    within = compare(first, second, min_effect=0.1)
    assert (within.answer, within.equivalent, within.p) == ("no-evidence", True, 1.0)
    beyond = compare(first, second, min_effect=0.02)
    assert (beyond.answer, beyond.equivalent) == ("better", False)


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0.0}, {"alpha": 1.5}, {"min_effect": -0.1}, {"min_effect": math.nan}, {"resamples": 3}, {"flips": 0}]
)
def test_calls_out_of_range_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        compare({"a": [1.0]}, {"a": [0.0]}, **wrong)  # type: ignore[arg-type]  # one wrong value at a time


@pytest.mark.parametrize("value", [math.nan, -math.inf, 1e200])
def test_a_value_that_is_not_finite_or_too_large_to_square_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="case 'a'"):
        compare({"a": [value]}, {"a": [0.0]})


def test_components_need_repeats_in_both_arms() -> None:
    assert variance_components({"a": [0.0, 1.0], "b": [0.0, 1.0]}, {"a": [1.0], "b": [0.0]}) is None
    assert variance_components({"a": [0.0, 1.0]}, {"a": [1.0, 0.0]}) is None
