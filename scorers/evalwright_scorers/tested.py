"""From a report and an exit status to a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalwright.model import Score
from evalwright_scorers.reports import Report

__all__ = ["judge_report"]

MAX_FINDINGS = 50


def judge_report(report: Report, required: Sequence[str], exit_code: int | None) -> Score:
    """Return the share of required tests (of all, when none is required) that passed.

    It passes only with all of them, and only when the exit status agrees: failures of other tests explain a status
    other than 0, a report without any failure does not.
    """
    names = list(required) or report.names
    if not names:
        return Score.failed({"why": "the report lists no test"})
    objections = [finding for name in names if (finding := _objection(report, name)) is not None]
    passed = len(names) - len(objections)
    metrics = {"passed": float(passed), "failed": float(len(objections)), "total": float(len(names))}
    if exit_code != 0 and not (report.lists_failure and required) and not objections:
        contradiction = {"why": f"tests exited {exit_code} although the report lists no failure"}
        return Score.failed(contradiction, metrics=metrics)
    findings = tuple(objections[:MAX_FINDINGS])
    return Score(ok=not objections, score=passed / len(names), findings=findings, metrics=metrics)


def _objection(report: Report, name: str) -> dict[str, Any] | None:
    test = report.find(name)
    if test is None:
        return {"test": name, "why": "missing", "detail": ""}
    return None if test.good else {"test": name, "why": test.outcome, "detail": test.detail}
