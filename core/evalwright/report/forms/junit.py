"""The report as JUnit XML, readable by every stock parser whatever the agent printed."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.canonical import is_object
from evalwright.errors import RunCorrupt
from evalwright.interfaces import Exporter, RunView
from evalwright.report.experiment import ExperimentView
from evalwright.report.figures.failures import Failure, failures_of, reported_case
from evalwright.report.forms.text import case_lines
from evalwright.report.projection import Projection, ReportedCase

__all__ = ["JUnitExporter", "durations_of", "junit_experiment", "junit_report"]

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MAX_BODY = 8192
NO_RESULT = "no result"


def junit_report(report: Projection, *, durations: Mapping[str, float], failures_only: bool = False) -> str:
    """Return the document. A failing case is a ``failure``, an error an ``error``, an unscored one ``skipped``.

    ``durations`` are seconds by case id.
    """
    shown = report.failures if failures_only else report.cases
    return _document(report.suite, [_Part(report.suite, report.cases, shown, durations)])


def junit_experiment(view: ExperimentView, *, failures: Sequence[Failure] | None = None) -> str:
    """Return the document of an experiment: a ``testsuite`` for each pass of an arm, its name ``SUITE.ARM.REPEAT``.

    Its counts are of all its cases; one without a result is ``skipped``, one of a damaged run an ``error``.
    With ``failures`` only those are listed.
    """
    runs = {run.id: run for run in view.runs}
    planned = next((run.planned for run in view.runs), ())
    failed = {(failure.trial.run_id, failure.trial.case): failure.case for failure in failures_of(view)}
    parts: list[_Part] = []
    for cell in view.cells:
        trials = runs[cell.run_id].trials if cell.run_id in runs else ()
        cases = {trial.case: failed.get((trial.run_id, trial.case)) or reported_case(trial) for trial in trials}
        why = view.damaged.get(cell.run_id)
        status = NO_RESULT if why is None else "error"
        missing = [ReportedCase(id=case, status=status, scores=[], reason=why) for case in planned if case not in cases]
        shown = [*cases.values(), *missing]
        if failures is not None and why is None:
            shown = [failure.case for failure in failures if failure.trial.run_id == cell.run_id]
        seconds = {trial.case: trial.duration_ms / 1000 for trial in trials if trial.duration_ms is not None}
        parts.append(_Part(f"{view.suite}.{cell.arm}.{cell.repeat}", [*cases.values(), *missing], shown, seconds))
    return _document(view.suite, parts)


class _Part(NamedTuple):
    """One ``testsuite``: what it counts, and what it lists."""

    name: str
    cases: Sequence[ReportedCase]
    shown: Sequence[ReportedCase]
    durations: Mapping[str, float]


def _document(name: str, parts: Sequence[_Part]) -> str:
    root = ET.Element("testsuites")
    totals: Counter[str] = Counter()
    time = 0.0
    for part in parts:
        seconds = {case_id: value if 0 <= value < math.inf else 0.0 for case_id, value in part.durations.items()}
        counts = Counter({"tests": len(part.cases), **_counts(part.cases)})
        suite = ET.SubElement(root, "testsuite", _attributes(part.name, counts, sum(seconds.values())))
        totals += counts
        time += sum(seconds.values())
        for case in part.shown:
            _add(suite, _clean(part.name), case, seconds.get(case.id, 0.0))
    for key, value in _attributes(name, totals, time).items():
        root.set(key, value)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


class JUnitExporter(Exporter[None]):
    """Writes the report as JUnit XML."""

    api = "exporter/1.0"
    suffix = ".xml"

    def write(self, run: RunView, target: Path) -> None:
        """Write the document to the file ``target``."""
        scores = {case["id"]: case["scores"] for key in ("failures", "remarks") for case in run.report.get(key, ())}
        cases = [_case(run, case, scores.get(case["id"], [])) for case in run.report["cases"]]
        report = Projection(run_id=run.run_id, suite=run.suite, suite_hash="", cases=cases, sealed=True)
        target.write_text(junit_report(report, durations=durations_of(run)), encoding="utf-8", newline="")


def durations_of(run: RunView) -> dict[str, float]:
    """Return the seconds that each trial took, 0 where nobody knows."""
    found: dict[str, float] = {}
    for case in run.report["cases"]:
        milliseconds = _runner(run, case["id"]).get("duration_ms")
        found[case["id"]] = milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0
    return found


def _case(run: RunView, case: Mapping[str, Any], scores: list[Mapping[str, Any]]) -> ReportedCase:
    error = _runner(run, case["id"]).get("error") if case["status"] == "error" else None
    reason, fault = (str(error.get("message")), error.get("fault")) if is_object(error) else (None, None)
    return ReportedCase(id=case["id"], status=case["status"], scores=scores, reason=reason, fault=fault)


def _runner(run: RunView, case_id: str) -> Mapping[str, Any]:
    try:
        record: Any = json.loads(run.artifact(case_id, "runner.json"))
    except (OSError, ValueError, RunCorrupt):
        return {}
    return record if is_object(record) else {}


def _counts(cases: Sequence[ReportedCase]) -> Counter[str]:
    kinds = {"pass": "passed", "fail": "failures", "error": "errors"}
    return Counter(kinds.get(case.status, "skipped") for case in cases)


def _attributes(name: str, counts: Mapping[str, int], seconds: float) -> dict[str, str]:
    numbers = {key: str(counts.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    return {"name": _clean(name), **numbers, "time": f"{seconds:.3f}"}


def _add(suite: ET.Element, name: str, case: ReportedCase, seconds: float) -> None:
    element = ET.SubElement(suite, "testcase", name=_clean(case.id), classname=name, time=f"{seconds:.3f}")
    body = _clean("\n".join(case_lines(case)))[:MAX_BODY]
    if case.ok:
        if case.remarks:
            ET.SubElement(element, "system-out").text = body
        return
    tag = {"fail": "failure", "error": "error"}.get(case.status, "skipped")
    wrong = [str(score.get("id", score["scorer"])) for score in case.scores if not score["ok"]]
    message = (
        case.reason or f"{case.status}: {', '.join(wrong)}"
        if wrong or case.reason
        else f"{case.status}{f' ({case.fault})' if case.fault else ''}"
    )
    attributes = {"message": _clean(message)} | ({} if tag == "skipped" else {"type": case.status})
    ET.SubElement(element, tag, attributes).text = body


def _clean(text: str) -> str:
    """Return text without what XML cannot hold."""
    return FORBIDDEN.sub("\ufffd", text)
