"""From a report and an exit status to a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalwright.model import Score
from evalwright_scorers.reports import Listed, Report

__all__ = ["judge_report"]

MAX_FINDINGS = 50


def judge_report(
    report: Report, required: Sequence[str], exit_code: int | None, explains: Callable[[Listed], bool] = lambda _: True
) -> Score:
    """Return the share of required tests (of all, when none is required) that passed.

    It passes only with all of them, and only when the exit status agrees, both ways: a listed failure asks for a status
    other than 0, and such a status for a failure that ``explains`` accepts. A test that was tampered with explains nothing.
    """
    names = list(required) or report.names
    if not names:
        return Score.failed({"why": "the report lists no test"})
    objections = [finding for name in names if (finding := _objection(report, name)) is not None]
    passed = len(names) - len(objections)
    metrics = {"passed": float(passed), "failed": float(len(objections)), "total": float(len(names))}
    why = None if objections else _contradiction(report, bool(required), exit_code, explains)
    if why is not None:
        return Score.failed({"why": f"tests exited {exit_code} although {why}"}, metrics=metrics)
    findings = tuple(objections[:MAX_FINDINGS])
    return Score(ok=not objections, score=passed / len(names), findings=findings, metrics=metrics)


def _contradiction(report: Report, named: bool, exit_code: int | None, explains: Callable[[Listed], bool]) -> str | None:
    """Return what the exit status contradicts, ``None`` when it agrees."""
    failures = [test for test in report.tests if test.outcome in ("failed", "error")]
    if exit_code == 0:
        return "the report lists a failure" if failures else None
    if not failures or not named:
        return "the report lists no failure"
    return None if any(map(explains, failures)) else "no test of the suite failed"


def _objection(report: Report, name: str) -> dict[str, Any] | None:
    test = report.find(name)
    if test is None:
        return {"test": name, "why": "missing", "detail": ""}
    return None if test.good else {"test": name, "why": test.outcome, "detail": test.detail}
