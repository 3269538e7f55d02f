"""Figures of arms and cases: both denominators, unknown is null, what is missing stays missing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.report.views import MIXED, trial, view

from evalwright.model import Usage
from evalwright.report.figures.arms import arm_figures, never_passed
from evalwright.report.figures.grid import case_rows
from evalwright.report.forms.experiment_data import experiment_data


def test_harness_faults_and_unscored_leave_the_rate_and_agent_faults_count_as_zero() -> None:
    small, large = (arm.as_json() for arm in arm_figures(MIXED))
    assert (small["attempted"], small["scored"], small["passed"], small["harness_errors"], small["agent_faults"]) == (
        6,
        5,
        1,
        1,
        1,
    )
    assert small["pass_rate"] == pytest.approx(1 / 5)
    assert small["pass_rate_attempted"] == pytest.approx(1 / 6)
    assert (large["planned"], large["missing"], large["attempted"], large["scored"], large["unscored"]) == (6, 1, 5, 4, 1)
    assert large["pass_rate"] == pytest.approx(3 / 4)


def test_both_denominators_of_a_hundred_cases_with_ten_errors() -> None:
    cases = [f"c{number:03}" for number in range(100)]
    (arm,) = arm_figures(view({"only": ["p" * 80 + "f" * 10 + "h" * 10]}, cases=cases))
    record = arm.as_json()
    assert (record["attempted"], record["scored"], record["harness_errors"]) == (100, 90, 10)
    assert (record["pass_rate"], record["pass_rate_attempted"]) == (pytest.approx(0.8889, abs=1e-4), 0.8)


def test_a_missing_case_never_raises_a_rate_in_silence() -> None:
    found = view({"only": ["ppp "]}, cases=["a", "b", "c", "d"])
    (arm,) = arm_figures(found)
    assert (arm.planned, arm.missing, arm.totals["attempted"], found.finished) == (4, 1, 3, False)


@pytest.mark.parametrize("letters", ["hhh", "uuu", "   "])
def test_an_arm_without_a_value_has_no_rate_and_no_interval(letters: str) -> None:
    (arm,) = arm_figures(view({"only": [letters]}))
    record = arm.as_json()
    assert (record["pass_rate"], record["interval"], record["score"]) == (None, None, None)
    assert (record["flaky"], record["never"], record["stable"]) == ([], [], [])


def test_unknown_cost_is_null_and_known_parts_are_counted() -> None:
    found = view({"only": ["pp", "pp"]}, cases=["a", "b"])
    assert arm_figures(found)[0].as_json()["cost"] == {"total": None, "known": 0, "of": 4}
    usages = [Usage(cost=0.02, input=10, output=5, cache_read=100), Usage(cost=None, input=10), None, Usage(cost=0.0)]
    rows = [trial("only", 1, case, "p", usage=usage) for case, usage in zip("abcd", usages, strict=True)]
    mixed = view({"only": ["pppp"]}, cases="abcd", runs=[replace(found.runs[0], trials=rows)])
    record = arm_figures(mixed)[0].as_json()
    assert record["cost"] == {"total": 0.02, "known": 2, "of": 4}
    assert record["tokens"] == {"total": 115, "known": 1, "of": 4}


def test_flaky_never_and_stable_are_told_apart_and_never_is_said_of_all_arms() -> None:
    arms = arm_figures(view({"a": ["pff", "fpf"], "b": ["ppf", "ppf"]}))
    assert [(arm.cases("flaky"), arm.cases("never"), arm.cases("stable")) for arm in arms] == [
        (["a", "b"], ["c"], []),
        ([], ["c"], ["a", "b"]),
    ]
    assert never_passed(arms) == ["c"]


def test_repeats_are_clustered_by_case() -> None:
    (arm,) = arm_figures(view({"only": ["pf"] * 5}, cases=["a", "b"]))
    assert arm.rate.micro == 0.5
    assert arm.rate.micro_error == pytest.approx(0.5)


def test_rows_hold_every_place_and_sum_up_to_the_totals() -> None:
    rows = [row.as_json() for row in case_rows(MIXED)]
    places = [place for row in rows for places in row["arms"].values() for place in places]
    totals = experiment_data(MIXED, states={})["totals"]
    assert len(places) == totals["planned"] == 12
    assert sum(place["status"] is None for place in places) == totals["missing"] == 1
    assert sum(place["status"] == "pass" for place in places) == totals["passed"]
    assert rows[2]["arms"]["small"][1] == {"repeat": 2, "status": "error", "fault": "agent"}


def test_data_is_json_without_surprises_and_planned_runs_are_pending() -> None:
    data = experiment_data(MIXED, states={"x.small.1": "completed"})
    assert json.loads(json.dumps(data, allow_nan=False))["experiment"] == "x"
    assert [run["state"] for run in data["runs"]] == ["completed", "pending", "pending", "pending"]
    assert (data["finished"], data["report_hash"]) == (False, None)


def test_primary_metric_is_shown_beside_the_pass_rate() -> None:
    found = view({"only": ["pf"]}, cases=["a", "b"], primary="exact")
    assert arm_figures(found)[0].as_json("exact")["primary"]["value"] == 0.5
    assert arm_figures(view({"only": ["pf"]}, cases=["a", "b"]))[0].as_json()["primary"] is None
