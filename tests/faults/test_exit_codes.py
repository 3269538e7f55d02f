"""Exit codes: a failed evaluation, a broken environment, wrong input and an interruption can be told apart."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened

from evalwright.cli.codes import CODES
from evalwright.cli.contract import EXIT_CODES, VERBS

if TYPE_CHECKING:
    from tests.conftest import Project

RUNNER = {
    "shell": True,
    "command": 'task=$(cat "$EVALWRIGHT_TASK_FILE"); [ "$task" = hang ] && exec sleep 60; printf %s "$task"',
}
MISSING = {"argv": ["/no/such/program"]}


def case(task: str = "ok", **fields: Any) -> dict[str, Any]:
    return {"id": task, "task": task, "expect": {"exact": "ok"}} | fields


@pytest.mark.parametrize(
    ("cases", "runner", "counts", "code"),
    [
        ([case()], RUNNER, {"pass": 1, "fail": 0, "error": 0}, 0),
        ([case(), case("no")], RUNNER, {"pass": 1, "fail": 1, "error": 0}, 6),
        ([case("no")], RUNNER, {"pass": 0, "fail": 1, "error": 0}, 6),
        ([case(), case("hang", timeout_seconds=0.3)], RUNNER, {"pass": 1, "fail": 0, "error": 1}, 6),
        ([case(), case("no")], MISSING, {"pass": 0, "fail": 0, "error": 2}, 6),
    ],
    ids=["all pass", "some fail", "all fail", "agent error", "no such program"],
)
def test_fail_on_fail_exits_6_unless_every_trial_passed(
    project: Project, cases: list[dict[str, Any]], runner: dict[str, Any], counts: dict[str, int], code: int
) -> None:
    project.suite(cases=cases, runner=runner)
    strict = project.call("run", "demo", "--run-id", "strict", "--fail-on-fail")
    relaxed = project.call("run", "demo", "--run-id", "relaxed")
    assert (strict.exit_code, relaxed.exit_code) == (code, 0)
    assert strict.data["run"]["status_counts"] == relaxed.data["run"]["status_counts"] == counts
    assert strict.data["run"]["ok"] is relaxed.data["run"]["ok"] is (code == 0)
    assert strict.envelope["ok"] is True
    assert ("W_PARTIAL_RUN" in strict.warning_codes) is bool(counts["error"])


def test_unscored_trial_is_not_a_pass_for_fail_on_fail(project: Project) -> None:
    cases = [case(expect={})]
    project.suite(cases=cases, runner=RUNNER, scorers=[{"use": "exact"}], native=False)
    answer = project.call("run", "demo", "--fail-on-fail")
    assert answer.exit_code == 6
    assert answer.data["run"]["status_counts"] == {"pass": 0, "fail": 0, "error": 0, "unscored": 1}


@pytest.mark.parametrize(
    ("words", "named"),
    [([], "demo"), (["--case", "typo"], "typo"), (["--tag", "nosuch"], "nosuch"), (["--split", "nosuch"], "nosuch")],
)
@pytest.mark.parametrize("verb", ["run", "plan"])
def test_nothing_selected_exits_1_and_names_what_was_asked(project: Project, verb: str, words: list[str], named: str) -> None:
    project.suite(cases=[case()] if words else [], runner=RUNNER)
    answer = project.call(verb, "demo", *words)
    assert answer.exit_code == 1
    assert answer.envelope["ok"] is False
    assert named in answer.envelope["errors"][0]["message"]
    assert not (project.path / "evals" / "runs").exists()


def test_unknown_case_of_several_is_refused_and_not_dropped(project: Project) -> None:
    project.suite(cases=[case()], runner=RUNNER)
    answer = project.call("run", "demo", "--case", "ok", "--case", "okk")
    assert answer.exit_code == 1
    assert answer.envelope["errors"][0]["did_you_mean"] == "ok"


def test_missing_capability_exits_2_before_anything_runs(project: Project) -> None:
    project.suite(cases=[case()], runner=RUNNER, requires=["teleportation"])
    for verb in ("run", "plan"):
        answer = project.call(verb, "demo")
        assert (answer.exit_code, answer.error_codes) == (2, ["E_CAPABILITY_MISSING"])
    assert not (project.path / "evals" / "runs").exists()


def test_unknown_plugin_exits_1(project: Project) -> None:
    project.suite(cases=[case()], runner=RUNNER, scorers=[{"use": "exact"}, {"use": "contians"}])
    answer = project.call("run", "demo")
    assert answer.exit_code == 1
    record = answer.envelope["errors"][0]
    assert "contians" in record["message"]
    assert record["did_you_mean"] == "contains"


@pytest.mark.parametrize(
    "words", [["run", "demo", "--sandbox", "nosuch"], ["run", "demo", "--queue", "nosuch"], ["plugins", "check", "nosuch"]]
)
def test_unknown_plugin_of_a_flag_exits_1(project: Project, words: list[str]) -> None:
    project.suite(cases=[case()], runner=RUNNER)
    answer = project.call(*words)
    assert (answer.exit_code, answer.error_codes) == (1, ["E_PLUGIN_NOT_FOUND"])
    assert not (project.path / "evals" / "runs").exists()


def install(place: Path, name: str, body: str, group: str = "evalwright.scorers") -> dict[str, str]:
    """Install a distribution with one plugin into a directory, and return the environment in which it is found."""
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}_module:Thing\n")
    (place / f"{name}_module.py").write_text(body)
    return {"PYTHONPATH": str(place)}


@pytest.mark.parametrize(
    "body", shortened(["import no_such_module", "raise SystemExit(0)", "Thing = 7", "1/0"], ["raise SystemExit(0)"])
)
def test_installed_plugin_that_is_broken_exits_3_only_where_it_is_needed(project: Project, body: str) -> None:
    env = install(project.path / "site", "wonky", body)
    project.suite("needs", cases=[case()], runner=RUNNER, scorers=[{"use": "exact"}, {"use": "wonky"}])
    project.suite("ignores", cases=[case()], runner=RUNNER)
    answer = project.call("run", "needs", env=env)
    assert answer.exit_code == 3
    assert answer.error_codes[0].startswith("E_PLUGIN_")
    assert "wonky" in answer.envelope["errors"][0]["message"]
    assert project.call("run", "ignores", "--fail-on-fail", env=env).exit_code == 0
    assert project.call("plugins", "list", env=env).exit_code == 0
    assert project.call("plugins", "check", "wonky", env=env).exit_code == 3


def test_interrupted_run_exits_130_keeps_its_records_and_resumes(project: Project) -> None:
    gate = project.path / "gate"
    os.mkfifo(gate)
    line = f'task=$(cat "$EVALWRIGHT_TASK_FILE"); echo "$task" >> {project.path}/log; '
    line += f'[ -e {project.path}/open ] || {{ [ "$task" = 3 ] && {{ echo > {gate}; exec sleep 60; }}; }}; printf ok'
    project.suite(cases=[case(str(number)) for number in range(1, 6)], runner={"shell": True, "command": line})
    process = project.start("run", "demo", "--run-id", "r", "--jobs", "1")
    try:
        gate.read_bytes()
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert b"E_INTERRUPTED" in stdout
    status = project.call("status", "r").data
    assert (status["state"], status["progress"]["terminal"]) == ("stale", 2)
    (project.path / "open").touch()
    answer = project.call("run", "--resume", "r", "--fail-on-fail", "--jobs", "1")
    assert (answer.exit_code, answer.data["run"]["status_counts"]["pass"]) == (0, 5)
    log = (project.path / "log").read_text().split()
    assert log == ["1", "2", "3", "3", "4", "5"]


def test_unfinished_run_of_that_id_exits_4_with_the_resume_command(project: Project) -> None:
    project.suite(cases=[case()], runner=RUNNER)
    project.call("run", "demo", "--run-id", "r")
    (project.run_dir("r") / "manifest.json").unlink()
    answer = project.call("run", "demo", "--run-id", "r")
    assert (answer.exit_code, answer.error_codes) == (4, ["E_RUN_BUSY"])
    assert "run --resume r" in answer.envelope["errors"][0]["hint"]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--nosuch"],
        ["run", "demo", "--jobs", "0"],
        ["run", "demo", "--jobs", "100000"],
        ["run", "demo", "--timeout", "abc"],
        ["run", "demo", "extra", "words"],
        ["report"],
        ["report", "a", "b"],
        ["report", "nosuch"],
        ["status", "nosuch"],
        ["verify", "nosuch"],
        ["explain", "nosuch", "a"],
        ["replay", "--failed", "nosuch"],
        ["replay", "nosuch"],
        ["run", "--resume", "nosuch"],
        ["jobs", "get", "nosuch"],
        ["jobs", "get"],
        ["jobs", "nosuch"],
        ["validate", "nosuch"],
        ["schema", "nosuch"],
        ["robot-docs", "nosuch"],
        ["nosuch"],
    ],
    ids=" ".join,
)
def test_wrong_input_exits_1(project: Project, words: list[str]) -> None:
    project.suite(cases=[case()], runner=RUNNER)
    answer = project.call(*words)
    assert answer.exit_code == 1
    record = answer.envelope["errors"][0]
    assert record["exit_code"] == 1
    assert record["hint"]
    assert "Traceback" not in answer.stderr


def test_replay_exits_6_for_what_still_fails_and_0_when_nothing_is_left(project: Project) -> None:
    project.suite(cases=[case(), case("no")], runner=RUNNER)
    project.call("run", "demo", "--run-id", "r")
    answer = project.call("replay", "--failed", "r", "--run-id", "again", "--fail-on-fail")
    assert (answer.exit_code, answer.data["cases_replayed"]) == (6, 1)
    project.suite("good", cases=[case()], runner=RUNNER)
    project.call("run", "good", "--run-id", "g")
    nothing = project.call("replay", "--failed", "g", "--fail-on-fail")
    assert (nothing.exit_code, nothing.warning_codes) == (0, ["W_NOTHING_TO_REPLAY"])


def test_damaged_run_exits_1_in_verify(project: Project) -> None:
    project.suite(cases=[case()], runner=RUNNER)
    project.call("run", "demo", "--run-id", "r")
    assert project.call("verify", "r").exit_code == 0
    project.artifact("r", "ok", "output.txt").write_text("other")
    answer = project.call("verify", "r")
    assert (answer.exit_code, answer.data["ok"]) == (1, False)


def test_every_declared_exit_code_is_documented() -> None:
    for verb in VERBS.values():
        assert set(verb.exit_codes) <= set(EXIT_CODES)
    assert {entry["exit"] for entry in CODES.values() if "exit" in entry} <= set(EXIT_CODES)


def test_every_error_class_is_in_the_registry_with_its_exit_code() -> None:
    from evalwright import errors

    for name in errors.__all__:
        cls = getattr(errors, name)
        if issubclass(cls, errors.EvalwrightError) and cls is not errors.EvalwrightError:
            assert CODES[cls.code]["exit"] == cls.exit_code, name


def test_module_and_program_are_the_same(project: Project) -> None:
    assert Path(sys.executable).with_name("evalwright").is_file()
    assert project.call("--version").exit_code == 0
