"""Which part of a case's ``expect`` a scorer sees: the keys that it owns, or what stands under its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.canonical import is_object
from evalwright.interfaces import Scorer
from evalwright.model import ScorerEntry

__all__ = ["near_names", "own_expectations"]

TYPING_ERRORS = 2


def near_names(word: str, names: Sequence[str]) -> list[str]:
    """Return the names that are at most two typing errors away from ``word``, the nearest first."""
    distances = sorted((_distance(word, name), name) for name in names if abs(len(word) - len(name)) <= TYPING_ERRORS)
    return [name for distance, name in distances if distance <= TYPING_ERRORS]


def _distance(left: str, right: str) -> int:
    """Return how many letters must be inserted, deleted or replaced. Source: Wagner and Fischer, 1974."""
    row = list(range(len(right) + 1))
    for number, letter in enumerate(left, 1):
        previous, row[0] = row[0], number
        for column, other in enumerate(right, 1):
            previous, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, previous + (letter != other))
    return row[-1]


def own_expectations(entry: ScorerEntry, scorer: Scorer[Any], expect: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scorer's own expectations by key. A value under the scorer's id stands for those it does not find."""
    own = {key: expect[key] for key in scorer.Expect if key in expect}
    if own or entry.id not in expect or entry.id in scorer.Expect:
        return own
    value = expect[entry.id]
    if len(scorer.Expect) == 1:
        return {next(iter(scorer.Expect)): value}
    return dict(value) if is_object(value) else {}
