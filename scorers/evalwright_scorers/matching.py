"""One-to-one matches, and how well two lists agree."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["agreement", "one_to_one"]


def one_to_one(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return as many of the pairs as can stand together when each number is used once on each side.

    Source: augmenting paths, Kuhn 1955; on equal terms earlier pairs win.
    """
    choices: dict[int, list[int]] = {}
    for left, right in pairs:
        choices.setdefault(left, []).append(right)
    owner: dict[int, int] = {}

    def place(left: int, tried: set[int]) -> bool:
        for right in choices[left]:
            if right not in tried:
                tried.add(right)
                if right not in owner or place(owner[right], tried):
                    owner[right] = left
                    return True
        return False

    for left in choices:
        place(left, set())
    return {left: right for right, left in sorted(owner.items(), key=lambda item: item[1])}


def agreement(posted: int, gold: int, matched: int, beta: float = 1.0) -> tuple[float, float, float]:
    """Return precision, recall and F-beta, each from 0 to 1.

    Nothing posted where there is nothing to find is 1, 1, 1; findings where there is nothing to find are 0, 1, 0, and
    nothing posted where there is something is 0, 0, 0. Source: van Rijsbergen, Information Retrieval, 1979.
    """
    if not posted and not gold:
        return 1.0, 1.0, 1.0
    precision = matched / posted if posted else 0.0
    recall = matched / gold if gold else 1.0
    weighted = beta * beta * precision + recall
    return precision, recall, (1 + beta * beta) * precision * recall / weighted if precision and weighted else 0.0
