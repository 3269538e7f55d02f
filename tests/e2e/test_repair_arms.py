"""The repair agent as two arms over real programs: what the demo shows, in full."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

QUIXBUGS = Path(__file__).parents[2] / "examples" / "quixbugs"


@pytest.mark.acceptance
def test_a_larger_budget_is_better_and_an_arm_against_itself_is_not(project: Project) -> None:
    suite = project.path / "evals" / "suites" / "quixbugs"
    shutil.copytree(QUIXBUGS, suite)
    document = json.loads((suite / "suite.json").read_text())
    document["arms"]["again"] = document["arms"]["small"]
    (suite / "suite.json").write_text(json.dumps(document))

    assert project.call("run", "quixbugs", "--run-id", "x", "--repeats", "5", "--jobs", "2", timeout=900).exit_code == 0
    (larger,) = project.call("compare", "x", "--arm", "small", "--arm", "large").data["comparisons"]
    (itself,) = project.call("compare", "x", "--arm", "small", "--arm", "again").data["comparisons"]

    assert (larger["answer"], larger["pairs"], larger["losses"]) == ("better", 28, 0)
    assert larger["interval"][0] > 0
    assert larger["p"] < 0.05
    assert larger["duration_s"]["mean_second"] > larger["duration_s"]["mean_first"]
    assert itself["answer"] == "no-evidence"
    assert itself["difference"] == 0
    bands = {arm["arm"]: arm for arm in project.call("band", "x").data["arms"]}
    assert len(bands["large"]["values"]) == 5
    assert bands["small"]["flaky"] or bands["large"]["flaky"]


def test_two_repeats_of_a_few_programs_are_compared(project: Project) -> None:
    shutil.copytree(QUIXBUGS, project.path / "evals" / "suites" / "quixbugs")
    chosen = [word for name in ("bucketsort", "find_in_sorted", "gcd") for word in ("--case", name)]

    answer = project.call("run", "quixbugs", "--run-id", "x", "--repeats", "2", *chosen)

    (found,) = answer.data["comparisons"]
    assert (found["pairs"], found["wins"], found["losses"], found["ties"]) == (3, 1, 0, 2)
    assert found["answer"] == "no-evidence"
