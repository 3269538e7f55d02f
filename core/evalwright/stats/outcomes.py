"""What all statistics take: the values of a metric, by case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evalwright.errors import UsageError

Outcomes: TypeAlias = Mapping[str, Sequence[float]]
"""Case id -> the values of one metric, one for each repeat that counts.

A pass is 1.0 and a fail 0.0; any other finite metric will do. A fault of the agent counts as 0.0; a fault of the harness
counts not at all, so its value is left out. A case without values may be absent or have an empty sequence: both mean
"missing", never 0. The order of repeats carries no meaning.
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends, in the unit of the metric, that hold the true value in ``confidence`` (0 to 1) of all experiments."""

    low: float
    high: float
    confidence: float


def scored(outcomes: Outcomes) -> dict[str, Sequence[float]]:
    """Return the cases that have values, sorted by id. Raises ``UsageError`` at a value that is no finite number."""
    for case, values in outcomes.items():
        for value in values:
            finite(value, f"case {case!r}")
    return {case: outcomes[case] for case in sorted(outcomes) if len(outcomes[case])}


def finite(value: float, where: str) -> float:
    """Return ``value``. Raises ``UsageError``, naming ``where``, unless it is finite."""
    if not math.isfinite(value):
        raise UsageError(
            f"{where} has the value {value}", hint="leave a value that is unknown out; statistics take finite numbers"
        )
    return value


def fraction(value: float, name: str) -> float:
    """Return ``value``. Raises ``UsageError``, naming ``name``, unless it lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise UsageError(
            f"{name} is {value}", hint="give a number between 0 and 1, such as 0.05 for alpha or 0.95 for confidence"
        )
    return value


def at_least(value: int, least: int, name: str) -> int:
    """Return ``value``. Raises ``UsageError``, naming ``name``, if it is less than ``least``."""
    if value < least:
        raise UsageError(f"{name} is {value}", hint=f"give a whole number of {least} or more")
    return value


def mean(values: Sequence[float]) -> float:
    """Return the mean of one value or more, rounded once."""
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Return the unbiased sample variance (divisor n - 1) of two values or more."""
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
