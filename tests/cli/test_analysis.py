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


@pytest.mark.parametrize(
    ("words", "exploratory"),
    [
        ([], False),
        (["--metric", "pass_rate", "--alpha", "0.01"], False),
        (["--metric", "exact"], True),
        (["--alpha", "0.06"], True),
    ],
)
def test_answer_to_what_was_not_declared_is_exploratory(
    project: Project, here: Call, words: list[str], exploratory: bool
) -> None:
    suite(project)
    assert here("run", "demo", "--run-id", "x")[0] == 0

    for sides in (["x"], ["x:bad", "x:good"]):
        assert here("compare", *sides, *words)[1]["data"]["exploratory"] is exploratory
    assert here("compare", "x.bad.1", "x.good.1", *words)[1]["data"]["exploratory"] is False


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["--gate", "passrate>=1"], "the metric passrate", "did you mean pass_rate?"),
        (["--gate", "exakt>=1"], "the metric exakt", "did you mean exact?"),
        (["--gate", "zzz<=1"], "the metric zzz", "known: "),
        (["--repeats", "1001"], "at most 1000", ""),
    ],
)
def test_what_can_never_be_answered_is_refused_before_anything_runs(
    project: Project, here: Call, words: list[str], said: str, hint: str
) -> None:
    suite(project)

    code, document = here("run", "demo", "--run-id", "x", *words)

    assert (code, document["errors"][0]["code"]) == (1, "E_CASE_INVALID")
    assert said in document["errors"][0]["message"]
    assert hint in document["errors"][0]["hint"]
    assert not (project.path / "evals" / "experiments").exists()


def test_band_refuses_items_of_a_scorer_that_tells_of_none(project: Project, here: Call) -> None:
    suite(project)
    assert here("run", "demo", "--run-id", "x", "--repeats", "2")[0] == 0

    for name in ("exact", "nothing"):
        code, document = here("band", "x", "--items", name)
        assert (code, document["errors"][0]["key"]) == (1, "items")
