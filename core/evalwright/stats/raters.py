"""Two raters of the same items: McNemar's test, Cohen's kappa, the confusion table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.errors import UsageError
from evalwright.stats.distributions import normal_quantile
from evalwright.stats.outcomes import Interval, at_least, fraction


@dataclass(frozen=True, slots=True)
class McNemar:
    """Items that only the second (``gained``) or only the first (``lost``) got, and the two-sided exact p value."""

    gained: int
    lost: int
    p: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two raters agree over ``items``.

    ``confusion`` counts (first's label, second's label). ``accuracy`` is the share that agrees, null without items.
    ``kappa`` is null without items or when both raters use one and the same label throughout; its interval is also null
    when they agree wholly, since then its estimated error is 0, which no sample proves.
    """

    items: int
    confusion: dict[tuple[str, str], int]
    accuracy: float | None
    kappa: float | None
    kappa_interval: Interval | None


def mcnemar(gained: int, lost: int) -> McNemar:
    """Return the exact two-sided test on items that changed: a binomial with one half; p is 1 when none changed.

    McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947); exact
    form as in Agresti, "Categorical data analysis" (2013), 11.1.
    """
    changed = at_least(gained, 0, "gained") + at_least(lost, 0, "lost")
    tail = sum(math.comb(changed, count) for count in range(min(gained, lost) + 1))
    return McNemar(gained, lost, min(1.0, 2 * tail / 2**changed))


def agreement(first: Sequence[str], second: Sequence[str], *, confidence: float = 0.95) -> Agreement:
    """Return accuracy, Cohen's kappa and the confusion table of two raters, item by item.

    Kappa: Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960). Its
    error: Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969), equation 13. Raises ``UsageError`` when the two
    differ in length.
    """
    fraction(confidence, "confidence")
    if len(first) != len(second):
        raise UsageError(f"{len(first)} labels against {len(second)}", hint="give one label of each rater for each item")
    items, confusion = len(first), dict(sorted(Counter(zip(first, second, strict=True)).items()))
    if not items:
        return Agreement(0, {}, None, None, None)
    accuracy = sum(count for (one, other), count in confusion.items() if one == other) / items
    kappa, error = _kappa(confusion, items, accuracy)
    interval = None
    if kappa is not None and error > 0:
        half = normal_quantile((1 + confidence) / 2) * error
        interval = Interval(max(-1.0, kappa - half), min(1.0, kappa + half), confidence)
    return Agreement(items, confusion, accuracy, kappa, interval)


def _kappa(confusion: dict[tuple[str, str], int], items: int, accuracy: float) -> tuple[float | None, float]:
    rows, columns = Counter[str](), Counter[str]()
    for (one, other), count in confusion.items():
        rows[one] += count
        columns[other] += count
    if len(rows.keys() | columns.keys()) == 1:
        return None, 0.0
    chance = sum(rows[label] * columns[label] for label in rows) / items**2
    kappa = (accuracy - chance) / (1 - chance)
    same = other_sum = 0.0
    for (one, other), count in confusion.items():
        if one == other:
            same += count / items * (1 - (rows[one] + columns[one]) / items * (1 - kappa)) ** 2
        else:
            other_sum += count / items * ((columns[one] + rows[other]) / items) ** 2
    spread = same + (1 - kappa) ** 2 * other_sum - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(0.0, spread) / items) / (1 - chance)
