"""What a comparison does over many simulated experiments, whose truth is known."""

from __future__ import annotations

import math
import random

import pytest

from evalwright.stats import (
    Comparison,
    compare,
    minimum_detectable_effect,
    needed_cases,
    needed_repeats,
    rate,
    variance_components,
)
from evalwright.stats.power import VarianceComponents

EXPERIMENTS = 400


def experiments(cases: int, repeats: int, lift: float, count: int, seed: int) -> list[Comparison]:
    """Return comparisons of an arm with one whose every pass rate is higher by ``lift``."""
    generator = random.Random(seed)
    compared: list[Comparison] = []
    for number in range(count):
        arms: list[dict[str, list[float]]] = [{}, {}]
        for case in range(cases):
            rate = generator.uniform(0, 1 - lift)
            for arm, chance in zip(arms, (rate, rate + lift), strict=True):
                arm[f"c{case}"] = [float(generator.random() < chance) for _ in range(repeats)]
        compared.append(compare(*arms, resamples=400, flips=400, seed=number))
    return compared


@pytest.mark.parametrize("repeats", [1, 2, 5, 10])
def test_an_arm_against_itself_is_called_different_no_more_often_than_alpha(repeats: int) -> None:
    compared = experiments(20, repeats, 0.0, EXPERIMENTS, seed=repeats)
    alarms = sum(result.answer != "no-evidence" for result in compared)
    assert alarms <= EXPERIMENTS * 0.05 + 2 * math.sqrt(EXPERIMENTS * 0.05 * 0.95)


def test_power_grows_with_repeats() -> None:
    found = [
        sum(result.answer == "better" for result in experiments(20, repeats, 0.2, 100, seed=1)) for repeats in (1, 2, 5, 10)
    ]
    assert found == sorted(found)
    assert found[0] < 50
    assert found[-1] > 90


@pytest.mark.parametrize(("cases", "repeats"), [(10, 1), (10, 5), (40, 3), (120, 2)])
def test_the_interval_covers_the_true_difference_as_often_as_it_says(cases: int, repeats: int) -> None:
    compared = experiments(cases, repeats, 0.15, 300, seed=cases)
    covered = sum(result.interval is None or result.interval.low <= 0.15 <= result.interval.high for result in compared)
    assert 0.95 * 300 - 3 * math.sqrt(300 * 0.95 * 0.05) <= covered
    assert covered <= 300 * 0.995


@pytest.mark.parametrize(("cases", "repeats"), [(20, 1), (20, 5), (60, 3)])
def test_the_interval_of_a_rate_covers_the_true_rate(cases: int, repeats: int) -> None:
    generator = random.Random(cases + repeats)
    covered = 0
    for _ in range(600):
        rates = [generator.betavariate(1.4, 0.6) for _ in range(cases)]
        interval = rate(
            {str(n): [float(generator.random() < p) for _ in range(repeats)] for n, p in enumerate(rates)}
        ).micro_interval
        assert interval is not None
        covered += interval.low <= 0.7 <= interval.high
    assert covered >= 0.95 * 600 - 3 * math.sqrt(600 * 0.95 * 0.05)


def test_variance_components_are_recovered() -> None:
    generator = random.Random(1)
    arms: list[dict[str, list[float]]] = [{}, {}]
    for case in range(4000):
        shift = generator.gauss(0, 2)
        arms[0][str(case)] = [generator.gauss(0, 1) for _ in range(3)]
        arms[1][str(case)] = [shift + generator.gauss(0, 1) for _ in range(2)]
    parts = variance_components(*arms)
    assert parts is not None
    assert (parts.between, parts.within) == (pytest.approx(4, rel=0.1), pytest.approx(2, rel=0.1))


def test_what_a_wished_effect_needs_detects_just_that() -> None:
    parts = VarianceComponents(between=0.04, within=0.4)
    cases = needed_cases(parts, 0.1, repeats=4)
    error = math.sqrt((parts.between + parts.within / 4) / cases)
    assert minimum_detectable_effect(error) <= 0.1 < minimum_detectable_effect(error * math.sqrt(cases / (cases - 1)))
    assert needed_repeats(parts, 0.1, cases=cases) == 4
    assert needed_repeats(parts, 0.05, cases=30) is None
    assert (needed_cases(VarianceComponents(0, 0), 0.1, repeats=1), needed_repeats(VarianceComponents(0, 0), 0.1, cases=5)) == (
        2,
        1,
    )


@pytest.mark.acceptance
def test_the_minimum_detectable_effect_is_found_four_times_of_five() -> None:
    generator = random.Random(2)
    effect = minimum_detectable_effect(math.sqrt(2 / 40))
    found = 0
    for number in range(EXPERIMENTS):
        first = {str(case): [generator.gauss(0, 1)] for case in range(40)}
        second = {case: [generator.gauss(effect, 1)] for case in first}
        found += compare(first, second, resamples=400, flips=400, seed=number).answer == "better"
    assert 0.72 * EXPERIMENTS <= found <= 0.88 * EXPERIMENTS
