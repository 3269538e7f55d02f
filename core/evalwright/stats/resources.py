"""Differences of cost, time and tokens, where a value may be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.stats._engine import Engine, best_engine
from evalwright.stats._pairs import pair
from evalwright.stats.bootstrap import bootstrap
from evalwright.stats.outcomes import Interval, fraction, mean


@dataclass(frozen=True, slots=True)
class ResourceDifference:
    """What the second arm uses more than the first, per trial, in the unit of what was given.

    Means and the difference are over the ``pairs`` of cases where both arms have a known value, null without one; the interval
    is null below two pairs and where all differences are equal. ``ratio`` is second over first, null where the
    first is 0 or less. The counts of unknown values are over all cases: they are neither 0 nor guessed.
    """

    difference: float | None
    interval: Interval | None
    ratio: float | None
    mean_first: float | None
    mean_second: float | None
    pairs: int
    unknown_first: int
    unknown_second: int


def resource_difference(
    first: Mapping[str, Sequence[float | None]],
    second: Mapping[str, Sequence[float | None]],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    engine: Engine | None = None,
) -> ResourceDifference:
    """Return the mean of case differences with the interval that ``compare`` uses too; ``None`` is a value that is unknown.

    Raises ``UsageError`` at a value that is neither ``None`` nor finite.
    """
    fraction(confidence, "confidence")
    pairs = pair(_known(first), _known(second))
    resampled = bootstrap(pairs, engine or best_engine(), resamples=resamples, seed=seed)
    means = [mean([mean(cell) for cell in arm]) if len(pairs) else None for arm in (pairs.first, pairs.second)]
    return ResourceDifference(
        difference=mean(pairs.differences) if len(pairs) else None,
        interval=resampled.interval(confidence) if resampled else None,
        ratio=means[1] / means[0] if means[0] is not None and means[1] is not None and means[0] > 0 else None,
        mean_first=means[0],
        mean_second=means[1],
        pairs=len(pairs),
        unknown_first=_unknown(first),
        unknown_second=_unknown(second),
    )


def _known(values: Mapping[str, Sequence[float | None]]) -> dict[str, list[float]]:
    return {case: [value for value in cell if value is not None] for case, cell in values.items()}


def _unknown(values: Mapping[str, Sequence[float | None]]) -> int:
    return sum(value is None for cell in values.values() for value in cell)
