"""The report as markdown, for ``report.md`` and pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalwright.report.forms.text import usage_lines
from evalwright.report.projection import Projection, ReportedCase
from evalwright.report.totals import rates
from evalwright.report.wording import finding_text, printable

__all__ = ["escaped", "failure_lines", "markdown_lines", "markdown_report", "warning_lines"]


def markdown_report(report: Projection, *, failures_only: bool = False) -> str:
    """Return headline, totals, failures with their reasons, and the table of cases. Holds no durations or times."""
    return "".join(f"{line}\n" for line in markdown_lines(report, failures_only=failures_only))


def markdown_lines(report: Projection, *, failures_only: bool = False) -> Iterator[str]:
    """Yield the lines of :func:`markdown_report`."""
    totals = rates((case.status, case.fault) for case in report.cases)
    yield from (
        f"# {report.suite}: {report.verdict}",
        "",
        f"{report.counts['pass']} of {len(report.cases)} passed. Run `{report.run_id}`.",
        "",
        "| attempted | scored | passed | harness errors | agent faults | unscored |",
        "|---:|---:|---:|---:|---:|---:|",
        "| {attempted} | {scored} | {passed} | {harness_errors} | {agent_faults} | {unscored} |".format(**totals),
        "",
        *(f"{line}\n" for line in usage_lines(report)),
        *warning_lines(report.warnings),
        f"Report hash: `{report.report_hash}`",
        "",
        "## Failures",
        "",
    )
    for case in report.failures:
        yield from failure_lines(case)
    if not report.failures:
        yield "None."
    if report.remarked:
        yield from ("", "## Passed with findings", "")
        yield from (line for case in report.remarked for line in failure_lines(case))
    if not failures_only:
        yield from ("", "## Cases", "", "| case | status |", "|---|---|")
        yield from (f"| `{case.id}` | {case.status} |" for case in report.cases)


def failure_lines(case: ReportedCase) -> list[str]:
    """Return one case that did not pass: a list item, and below it what each scorer objected to."""
    lines = [f"- {_code(case.id)} {case.status}"]
    if case.reason:
        lines.append(f"  - {escaped(' '.join(case.reason.split()))}")
    for score in case.remarks:
        name = escaped(str(score.get("id", score["scorer"]))) + ("" if score.get("required", True) else " (advisory)")
        reasons = [escaped(finding_text(finding)) for finding in score["findings"]] or [escaped(str(score["label"]))]
        lines += [f"  - {name}: {reason}" for reason in reasons]
    return lines


def warning_lines(warnings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what casts doubt on the results, a paragraph each."""
    return [f"**Warning**: {escaped(one['message'])} (`{printable(one['code'])}`)\n" for one in warnings]


def escaped(text: str) -> str:
    """Return text that markdown shows as it is, a table's cell included."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]|#$" else c for c in printable(text))


def _code(text: str) -> str:
    return escaped(text) if "`" in text else f"`{printable(text)}`"
