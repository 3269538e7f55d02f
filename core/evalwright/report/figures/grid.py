"""The trials of an experiment by case, arm and pass; a place without a result stays empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.report.experiment import ExperimentView
from evalwright.report.trials import Trial

__all__ = ["CaseRow", "case_rows"]


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case: for each arm one trial a pass, ``None`` where there is no result."""

    id: str
    trials: Mapping[str, Sequence[Trial | None]]

    def share(self, arm: str) -> float | None:
        """Return the share of an arm's trials that passed, of those that count; ``None`` without any."""
        counted = [trial for trial in self.trials[arm] if trial is not None and trial.counts]
        return sum(trial.status == "pass" for trial in counted) / len(counted) if counted else None

    def as_json(self) -> dict[str, Any]:
        """Return ``{id, arms: {ARM: [{repeat, status, fault}]}}``; ``repeat`` counts within the arm, ``status`` may be null."""
        return {
            "id": self.id,
            "arms": {
                arm: [
                    {
                        "repeat": trial.repeat if trial else number,
                        "status": trial.status if trial else None,
                        "fault": trial.fault if trial else None,
                    }
                    for number, trial in enumerate(trials, 1)
                ]
                for arm, trials in self.trials.items()
            },
        }


def case_rows(view: ExperimentView) -> list[CaseRow]:
    """Return every planned case, by id."""
    found = {(trial.run_id, trial.case): trial for trial in view.trials}
    runs = {arm: [cell.run_id for cell in view.cells if cell.arm == arm] for arm in view.arms}
    ids = sorted({case for run in view.runs for case in run.planned} | {trial.case for trial in view.trials})
    return [CaseRow(case, {arm: [found.get((run, case)) for run in names] for arm, names in runs.items()}) for case in ids]
