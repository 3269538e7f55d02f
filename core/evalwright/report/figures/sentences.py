"""A comparison in one sentence: the answer first, then how sure it is."""

from __future__ import annotations

from evalwright.report.figures.comparison import ArmComparison
from evalwright.report.figures.difference import Difference
from evalwright.report.wording import digits_of, printable, signed
from evalwright.stats import Interval

__all__ = ["difference_of", "headline_of"]


def headline_of(comparison: ArmComparison) -> str:
    """Return the one line that answers the question."""
    result = comparison.result
    a, b = printable(comparison.a), printable(comparison.b)
    if result.difference is None:
        return f"No answer: {a} and {b} have no case in common."
    said = {
        "better": f"{b} is better than {a}",
        "worse": f"{b} is worse than {a}",
        "no-evidence": f"No evidence that {b} and {a} differ",
    }[comparison.answer]
    digits = digits_of(result.difference)
    cases = f"{result.wins} {'case' if result.wins == 1 else 'cases'} won, {result.losses} lost, {result.ties} tied"
    return f"{said}: {signed(result.difference, digits)}{_range(comparison.interval, digits)}, p {_p(comparison.p)}. {cases}."


def difference_of(comparison: ArmComparison) -> Difference:
    """Return a comparison as reports and pictures show it."""
    interval = comparison.interval
    return Difference(
        label=f"{comparison.b} against {comparison.a}",
        difference=comparison.result.difference,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        answer=comparison.answer,
        sentence=headline_of(comparison),
    )


def _range(interval: Interval | None, digits: int) -> str:
    return "" if interval is None else f" ({signed(interval.low, digits)} – {signed(interval.high, digits)})"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"
