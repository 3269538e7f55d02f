"""How far a judge can be trusted, from items that people have labelled: pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "calibration", "cohen_kappa"]

Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the judge said of one item, once for each time it was asked; ``human`` is what people said.

    ``leniency`` is the judge's score less the people's, where both are known. ``inconsistent`` tells whether the order of two
    answers decided, ``first_chosen`` how many times of two the first one won; both ``None`` where there is no order.
    ``error`` is the kind of the error that kept an item from being judged.
    """

    human: str
    labels: tuple[str, ...] = ()
    leniency: float | None = None
    inconsistent: float | None = None
    first_chosen: float | None = None
    error: str | None = None


def calibration(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return accuracy, kappa, confusion, leniency, repeatability and position bias; ``None`` for what cannot be known.

    Items that the judge could not judge count in ``items`` and ``errors`` and in nothing else.
    """
    judged = [answer for answer in answers if answer.error is None and answer.labels]
    pairs = [(answer.human, answer.labels[0]) for answer in judged]
    kappa, low, high = cohen_kappa(pairs)
    repeated = [len(set(answer.labels)) == 1 for answer in judged if len(answer.labels) > 1]
    leniency = [answer.leniency for answer in judged if answer.leniency is not None]
    orders = [answer.inconsistent for answer in judged if answer.inconsistent is not None]
    first = [answer.first_chosen / 2 for answer in judged if answer.first_chosen is not None]
    return {
        "items": len(answers),
        "judged": len(judged),
        "errors": dict(sorted(Counter(answer.error for answer in answers if answer.error).items())),
        "accuracy": _mean([human == judge for human, judge in pairs]),
        "kappa": kappa,
        "kappa_interval": None if low is None else [low, high],
        "confusion": _confusion(pairs),
        "leniency": _mean(leniency),
        "repeatability": _mean(repeated),
        "position_bias": _mean(orders),
        "first_chosen": _mean(first),
    }


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, float | None, float | None]:
    """Return Cohen's kappa and the ends of its 95 % interval; ``None`` where both sides know one label only.

    Source: Cohen, A coefficient of agreement for nominal scales, 1960; its large-sample standard error.
    """
    count = len(pairs)
    if not count:
        return None, None, None
    left, right = Counter(human for human, _ in pairs), Counter(judge for _, judge in pairs)
    observed = sum(human == judge for human, judge in pairs) / count
    expected = sum(left[label] * right[label] for label in left) / count**2
    if expected == 1:
        return None, None, None
    kappa = (observed - expected) / (1 - expected)
    spread = Z95 * math.sqrt(observed * (1 - observed) / count) / (1 - expected)
    return kappa, max(-1.0, kappa - spread), min(1.0, kappa + spread)


def _confusion(pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return how often people's label met the judge's: rows are people's."""
    counts = Counter(pairs)
    rows, columns = sorted({human for human, _ in pairs}), sorted({judge for _, judge in pairs})
    return {row: {column: counts[row, column] for column in columns} for row in rows}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
