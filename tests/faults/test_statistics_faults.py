"""Figures that would be read wrongly: misspelt metrics, gates over what the harness lost, costs of cases that are no pairs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.report.test_comparisons import arm, trial, view

from evalwright.errors import UsageError
from evalwright.report.figures.banding import band_of
from evalwright.report.figures.comparison import Side, compare_arms, compare_sides, sides_of
from evalwright.report.figures.gates import check_gates, parse_gate

if TYPE_CHECKING:
    from tests.conftest import Project

FAULTY = {"one": ["pass"], "two": ["agent"], "three": ["harness"]}
CASES = [{"id": f"c{number}", "task": str(number), "expect": {"exact": "ok"}} for number in range(10)]


@pytest.mark.parametrize("metric", ["nothing", "tests.nothing", "tokens", "turns"])
def test_fault_of_an_agent_gives_no_value_to_a_metric_that_does_not_exist(metric: str) -> None:
    experiment = view(*arm("a", FAULTY, found=4.0), *arm("b", FAULTY, found=4.0))
    side = sides_of(experiment)[0]

    with pytest.raises(UsageError, match=metric):
        compare_arms(experiment, metric=metric)
    with pytest.raises(UsageError, match=metric):
        band_of(side, metric=metric)
    with pytest.raises(UsageError, match="tests/nothing"):
        band_of(side, metric="tests/nothing")
    for operator in ("<=", ">="):
        with pytest.raises(UsageError, match=metric):
            check_gates([parse_gate(f"{metric}{operator}0.5")], [side], None, alpha=0.05)


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        ("tests.wrong<=3", "undecided"),
        ("tests.right>=3", "fail"),
        ("pass_rate<=0.5", "pass"),
        ("pass_rate>=0.5", "fail"),
        ("agent_faults==2", "pass"),
    ],
)
def test_arm_of_nothing_but_faults_passes_no_gate_on_what_nobody_measured(gate: str, verdict: str) -> None:
    side = sides_of(view(*arm("a", {"one": ["agent"], "two": ["agent"]})))[0]

    (result,) = check_gates([parse_gate(gate)], [side], None, alpha=0.05)

    assert result.verdict == verdict, result.why


@pytest.mark.parametrize(
    ("lost", "baseline_lost", "verdict"), [(0, 0, "pass"), (1, 0, "pass"), (8, 0, "undecided"), (0, 8, "undecided")]
)
def test_no_regression_is_open_where_the_harness_lost_enough_to_hide_one(lost: int, baseline_lost: int, verdict: str) -> None:
    def side(name: str, gone: int, status: str) -> Side:
        return sides_of(view(*arm(name, {f"c{n}": ["harness" if n < gone else status] for n in range(10)})))[0]

    status = "fail" if baseline_lost else "pass"
    new, base = side("new", lost, status), side("base", baseline_lost, status)

    (result,) = check_gates([parse_gate("no-regression")], [new], base, alpha=0.05)

    assert result.verdict == verdict, result.why
    assert ("may hide a drop" in result.why) is (verdict == "undecided")


def test_runs_with_other_cases_are_compared_over_their_pairs_and_the_others_are_named() -> None:
    base = sides_of(view(trial("base", 1, "c1", "fail"), trial("base", 1, "c2", "pass")))[0]
    new = sides_of(view(trial("new", 1, "c1", "pass"), trial("new", 1, "c2", "harness"), trial("new", 1, "c3", "pass")))[0]

    (found,) = compare_sides(base, [new], metric="pass_rate", alpha=0.05)
    (gate,) = check_gates([parse_gate("no-regression")], [new], base, alpha=0.05)

    assert (found.result.difference, found.result.pairs, found.as_json()["lost"]) == (1.0, 1, ["c2", "c3"])
    assert "Not compared: 1 of the baseline's cases" in gate.why


def test_cost_and_time_leave_out_the_cases_whose_contents_differ() -> None:
    def side(name: str, cost: float) -> Side:
        trials = [trial(name, 1, "same", "pass", cost=1.0), trial(name, 1, "changed", "pass", cost=cost)]
        return Side(name=name, trials=trials, inputs={"same": "1", "changed": name})

    (found,) = compare_sides(side("a", 1.0), [side("b", 100.0)], metric="pass_rate", alpha=0.05)

    assert (found.cost.pairs, found.cost.difference, found.duration.pairs) == (1, 0.0, 1)


def test_gate_of_a_run_whose_agent_could_not_start_names_its_baseline_and_is_not_passed(project: Project) -> None:
    directory = project.suite(cases=CASES, runner={"argv": ["printf", "ok"]}, scorers=[{"use": "exact"}])
    project.call("run", "demo", "--run-id", "base")
    document: dict[str, Any] = json.loads((directory / "suite.json").read_text())
    (directory / "suite.json").write_text(json.dumps(document | {"runner": {"argv": ["/no/such/program"]}}))

    answer = project.call("run", "demo", "--gate", "no-regression", "--baseline", "base")

    assert answer.exit_code == 3
    (gate,) = answer.data["gates"]
    assert gate["verdict"] == "undecided"
    assert gate["why"].startswith("No answer: base and default have no case in common.")


def test_misspelt_gate_of_a_run_with_a_time_out_is_refused_by_name(project: Project) -> None:
    line = '[ "$(cat "$EVALWRIGHT_TASK_FILE")" = 0 ] && exec sleep 60; printf ok'
    runner = {"shell": True, "command": line, "env_allowlist": ["PATH"]}
    project.suite(cases=[CASES[0] | {"timeout_seconds": 0.3}, CASES[1]], runner=runner, scorers=[{"use": "exact"}])

    answer = project.call("run", "demo", "--gate", "exactt<=0.5")

    assert (answer.exit_code, answer.envelope["errors"][0]["message"]) == (
        1,
        "'exactt<=0.5': no trial can have the metric exactt",
    )
