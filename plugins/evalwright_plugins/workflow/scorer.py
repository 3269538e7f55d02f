"""The scorer ``workflow``: what a run of the runner ``workflow`` took, as metrics to report and to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.canonical import is_object
from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_plugins.workflow.trial import ENDED

__all__ = ["WorkflowScorer"]


class WorkflowScorer(Scorer[None]):
    """Informs and decides nothing: full for a run that succeeded, with the numbers of its record as metrics."""

    api = "scorer/1.0"
    pure = True

    @property
    def advisory(self) -> bool:
        """Tell that no status hangs on it."""
        return True

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Read the last event of the trial, which the runner has written when all agents were dead."""
        event = _last_event(trial.transcript)
        if event is None:
            return Score.failed({"why": "the trial's runner is no workflow"}, label="none")
        metrics: Mapping[str, float] = event["metrics"]
        ok = event["status"] == "SUCCEEDED"
        return Score(ok=ok, score=float(ok), label=str(event["status"]).lower(), metrics=metrics)


def _last_event(transcript: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(transcript.rstrip("\n").rpartition("\n")[2])
    except ValueError:
        return None
    data = value.get("data") if is_object(value) and value.get("type") == ENDED else None
    return data if is_object(data) and is_object(data.get("metrics")) else None
