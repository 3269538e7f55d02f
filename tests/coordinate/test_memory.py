"""What the coordinator holds of a run: little of each trial, however many there are."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalwright.interfaces import Job, Runner, RunnerContext
from evalwright.model import Completed, RunnerResult, TrialSpec, TrialView
from evalwright.testing import SmallProject, installed
from evalwright.testing._project import SCRIPTS
from evalwright.worker.agent import AgentContext

FEW, MANY = 150, 450
MAX_BYTES = 4096
"""What one more trial may need at the peak of its run: ids, its case's line, its verdict."""


class Echo(Runner[None]):
    """Starts no process and answers its task."""

    api = "runner/1.0"

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        return RunnerResult(completed=Completed(exit_code=0), output=trial.task)


@pytest.fixture(autouse=True)
def runner() -> Iterator[None]:
    with installed("runner", "echo-task", Echo, distribution="test-echo"):
        yield


def test_memory_grows_little_with_the_number_of_trials(tmp_path: Path) -> None:
    """What other threads of this process hold for a while may fall into one measuring, not into three."""
    peak(tmp_path / "first", 2)

    assert any(growth(tmp_path / f"{number}") < MAX_BYTES for number in range(3))


def growth(place: Path) -> float:
    """Return how much more memory (bytes) each further trial needs."""
    return (peak(place / "many", MANY) - peak(place / "few", FEW)) / (MANY - FEW)


def peak(place: Path, trials: int) -> int:
    """Return the most memory (bytes) that Python objects need while a suite of so many trials runs."""
    answers = {f"case-{number:04}": ("answer", "answer") for number in range(trials)}
    place.parent.mkdir(exist_ok=True)
    project = SmallProject(place, answers, runner={"use": "echo-task"})
    gc.collect()
    tracemalloc.start()
    try:
        outcome = project.run(jobs=1)
        assert outcome.report.counts["pass"] == trials
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_nothing_of_a_trial_waits_for_the_garbage_collector(tmp_path: Path) -> None:
    project = SmallProject(tmp_path)
    gc.collect()
    gc.disable()
    try:
        assert len(project.run().report.cases) == len(SCRIPTS)
        left = [type(item).__name__ for item in gc.get_objects() if isinstance(item, (TrialSpec, Job, AgentContext))]
    finally:
        gc.enable()

    assert left == []
