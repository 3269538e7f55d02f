"""What a comparison could see: variance components, the least effect it detects, and what a wished effect needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalwright.errors import UsageError
from evalwright.stats._pairs import Pairs, pair
from evalwright.stats.distributions import normal_quantile
from evalwright.stats.outcomes import Outcomes, at_least, finite, fraction, mean, variance

POWER = 0.8


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Where the spread of paired differences comes from.

    ``between`` is the variance over cases of the true difference; ``within`` the variance of one repeat about the mean of its
    case, both arms added. With m repeats in both arms a difference varies by between + within / m.
    """

    between: float
    within: float


def variance_components(first: Outcomes, second: Outcomes) -> VarianceComponents | None:
    """Return the components by the method of moments; null below two pairs or without a repeat in each arm.

    Searle, Casella and McCulloch, "Variance components" (1992), 3.6: ``within`` is the mean of the unbiased variances of
    cells, ``between`` the variance of differences less what repeats explain, and 0 if that is negative.
    """
    return components(pair(first, second))


def components(pairs: Pairs) -> VarianceComponents | None:
    """Return what ``variance_components`` does, of pairs already made."""
    arms = [[variance(cell) for cell in arm if len(cell) > 1] for arm in (pairs.first, pairs.second)]
    if len(pairs) < 2 or not all(arms):
        return None
    within = [mean(arm) for arm in arms]
    explained = mean([within[0] / len(one) + within[1] / len(two) for one, two in zip(pairs.first, pairs.second, strict=True)])
    return VarianceComponents(max(0.0, variance(pairs.differences) - explained), sum(within))


def minimum_detectable_effect(error: float, *, alpha: float = 0.05, power: float = POWER) -> float:
    """Return the true difference that a two-sided test at ``alpha`` finds with probability ``power``.

    (z(1 - alpha / 2) + z(power)) times the standard error of the difference: Bloom, "Minimum detectable effects", Evaluation
    Review 19 (1995). For evaluations: Miller, "Adding error bars to evals", arXiv:2411.00640 (2024), section 5.
    """
    return _reach(alpha, power) * error


def needed_cases(parts: VarianceComponents, effect: float, *, repeats: int, alpha: float = 0.05, power: float = POWER) -> int:
    """Return how many cases, with ``repeats`` in both arms, detect a true difference of ``effect``; at least 2.

    n = (z(1 - alpha / 2) + z(power)) squared (between + within / m) / effect squared: Miller (2024), section 5.
    """
    at_least(repeats, 1, "repeats")
    spread = parts.between + parts.within / repeats
    return max(2, math.ceil(_reach(alpha, power) ** 2 * spread / _wished(effect) ** 2 - 1e-9))


def needed_repeats(
    parts: VarianceComponents, effect: float, *, cases: int, alpha: float = 0.05, power: float = POWER
) -> int | None:
    """Return how many repeats of ``cases`` in both arms detect a true difference of ``effect``; at least 1.

    Null if no number would do: the spread over cases alone hides such an effect, and only more cases help.
    """
    at_least(cases, 2, "cases")
    room = cases * _wished(effect) ** 2 / _reach(alpha, power) ** 2 - parts.between
    return max(1, math.ceil(parts.within / room - 1e-9)) if room > 0 else None


def _reach(alpha: float, power: float) -> float:
    return normal_quantile(1 - fraction(alpha, "alpha") / 2) + normal_quantile(fraction(power, "power"))


def _wished(effect: float) -> float:
    if finite(effect, "the wished effect") == 0:
        raise UsageError("the wished effect is 0", hint="no number of cases tells 0 from 0; give the least effect that matters")
    return effect
