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

    Plain percentiles are too narrow by the factor (n - 1) / n of the variance and for want of Student's tails (Hesterberg,
    "What teachers should know about the bootstrap", The American Statistician 69, 2015, 5.3). With repeats they are also too
    wide, since the spread over cases already holds that of the repeats (Davison and Hinkley, the same place). Both are put
    right: resampled differences are stretched about the one seen by ``ratio``, the standard error clustered by case over the
    bootstrap's, and percentiles are read at Phi(-t) rather than at alpha / 2, with Student's t of n - 1 degrees of freedom.
    Where that lies beyond what so few resamples tell, the ends are those of the paired t test, if they are wider.
    """

    means: list[float]
    difference: float
    error: float
    ratio: float
    df: int

    def interval(self, confidence: float) -> Interval:
        """Return the interval, which holds the difference seen."""
        t = t_quantile((1 + confidence) / 2, self.df)
        rank = max(1, tail := math.floor(normal_cdf(-t) * (len(self.means) + 1)))
        half = 0.0 if tail else t * self.error
        low, high = (self.difference + (self.means[end] - self.difference) * self.ratio for end in (rank - 1, -rank))
        return Interval(min(low, self.difference - half), max(high, self.difference + half), confidence)

    def p_value(self, reference: float) -> float:
        """Return the two-sided p value of ``reference``: one minus the confidence at which the interval would just reach it."""
        distance = reference - self.difference
        place = self.difference + distance / self.ratio
        reached = bisect_right(self.means, place) if distance < 0 else len(self.means) - bisect_left(self.means, place)
        t = normal_quantile(min(0.5, (reached + 1) / (len(self.means) + 1)))
        return 2 * t_cdf(t if reached else min(t, -abs(distance) / self.error), self.df)


def bootstrap(pairs: Pairs, engine: Engine, *, resamples: int, seed: int) -> Bootstrap | None:
    """Return the bootstrap of the mean difference; null below two pairs and where all differences are equal."""
    if pairs.error <= 1e-12 * max(map(abs, pairs.differences), default=0.0):
        return None
    count = len(pairs)
    draw = engine.resample_cells if count < _MANY_CASES else engine.resample_moments
    error = math.sqrt((pairs.error**2 * (count - 1) + mean(pairs.within)) / count)
    means = sorted(draw(pairs, resamples, seed))
    return Bootstrap(means, mean(pairs.differences), pairs.error, pairs.error / error, count - 1)
