"""What scorers object to, as single remarks with a place: what SARIF and annotations are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.report.experiment import ExperimentView
from evalwright.report.figures.failures import failures_of, reported_case
from evalwright.report.projection import ReportedCase
from evalwright.report.trials import RunRows
from evalwright.report.wording import finding_text, printable

__all__ = ["AGENT_FAULT", "Part", "Remark", "parts_of"]

AGENT_FAULT = "agent-fault"
HARNESS_ERROR = "harness-error"
UNSCORED = "unscored"
DAMAGED_RUN = "damaged-run"
MAX_LINE = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One objection to one trial. ``rule`` is a scorer's id; ``level`` is ``error``, ``warning`` or ``note``.

    ``path`` is relative to the workspace, ``None`` where the finding names none; ``line`` counts from 1.
    """

    case: str
    rule: str
    level: str
    text: str
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The remarks of one run. ``problems`` are trials that the harness could not judge: nothing the agent did."""

    run_id: str
    suite: str
    arm: str
    repeat: int
    remarks: Sequence[Remark]
    problems: Sequence[Remark]


def parts_of(view: ExperimentView) -> list[Part]:
    """Return what there is to say of each run that began, in the order of the plan: failures first, then what passed.

    Of a damaged run that is why it cannot be read.
    """
    found: dict[str, list[ReportedCase]] = {run.id: [] for run in view.runs}
    for failure in failures_of(view):
        found[failure.trial.run_id].append(failure.case)
    for trial in view.trials:
        if trial.status == "pass":
            found[trial.run_id].append(reported_case(trial))
    return [*(_part(run, found[run.id]) for run in view.runs), *_damaged(view)]


def _damaged(view: ExperimentView) -> Iterator[Part]:
    for cell in view.cells:
        if cell.run_id in view.damaged:
            text = _line(view.damaged[cell.run_id])
            problem = Remark(case=cell.run_id, rule=DAMAGED_RUN, level="error", text=text)
            yield Part(run_id=cell.run_id, suite=view.suite, arm=cell.arm, repeat=cell.repeat, remarks=[], problems=[problem])


def _part(run: RunRows, cases: Sequence[ReportedCase]) -> Part:
    remarks = [remark for case in cases for remark in _remarks(case)]
    return Part(
        run_id=run.id,
        suite=run.suite,
        arm=run.arm,
        repeat=run.repeat,
        remarks=[remark for remark in remarks if remark.rule not in (HARNESS_ERROR, UNSCORED)],
        problems=[remark for remark in remarks if remark.rule in (HARNESS_ERROR, UNSCORED)],
    )


def _remarks(case: ReportedCase) -> Iterator[Remark]:
    if case.status in ("error", "unscored"):
        rule = UNSCORED if case.status == "unscored" else AGENT_FAULT if case.fault == "agent" else HARNESS_ERROR
        text = case.reason or ("no scorer applied" if rule == UNSCORED else "the trial ended in an error")
        yield Remark(case=case.id, rule=rule, level="error", text=_line(text))
    for score in case.remarks:
        rule = str(score.get("id", score["scorer"]))
        level = "note" if score["ok"] else "error" if score.get("required", True) else "warning"
        findings: Sequence[Mapping[str, Any]] = score["findings"]
        for finding in findings:
            place = _path(finding), _number(finding)
            yield Remark(case=case.id, rule=rule, level=level, text=finding_text(finding), path=place[0], line=place[1])
        if not findings:
            yield Remark(case=case.id, rule=rule, level=level, text=_line(str(score["label"])))


def _path(finding: Mapping[str, Any]) -> str | None:
    path = finding.get("path")
    return path if isinstance(path, str) and path else None


def _number(finding: Mapping[str, Any]) -> int | None:
    line = finding.get("line")
    return line if isinstance(line, int) and not isinstance(line, bool) and 1 <= line <= MAX_LINE else None


def _line(text: str) -> str:
    return printable(" ".join(text[:1000].split()))[:160]
