"""Comparisons in words: the answer first, how sure it is, then what it cost and what would make it surer."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.report.comparison import ArmComparison
from evalwright.report.text import printable
from evalwright.stats import Interval, ResourceDifference

__all__ = ["comparison_text", "headline_of", "signed"]

MAX_NAMES = 8


def comparison_text(comparison: ArmComparison) -> str:
    """Return all that is worth saying of one comparison, as lines."""
    result = comparison.result
    lines = [headline_of(comparison)]
    means = [f"{printable(n)} {shown(m)}" for n, m in ((comparison.a, result.mean_first), (comparison.b, result.mean_second))]
    lines.append(f"  {comparison.metric}: {', '.join(means)} over {result.pairs} pairs of cases")
    lines += [f"  {line}" for line in _costs(comparison)]
    for names, what in (
        (sorted({*result.only_first, *result.only_second}), "only one side has them"),
        (comparison.changed, "their contents differ"),
    ):
        if names:
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            lines.append(f"  Not compared, {what}: {printable(', '.join(names[:MAX_NAMES]))}{more}")
    if comparison.exploratory:
        lines.append(
            f"  Exploratory: look {comparison.look} at growing data, so only p below {comparison.alpha:.2g} counts; "
            "repeats that are added until something shows find differences that are not there."
        )
    if comparison.advice:
        lines.append(f"  To be surer: {comparison.advice}.")
    return "\n".join(lines) + "\n"


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
    cases = f"{result.wins} {'case' if result.wins == 1 else 'cases'} won, {result.losses} lost, {result.ties} tied"
    return f"{said}: {signed(result.difference)}{_range(comparison.interval)}, p = {_p(comparison.p)}. {cases}."


def signed(value: float) -> str:
    """Return a difference with its sign: two digits after the point, more for small ones."""
    return f"{value:+.2f}" if value == 0 or abs(value) >= 0.095 else f"{value:+.2g}"


def shown(value: float | None) -> str:
    """Return a figure of at most three significant digits; a dash for one that is unknown."""
    return "–" if value is None else f"{value:.2f}" if 0.01 <= abs(value) < 100 else f"{value:.3g}"


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f" ({signed(interval.low)} – {signed(interval.high)})"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def _costs(comparison: ArmComparison) -> Sequence[str]:
    lines = [
        _resource("cost per trial", comparison.cost, "$", ""),
        _resource("time per trial", comparison.duration, "", " s"),
    ]
    beside = sum(count or 0 for count in comparison.overlapping)
    if lines[1] and beside:
        lines.append(f"{beside} {'trial' if beside == 1 else 'trials'} ran beside others: for clean latencies use --jobs 1")
    return [line for line in lines if line]


def _resource(label: str, difference: ResourceDifference, before: str, after: str) -> str | None:
    if difference.mean_first is None or difference.mean_second is None:
        return None
    first, second = (f"{before}{value:.2g}{after}" for value in (difference.mean_first, difference.mean_second))
    ratio = "" if difference.ratio is None else f", {difference.ratio:.2g} times as much"
    unknown = difference.unknown_first + difference.unknown_second
    return f"{label}: {first} against {second}{ratio}" + (f" ({unknown} unknown)" if unknown else "")
