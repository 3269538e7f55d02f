"""The sign-flip test: could differences of this size have had either sign?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalwright.stats._engine import Engine

_MOST_STEPS = 200_000
_SLACK = 1e-9


def sign_flip_p(differences: Sequence[float], engine: Engine, *, flips: int, seed: int) -> tuple[float, bool]:
    """Return the two-sided p value that the differences are symmetric about 0, and whether it is exact.

    Fisher, "The design of experiments" (1935), section 21: of all ways to give the differences signs, the share whose sum is
    as far from 0 as the one seen. Ways are counted, not listed: sums that are equal go together, so passes and fails are exact
    for hundreds of cases, and any metric for 14 differences. Beyond that ``flips`` are drawn at random, and the one seen
    counts with them, (b + 1) / (m + 1): Phipson and Smyth, "Permutation p-values should never be zero", Statistical
    Applications in Genetics and Molecular Biology 9 (2010). Differences of 0 carry no sign.
    """
    largest = max(map(abs, differences), default=0.0)
    sizes = [abs(difference) for difference in differences if abs(difference) > _SLACK * largest]
    if not sizes:
        return 1.0, True
    slack = _SLACK * largest * len(sizes)
    threshold = abs(sum(differences)) - slack
    counts = _count_sums([round(size / largest, 12) for size in sizes])
    if counts is not None:
        extreme = sum(count for total, count in counts.items() if abs(total) * largest >= threshold)
        return extreme / 2 ** len(sizes), True
    sums = engine.flip_signs(sizes, flips, seed)
    return (sum(abs(total) >= threshold for total in sums) + 1) / (flips + 1), False


def _count_sums(sizes: Sequence[float]) -> Counter[float] | None:
    """Return how many choices of signs give each sum; null if there are too many sums to go through."""
    counts, steps = Counter({0.0: 1}), 0
    for size in sizes:
        steps += len(counts)
        if steps > _MOST_STEPS:
            return None
        grown = Counter[float]()
        for total, count in counts.items():
            grown[round(total + size, 9)] += count
            grown[round(total - size, 9)] += count
        counts = grown
    return counts
