"""Resuming: what the ledger vouches for is kept, the rest runs again, and the result is that of an uninterrupted run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.coordinate import RunOutcome, RunRequest, Stop, make_plan, resume_run, run_suite
from evalwright.errors import Interrupted, LedgerDamaged, RunBusy, RunConflict
from evalwright.hooks import Observers
from evalwright.hookspecs import hookimpl
from evalwright.ledger import read_events
from evalwright.rundir import Layout
from evalwright.settings import Settings, load_settings
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
CASES = [{"id": f"c{number}", "task": f"t{number}", "expect": {"exact": f"t{number}"}} for number in range(5)]


class StopAfter:
    """Asks for a stop once some trials are finished."""

    def __init__(self, stop: Stop, trials: int) -> None:
        self.stop = stop
        self.left = trials

    @hookimpl
    def trial_finished(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.stop.request()


class Bench:
    """Runs and resumes the suite ``demo`` in this process; ``warnings`` holds the codes of the last call."""

    def __init__(self, project: Project) -> None:
        evals = project.path / "evals"
        self.layout = Layout(evals, evals / "runs")
        self.suite = self.layout.suites / "demo"
        self.settings = Settings(evals=evals, jobs=1)
        self.warnings: list[str] = []

    def run(self, run_id: str = "r", *, stop_after: int = 0) -> RunOutcome:
        stop = Stop()
        plugins = [("test", StopAfter(stop, stop_after))] if stop_after else []
        request = RunRequest(
            checked=load_suite(self.suite), layout=self.layout, settings=self.settings, run_id=run_id, environment=EPOCH
        )
        return run_suite(request, stop=stop, observers=lambda complain: Observers(plugins, complain), warn=self._warn)

    def interrupt(self, run_id: str = "r", *, after: int = 2) -> None:
        with pytest.raises(Interrupted):
            self.run(run_id, stop_after=after)

    def resume(self, run_id: str = "r", *, stop_after: int = 0) -> RunOutcome:
        self.warnings.clear()
        stop = Stop()
        plugins = [("test", StopAfter(stop, stop_after))] if stop_after else []
        return resume_run(
            self.layout.run(run_id),
            self.layout,
            self.settings,
            stop=stop,
            observers=lambda complain: Observers(plugins, complain),
            warn=self._warn,
            environment=EPOCH,
        )

    def path(self, *parts: str) -> Path:
        return self.layout.runs.joinpath("r", *parts)

    def attempts(self) -> dict[str, int]:
        events = read_events(self.path("ledger.jsonl"))
        found: dict[str, int] = {}
        for event in events:
            if event["type"] == "TRIAL_ATTEMPT":
                found[event["data"]["case"]] = event["data"]["attempt"]
        return found

    def _warn(self, code: str, message: str) -> None:
        self.warnings.append(code)


@pytest.fixture
def bench(project: Project, shell_runner: Shell) -> Bench:
    project.suite(runner=shell_runner('cat "$EVALWRIGHT_TASK_FILE"; echo x > new'), cases=CASES, scorers=[{"use": "exact"}])
    return Bench(project)


@pytest.mark.parametrize("after", [1, 2, 4])
def test_resumed_manifest_is_that_of_an_uninterrupted_run_byte_for_byte(bench: Bench, after: int) -> None:
    bench.run()
    whole = bench.path("manifest.json").read_bytes()
    bench.path().rename(bench.layout.runs / "whole")

    bench.interrupt(after=after)
    assert not bench.path("manifest.json").exists()
    outcome = bench.resume()

    assert outcome.report.counts["pass"] == 5
    assert bench.path("manifest.json").read_bytes() == whole
    assert sum(bench.attempts().values()) == 5


def test_finished_trials_run_once_and_a_further_resume_runs_nothing(bench: Bench) -> None:
    bench.interrupt(after=2)
    with pytest.raises(Interrupted):
        bench.resume(stop_after=2)
    bench.resume()
    assert bench.attempts() == {case["id"]: 1 for case in CASES}
    before = bench.path("ledger.jsonl").read_bytes()

    outcome = bench.resume()

    assert outcome.existing
    assert "W_RESUME_NOTHING_PENDING" in bench.warnings
    assert bench.path("ledger.jsonl").read_bytes() == before


def test_killed_run_with_a_torn_last_line_keeps_what_was_finished(bench: Bench) -> None:
    bench.interrupt(after=3)
    ledger = bench.path("ledger.jsonl")
    lines = [line for line in ledger.read_bytes().splitlines(keepends=True) if b"RUN_INTERRUPTED" not in line]
    ledger.write_bytes(b"".join(lines) + b'{"v":1,"seq":99,"ts":"20')
    bench.path("ledger.head.json").unlink()

    outcome = bench.resume()

    assert outcome.report.counts["pass"] == 5
    assert sum(bench.attempts().values()) == 5
    assert "LEDGER_TAIL_REPAIRED" in [event["type"] for event in read_events(ledger)]


def test_torn_start_of_a_trial_that_left_a_half_bundle_is_run_again(bench: Bench) -> None:
    bench.interrupt(after=2)
    half = bench.path("cases", "c4")
    half.mkdir()
    (half / "output.txt").write_text("stale")
    (half / "score.json").write_text('{"status": "pass"')

    outcome = bench.resume()

    assert outcome.report.counts["pass"] == 5
    assert (half / "output.txt").read_text() == "t4"


@pytest.mark.parametrize("damage", ["removed", "seal changed"])
def test_finished_trial_whose_bundle_is_gone_or_changed_is_run_again_with_a_warning(bench: Bench, damage: str) -> None:
    bench.interrupt(after=2)
    seal = bench.path("cases", "c0", "bundle.json")
    if damage == "removed":
        seal.unlink()
    else:
        seal.write_text(seal.read_text().replace("pass", "fail"))

    outcome = bench.resume()

    assert "W_TRIAL_REDONE" in bench.warnings
    assert outcome.report.counts["pass"] == 5
    assert bench.attempts()["c0"] == 2


def test_finished_trial_whose_answer_was_changed_between_run_and_resume_does_not_count_silently(bench: Bench) -> None:
    bench.interrupt(after=2)
    bench.path("cases", "c0", "output.txt").write_text("forged")

    outcome = bench.resume()

    assert "W_TRIAL_REDONE" in bench.warnings or outcome.report.counts["error"] == 1


def test_edited_suite_does_not_change_what_a_resume_runs(bench: Bench) -> None:
    bench.interrupt(after=2)
    cases = bench.suite / "cases.jsonl"
    cases.write_text(cases.read_text().replace('"t4"', '"edited"'))

    outcome = bench.resume()

    assert outcome.report.counts["pass"] == 5
    assert bench.path("cases", "c4", "output.txt").read_text() == "t4"


@pytest.mark.parametrize("file", ["suite.json", "cases.jsonl"])
def test_edited_snapshot_is_refused_and_the_run_stays_resumable(bench: Bench, file: str) -> None:
    bench.interrupt(after=2)
    snapshot = bench.path("suite-snapshot", file)
    original = snapshot.read_text()
    snapshot.chmod(0o644)
    snapshot.write_text(original.replace("t4", "edited").replace("echo x", "echo y"))

    with pytest.raises(RunConflict, match="not what was started"):
        bench.resume()

    snapshot.write_text(original)
    assert bench.resume().report.counts["pass"] == 5


def test_damage_in_the_middle_of_the_ledger_refuses_the_resume_and_changes_nothing(bench: Bench) -> None:
    bench.interrupt(after=2)
    ledger = bench.path("ledger.jsonl")
    damaged = ledger.read_bytes().replace(b'"case":"c0"', b'"case":"c1"', 1)
    ledger.write_bytes(damaged)

    with pytest.raises(LedgerDamaged, match="after sequence"):
        bench.resume()

    assert ledger.read_bytes() == damaged
    assert bench.path("cases", "c0").is_dir()
    assert not bench.path(".reservation.json").exists()


def test_run_with_the_id_of_an_unfinished_one_is_refused_with_the_way_on(bench: Bench) -> None:
    bench.interrupt(after=2)

    with pytest.raises(RunBusy) as caught:
        bench.run()

    assert "--resume r" in str(caught.value.hint)
    assert bench.resume().report.counts["pass"] == 5


def test_finished_run_is_returned_as_existing_and_another_suite_under_its_id_is_refused(bench: Bench) -> None:
    bench.run()
    before = {path: path.read_bytes() for path in bench.path().rglob("*") if path.is_file()}

    assert bench.run().existing
    (bench.suite / "fixtures" / "w" / "a.txt").write_text("another fixture\n")
    with pytest.raises(RunConflict, match="fixtures_hash"):
        bench.run()

    assert {path: path.read_bytes() for path in bench.path().rglob("*") if path.is_file()} == before


def test_run_whose_manifest_only_was_missing_gets_it_without_running_anything(bench: Bench) -> None:
    bench.run()
    whole = bench.path("manifest.json").read_bytes()
    bench.path("manifest.json").unlink()

    bench.resume()

    assert bench.path("manifest.json").read_bytes() == whole
    assert sum(bench.attempts().values()) == 5


def test_late_or_repeated_finish_of_a_case_counts_once(bench: Bench) -> None:
    bench.run()
    manifest = json.loads(bench.path("manifest.json").read_bytes())

    assert [entry["id"] for entry in manifest["cases"]] == [case["id"] for case in CASES]


@pytest.mark.parametrize(
    ("file", "environment", "flag", "seconds"),
    [
        (30, "40", 20, 20),
        (30, "40", None, 40),
        (30, None, None, 50),
        (None, None, None, 50),
    ],
    ids=["flag first", "then environment", "then suite before file", "suite"],
)
def test_time_limit_follows_the_documented_precedence(
    project: Project, shell_runner: Shell, file: float | None, environment: str | None, flag: float | None, seconds: float
) -> None:
    suite = project.suite(runner=shell_runner("true", timeout_seconds=50), cases=[{"id": "a", "expect": {"exact": ""}}])
    if file:
        (project.path / "evalwright.toml").write_text(f"timeout = {file}\n")
    variables = {"EVALWRIGHT_TIMEOUT": environment} if environment else {}
    checked = load_suite(suite)

    plan = make_plan(checked, checked.suite.cases, load_settings(variables, project.path).overridden(timeout=flag))

    assert plan.timeout_seconds == seconds


def test_times_are_utc_and_durations_positive_whatever_the_zone_and_the_epoch(bench: Bench) -> None:
    os.environ["TZ"] = "Asia/Tokyo"
    try:
        bench.run()
    finally:
        del os.environ["TZ"]

    record = json.loads(bench.path("run.json").read_bytes())
    assert record["created_ts"] == "2023-11-14T22:13:20Z"
    events = read_events(bench.path("ledger.jsonl"))
    assert all(event["ts"].endswith("Z") and event["ts"] > "2025" for event in events)
    assert all(event["data"]["duration_ms"] >= 0 for event in events if event["type"] == "TRIAL_FINISHED")
