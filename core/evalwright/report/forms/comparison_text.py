"""Comparisons in words: the answer first, how sure it is, then what it cost and what would make it surer."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.report.figures.comparison import ArmComparison
from evalwright.report.figures.sentences import headline_of
from evalwright.report.screen import difference_bar
from evalwright.report.wording import digits_of, printable, shown, signed
from evalwright.stats import ResourceDifference

__all__ = ["comparison_text"]

MAX_NAMES = 8
BAR = 41


def comparison_text(comparison: ArmComparison) -> str:
    """Return all that is worth saying of one comparison, as lines."""
    result = comparison.result
    lines = [headline_of(comparison)]
    means = [f"{printable(n)} {shown(m)}" for n, m in ((comparison.a, result.mean_first), (comparison.b, result.mean_second))]
    lines.append(f"  {comparison.metric}: {', '.join(means)} over {result.pairs} pairs of cases")
    lines += _picture(comparison)
    lines += [f"  {line}" for line in _costs(comparison)]
    for names, what in (
        (sorted({*result.only_first, *result.only_second}), "only one side has them"),
        (comparison.changed, "their contents differ"),
    ):
        if names:
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            lines.append(f"  Not compared, {what}: {printable(', '.join(names[:MAX_NAMES]))}{more}")
    if comparison.undeclared:
        lines.append("  Exploratory: before it began, the experiment declared another metric or a smaller alpha.")
    if (comparison.look or 1) > 1:
        lines.append(
            f"  Exploratory: look {comparison.look} at growing data, so only p below {comparison.alpha:.2g} counts; "
            "repeats that are added until something shows find differences that are not there."
        )
    if comparison.advice:
        lines.append(f"  To be surer: {comparison.advice}.")
    return "\n".join(lines) + "\n"


def _picture(comparison: ArmComparison) -> Sequence[str]:
    """Return the interval as a bar with its ends."""
    interval, value = comparison.interval, comparison.result.difference
    if interval is None or value is None:
        return []
    digits = digits_of(value)
    reach = max(abs(interval.low), abs(interval.high), abs(value))
    bar = difference_bar(value, interval.low, interval.high, BAR)
    return [f"  {signed(-reach, digits)} {bar} {signed(reach, digits)}"]


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
