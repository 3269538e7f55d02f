"""A workflow as the agent of a case: what is left in the workspace, what is kept, and how a run's end becomes a trial's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.workflow import test_runner_contract

from evalwright.errors import TrialError
from evalwright.ledger import read_events
from evalwright.model import TrialView
from evalwright.testing import FakeSandbox, FakeSession
from evalwright_plugins.workflow.record import Status, state_of

pytestmark = pytest.mark.acceptance

if TYPE_CHECKING:
    from tests.conftest import Answer, Project

COMMIT = "git add -A && git commit -q -m step"
STEPS: dict[str, Any] = {
    "name": "build and look",
    "steps": [{"id": "build"}, {"id": "verify", "readonly": True}],
    "transitions": [{"from": "verify", "on": "failed", "to": "build"}],
    "terminal": ["done"],
}
ONCE_AWAY = "test -e .git/came || { touch .git/came; exit 75; }"
ATTACKS = [
    "rm -rf .git",
    "rm -rf .git; ln -s VICTIM/.git .git",
    "rm -rf .git; echo 'gitdir: VICTIM/.git' > .git",
    f"echo b > a.txt; {COMMIT}; rm .git/index; ln -s VICTIM/.git/index .git/index",
    f"echo b > a.txt; {COMMIT}; echo VICTIM/.git/objects > .git/objects/info/alternates",
    "rm -rf .git/objects",
]


@pytest.fixture(params=["subprocess", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest, require: Callable[[str], None]) -> str:
    if request.param == "bubblewrap":
        require("bwrap")
    name: str = request.param
    return name


def shell(command: str) -> dict[str, Any]:
    return {"shell": True, "command": command}


def run(project: Project, build: str, verify: str = "true", *, suite: dict[str, Any] | None = None, **config: Any) -> Answer:
    workers = {"build": shell(build), "verify": shell(verify)}
    runner = {"use": "workflow", "workflow": STEPS, "workers": workers, **config}
    if not (project.path / "evals").exists():
        project.suite(runner=runner, cases=[{"id": "c", "expect": {"files_changed": ["a.txt"]}}], **(suite or {}))
    return project.call("run", "demo", "--run-id", "r")


def verdict(project: Project, run_id: str = "r") -> str:
    status: str = project.record(run_id, "c", "score.json")["status"]
    return status


def test_candidate_is_left_in_the_workspace_without_a_repository(project: Project, sandbox: str) -> None:
    build = f"echo b > a.txt && {COMMIT}"

    answer = run(project, build, "grep -q b a.txt", suite={"sandbox": sandbox})

    assert verdict(project) == "pass", answer.stdout
    diff = project.artifact("r", "c", "workspace.diff").read_text()
    assert "+b" in diff
    changed = project.record("r", "c", "workspace-diff.json")["changed_paths"]
    assert [change["path"] for change in changed] == ["a.txt"]
    assert state_of(project.artifact("r", "c", "artifacts/workflow.jsonl")).status is Status.SUCCEEDED


def test_what_is_not_committed_is_lost_and_what_git_ignores_stays_as_the_case_had_it(project: Project) -> None:
    files = {"fixtures/w/.gitignore": "kept/\njunk\nclosed/\n", "fixtures/w/kept/data": "given\n"}
    odd = "mkfifo fifo; mkdir closed; touch closed/f; chmod 000 closed .git/objects"
    build = f"echo b > a.txt; test -f kept/data; echo x > junk; mkdir -p empty/deep new; touch new/junk; {COMMIT}; {odd}"

    answer = run(project, build, suite={"files": files})

    assert verdict(project) == "pass", answer.stdout
    after = {entry["path"] for entry in project.record("r", "c", "workspace-after.json")["entries"]}
    assert after == {".gitignore", "a.txt", "kept", "kept/data"}


def git(directory: Path, *words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def test_repository_of_the_case_stays_and_its_branch_moves_to_the_candidate(project: Project) -> None:
    runner = {"use": "workflow", "workflow": STEPS, "workers": {"build": shell(f"echo b > a.txt; {COMMIT}")}}
    suite = project.suite(runner=runner | {"on_gate": "approve"}, cases=[{"id": "c", "expect": {"exit_code": 0}}])
    fixture = suite / "fixtures" / "w"
    git(fixture, "init", "-q", "-b", "trunk")
    git(fixture, "add", "-A")
    git(fixture, "commit", "-qm", "first")
    (fixture / "edited").write_text("not committed\n")

    answer = project.call("run", "demo", "--run-id", "r", "--keep-workspace", "all")

    assert verdict(project) == "pass", answer.stdout
    kept = project.artifact("r", "c", "workspace")
    assert git(kept, "symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert git(kept, "log", "--format=%s").splitlines() == ["step", "The case as it was given", "first"]
    assert git(kept, "status", "--porcelain") == ""
    assert (kept / "edited").read_text() == "not committed\n"


def test_failed_run_is_a_failed_trial_and_leaves_its_last_candidate(project: Project) -> None:
    answer = run(project, f"date +%N >> a.txt && {COMMIT}", "exit 1")

    assert verdict(project) == "fail", answer.stdout
    record = project.record("r", "c", "runner.json")
    assert (record["exit_code"], record["error"], record["runner"]["status"]) == (20, None, "FAILED")
    assert record["runner"]["reason"].endswith("more is not granted without a human or a program")
    (changed,) = project.record("r", "c", "workspace-diff.json")["changed_paths"]
    assert changed["path"] == "a.txt"


@pytest.mark.parametrize(
    ("command", "retries", "status"), [("exit 75", 0, "error"), (ONCE_AWAY, 1, "pass"), (ONCE_AWAY, 0, "error")]
)
def test_environment_that_is_not_there_is_nobody_s_failure(project: Project, command: str, retries: int, status: str) -> None:
    run(project, f"{command}; echo b > a.txt; {COMMIT}", retry={"infrastructure": retries, "backoff_seconds": 0.0})

    score = project.record("r", "c", "score.json")
    assert (score["status"], score.get("fault")) == (status, "harness" if status == "error" else None)
    assert project.artifact("r", "c", "artifacts/workflow.jsonl").is_file()


@pytest.mark.parametrize("command", ["kill -9 $$", "sleep 60", 'echo nonsense > "$EVALWRIGHT_OUTPUT_FILE"'])
def test_worker_that_crashes_hangs_or_babbles_has_failed_the_trial(project: Project, command: str) -> None:
    steps = STEPS | {"steps": [{"id": "build", "timeout": 1.0}, {"id": "verify"}]}

    answer = run(project, command, workflow=steps)

    assert verdict(project) == "fail", answer.stdout
    assert project.record("r", "c", "runner.json")["runner"]["metrics"]["infrastructure_failures"] == 1


def test_read_only_step_changes_nothing(project: Project, sandbox: str) -> None:
    answer = run(project, f"echo b > a.txt; {COMMIT}", "echo c > a.txt; echo c > ignored; true", suite={"sandbox": sandbox})

    statuses = [event["data"]["status"] for event in events(project) if event["type"] == "STEP_FINISHED"]
    assert ("blocked" in statuses) == (sandbox == "subprocess")
    assert verdict(project) == ("fail" if sandbox == "subprocess" else "pass"), answer.stdout


def test_scope_is_kept_where_nobody_can_allow_more(project: Project) -> None:
    run(project, f"echo b > a.txt; echo b > b.txt; {COMMIT}", scope=["a.txt"])

    assert verdict(project) == "fail"
    assert "outside the scope: b.txt" in project.record("r", "c", "runner.json")["runner"]["reason"]


def test_usage_of_all_steps_is_summed_and_bounded_together(project: Project) -> None:
    reported = json.dumps({"input": 40, "output": 20, "cost": 0.5})
    tell = f"echo '{reported}' > $EVALWRIGHT_USAGE_FILE"
    enveloped = f"echo '{json.dumps({'usage': json.loads(reported)})}' > $EVALWRIGHT_OUTPUT_FILE"

    run(project, f"echo b > a.txt; {COMMIT}; {tell}", enveloped)
    usage = project.record("r", "c", "runner.json")["usage"]
    assert (usage["input"], usage["output"], usage["cost"]) == (80, 40, 1.0)

    suite = project.path / "evals" / "suites" / "demo" / "suite.json"
    document = json.loads(suite.read_text())
    document["runner"]["workers"]["verify"] = shell(f"{tell}; sleep 60")
    suite.write_text(json.dumps(document | {"runner": document["runner"] | {"limits": {"tokens": 100}}}))
    project.call("run", "demo", "--run-id", "limited")

    error = project.record("limited", "c", "runner.json")["error"]
    assert (error["code"], error["kind"], error["value"]) == ("E_LIMIT", "tokens_limit", 120)


def test_usage_counts_where_an_agent_keeps_the_trial_s_file_away(project: Project) -> None:
    tell = """echo '{"input": 40, "output": 20}' > $EVALWRIGHT_USAGE_FILE"""
    run(project, f'mkdir "$(dirname "$EVALWRIGHT_ANSWER_FILE")/usage.json"; {tell}', limits={"tokens": 50})

    assert project.record("r", "c", "runner.json")["error"]["kind"] == "tokens_limit"


GATE = """
import json, sys
asked = json.load(sys.stdin)
says = "rejected" if asked["kind"] == "final-decision" else "approved"
print(json.dumps({"decision": says, "by": "robot", "reason": "not on a " + asked["kind"]}))
"""


def test_gates_are_answered_by_a_program_in_the_sandbox(project: Project, require: Callable[[str], None]) -> None:
    require("bwrap")
    gate = {"script": ["python3", "-I", "$EVALWRIGHT_AGENT/gate.py"]}
    suite = {"files": {"gate.py": GATE}, "sandbox": "bubblewrap"}

    answer = run(project, f"echo b > a.txt; {COMMIT}", suite=suite, files=["gate.py"], on_gate=gate, stop_at=["verify"])

    assert verdict(project) == "fail", answer.stdout
    details = project.record("r", "c", "runner.json")["runner"]
    assert details["reason"] == "enter-done was rejected by robot: not on a final-decision"
    assert (details["metrics"]["requests"], details["metrics"]["decisions"]) == (2, 2)


def test_gate_that_cannot_be_started_is_the_harness_s_fault(project: Project) -> None:
    run(project, f"echo b > a.txt; {COMMIT}", on_gate={"script": ["no-such-gate"]})

    trial = project.record("r", "c", "score.json")
    assert (trial["status"], trial["fault"]) == ("error", "harness")


@pytest.mark.parametrize("action", ["reject", "fail"])
def test_gates_say_no_to_everything_where_the_suite_says_so(project: Project, action: str) -> None:
    run(project, f"echo b > a.txt; {COMMIT}", on_gate=action)

    assert verdict(project) == "fail"
    assert project.record("r", "c", "runner.json")["runner"]["metrics"]["decisions"] == 1


def test_a_yes_that_changes_nothing_is_not_said_for_ever(project: Project) -> None:
    never = {"id": "never", "phase": "pre", "steps": ["build"], "when": {"evidence.exists": {"kind": "review"}}}

    run(project, "true", policies=[never])

    assert "has changed nothing" in project.record("r", "c", "runner.json")["runner"]["reason"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"on_gate": "ask"}, "on_gate"),
        ({"workflow": STEPS | {"entry": "biuld"}}, "did you mean build"),
        ({"workflow": "../elsewhere.yaml"}, "does not lie in the suite"),
        ({"workers": {"builder": {"argv": ["true"]}}}, "no step of that name"),
        ({"stop_at": ["nowhere"]}, "stop_at.nowhere"),
    ],
)
def test_what_cannot_work_is_refused_by_validate(project: Project, config: dict[str, Any], message: str) -> None:
    runner = {"use": "workflow", "workflow": STEPS, "workers": {"build": shell("true")}} | config
    project.suite(runner=runner, cases=[{"id": "c", "expect": {"exit_code": 0}}])

    answer = project.call("validate", "demo")

    assert answer.exit_code != 0
    assert message in answer.stdout


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"workflow": "missing.yaml"}, "there is no workflow missing.yaml"),
        ({"workers": {"build": {"use": "comand", "argv": ["true"]}}}, "comand"),
        ({"workers": {"build": {"argvs": ["true"]}}}, "did you mean argv"),
        ({"prompts": {"build": "file://missing.md"}}, "missing.md"),
    ],
)
def test_what_needs_files_or_plugins_is_refused_before_the_first_trial(
    project: Project, config: dict[str, Any], message: str
) -> None:
    runner = {"use": "workflow", "workflow": STEPS, "workers": {"build": shell("true")}} | config
    project.suite(runner=runner, cases=[{"id": "c", "expect": {"exit_code": 0}}])

    answer = project.call("run", "demo", "--run-id", "r")

    assert answer.exit_code != 0
    assert message in answer.stdout
    assert not project.run_dir("r").exists()


@pytest.mark.parametrize(
    ("sandbox", "attack"), [("subprocess", ATTACKS[1]), *(("bubblewrap", one) for one in ATTACKS)], indirect=["sandbox"]
)
def test_broken_repository_is_the_agent_s_failure_and_leads_nowhere(project: Project, sandbox: str, attack: str) -> None:
    victim = project.path / "victim"
    victim.mkdir()
    git(victim, "init", "-q")
    (victim / "f").write_text("f")
    git(victim, "add", "-A")
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}

    answer = run(project, attack.replace("VICTIM", str(victim)), suite={"sandbox": sandbox})

    assert verdict(project) == "fail", answer.stdout
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before
    assert state_of(project.artifact("r", "c", "artifacts/workflow.jsonl")).status is Status.FAILED
    assert not any(entry["path"] == ".git" for entry in project.record("r", "c", "workspace-after.json")["entries"])


def test_locks_of_a_killed_git_do_not_stop_the_next_step(project: Project) -> None:
    answer = run(project, f"echo b > a.txt; {COMMIT}; touch .git/index.lock .git/HEAD.lock", "git add -A")

    assert verdict(project) == "pass", answer.stdout


def test_workspace_that_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    class Elsewhere(FakeSession):
        in_place = False

    contract = test_runner_contract.TestWorkflowRunner()
    with contract.made() as runner, contract.context(tmp_path, "t") as context:
        sandbox = cast("FakeSandbox", context._sandbox)
        sandbox.open = lambda request: Elsewhere(request, sandbox.supervisor)  # type: ignore[method-assign]  # one test's own
        with pytest.raises(TrialError, match="keeps the workspace on this host"):
            runner.run(TrialView(id="case", task="t"), context)


def events(project: Project) -> list[dict[str, Any]]:
    return list(read_events(project.artifact("r", "c", "artifacts/workflow.jsonl")))
