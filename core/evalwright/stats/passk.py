"""pass@k and pass^k: that one of k tries passes, and that all do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalwright.errors import UsageError
from evalwright.stats.outcomes import Outcomes, at_least, mean, scored


@dataclass(frozen=True, slots=True)
class SuitePassK:
    """A mean over the ``cases`` that have ``k`` repeats or more, null if none has; ``left_out`` counts the others."""

    k: int
    value: float | None
    cases: int
    left_out: int


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the unbiased estimate that at least one of ``k`` tries passes, when ``c`` of ``n`` did; null if k > n.

    1 - C(n-c, k) / C(n, k): Chen et al., "Evaluating large language models trained on code", arXiv:2107.03374 (2021).
    """
    _check(n, c, k)
    return None if k > n else 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the unbiased estimate that all of ``k`` tries pass (pass^k), when ``c`` of ``n`` did; null if k > n.

    C(c, k) / C(n, k): Yao et al., "tau-bench", arXiv:2406.12045 (2024).
    """
    _check(n, c, k)
    return None if k > n else math.comb(c, k) / math.comb(n, k)


def suite_pass_at_k(outcomes: Outcomes, k: int) -> SuitePassK:
    """Return the mean of ``pass_at_k`` over cases. Raises ``UsageError`` at a value that is neither 0 nor 1."""
    return _over_suite(outcomes, k, pass_at_k)


def suite_pass_hat_k(outcomes: Outcomes, k: int) -> SuitePassK:
    """Return the mean of ``pass_hat_k`` over cases. Raises ``UsageError`` at a value that is neither 0 nor 1."""
    return _over_suite(outcomes, k, pass_hat_k)


def count_passes(case: str, values: Sequence[float]) -> int:
    """Return how many values are 1. Raises ``UsageError``, naming the case, at one that is neither 0 nor 1."""
    for value in values:
        if value not in (0, 1):
            raise UsageError(f"case {case!r} has the value {value}", hint="pass@k and the like count passes (1) and fails (0)")
    return sum(value == 1 for value in values)


def _over_suite(outcomes: Outcomes, k: int, estimate: Callable[[int, int, int], float | None]) -> SuitePassK:
    at_least(k, 1, "k")
    cells = scored(outcomes)
    values = [estimate(len(cell), count_passes(case, cell), k) for case, cell in cells.items()]
    known = [value for value in values if value is not None]
    return SuitePassK(k, mean(known) if known else None, len(known), len(outcomes) - len(known))


def _check(n: int, c: int, k: int) -> None:
    at_least(n, 0, "n")
    at_least(k, 1, "k")
    if not 0 <= c <= n:
        raise UsageError(f"{c} passes of {n} tries", hint="give as many passes as tries at the most")
