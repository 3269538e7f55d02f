"""Totals: no case vanishes from a denominator, nothing passes for want of a check, sums equal their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import RunCorrupt
from evalwright.report import Projection, ReportedCase, markdown_report, project, rates, status_counts, text_report
from evalwright.report.totals import mean_score
from evalwright.rundir import RunDirectory
from evalwright.scoring import fold_status

if TYPE_CHECKING:
    from tests.conftest import Project

ECHO: dict[str, Any] = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"'}


def case(task: str = "ok", **fields: Any) -> dict[str, Any]:
    return {"id": task, "task": task, "expect": {"exact": "ok"}} | fields


def projection(pairs: Sequence[tuple[str, str | None]]) -> Projection:
    score: dict[str, Any] = {"scorer": "exact", "ok": False, "score": 0.0, "label": "fail", "findings": []}
    cases = [
        ReportedCase(id=f"c{number:03}", status=status, scores=[] if status == "pass" else [score], fault=fault)
        for number, (status, fault) in enumerate(pairs)
    ]
    return Projection(run_id="r", suite="demo", suite_hash="sha256:0", cases=cases, sealed=True)


def test_errors_stay_in_one_denominator_and_both_are_shown() -> None:
    counted: list[tuple[str, str | None, int]] = [("pass", None, 80), ("fail", None, 10), ("error", "harness", 10)]
    pairs = [(status, fault) for status, fault, count in counted for _ in range(count)]
    totals = rates(pairs)
    assert (totals["attempted"], totals["scored"], totals["harness_errors"]) == (100, 90, 10)
    assert totals["pass_rate_scored"] == pytest.approx(0.8889, abs=1e-4)
    assert totals["pass_rate_attempted"] == 0.8
    text = text_report(projection(pairs))
    assert "0.89 of 90 scored" in text
    assert "0.80 of 100 attempted" in text
    assert "| 100 | 90 | 80 | 10 | 0 | 0 |" in markdown_report(projection(pairs))


def test_agent_faults_count_as_scored_zero() -> None:
    totals = rates([("pass", None), ("error", "agent"), ("error", "harness"), ("error", None)])
    assert (totals["scored"], totals["agent_faults"], totals["harness_errors"]) == (2, 1, 2)
    assert totals["pass_rate_scored"] == 0.5


def test_rate_without_a_denominator_is_none_and_never_a_number() -> None:
    assert rates([])["pass_rate_scored"] is None
    assert rates([])["pass_rate_attempted"] is None
    assert rates([("error", "harness"), ("unscored", None)])["pass_rate_scored"] is None
    assert "no pass rate" in text_report(projection([("error", "harness")]))


STATUSES = st.lists(
    st.tuples(st.sampled_from(["pass", "fail", "error", "unscored"]), st.sampled_from(["agent", "harness", None]))
)


@given(STATUSES)
def test_sums_equal_their_rows_whatever_the_statuses(pairs: list[tuple[str, str | None]]) -> None:
    totals, counts = rates(pairs), status_counts(status for status, _ in pairs)
    assert sum(counts.values()) == totals["attempted"] == len(pairs)
    assert totals["scored"] + totals["harness_errors"] + totals["unscored"] == len(pairs)
    assert counts["error"] == totals["harness_errors"] + totals["agent_faults"]
    assert totals["passed"] == counts["pass"] <= totals["scored"]
    report = projection(pairs)
    assert report.normalized["run"]["case_count"] == len(report.normalized["cases"]) == len(pairs)
    assert len(report.failures) == len(pairs) - counts["pass"]
    assert report.ok is (bool(pairs) and counts["pass"] == len(pairs))


def test_counts_always_name_pass_fail_and_error_and_others_only_when_there_are_any() -> None:
    assert status_counts([]) == {"pass": 0, "fail": 0, "error": 0}
    assert status_counts(["unscored", "pass"]) == {"pass": 1, "fail": 0, "error": 0, "unscored": 1}


@pytest.mark.parametrize(
    ("records", "broken", "status"),
    [
        ([], False, "unscored"),
        ([], True, "error"),
        ([{"ok": True}], False, "pass"),
        ([{"ok": True}], True, "error"),
        ([{"ok": False}], False, "fail"),
        ([{"ok": True}, {"ok": False, "required": False}], False, "pass"),
        ([{"ok": False}, {"ok": True, "required": False}], False, "fail"),
        ([{"ok": False, "error": True, "required": False}], False, "error"),
        ([{"ok": False}, {"ok": False, "error": True}], False, "error"),
    ],
)
def test_scores_fold_to_one_status(records: list[dict[str, Any]], broken: bool, status: str) -> None:
    assert fold_status(records, broken=broken) == status


def test_mean_of_no_score_is_zero() -> None:
    assert mean_score([]) == 0.0
    assert mean_score([{"score": 1.0}, {"score": 0.5}]) == 0.75


def test_failures_come_errors_first_then_by_mean_score_then_by_id() -> None:
    def one(case_id: str, status: str, score: float) -> ReportedCase:
        record: dict[str, Any] = {"scorer": "s", "ok": False, "score": score, "label": status, "findings": []}
        return ReportedCase(id=case_id, status=status, scores=[record])

    cases = [
        one("a", "fail", 0.5),
        one("b", "fail", 0.1),
        one("d", "error", 0.9),
        one("c", "fail", 0.5),
        one("e", "unscored", 0.0),
    ]
    report = Projection(run_id="r", suite="s", suite_hash="h", cases=cases, sealed=True)
    assert [case.id for case in report.failures] == ["d", "e", "b", "a", "c"]


@pytest.mark.parametrize(
    "expect",
    [{"files_forbidden": ["secret.py"]}, {"files_exist": ["a.txt"]}, {"text_regex": ["^(?!.*Error)"]}, {"exact": ""}],
    ids=lambda expect: next(iter(expect)),
)
def test_timed_out_trial_never_passes_for_what_it_did_not_do(project: Project, expect: dict[str, Any]) -> None:
    project.suite(
        cases=[case(expect=expect)], runner={"argv": ["sleep", "60"], "timeout_seconds": 0.3, "env_allowlist": ["PATH"]}
    )
    answer = project.call("run", "demo", "--run-id", "r")
    assert answer.data["run"]["status_counts"] == {"pass": 0, "fail": 0, "error": 1}
    score = project.record("r", "ok", "score.json")
    assert (score["status"], score["ok"], score["fault"]) == ("error", False, "agent")
    runner = project.record("r", "ok", "runner.json")
    assert (runner["timed_out"], runner["error_code"]) == (True, "E_RUNNER_TIMEOUT")
    assert project.call("report", "r").data["run"]["status_counts"]["error"] == 1


def test_what_an_agent_left_at_its_time_limit_is_judged_where_the_suite_says_so(project: Project) -> None:
    runner = {"shell": True, "command": 'cp "$EVALWRIGHT_TASK_FILE" done; exec sleep 60', "timeout_seconds": 1}
    cases = [case("good", expect={"files_exist": ["done"]}), case("bad", expect={"files_forbidden": ["done"]})]
    project.suite(cases=cases, runner=runner | {"score_on_timeout": True})
    answer = project.call("run", "demo", "--run-id", "r")
    assert answer.data["run"]["status_counts"] == {"pass": 1, "fail": 1, "error": 0}
    assert [warning["code"] for warning in answer.envelope["warnings"]].count("W_RUNNER_TIMEOUT") == 2
    for name, status in (("good", "pass"), ("bad", "fail")):
        record = project.record("r", name, "runner.json")
        assert (record["timed_out"], record["error_code"], record["exit_code"]) == (True, None, None)
        assert (project.record("r", name, "score.json")["status"], record["attempts"][0]["status"]) == (status, status)

    project.call("rescore", "r", "--run-id", "again")
    assert project.call("report", "again").data["run"]["status_counts"] == {"pass": 1, "fail": 1, "error": 0}
    assert project.call("verify", "r").exit_code == 0


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("command", ["exit 1", "exec /no/such/program", "kill -9 $$"])
def test_crashed_runner_never_satisfies_negative_checks_in_native_form(project: Project, command: str, native: bool) -> None:
    expect = {"files_forbidden": ["secret.py"]}
    project.suite(cases=[case(expect=expect)], runner={"shell": True, "command": command}, native=native)
    counts = project.call("run", "demo").data["run"]["status_counts"]
    assert counts["pass"] == (0 if native else 1)


def test_program_that_cannot_be_started_is_an_error_of_the_trial(project: Project) -> None:
    project.suite(cases=[case(expect={"files_forbidden": ["x"]})], runner={"argv": ["/no/such/program"]}, native=False)
    answer = project.call("run", "demo", "--run-id", "r")
    assert answer.data["run"]["status_counts"] == {"pass": 0, "fail": 0, "error": 1}
    assert project.record("r", "ok", "runner.json")["spawn_failed"] is True


@pytest.mark.parametrize(("idle", "busy", "told"), [(3, 2, True), (2, 1, False), (3, 12, False)])
def test_agents_that_did_nothing_are_counted_apart_and_told_of(project: Project, idle: int, busy: int, told: bool) -> None:
    tasks = [*(f"idle{number}" for number in range(idle)), *(f"busy{number}" for number in range(busy))]
    command = 'case "$(cat "$EVALWRIGHT_TASK_FILE")" in busy*) echo wrong > answer.txt ;; esac'
    project.suite(
        cases=[case(task, expect={"files_exist": ["right.txt"]}) for task in tasks], runner={"shell": True, "command": command}
    )
    for answer in (project.call("run", "demo", "--run-id", "r"), project.call("report", "r")):
        messages = [warning["message"] for warning in answer.envelope["warnings"] if warning["code"] == "W_AGENT_IDLE"]
        text = f"in {idle} of {idle + busy} trials the agent changed no file, gave no answer, and failed: idle0, idle1, idle2"
        assert messages == ([text] if told else [])
    assert answer.data["run"]["status_counts"] == {"pass": 0, "fail": idle + busy, "error": 0}


def test_report_of_a_run_sums_what_its_cases_say(project: Project) -> None:
    cases = [case(), case("no"), case("hang", timeout_seconds=0.3)]
    runner: dict[str, Any] = {
        "shell": True,
        "command": '[ "$(cat "$EVALWRIGHT_TASK_FILE")" = hang ] && exec sleep 60; ' + ECHO["command"],
    }
    project.suite(cases=cases, runner=runner)
    run = project.call("run", "demo", "--run-id", "r").data
    report = project.call("report", "r").data
    assert run["run"]["status_counts"] == report["run"]["status_counts"] == {"pass": 1, "fail": 1, "error": 1}
    assert run["run"]["case_count"] == len(report["cases"]) == 3
    assert [failure["id"] for failure in report["failures"]] == ["hang", "no"]
    manifest = json.loads((project.run_dir("r") / "manifest.json").read_bytes())
    assert {entry["id"]: entry["status"] for entry in manifest["cases"]} == {c["id"]: c["status"] for c in report["cases"]}
    assert run["report_hash"] == report["report_hash"]


def foreign(project: Project) -> tuple[RunDirectory, dict[str, Any]]:
    """Return a run of four passing cases as another tool would leave it, and its manifest."""
    project.suite(cases=[case(id=name) for name in "abcd"], runner=ECHO, native=False)
    project.call("run", "demo", "--run-id", "r")
    run = RunDirectory(project.run_dir("r"))
    record = json.loads(run.run_json.read_bytes())
    del record["format"]
    run.run_json.write_text(json.dumps(record))
    manifest = json.loads(run.manifest.read_bytes())
    for entry in manifest["cases"]:
        del entry["digests"]
    run.manifest.write_text(json.dumps(manifest))
    return run, manifest


def test_unsealed_run_is_reported_as_it_is(project: Project) -> None:
    run, _ = foreign(project)
    report = project_of(run)
    assert (report.ok, report.counts["pass"], report.sealed) == (True, 4, False)
    assert [warning["code"] for warning in report.warnings] == ["W_UNSEALED"]


def test_missing_case_never_raises_the_score_of_an_unsealed_run(project: Project) -> None:
    run, manifest = foreign(project)
    manifest["cases"].pop()
    run.manifest.write_text(json.dumps(manifest))
    _not_better(run)


def test_case_that_stands_twice_is_never_counted_twice(project: Project) -> None:
    run, manifest = foreign(project)
    manifest["cases"].append(manifest["cases"][0])
    run.manifest.write_text(json.dumps(manifest))
    _not_better(run)


@pytest.mark.parametrize("name", ["score", "input", "runner", "output", "workspace_after"])
def test_missing_artifact_of_an_unsealed_run_never_drops_its_case(project: Project, name: str) -> None:
    run, manifest = foreign(project)
    place = run.path / manifest["cases"][0]["artifacts"][name]
    place.unlink()
    if name == "score":
        assert project_of(run).counts["pass"] == 4
        return
    with pytest.raises(RunCorrupt):
        project_of(run)


def test_missing_case_of_a_sealed_run_is_never_ok(project: Project) -> None:
    project.suite(cases=[case(id=name) for name in "abcd"], runner=ECHO)
    project.call("run", "demo", "--run-id", "r")
    path = project.run_dir("r") / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["cases"].pop()
    path.write_text(json.dumps(manifest))
    report = project_of(RunDirectory(project.run_dir("r")))
    assert not report.ok
    assert "W_ARTIFACT_TAMPERED" in [warning["code"] for warning in report.warnings]


def test_run_without_any_case_is_never_ok() -> None:
    report = projection([])
    assert not report.ok
    assert report.normalized["run"] == {
        "ok": False,
        "suite": "demo",
        "case_count": 0,
        "status_counts": {"pass": 0, "fail": 0, "error": 0},
    }
    assert "nan" not in text_report(report).lower()


def project_of(run: RunDirectory) -> Projection:
    return project(run)


def _not_better(run: RunDirectory) -> None:
    try:
        report = project_of(run)
    except RunCorrupt:
        return
    assert not report.ok
    assert len(report.cases) == 4


def test_partial_file_is_nothing_to_count(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"cases": [{"id": "a", "status": "pa')
    with pytest.raises(RunCorrupt):
        project_of(RunDirectory(tmp_path))
