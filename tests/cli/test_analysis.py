"""How arms are compared is said by the suite and on the experiment's record before anything is measured."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

ARMS = {"bad": {"runner": {"command": "printf no"}}, "good": {}}
CASES = [{"id": f"c{number}", "task": "t", "expect": {"exact": "ok"}} for number in range(5)]
RUNNER = {"shell": True, "command": "printf ok"}


def suite(project: Project, **keys: Any) -> None:
    """Write the suite, in place of one that is there."""
    shutil.rmtree(project.path / "evals" / "suites", ignore_errors=True)
    project.suite(cases=CASES, runner=RUNNER, scorers=[{"use": "exact"}], arms=ARMS, **keys)


def test_metric_and_alpha_of_the_suite_decide_and_stay_as_they_were_at_the_first_start(project: Project, here: Call) -> None:
    suite(project, analysis={"metric": "exact", "alpha": 0.2})
    assert here("run", "demo", "--run-id", "x")[0] == 0
    suite(project, analysis={"metric": "pass_rate", "alpha": 0.01})

    assert here("run", "--resume", "x", "--repeats", "2")[0] == 0

    record = json.loads((project.path / "evals/experiments/x/experiment.json").read_bytes())
    assert (record["primary"], record["alpha"]) == ("exact", 0.2)
    report = here("report", "x")[1]["data"]
    assert (report["primary"], report["alpha"]) == ("exact", 0.2)
    found = here("compare", "x:good", "x:bad")[1]["data"]
    assert (found["metric"], found["looks"], found["difference"]) == ("exact", 2, -1.0)


def test_first_look_may_use_the_alpha_of_the_suite(project: Project, here: Call) -> None:
    suite(project, analysis={"alpha": 0.2})

    (found,) = here("run", "demo", "--run-id", "x")[1]["data"]["comparisons"]

    assert (found["alpha"], found["metric"], found["answer"]) == (0.2, "pass_rate", "better")
    assert 0.05 < found["p"] < 0.2


def test_changed_analysis_is_another_suite_under_the_same_id(project: Project, here: Call) -> None:
    suite(project)
    assert here("run", "demo", "--run-id", "x")[0] == 0
    suite(project, analysis={"alpha": 0.2})

    code, document = here("run", "demo", "--run-id", "x")

    assert (code, document["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")


@pytest.mark.parametrize("metric", ["pass_rate", "score", "cost", "duration", "exact", "exact.length"])
def test_metric_that_trials_can_have_is_taken(project: Project, here: Call, metric: str) -> None:
    suite(project, analysis={"metric": metric})
    assert here("validate", "demo")[0] == 0


@pytest.mark.parametrize(
    ("analysis", "key", "said", "hint"),
    [
        ({"alhpa": 0.1}, "analysis.alhpa", "unknown", "alpha"),
        ({"metric": "exakt"}, "analysis.metric", 'no scorer gives "exakt"', "did you mean exact?"),
        ({"metric": "zzz"}, "analysis.metric", 'no scorer gives "zzz"', "pass_rate"),
        ({"metric": ""}, "analysis.metric", "", ""),
        ({"alpha": 0}, "analysis.alpha", "", ""),
        ({"alpha": 1}, "analysis.alpha", "", ""),
        ({"alpha": 5}, "analysis.alpha", "", ""),
        ({"alpha": True}, "analysis.alpha", "", ""),
        ({"alpha": "0.1"}, "analysis.alpha", "", ""),
        ({"alpha": None}, "analysis.alpha", "", ""),
        (0.1, "analysis", "", ""),
        (None, "analysis", "", ""),
    ],
)
def test_wrong_analysis_is_told_with_its_place(
    project: Project, here: Call, analysis: Any, key: str, said: str, hint: str
) -> None:
    suite(project, analysis=analysis)

    code, document = here("validate", "demo")

    (problem,) = document["errors"]
    assert (code, problem["code"], problem["key"]) == (1, "E_SCHEMA_VIOLATION", key)
    assert said in problem["message"]
    assert hint in problem["hint"]


def test_metric_is_named_once(project: Project, here: Call) -> None:
    suite(project, primary="exact", analysis={"metric": "exact"})

    (problem,) = here("validate", "demo")[1]["errors"]

    assert (problem["key"], problem["hint"]) == ("analysis.metric", "leave one of them out")
