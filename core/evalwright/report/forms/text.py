"""The report for a terminal: the verdict first, then each failure with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.report.projection import Projection, ReportedCase
from evalwright.report.totals import rates
from evalwright.report.wording import finding_text, printable

__all__ = ["case_lines", "headline", "text_report", "usage_lines"]

MARKS = {"pass": "✓", "fail": "✗", "error": "!", "unscored": "?"}
MAX_FINDINGS = 8
WIDTH = 160


def text_report(report: Projection, *, failures_only: bool = False, next_command: str | None = None) -> str:
    """Return the report as plain lines; colour is the terminal's business."""
    lines = [headline(report), _denominators(report), *usage_lines(report), ""]
    for case in report.failures:
        lines += case_lines(case)
    for case in report.remarked if failures_only else [case for case in report.cases if case.ok]:
        lines += case_lines(case)
    if next_command:
        lines += ["", f"Look closer:  {next_command}"]
    return "\n".join(lines) + "\n"


def headline(report: Projection) -> str:
    """Return the one line that answers the question."""
    passed = f"{report.counts['pass']} of {len(report.cases)} passed"
    return f"{printable(report.suite)} · {report.verdict} · {passed} · report {report.report_hash}"


def case_lines(case: ReportedCase) -> list[str]:
    """Return one case: its mark, and what each scorer objected to."""
    label = f" ({case.status}{f', {case.fault}' if case.fault else ''})" if case.status in {"error", "unscored"} else ""
    lines = [f"  {MARKS.get(case.status, '?')} {printable(case.id)}{label}"]
    if case.reason:
        lines.append(f"      {printable(case.reason)[:WIDTH]}")
    for score in case.remarks:
        lines += [f"      {text}" for text in _objections(score)]
    return lines


def usage_lines(report: Projection) -> list[str]:
    """Return one line with what the run consumed, or none when no attempt told."""
    total = report.usage
    cached = "" if total["cache_read"].value is None else f" (of them read from cache: {total['cache_read']})"
    words = {
        f"tokens in {total['total_input']}{cached}": "total_input",
        f"out {total['output']}": "output",
        f"turns {total['turns']}": "turns",
        f"tool calls {total['tool_calls']}": "tool_calls",
        f"tool errors {total['tool_errors']}": "tool_errors",
        f"cost {total['cost']} USD": "cost",
    }
    shown = [text for text, name in words.items() if total[name].value is not None]
    return [" · ".join(shown)] if shown else []


def _objections(score: Mapping[str, Any]) -> Iterator[str]:
    name = printable(str(score.get("id", score["scorer"]))) + ("" if score.get("required", True) else " (advisory)")
    findings: Sequence[Mapping[str, Any]] = score["findings"]
    if not findings:
        yield printable(f"{name}: {score['label']}")
    for finding in findings[:MAX_FINDINGS]:
        yield f"{name}: {finding_text(finding)}"
    if len(findings) > MAX_FINDINGS:
        yield f"{name}: … {len(findings) - MAX_FINDINGS} more"


def _denominators(report: Projection) -> str:
    totals = rates((case.status, case.fault) for case in report.cases)
    scored, attempted = totals["pass_rate_scored"], totals["pass_rate_attempted"]
    shown = "no pass rate: nothing was scored" if scored is None else f"pass rate {scored:.2f} of {totals['scored']} scored"
    if attempted is not None and totals["scored"] != totals["attempted"]:
        shown += f", {attempted:.2f} of {totals['attempted']} attempted"
    faults = f"{totals['harness_errors']} harness errors, {totals['agent_faults']} agent faults"
    return f"{shown} · {faults}" + (f" · {totals['unscored']} unscored" if totals["unscored"] else "")
