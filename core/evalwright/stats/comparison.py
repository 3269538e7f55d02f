"""Is one arm better than another? Pairs by case, one interval, one p value, three answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.errors import UsageError
from evalwright.stats._engine import Engine, best_engine
from evalwright.stats._pairs import Pairs, pair
from evalwright.stats.bootstrap import Bootstrap, bootstrap
from evalwright.stats.outcomes import Interval, Outcomes, at_least, finite, fraction, mean
from evalwright.stats.permutation import sign_flip_p
from evalwright.stats.power import VarianceComponents, components, minimum_detectable_effect

Answer = Literal["better", "worse", "no-evidence"]
RESAMPLES = 2000
FLIPS = 4999


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second arm against the first, over the cases that both have.

    ``answer`` follows from ``p`` and ``alpha`` alone, and ``interval`` (at 1 - alpha) agrees with it: it lies wholly beyond
    ``min_effect``, on the side of the answer, exactly when the answer is not ``no-evidence``.
    ``p`` is the larger of the sign-flip test's (``permutation_p``, exact if ``permutation_exact``) and the interval's own.
    ``equivalent`` says that the whole interval lies within ``min_effect`` either way; null without one.
    ``difference`` and the means are null without pairs; ``interval`` and ``minimum_detectable_effect`` (at 80 % power) below
    two pairs and where all differences are equal; ``components`` without repeats in both arms.
    ``only_first`` and ``only_second`` are cases lost for want of the other half. ``engine`` says what drew random numbers.
    """

    answer: Answer
    difference: float | None
    interval: Interval | None
    p: float
    alpha: float
    min_effect: float
    equivalent: bool | None
    permutation_p: float
    permutation_exact: bool
    mean_first: float | None
    mean_second: float | None
    pairs: int
    wins: int
    losses: int
    ties: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    minimum_detectable_effect: float | None
    components: VarianceComponents | None
    seed: int
    engine: Literal["numpy", "python"]


def compare(
    first: Outcomes,
    second: Outcomes,
    *,
    alpha: float = 0.05,
    min_effect: float = 0.0,
    higher_is_better: bool = True,
    resamples: int = RESAMPLES,
    flips: int = FLIPS,
    seed: int = 0,
    engine: Engine | None = None,
) -> Comparison:
    """Return whether ``second`` is better than ``first``, worse, or whether there is no evidence at ``alpha``.

    The mean of case differences is tested against ``min_effect`` (0 or more, in the unit of the metric) on its side, by the
    sign-flip test and by the paired hierarchical bootstrap; both must find it. The larger of two valid p values is valid, and
    so is an interval made longer: where only the bootstrap finds a difference, the interval is drawn out to ``min_effect``.
    Raises ``UsageError`` for values out of range or not finite.
    """
    fraction(alpha, "alpha")
    at_least(resamples, 100, "resamples")
    at_least(flips, 100, "flips")
    if finite(min_effect, "min_effect") < 0:
        raise UsageError(f"min_effect is {min_effect}", hint="give 0 or more, in the unit of the metric")
    pairs, drawer = pair(first, second), engine or best_engine()
    resampled = bootstrap(pairs, drawer, resamples=resamples, seed=seed)
    tested = _test(pairs, min_effect, drawer, flips, seed)
    return _compared(pairs, resampled, tested, alpha, min_effect, higher_is_better, seed, drawer.name)


def _test(pairs: Pairs, min_effect: float, engine: Engine, flips: int, seed: int) -> tuple[float, bool]:
    """Return the sign-flip test's p value that the difference is no larger than ``min_effect``, and whether it is exact."""
    difference = mean(pairs.differences) if len(pairs) else 0.0
    if abs(difference) <= min_effect:
        return 1.0, True
    reference = math.copysign(min_effect, difference)
    return sign_flip_p([value - reference for value in pairs.differences], engine, flips=flips, seed=seed)


def _compared(
    pairs: Pairs,
    resampled: Bootstrap | None,
    tested: tuple[float, bool],
    alpha: float,
    min_effect: float,
    higher_is_better: bool,
    seed: int,
    engine: Literal["numpy", "python"],
) -> Comparison:
    difference = mean(pairs.differences) if len(pairs) else None
    p, interval = _agree(resampled, tested[0], difference or 0.0, min_effect, alpha)
    wins, losses = _beaten(pairs, higher_is_better)
    return Comparison(
        answer=_answer(p < alpha, (difference or 0.0) > 0, higher_is_better),
        difference=difference,
        interval=interval,
        p=p,
        alpha=alpha,
        min_effect=min_effect,
        equivalent=_equivalent(interval, min_effect),
        permutation_p=tested[0],
        permutation_exact=tested[1],
        mean_first=_mean_of_cells(pairs.first),
        mean_second=_mean_of_cells(pairs.second),
        pairs=len(pairs),
        wins=wins,
        losses=losses,
        ties=len(pairs) - wins - losses,
        only_first=pairs.only_first,
        only_second=pairs.only_second,
        minimum_detectable_effect=minimum_detectable_effect(pairs.error, alpha=alpha) if resampled else None,
        components=components(pairs),
        seed=seed,
        engine=engine,
    )


def _agree(
    resampled: Bootstrap | None, flip_p: float, difference: float, min_effect: float, alpha: float
) -> tuple[float, Interval | None]:
    """Return the p value and the interval of both methods together."""
    if resampled is None:
        return flip_p, None
    interval = resampled.interval(1 - alpha)
    if abs(difference) <= min_effect:
        return 1.0, interval
    reference = math.copysign(min_effect, difference)
    beyond = interval.low > reference if difference > 0 else interval.high < reference
    p = max(flip_p, resampled.p_value(reference), 0.0 if beyond else alpha)
    if p < alpha or not beyond:
        return p, interval
    return p, Interval(min(interval.low, reference), max(interval.high, reference), interval.confidence)


def _answer(found: bool, rose: bool, higher_is_better: bool) -> Answer:
    if not found:
        return "no-evidence"
    return "better" if rose == higher_is_better else "worse"


def _equivalent(interval: Interval | None, min_effect: float) -> bool | None:
    if interval is None or min_effect <= 0:
        return None
    return -min_effect < interval.low and interval.high < min_effect


def _beaten(pairs: Pairs, higher_is_better: bool) -> tuple[int, int]:
    """Return in how many cases the second arm is better, and in how many worse."""
    tie = 1e-9 * max(map(abs, pairs.differences), default=0.0)
    rises, falls = sum(d > tie for d in pairs.differences), sum(d < -tie for d in pairs.differences)
    return (rises, falls) if higher_is_better else (falls, rises)


def _mean_of_cells(arm: Sequence[Sequence[float]]) -> float | None:
    return mean([mean(cell) for cell in arm]) if arm else None
