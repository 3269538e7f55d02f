"""A secret that comes into the harness's environment during a run is hidden from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

SCORER = """
import os
from evalwright.interfaces import Scorer
from evalwright.model import Score

class Late(Scorer[None]):
    api = "scorer/1.0"

    def score(self, trial, context):
        os.environ["LATE_TOKEN"] = "swordfish-swordfish"
        return Score(ok=True, score=1.0)
"""


def test_secret_that_appears_between_two_trials_is_hidden(project: Project) -> None:
    runner = {"shell": True, "command": "echo ${LATE_TOKEN:-none}", "env_allowlist": ["PATH", "LATE_TOKEN"]}
    project.suite(
        cases=[{"id": "a"}, {"id": "b"}],
        runner=runner,
        scorers=[{"use": "late.py:Late", "id": "late"}],
        files={"late.py": SCORER},
    )

    assert project.call("run", "demo", "--run-id", "r", "--jobs", "1").exit_code == 0

    cases = project.path / "evals" / "runs" / "r" / "cases"
    outputs = [(cases / name / "output.txt").read_text().strip() for name in ("a", "b")]
    assert outputs[0] == "none"
    assert outputs[1] not in ("none", "swordfish-swordfish")
