"""The runner and the scorer ``workflow`` keep the contracts of their kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.interfaces import Host
from evalwright.model import ScoredTrial
from evalwright.testing import FakeScoreContext, RunnerContract, ScorerContract
from evalwright_plugins.workflow.runner import WorkflowConfig, WorkflowRunner
from evalwright_plugins.workflow.scorer import WorkflowScorer

ANSWER = 'cat "$EVALWRIGHT_PROMPT_FILE" > "$EVALWRIGHT_ANSWER_FILE"'


def runner(host: Host, command: str) -> WorkflowRunner:
    workflow: dict[str, Any] = {"name": "one step", "steps": [{"id": "build"}], "terminal": ["done"]}
    workers = {"build": {"shell": True, "command": command}}
    return WorkflowRunner(WorkflowConfig(workflow=workflow, workers=workers), host)


class TestWorkflowRunner(RunnerContract):
    exit_code = 20

    def make(self, host: Host) -> WorkflowRunner:
        return runner(host, ANSWER)

    def make_failing(self, host: Host) -> WorkflowRunner:
        return runner(host, "exit 3")

    def make_hanging(self, host: Host) -> WorkflowRunner:
        return runner(host, "sleep 300")


def told(status: str) -> str:
    return json.dumps({"type": "workflow", "data": {"status": status, "metrics": {"attempts": 3.0}}})


class TestWorkflowScorer(ScorerContract):
    def make(self, host: Host) -> WorkflowScorer:
        return WorkflowScorer(None, host)

    def right(self) -> ScoredTrial:
        return self.trial(transcript=f"done\n\n{told('SUCCEEDED')}\n")

    def wrong(self) -> ScoredTrial:
        return self.trial(transcript=f"{told('SUCCEEDED')}\n\n{told('FAILED')}\n")


def test_scorer_has_nothing_to_say_of_another_runner(tmp_path: Path) -> None:
    contract = TestWorkflowScorer()
    with contract.made() as scorer, FakeScoreContext(tmp_path) as context:
        score = scorer.score(contract.trial(transcript='{"type": "workflow"}\nno workflow\n'), context)

    assert (score.error, score.label, dict(score.metrics)) == (False, "none", {})
