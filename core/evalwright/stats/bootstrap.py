"""The interval of a mean difference: a paired hierarchical bootstrap, with percentiles that allow for few cases."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from evalwright.stats._engine import Engine
from evalwright.stats._pairs import Pairs
from evalwright.stats.distributions import normal_cdf, normal_quantile, t_cdf, t_quantile
from evalwright.stats.outcomes import Interval, mean

_MANY_CASES = 100


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The sorted resampled mean differences of at least two pairs whose differences are not all equal.

    Cases are drawn with replacement, then repeats within each arm of each case drawn (Davison and Hinkley, "Bootstrap methods
    and their application", 1997, 3.8). Of 100 cases and more the repeats are drawn together: given the cases, the sum over
    their repeats has a known mean and variance, and is normal by the central limit theorem.

    Plain percentiles are too narrow by the factor (n - 1) / n of the variance and for want of Student's tails, and with repeats
    too wide, since the spread over cases already holds that of the repeats. Both are put right at once by reading the
    percentiles at Phi(-t s / s*) rather than at alpha / 2: s is the standard error clustered by case, s* the
    bootstrap's, t Student's quantile for n - 1 degrees of freedom. With one repeat that is the expanded percentile interval
    of Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69 (2015), section 5.3.
    """

    means: list[float]
    ratio: float
    df: int

    def interval(self, confidence: float) -> Interval:
        """Return the interval; its ends are resampled means."""
        tail = normal_cdf(-t_quantile((1 + confidence) / 2, self.df) * self.ratio)
        skipped = max(0, math.floor(tail * (len(self.means) + 1)) - 1)
        return Interval(self.means[skipped], self.means[-1 - skipped], confidence)

    def p_value(self, reference: float) -> float:
        """Return the two-sided p value of ``reference``: one minus the confidence at which the interval would just reach it."""
        below, above = bisect_right(self.means, reference), len(self.means) - bisect_left(self.means, reference)
        tail = (min(below, above) + 1) / (len(self.means) + 1)
        return min(1.0, 2 * t_cdf(normal_quantile(tail) / self.ratio, self.df)) if tail < 0.5 else 1.0


def bootstrap(pairs: Pairs, engine: Engine, *, resamples: int, seed: int) -> Bootstrap | None:
    """Return the bootstrap of the mean difference; null below two pairs and where all differences are equal."""
    if pairs.error <= 1e-12 * max(map(abs, pairs.differences), default=0.0):
        return None
    count = len(pairs)
    draw = engine.resample_cells if count < _MANY_CASES else engine.resample_moments
    largest = max(map(abs, pairs.differences))
    error = math.sqrt((pairs.error**2 * (count - 1) + mean(pairs.within)) / count)
    # Rounded, so that resamples that give the same difference are equal whatever the order of their sums.
    digits = 12 - math.ceil(math.log10(largest))
    means = sorted(round(value, digits) for value in draw(pairs, resamples, seed))
    return Bootstrap(means, pairs.error / error, count - 1)
