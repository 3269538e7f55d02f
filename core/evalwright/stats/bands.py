"""What repeats of one arm have in common: their band, what any or all of them hit, and which cases flip."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.errors import UsageError
from evalwright.stats.distributions import t_quantile
from evalwright.stats.outcomes import Interval, Outcomes, finite, fraction, mean, scored, variance
from evalwright.stats.passk import SuitePassK, count_passes, suite_pass_at_k, suite_pass_hat_k

Stability = Literal["stable", "flaky", "never"]


@dataclass(frozen=True, slots=True)
class Band:
    """A metric over ``repeats`` whole repeats of a suite. ``sd`` (divisor n - 1) is null for one repeat, and
    ``interval`` also where all repeats are equal: no spread seen is none proved.
    """

    repeats: int
    mean: float
    minimum: float
    maximum: float
    sd: float | None
    interval: Interval | None


def band(values: Sequence[float], *, confidence: float = 0.95) -> Band:
    """Return the band of one value for each repeat.

    The interval is Student's for the mean of repeats ("The probable error of a mean", Biometrika 6, 1908): it says how well
    the mean over repeats of these cases is known, and nothing about other cases. Raises ``UsageError`` without values.
    """
    fraction(confidence, "confidence")
    if not values:
        raise UsageError("no repeat to make a band of", hint="give one value for each repeat")
    centre = mean([finite(value, f"repeat {number}") for number, value in enumerate(values, 1)])
    sd = math.sqrt(variance(values)) if len(values) > 1 else None
    interval = None
    if sd:
        half = t_quantile((1 + confidence) / 2, len(values) - 1) * sd / math.sqrt(len(values))
        interval = Interval(centre - half, centre + half, confidence)
    return Band(len(values), centre, min(values), max(values), sd, interval)


def union_at_k(hits: Mapping[str, Sequence[bool]], k: int) -> SuitePassK:
    """Return the share of items that any of ``k`` repeats hits, unbiased: the mean over all choices of k repeats.

    ``hits`` holds one boolean for each repeat of an item (a gold finding, a requirement). The formula is that of pass@k.
    """
    return suite_pass_at_k(hits, k)


def intersection_at_k(hits: Mapping[str, Sequence[bool]], k: int) -> SuitePassK:
    """Return the share of items that all of ``k`` repeats hit, unbiased. The formula is that of pass^k."""
    return suite_pass_hat_k(hits, k)


def flip_rate(n: int, c: int) -> float | None:
    """Return the estimate that two repeats of a case disagree, when ``c`` of ``n`` passed; null for fewer than two.

    2 c (n - c) / (n (n - 1)): Gini's mean difference of 0 and 1, twice the unbiased variance.
    """
    return 2 * c * (n - c) / (n * (n - 1)) if n > 1 else None


def flip_rates(outcomes: Outcomes) -> dict[str, float | None]:
    """Return the flip rate of each case. Raises ``UsageError`` at a value that is neither 0 nor 1."""
    return {case: flip_rate(len(values), count_passes(case, values)) for case, values in scored(outcomes).items()}


def stability(outcomes: Outcomes) -> dict[str, Stability]:
    """Tell cases that pass in every repeat (``stable``), in some (``flaky``) and in none (``never``); missing ones are absent.

    Raises ``UsageError`` at a value that is neither 0 nor 1.
    """
    kinds: dict[str, Stability] = {}
    for case, values in scored(outcomes).items():
        count = count_passes(case, values)
        kinds[case] = "never" if count == 0 else "stable" if count == len(values) else "flaky"
    return kinds
