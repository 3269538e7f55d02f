"""Experiments from the command line: run, extend, compare, band and gate, as a user calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalwright.ledger import read_events

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

ALWAYS = {"runner": {"command": "printf ok"}}
NEVER = {"runner": {"command": "printf no"}}
CASES = [{"id": f"c{number}", "task": "t", "expect": {"exact": "ok"}} for number in range(8)]


@pytest.fixture
def lab(project: Project, here: Call) -> Call:
    """Return the command line beside the finished experiment ``x``: ``bad`` never passes, ``good`` always does."""
    runner = {"shell": True, "command": "printf ok"}
    project.suite(cases=CASES, runner=runner, scorers=[{"use": "exact"}], arms={"bad": NEVER, "good": ALWAYS})
    assert here("run", "demo", "--run-id", "x", "--repeats", "2")[0] == 0
    return here


def test_run_of_all_arms_says_which_is_better(lab: Call) -> None:
    code, document = lab("run", "demo", "--run-id", "x", "--repeats", "2")

    assert code == 0
    assert document["data"]["existing"]
    assert [run["run_id"] for run in document["data"]["runs"]] == ["x.bad.1", "x.good.1", "x.bad.2", "x.good.2"]
    (comparison,) = document["data"]["comparisons"]
    assert (comparison["answer"], comparison["difference"], comparison["looks"]) == ("better", 1.0, 1)


def test_compare_answers_for_an_experiment_two_runs_and_two_arms(lab: Call) -> None:
    whole = lab("compare", "x")[1]["data"]
    turned = lab("compare", "x", "--arm", "good", "--arm", "bad")[1]["data"]
    runs = lab("compare", "x.good.1", "x.bad.1")[1]["data"]
    arms = lab("compare", "x:good", "x:good")[1]["data"]

    assert [found["answer"] for found in (whole, turned, runs, arms)] == ["better", "worse", "worse", "no-evidence"]
    assert (whole["pairs"], whole["wins"], whole["losses"], whole["lost"]) == (8, 8, 0, [])
    assert whole["p"] < 0.05
    assert runs["looks"] is None


def test_compare_counts_looks_only_at_new_data(lab: Call, project: Project) -> None:
    lab("compare", "x")
    lab("compare", "x")
    lab("run", "--resume", "x", "--repeats", "3")

    found = lab("compare", "x")[1]["data"]

    assert (found["looks"], found["exploratory"]) == (2, True)
    assert found["alpha"] < 0.05
    events = read_events(project.path / "evals" / "experiments" / "x" / "ledger.jsonl")
    assert [event["data"]["trials"] for event in events if event["type"] == "LOOKED"] == [32, 48]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x.good.1"], "one arm"),
        (["x", "x"], "name one: x:bad, x:good"),
        (["x:nobody", "x:good"], 'no arm "nobody"'),
        (["x", "--arm", "nobody"], 'no arm "nobody"'),
        (["x", "--metric", "nothing"], "metric nothing"),
        (["x", "--alpha", "2"], "between 0 and 1"),
        (["x", "--min-effect", "-1"], "at least 0"),
        (["nowhere"], "not found"),
    ],
)
def test_compare_refuses_what_it_cannot_answer_and_says_why(lab: Call, words: list[str], said: str) -> None:
    code, document = lab("compare", *words)

    assert code == 1
    assert said in " ".join(f"{error['message']} {error['hint']}" for error in document["errors"])


@pytest.mark.parametrize(("jobs", "beside"), [("1", 0), ("4", 16)])
def test_compare_counts_trials_that_ran_beside_others(project: Project, here: Call, jobs: str, beside: int) -> None:
    wait = {"runner": {"command": "sleep 0.1; printf ok"}}
    project.suite(
        cases=CASES, runner={"shell": True, "command": "true"}, scorers=[{"use": "exact"}], arms={"a": wait, "b": wait}
    )
    assert here("run", "demo", "--run-id", "x", "--jobs", jobs)[0] == 0

    found = here("compare", "x")[1]["data"]["duration_s"]

    assert found["overlapping_first"] + found["overlapping_second"] == beside


def test_band_tells_every_arm_apart(lab: Call) -> None:
    bad, good = lab("band", "x")[1]["data"]["arms"]

    assert (bad["values"], good["values"]) == ([0.0, 0.0], [1.0, 1.0])
    assert (good["items"], good["union"], good["intersection"], bad["union"]) == (8, 8, 8, 0)
    assert (good["stable"], bad["never"]) == ([f"c{number}" for number in range(8)],) * 2
    assert lab("band", "x:good")[1]["data"]["arms"][0]["arm"] == "good"


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["--arm", "good", "--gate", "pass_rate>=0.9"], 0),
        (["--arm", "bad", "--gate", "pass_rate>=0.9"], 6),
        (["--arm", "good", "--gate", "cost<=1"], 3),
        (["--arm", "bad", "--gate", "no-regression", "--baseline", "x:good"], 6),
        (["--arm", "good", "--gate", "no-regression", "--baseline", "x:bad"], 0),
        (["--arm", "bad", "--gate", "cost<=1", "--gate", "pass_rate>=1"], 6),
    ],
)
def test_gates_decide_the_exit_status(lab: Call, gates: list[str], code: int) -> None:
    found, document = lab("run", "demo", *gates)

    assert found == code, document["errors"]
    assert {gate["verdict"] for gate in document["data"]["gates"]} <= {"pass", "fail", "undecided"}
    assert all(gate["why"] for gate in document["data"]["gates"])


@pytest.mark.parametrize(
    "gates",
    [
        ["--gate", "pass_rate=>1"],
        ["--gate", "no-regression"],
        ["--baseline", "x:good"],
        ["--gate", "no-regression", "--baseline", "x"],
        ["--gate", "no-regression", "--baseline", "nowhere"],
    ],
)
def test_gates_that_cannot_be_decided_are_refused_before_anything_runs(lab: Call, project: Project, gates: list[str]) -> None:
    before = sorted((project.path / "evals" / "runs").iterdir())

    code, document = lab("run", "demo", *gates)

    assert code == 1
    assert document["errors"]
    assert sorted((project.path / "evals" / "runs").iterdir()) == before


def test_an_experiment_is_extended_and_one_of_its_runs_is_not(lab: Call) -> None:
    assert lab("run", "--resume", "x.good.1", "--repeats", "3")[0] == 1
    code, document = lab("run", "--resume", "x", "--repeats", "3")

    assert code == 0
    assert len(document["data"]["runs"]) == 6
    assert lab("run", "demo", "--force")[0] == 1


def test_an_arm_that_is_not_there_is_refused(lab: Call) -> None:
    code, document = lab("run", "demo", "--arm", "goood")

    assert code == 1
    assert "did you mean good?" in document["errors"][0]["hint"]
