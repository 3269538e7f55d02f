"""Counts and rates of one run, both denominators shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.model import Total, Usage

__all__ = ["AMOUNTS", "mean_score", "rates", "status_counts", "usage_totals"]

AMOUNTS = (
    *("input", "cache_read", "cache_write", "output", "reasoning", "total_input", "total"),
    *("turns", "tool_calls", "tool_errors", "cost"),
)
"""What a report adds up: fields and properties of ``Usage``."""


def status_counts(statuses: Iterable[str]) -> dict[str, int]:
    """Return how often each status occurs; ``pass``, ``fail`` and ``error`` are always there."""
    counts = {"pass": 0, "fail": 0, "error": 0}
    for status in statuses:
        counts[status] = counts.get(status, 0) + 1
    return counts


def mean_score(records: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean of all scores of a trial, 0.0 without one; reports sort failures by it."""
    return float(sum(record["score"] for record in records)) / max(len(records), 1)


def rates(cases: Iterable[tuple[str, str | None]]) -> dict[str, Any]:
    """Return attempted, scored, error counts and pass rates of ``(status, fault)`` pairs.

    ``scored`` is attempted minus harness faults and unscored trials: an agent's own fault counts as scored 0. A rate without
    a denominator is ``None``.
    """
    counts = Counter(cases)
    attempted = counts.total()
    passed = sum(count for (status, _), count in counts.items() if status == "pass")
    agent = counts["error", "agent"]
    harness = sum(count for (status, _), count in counts.items() if status == "error") - agent
    unscored = sum(count for (status, _), count in counts.items() if status == "unscored")
    scored = attempted - harness - unscored
    return {
        "attempted": attempted,
        "scored": scored,
        "passed": passed,
        "harness_errors": harness,
        "agent_faults": agent,
        "unscored": unscored,
        "pass_rate_scored": passed / scored if scored else None,
        "pass_rate_attempted": passed / attempted if attempted else None,
    }


def usage_totals(usages: Sequence[Usage | None]) -> dict[str, Total]:
    """Return what all attempts together consumed, by :data:`AMOUNTS`: each sum says of how many attempts it knows."""
    from evalwright.model import Total, Usage

    unknown = Usage()
    told = [usage or unknown for usage in usages]
    return {name: Total.over(getattr(usage, name) for usage in told) for name in AMOUNTS}
