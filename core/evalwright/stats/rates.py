"""Pass rates and other means over a suite, with intervals that know which values belong to one case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.errors import UsageError
from evalwright.stats.distributions import normal_quantile, t_quantile
from evalwright.stats.outcomes import Interval, Outcomes, at_least, fraction, mean, scored, variance


@dataclass(frozen=True, slots=True)
class Rate:
    """The mean of a metric over a suite.

    ``micro`` weighs every value alike, ``macro`` every case; each has its own standard error and interval, null where there
    are too few cases to tell. ``attempted`` counts values that were asked for, ``scored`` those there are; their difference
    was lost to faults of the harness. ``over_attempted`` is the micro mean with lost values counted as 0.
    """

    micro: float | None
    macro: float | None
    micro_error: float | None
    macro_error: float | None
    micro_interval: Interval | None
    macro_interval: Interval | None
    over_attempted: float | None
    attempted: int
    scored: int
    cases: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error (null if unknown), over ``count`` values."""

    mean: float
    error: float | None
    count: int


def rate(outcomes: Outcomes, *, attempted: int | None = None, confidence: float = 0.95) -> Rate:
    """Return micro and macro means of ``outcomes``.

    Standard errors: micro is a ratio of two sums over cases, linearised and clustered by case (Cameron and Miller, "A
    practitioner's guide to cluster-robust inference", Journal of Human Resources 50, 2015, with the factor n / (n - 1));
    macro is the standard deviation of case means over the root of their number. Intervals: see ``clustered_interval``.
    ``attempted`` is the number of values asked for; by default what there is. Raises ``UsageError`` if it is less.
    """
    fraction(confidence, "confidence")
    cells = list(scored(outcomes).values())
    count = sum(map(len, cells))
    asked = count if attempted is None else at_least(attempted, count, "attempted")
    if not cells:
        return Rate(None, None, None, None, None, None, 0.0 if asked else None, asked, 0, 0)
    micro = mean([value for cell in cells for value in cell])
    macro = mean([mean(cell) for cell in cells])
    micro_error, macro_error = _micro_error(cells, micro, count), _macro_error(cells)
    return Rate(
        micro=micro,
        macro=macro,
        micro_error=micro_error,
        macro_error=macro_error,
        micro_interval=clustered_interval(cells, micro, micro_error, confidence),
        macro_interval=clustered_interval(cells, macro, macro_error, confidence),
        over_attempted=micro * count / asked,
        attempted=asked,
        scored=count,
        cases=len(cells),
    )


def macro_mean(groups: Mapping[str, Estimate]) -> Estimate:
    """Return the mean of group means with the error that belongs to it.

    Groups are independent, so that is the root of the summed squared errors, over the number of groups; null if one is
    null. Raises ``UsageError`` without groups.
    """
    if not groups:
        raise UsageError("no group to average", hint="give at least one group")
    errors = [group.error for group in groups.values()]
    known = [error for error in errors if error is not None]
    error = math.hypot(*known) / len(groups) if len(known) == len(groups) else None
    return Estimate(mean([group.mean for group in groups.values()]), error, sum(group.count for group in groups.values()))


def wilson(successes: float, trials: float, *, confidence: float = 0.95) -> Interval | None:
    """Return the score interval of a proportion, null without trials.

    Wilson, "Probable inference", JASA 22 (1927). Both numbers may be fractions: an effective sample has them.
    """
    z = normal_quantile((1 + fraction(confidence, "confidence")) / 2)
    if trials <= 0:
        return None
    share, weight = successes / trials, z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = math.sqrt(weight * share * (1 - share) + weight * weight / 4) / (1 + weight)
    low = 0.0 if share <= 0 else max(0.0, centre - half)
    return Interval(low, 1.0 if share >= 1 else min(1.0, centre + half), confidence)


def clustered_interval(
    cells: Sequence[Sequence[float]], centre: float, error: float | None, confidence: float
) -> Interval | None:
    """Return the interval of a mean over ``cells``, one for each case.

    Passes and fails, one for each case: Wilson's. Passes and fails with repeats: Wilson's on the effective sample of Korn
    and Graubard (Survey Methodology 24, 1998): p (1 - p) / error squared, times (z / t) squared for n - 1 degrees of
    freedom, no more than there are values; where all are equal it is the number of cases. Other metrics: Student's t
    with n - 1 degrees of freedom; null for one case, and where all are equal: no spread seen is none proved.
    """
    cases, count = len(cells), sum(map(len, cells))
    if all(value in (0, 1) for cell in cells for value in cell):
        if count == cases:
            return wilson(centre * cases, cases, confidence=confidence)
        size = _effective_size(cases, count, centre, error, confidence)
        return wilson(centre * size, size, confidence=confidence)
    if not error:
        return None
    half = t_quantile((1 + confidence) / 2, cases - 1) * error
    return Interval(centre - half, centre + half, confidence)


def _effective_size(cases: int, count: int, centre: float, error: float | None, confidence: float) -> float:
    spread = centre * (1 - centre)
    if error is None or spread <= 0:
        return cases
    if error == 0:
        return count
    tail = (1 + confidence) / 2
    return min(count, spread / error**2 * (normal_quantile(tail) / t_quantile(tail, cases - 1)) ** 2)


def _micro_error(cells: Sequence[Sequence[float]], centre: float, count: int) -> float | None:
    if len(cells) < 2:
        return None
    squares = math.fsum(math.fsum(value - centre for value in cell) ** 2 for cell in cells)
    return math.sqrt(squares * len(cells) / (len(cells) - 1)) / count


def _macro_error(cells: Sequence[Sequence[float]]) -> float | None:
    return math.sqrt(variance([mean(cell) for cell in cells]) / len(cells)) if len(cells) > 1 else None
