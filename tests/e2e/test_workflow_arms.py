"""Two workflows as two arms: the same agent, without and with a reviewer and a fixer behind it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright_plugins.workflow.record import Status, state_of

if TYPE_CHECKING:
    from tests.conftest import Project

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def suite(project: Project) -> str:
    directory = project.path / "evals" / "suites" / "quixbugs-workflows"
    shutil.copytree(EXAMPLES / "quixbugs", directory)
    for path in (EXAMPLES / "workflow" / "arms").iterdir():
        shutil.copy(path, directory)
    return directory.name


def compared(project: Project, *words: str) -> Any:
    (found,) = project.call("compare", "x", *words).data["comparisons"]
    return found


@pytest.mark.acceptance
def test_a_review_step_is_better_and_costs_more_attempts(project: Project, suite: str) -> None:
    assert project.call("run", suite, "--run-id", "x", "--jobs", "2", timeout=900).exit_code == 0

    passes, attempts = compared(project), compared(project, "--metric", "workflow.attempts")

    assert (passes["a"]["name"], passes["b"]["name"]) == ("plain", "reviewed")
    assert (passes["answer"], passes["pairs"]) == ("better", 28)
    assert passes["wins"] > passes["losses"]
    assert (attempts["a"]["mean"], attempts["losses"], attempts["ties"]) == (1.0, 0, 0)
    ledgers = list(project.run_dir("x.reviewed.1").glob("cases/*/artifacts/workflow.jsonl"))
    assert len(ledgers) == 28
    assert {state_of(path).status for path in ledgers} == {Status.SUCCEEDED, Status.FAILED}


@pytest.mark.acceptance
def test_two_workflows_are_compared_over_a_few_programs(project: Project, suite: str) -> None:
    chosen = [word for name in ("gcd", "bucketsort") for word in ("--case", name)]

    assert project.call("run", suite, "--run-id", "x", *chosen).exit_code == 0

    rounds = compared(project, "--metric", "workflow.review_rounds")
    assert (rounds["a"]["mean"], rounds["pairs"]) == (0.0, 2)
    assert rounds["b"]["mean"] >= 1.0
    shown = project.call("explain", "x.reviewed.1", "gcd", "--format", "text").stdout
    assert "workflow" in shown
