"""Findings against gold findings: precision, recall and F-beta, over counts and over cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evalwright.errors import UsageError
from evalwright.stats.outcomes import mean


@dataclass(frozen=True, slots=True)
class FindingCounts:
    """Findings ``posted``, ``gold`` findings, and pairs of the two that ``matched`` one to one."""

    posted: int
    gold: int
    matched: int

    def __post_init__(self) -> None:
        """Raise ``UsageError`` unless 0 <= matched <= posted and gold."""
        if not 0 <= self.matched <= min(self.posted, self.gold):
            raise UsageError(
                f"{self.matched} matches of {self.posted} posted and {self.gold} gold findings",
                hint="a match pairs one posted with one gold finding",
            )


@dataclass(frozen=True, slots=True)
class FindingScores:
    """Precision, recall and F-beta, each from 0 to 1."""

    precision: float
    recall: float
    f_beta: float


def finding_scores(counts: FindingCounts, *, beta: float = 1.0) -> FindingScores:
    """Return the scores of one case.

    van Rijsbergen, "Information retrieval" (1979), chapter 7. Nothing posted and no gold is right: 1/1/1. Findings where
    there is no gold: precision 0, recall 1, F 0. Nothing posted where there is gold: 0/0/0.
    """
    if not counts.posted and not counts.gold:
        return FindingScores(1.0, 1.0, 1.0)
    precision = counts.matched / counts.posted if counts.posted else 0.0
    recall = counts.matched / counts.gold if counts.gold else 1.0
    return FindingScores(precision, recall, _f_beta(precision, recall, beta))


def micro_scores(cases: Mapping[str, FindingCounts], *, beta: float = 1.0) -> FindingScores | None:
    """Return the scores of the summed counts: every finding weighs alike. Null without cases."""
    if not cases:
        return None
    posted, gold, matched = (
        sum(counts) for counts in zip(*((c.posted, c.gold, c.matched) for c in cases.values()), strict=True)
    )
    return finding_scores(FindingCounts(posted, gold, matched), beta=beta)


def macro_scores(cases: Mapping[str, FindingCounts], *, beta: float = 1.0) -> FindingScores | None:
    """Return the means of the cases' scores: every case weighs alike. Null without cases."""
    if not cases:
        return None
    scores = [finding_scores(counts, beta=beta) for counts in cases.values()]
    return FindingScores(
        mean([score.precision for score in scores]),
        mean([score.recall for score in scores]),
        mean([score.f_beta for score in scores]),
    )


def _f_beta(precision: float, recall: float, beta: float) -> float:
    if beta <= 0:
        raise UsageError(f"beta is {beta}", hint="give a number above 0; 1 weighs precision and recall alike")
    weight = beta * beta
    bottom = weight * precision + recall
    return (1 + weight) * precision * recall / bottom if bottom else 0.0
