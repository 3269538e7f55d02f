"""The trials of an experiment that did not pass, worst first, each with what its scorers said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalwright.report.experiment import ExperimentView
from evalwright.report.projection import ReportedCase, failure_reason
from evalwright.report.totals import mean_score
from evalwright.report.trials import Trial
from evalwright.rundir import RunDirectory

__all__ = ["Failure", "failures_of", "reported_case"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One trial that did not pass; ``reason`` says what kept an ``error`` from being judged."""

    trial: Trial
    reason: str | None

    @property
    def key(self) -> str:
        """Return what names the trial among all others: run and case."""
        return f"{self.trial.run_id}/{self.trial.case}"

    @property
    def case(self) -> ReportedCase:
        """Return the trial as a run's report has it."""
        return reported_case(self.trial, self.reason)

    def as_json(self) -> dict[str, Any]:
        """Return ``{trial, run_id, arm, repeat, id, status, fault, reason, scores}``."""
        trial = self.trial
        return {
            "trial": self.key,
            "run_id": trial.run_id,
            "arm": trial.arm,
            "repeat": trial.repeat,
            "id": trial.case,
            "status": trial.status,
            "fault": trial.fault,
            "reason": self.reason,
            "scores": [dict(score) for score in trial.scores],
        }


def reported_case(trial: Trial, reason: str | None = None) -> ReportedCase:
    """Return a trial as a run's report has it."""
    return ReportedCase(id=trial.case, status=trial.status, scores=trial.scores, fault=trial.fault, reason=reason)


def failures_of(view: ExperimentView) -> list[Failure]:
    """Return every finished trial that did not pass: errors first, then by mean score, then by case, arm and pass."""
    runs = {run.id: run.run for run in view.runs}
    failed = [trial for trial in view.trials if trial.status != "pass"]
    failed.sort(key=lambda t: (t.status != "error", mean_score(t.scores), t.case, t.arm, t.repeat))
    return [Failure(trial, _reason(runs[trial.run_id], trial)) for trial in failed]


def _reason(run: RunDirectory, trial: Trial) -> str | None:
    return failure_reason(run.case(trial.case)) if trial.status == "error" else None
