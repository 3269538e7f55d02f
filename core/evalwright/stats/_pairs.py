"""The cases that both of two arms have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.stats.outcomes import Outcomes, mean, scored, variance


@dataclass(frozen=True, slots=True)
class Pairs:
    """Values of the ``first`` and the ``second`` arm by case, in the order of ``cases``.

    ``differences`` are of case means, second minus first; ``within`` is the variance of a difference when the repeats of
    both arms are drawn with replacement from those there are.
    """

    cases: tuple[str, ...]
    first: tuple[Sequence[float], ...]
    second: tuple[Sequence[float], ...]
    differences: tuple[float, ...]
    within: tuple[float, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.cases)

    @property
    def error(self) -> float:
        """Return the standard error of the mean difference, from the spread of differences over cases; 0 below two pairs."""
        return math.sqrt(variance(self.differences) / len(self)) if len(self) > 1 else 0.0


def pair(first: Outcomes, second: Outcomes) -> Pairs:
    """Return the pairs by case id. Raises ``UsageError`` at a value that is no finite number."""
    one, other = scored(first), scored(second)
    cases = tuple(case for case in one if case in other)
    cells = [(one[case], other[case]) for case in cases]
    return Pairs(
        cases=cases,
        first=tuple(cell for cell, _ in cells),
        second=tuple(cell for _, cell in cells),
        differences=tuple(mean(after) - mean(before) for before, after in cells),
        within=tuple(_redrawn(before) + _redrawn(after) for before, after in cells),
        only_first=tuple(case for case in one if case not in other),
        only_second=tuple(case for case in other if case not in one),
    )


def _redrawn(values: Sequence[float]) -> float:
    """Return the variance of the mean of a bootstrap sample: the population variance over the number of values."""
    return variance(values) * (len(values) - 1) / len(values) ** 2 if len(values) > 1 else 0.0
