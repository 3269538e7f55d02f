"""Arms against each other, bands of repeats and gates: what they say of trials whose figures are known."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import UsageError
from evalwright.model import Usage
from evalwright.report import ExperimentView, RunRows, Trial
from evalwright.report.figures.banding import band_of
from evalwright.report.figures.comparison import Side, compare_arms, compare_sides, sides_of
from evalwright.report.figures.gates import check_gates, parse_gate
from evalwright.report.figures.sentences import headline_of
from evalwright.report.forms.banding_text import band_text
from evalwright.report.forms.comparison_text import comparison_text
from evalwright.report.overlap import overlapping
from evalwright.rundir import RunDirectory
from evalwright.rundir.experiment import Cell

Statuses = Mapping[str, Sequence[str]]


def trial(arm: str, repeat: int, case: str, status: str, *, cost: float | None = None, **metrics: float) -> Trial:
    """Return a trial; the status ``agent`` is an error of the agent's own making, ``harness`` one of ours."""
    fault = status if status in ("agent", "harness") else None
    shown = "error" if fault else status
    score: dict[str, Any] = {"scorer": "tests", "ok": shown == "pass", "score": float(shown == "pass"), "findings": []}
    return Trial(
        run_id=f"x.{arm}.{repeat}",
        arm=arm,
        repeat=repeat,
        case=case,
        status=shown,
        fault=fault,
        scores=[] if fault or status == "unscored" else [score | {"metrics": metrics}],
        usage=None if cost is None else Usage(cost=cost),
        duration_ms=1000.0,
    )


def view(*trials: Trial) -> ExperimentView:
    """Return an experiment of exactly these trials."""
    keys = dict.fromkeys((t.repeat, t.arm, t.run_id) for t in trials)
    cells = [Cell(repeat, arm, run_id, sum(t.run_id == run_id for t in trials)) for repeat, arm, run_id in keys]
    runs = [
        RunRows(
            run=RunDirectory(Path(cell.run_id)),
            suite="s",
            arm=cell.arm,
            repeat=cell.repeat,
            finished=True,
            planned=[t.case for t in trials if t.run_id == cell.run_id],
            trials=[t for t in trials if t.run_id == cell.run_id],
        )
        for cell in cells
    ]
    return ExperimentView(id="x", suite="s", primary=None, alpha=0.05, cells=cells, runs=runs)


def arm(name: str, outcomes: Statuses, **details: Any) -> list[Trial]:
    """Return the trials of an arm from ``{case: status of each repeat}``."""
    return [
        trial(name, number, case, status, **details)
        for case, statuses in outcomes.items()
        for number, status in enumerate(statuses, 1)
    ]


def test_clear_difference_is_better_with_its_counts_and_interval() -> None:
    a = arm("a", {f"c{n}": ["fail"] * 3 for n in range(12)})
    b = arm("b", {f"c{n}": ["pass" if n < 10 else "fail"] * 3 for n in range(12)})

    (found,) = compare_arms(view(*a, *b))

    record = found.as_json()
    assert (record["answer"], record["wins"], record["losses"], record["ties"]) == ("better", 10, 0, 2)
    assert record["difference"] == pytest.approx(10 / 12)
    assert 0 < record["interval"][0] < 10 / 12 <= record["interval"][1] <= 1
    assert record["p"] < 0.01
    assert headline_of(found).startswith("b is better than a: +0.83 (")


def test_arm_against_itself_has_no_evidence_and_says_what_would_be_surer() -> None:
    rows = {f"c{n}": ["pass", "fail", "pass"] for n in range(8)}

    (found,) = compare_arms(view(*arm("a", rows), *arm("b", rows)))

    assert found.answer == "no-evidence"
    assert found.advice
    assert "To be surer" in comparison_text(found)


def test_fault_of_the_agent_counts_as_zero_and_one_of_the_harness_not_at_all() -> None:
    a = arm("a", {"one": ["pass", "pass"], "two": ["pass", "harness"]})
    b = arm("b", {"one": ["agent", "agent"], "two": ["harness", "harness"]})

    (found,) = compare_arms(view(*a, *b))

    assert found.result.pairs == 1
    assert found.result.difference == -1
    assert found.as_json()["lost"] == ["two"]


def test_cases_with_other_contents_are_no_pairs() -> None:
    sides = [Side(name=name, trials=arm(name, {"k": ["pass"], "m": ["pass"]}), inputs={"k": "1", "m": name}) for name in "ab"]

    (found,) = compare_sides(sides[0], sides[1:], metric="pass_rate", alpha=0.05)

    assert list(found.changed) == ["m"]
    assert found.result.pairs == 1


def test_many_arms_share_the_chance_of_a_false_alarm() -> None:
    base = {f"c{n}": ["fail"] for n in range(7)}
    better = {f"c{n}": ["pass" if n < 6 else "fail"] for n in range(7)}
    alone = compare_arms(view(*arm("a", base), *arm("b", better)))[0]

    many = compare_arms(view(*arm("a", base), *arm("b", better), *(t for n in "cdefgh" for t in arm(n, base))))

    assert alone.answer == "better"
    assert many[0].p == pytest.approx(min(1.0, 7 * alone.p))
    assert many[0].answer == "no-evidence"


def test_later_looks_need_more_evidence_and_are_exploratory() -> None:
    base = {f"c{n}": ["fail"] for n in range(7)}
    experiment = view(*arm("a", base), *arm("b", {case: ["pass"] if case != "c6" else ["fail"] for case in base}))

    first, second = compare_arms(experiment, look=1)[0], compare_arms(experiment, look=2)[0]

    assert (first.alpha, first.answer, first.exploratory) == (0.05, "better", False)
    assert second.alpha < 0.01
    assert (second.answer, second.exploratory) == ("no-evidence", True)
    assert "Exploratory: look 2" in comparison_text(second)


def test_lower_cost_is_better_and_unknown_cost_is_not_zero() -> None:
    a = arm("a", {f"c{n}": ["pass"] for n in range(8)}, cost=2.0)
    b = arm("b", {f"c{n}": ["pass"] for n in range(8)}, cost=1.0)

    (found,) = compare_arms(view(*a, *b), metric="cost")
    (mute,) = compare_arms(view(*a, *arm("b", {f"c{n}": ["pass"] for n in range(8)})))

    assert (found.answer, found.result.difference) == ("better", -1.0)
    assert mute.as_json()["cost_usd"]["mean_second"] is None
    assert mute.as_json()["cost_usd"]["unknown_second"] == 8


@pytest.mark.parametrize("metric", ["nothing", "tests.nothing", "tests.found/tests.gold"])
def test_metric_that_cannot_be_compared_is_refused(metric: str) -> None:
    rows = {"k": ["pass"]}

    with pytest.raises(UsageError):
        compare_arms(view(*arm("a", rows, found=1.0, gold=2.0), *arm("b", rows, found=1.0, gold=2.0)), metric=metric)


def test_arms_without_a_common_case_have_no_answer() -> None:
    (found,) = compare_arms(view(*arm("a", {"k": ["pass"]}), *arm("b", {"m": ["pass"]})))

    assert found.as_json()["interval"] is None
    assert "no case in common" in comparison_text(found)


@pytest.mark.acceptance
def test_answers_keep_to_alpha_when_arms_are_the_same() -> None:
    """End to end over trials, with flaky cases and three repeats: 200 null experiments."""
    chance = random.Random(7)
    rates = [chance.random() for _ in range(12)]
    alarms = 0
    for _ in range(200):
        rows = [
            {f"c{n}": ["pass" if chance.random() < rate else "fail" for _ in range(3)] for n, rate in enumerate(rates)}
            for _ in "ab"
        ]
        (found,) = compare_arms(view(*arm("a", rows[0]), *arm("b", rows[1])))
        alarms += found.answer != "no-evidence"

    assert alarms <= 200 * 0.05 + 3 * (200 * 0.05 * 0.95) ** 0.5


def test_band_of_repeats_has_union_intersection_and_flaky_cases() -> None:
    rows = {
        "always": ["pass"] * 3,
        "once": ["pass", "fail", "fail"],
        "never": ["fail"] * 3,
        "lost": ["pass", "harness", "pass"],
    }

    found = band_of(sides_of(view(*arm("a", rows)))[0], metric="pass_rate")

    assert found.values == [pytest.approx(3 / 4), pytest.approx(1 / 3), pytest.approx(2 / 4)]
    assert (found.items, found.union, found.intersection) == (3, 2, 1)
    assert found.union_at_k == [pytest.approx((3 + 1) / 9), pytest.approx((1 + 2 / 3) / 3), pytest.approx(2 / 3)]
    assert found.as_json()["flaky"] == ["once"]
    assert found.as_json()["never"] == ["never"]
    assert "Flaky (pass in some repeats): once" in band_text(found)


def test_band_of_a_ratio_sums_before_it_divides_and_hits_are_items() -> None:
    trials = [
        trial("a", 1, "k", "pass", matched=1, gold=4, **{"hit.1": 1.0, "hit.2": 0.0}),
        trial("a", 1, "m", "pass", matched=3, gold=4, **{"hit.1": 1.0}),
        trial("a", 2, "k", "pass", matched=0, gold=4, **{"hit.1": 0.0, "hit.2": 0.0}),
        trial("a", 2, "m", "pass", matched=2, gold=4, **{"hit.1": 1.0}),
    ]

    found = band_of(sides_of(view(*trials))[0], metric="tests.matched/tests.gold", items="tests")

    assert found.values == [0.5, 0.25]
    assert (found.items, found.union, found.intersection) == (3, 2, 1)
    assert [(change.gained, change.lost) for change in found.changes] == [(0, 1)]


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        ("pass_rate>=0.5", "pass"),
        ("pass_rate>0.5", "fail"),
        ("pass_rate==0.5", "pass"),
        ("pass_rate<=0.4", "fail"),
        ("tests>=0.9", "fail"),
        ("score<0.6", "pass"),
        ("agent_faults==0", "fail"),
        ("harness_errors==0", "pass"),
        ("total_cost<=4", "pass"),
        ("total_cost<=3.9", "fail"),
        ("cost<=1", "pass"),
        ("tests.found>=3", "pass"),
    ],
)
def test_gate_on_a_bound_says_pass_or_fail(gate: str, verdict: str) -> None:
    rows = {"one": ["pass"], "two": ["pass"], "three": ["fail"], "four": ["agent"]}
    experiment = view(*arm("a", rows, cost=1.0, found=4.0))

    (result,) = check_gates([parse_gate(gate)], sides_of(experiment), None, alpha=0.05)

    assert (result.verdict, result.arm) == (verdict, "a")


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [("pass_rate>=0.7", "undecided"), ("pass_rate>=0.4", "pass"), ("pass_rate>=0.9", "fail"), ("tests.found>=1", "undecided")],
)
def test_faults_of_the_harness_leave_a_gate_open_only_where_they_decide(gate: str, verdict: str) -> None:
    experiment = view(*arm("a", {"one": ["pass"], "two": ["pass"], "three": ["fail"], "four": ["harness"]}, found=4.0))

    (result,) = check_gates([parse_gate(gate)], sides_of(experiment), None, alpha=0.05)

    assert result.verdict == verdict


@pytest.mark.parametrize(
    ("gate", "verdict"), [("total_cost<=3", "undecided"), ("total_cost<=1", "fail"), ("cost<=9", "undecided")]
)
def test_unknown_costs_leave_a_gate_open_unless_the_known_ones_decide(gate: str, verdict: str) -> None:
    trials = [trial("a", 1, "one", "pass", cost=2.0), trial("a", 1, "two", "pass")]

    (result,) = check_gates([parse_gate(gate)], sides_of(view(*trials)), None, alpha=0.05)

    assert result.verdict == verdict


def test_no_regression_fails_on_evidence_only() -> None:
    good, bad = {f"c{n}": ["pass"] for n in range(10)}, {f"c{n}": ["fail"] for n in range(10)}
    slightly = good | {"c0": ["fail"]}
    baseline = sides_of(view(*arm("base", good)))[0]
    gate = parse_gate("no-regression")

    worse, same = (check_gates([gate], sides_of(view(*arm("new", rows))), baseline, alpha=0.05)[0] for rows in (bad, slightly))
    (lost,) = check_gates([gate], sides_of(view(*arm("new", {"c0": ["harness"]}))), baseline, alpha=0.05)

    assert (worse.verdict, same.verdict, lost.verdict) == ("fail", "pass", "undecided")


@pytest.mark.parametrize(
    "text", ["pass_rate=>1", "pass_rate", ">=1", "pass_rate>=", "pass_rate>=x", "pass_rate>=nan", "a b>=1e"]
)
def test_gate_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no gate"):
        parse_gate(text)


@pytest.mark.parametrize(
    ("spans", "beside"),
    [
        ([], []),
        ([(0, 1), (1, 2)], [False, False]),
        ([(1, 3), (0, 2)], [True, True]),
        ([(0, 9), (1, 2), (3, 4), (9, 10)], [True, True, True, False]),
        ([(5, 6), (5, 6)], [True, True]),
    ],
)
def test_trials_that_share_time_are_overlapping(spans: list[tuple[float, float]], beside: list[bool]) -> None:
    assert overlapping(spans) == beside


def test_comparison_says_how_many_trials_ran_beside_others() -> None:
    spans = {"a": [(0.0, 2.0), (3.0, 4.0)], "b": [(1.0, 2.5), (2.2, 3.0)]}
    trials = [
        replace(trial(arm, 1, case, "pass"), span=span)
        for arm, own in spans.items()
        for case, span in zip("km", own, strict=True)
    ]
    (timed,) = compare_arms(view(*trials))
    (untimed,) = compare_arms(view(*(replace(each, span=None) for each in trials)))

    record = timed.as_json()["duration_s"]
    assert (record["overlapping_first"], record["overlapping_second"]) == (1, 2)
    assert "3 trials ran beside others" in comparison_text(timed)
    assert untimed.as_json()["duration_s"]["overlapping_first"] is None
    assert "beside" not in comparison_text(untimed)
