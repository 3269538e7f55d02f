"""What an agent does to its workspace: nothing of it is invisible, and nothing outside is read, changed or deleted."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened

from evalwright.coordinate import RunOutcome, RunRequest, Stop, run_suite
from evalwright.errors import EvalwrightError
from evalwright.hooks import Observers
from evalwright.report import Projection
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.suite import load_suite
from evalwright.testing import within

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
DIFF = {"use": "workspace-diff"}


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


def carry_out(project: Project, suite: Path, **settings: Any) -> Projection:
    """Run a suite in this process."""
    evals = project.path / "evals"
    request = RunRequest(
        checked=load_suite(suite),
        layout=Layout(evals, evals / "runs"),
        settings=Settings(evals=evals, jobs=4, **settings),
        run_id="r",
    )

    def run() -> RunOutcome:
        return run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=ignored)

    return within(20, run, "the run").report


def judged(report: Projection) -> dict[str, tuple[str, str | None]]:
    return {case.id: (case.status, case.fault) for case in report.cases}


@pytest.fixture
def outside(project: Project) -> Path:
    """Return a directory that no trial may read or change."""
    directory = project.path / "outside"
    (directory / "closed").mkdir(parents=True)
    (directory / "precious").write_text("precious content\n")
    (directory / "closed").chmod(0o500)
    return directory


def test_workspace_replaced_by_a_link_is_the_agents_error_and_what_it_leads_to_stays_unread(
    project: Project, shell_runner: Shell, outside: Path
) -> None:
    line = f'cd ..; rm -rf "$EVALWRIGHT_WORKSPACE"; ln -s {outside} "$EVALWRIGHT_WORKSPACE"'
    cases = [{"id": "a", "expect": {"files_forbidden": ["nothing"]}}]
    suite = project.suite(runner=shell_runner(line), scorers=[DIFF], cases=cases)

    report = carry_out(project, suite, keep_workspace="all")

    assert judged(report) == {"a": ("error", "agent")}
    assert b"precious" not in b"".join(p.read_bytes() for p in (project.run_dir("r") / "cases").rglob("*") if p.is_file())
    assert sorted(path.name for path in outside.iterdir()) == ["closed", "precious"]


def test_removed_workspace_is_the_agents_error_and_the_run_goes_on(project: Project, shell_runner: Shell) -> None:
    line = 'case $(cat "$EVALWRIGHT_TASK_FILE") in evil) cd /; rm -rf "$EVALWRIGHT_WORKSPACE";; esac; printf ok'
    cases = [{"id": "a", "task": "evil", "expect": {"exact": "ok"}}, {"id": "b", "expect": {"exact": "ok"}}]
    suite = project.suite(runner=shell_runner(line), cases=cases)

    report = carry_out(project, suite, keep_workspace="all")

    assert judged(report) == {"a": ("error", "agent"), "b": ("pass", None)}


def test_whole_trial_directory_removed_is_the_agents_error(project: Project, shell_runner: Shell) -> None:
    line = 'cd /; rm -rf "$(dirname "$EVALWRIGHT_WORKSPACE")"; printf ok'
    suite = project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": "ok"}}])

    assert judged(carry_out(project, suite)) == {"a": ("error", "agent")}


@pytest.mark.parametrize(
    "line",
    [
        "mkfifo pipe; ln -s pipe link; mkdir -p a/b; ln -s .. a/b/up; ln -s loop loop",
        "mknod zero c 1 5 2>/dev/null; ln -s /dev/zero z; ln -s /proc/self/fd fds",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
        "i=0; while [ $i -lt 300 ]; do mkdir d$i; cd d$i; i=$((i+1)); done",
        "chmod 000 a.txt; mkdir x; touch x/y; chmod 000 x; chmod 000 .",
    ],
    ids=["fifo and loops", "devices", "socket", "deep", "locked"],
)
def test_odd_files_of_an_agent_are_recorded_and_break_neither_scoring_nor_keeping(
    project: Project, shell_runner: Shell, line: str
) -> None:
    command = {"use": "command", "id": "cmd", "argv": ["/bin/echo", '{"ok":true,"score":1,"findings":[]}']}
    tests = {"use": "tests", "argv": ["/bin/true"]}
    cases = [{"id": "a", "expect": {"files_forbidden": ["none"]}}]
    suite = project.suite(runner=shell_runner(line), scorers=[DIFF, command, tests], cases=cases)

    report = carry_out(project, suite, keep_workspace="all")

    assert judged(report) == {"a": ("pass", None)}
    assert project.artifact("r", "a", "workspace").is_dir()


def test_forbidden_file_whose_name_is_not_utf8_is_seen(project: Project, shell_runner: Shell) -> None:
    line = "python3 -c \"open(b'secret\\xff', 'w').write('x')\""
    cases = [{"id": "a", "expect": {"files_forbidden": ["secret*"]}}]
    suite = project.suite(runner=shell_runner(line), scorers=[DIFF], cases=cases)

    report = carry_out(project, suite)

    assert judged(report) == {"a": ("fail", None)}
    entry = next(item for item in project.record("r", "a", "workspace-after.json")["entries"] if item["path"] != "a.txt")
    assert entry["path"] == "secret\\xff"
    assert base64.b64decode(entry["path_b64"]) == b"secret\xff"


def test_forbidden_file_cannot_hide_behind_the_shown_name_of_another(project: Project, shell_runner: Shell) -> None:
    line = "python3 -c \"open(b'k\\xff', 'w').write(open('k\\\\\\\\xff').read())\""
    cases = [{"id": "a", "expect": {"files_forbidden": ["k*"]}}]
    suite = project.suite(runner=shell_runner(line), scorers=[DIFF], cases=cases, files={"fixtures/w/k\\xff": "same"})

    report = carry_out(project, suite)

    assert len(project.record("r", "a", "workspace-after.json")["entries"]) == 3
    assert judged(report) == {"a": ("fail", None)}


def test_changed_mode_of_a_file_is_in_the_record(project: Project, shell_runner: Shell) -> None:
    suite = project.suite(runner=shell_runner("chmod 777 a.txt"), cases=[{"id": "a", "expect": {"exact": ""}}])

    carry_out(project, suite)

    before, after = (project.record("r", "a", f"workspace-{when}.json")["entries"][0] for when in ("before", "after"))
    assert (before["mode"], after["mode"]) == (0o644, 0o777)


def test_new_deleted_and_renamed_files_are_in_the_diff_and_the_agents_index_stays(
    project: Project, shell_runner: Shell, require: Callable[[str], None]
) -> None:
    require("git")
    line = (
        "git init -q . && git add -A && touch staged && git add staged && sha256sum .git/index; "
        "echo new > new.py; rm old.py; mv a.txt b.txt; echo edited >> e.py"
    )
    files = {"fixtures/w/old.py": "old\n", "fixtures/w/e.py": "e\n"}
    suite = project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": "never"}}], files=files)

    carry_out(project, suite, keep_workspace="all")

    diff = project.artifact("r", "a", "workspace.diff").read_bytes()
    target = project.path / "target"
    subprocess.run(["cp", "-r", str(suite / "fixtures/w"), str(target)], check=True)
    subprocess.run(["git", "apply", "-"], cwd=target, input=diff, check=True, env={"PATH": os.environ["PATH"]})
    names = sorted(path.name for path in target.iterdir())
    assert names == ["b.txt", "e.py", "new.py", "staged"]
    assert b".git/" not in diff
    kept = project.artifact("r", "a", "workspace") / ".git/index"
    shown = project.artifact("r", "a", "output.txt").read_text().split()[0]
    assert subprocess.run(["sha256sum", str(kept)], capture_output=True, text=True, check=True).stdout.split()[0] == shown


def test_many_files_are_recorded_completely(project: Project, shell_runner: Shell) -> None:
    line = "for d in $(seq 40); do mkdir d$d; (cd d$d; for f in $(seq 50); do echo $f > f$f; done); done"
    suite = project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": ""}}])

    carry_out(project, suite)

    assert len(project.record("r", "a", "workspace-diff.json")["changed_paths"]) == 40 * 51


def test_trial_directories_are_gone_after_the_run(project: Project, shell_runner: Shell) -> None:
    place = project.path / "workspaces"
    place.mkdir()
    line = "mkdir -p a/b; touch a/b/c; chmod 000 a/b a; ln -s / root"
    suite = project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": ""}}])

    carry_out(project, suite, workspaces=place)

    assert [path for path in place.rglob("*") if path.parent != place] == []


def test_evidence_is_not_written_through_what_an_agent_left_in_a_bundle_directory(project: Project) -> None:
    outside = project.path / "victim"
    outside.write_text("precious")
    suite = project.suite(runner={"argv": ["/bin/echo", "x"]}, cases=[{"id": "a", "expect": {"exact": "x\n"}}])
    line = f"mkdir -p {project.run_dir('r')}/cases/a; ln -s {outside} {project.run_dir('r')}/cases/a/output.txt; echo x"
    document = json.loads((suite / "suite.json").read_text()) | {"runner": {"shell": True, "command": line}}
    (suite / "suite.json").write_text(json.dumps(document))

    with contextlib.suppress(EvalwrightError):  # a refusal is as good as a clean run; a write through the link is not
        assert carry_out(project, suite).cases[0].status in {"pass", "error"}

    assert outside.read_text() == "precious"


@pytest.fixture
def call_unprivileged(project: Project, require: Callable[[str], None]) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Return what calls the command line as a user for whom permissions count; root loses that privilege for it."""
    drop: list[str] = []
    if os.getuid() == 0:
        require("setpriv")
        drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"]

    def call(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [*drop, sys.executable, "-m", "evalwright", *words]
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        return subprocess.run(command, cwd=project.path, env=environment, capture_output=True, timeout=120)

    return call


LOCKED_LINES = {
    "file": "echo x > new; chmod 000 new a.txt",
    "directory": "mkdir d; echo x > d/new; chmod 000 d",
    "no search": "mkdir d; echo x > d/new; chmod 444 d",
    "no listing": "mkdir d; echo x > d/new; chmod 300 d",
    "nested": "mkdir -p d/e; echo x > d/e/new; chmod 000 d/e d",
    "root": "echo x > new; chmod 000 .",
}


@pytest.mark.parametrize("name", shortened(LOCKED_LINES, ["directory", "root"]))
def test_forbidden_file_behind_closed_permissions_is_seen(
    project: Project, shell_runner: Shell, call_unprivileged: Callable[..., Any], name: str
) -> None:
    cases = [{"id": "a", "expect": {"files_forbidden": ["**/new", "new"]}}]
    project.suite(runner=shell_runner(LOCKED_LINES[name]), scorers=[DIFF], cases=cases)

    done = call_unprivileged("run", "demo", "--run-id", "r", "--json")

    assert done.returncode == 0, done.stderr
    assert project.record("r", "a", "score.json")["status"] == "fail"
    assert b"W_SANDBOX_LEFT" not in done.stdout


@pytest.mark.parametrize("name", shortened(LOCKED_LINES, ["nested", "root"]))
def test_closed_permissions_do_not_keep_a_grader_from_its_clone(
    project: Project, shell_runner: Shell, call_unprivileged: Callable[..., Any], name: str
) -> None:
    scorer = {"use": "command", "id": "c", "argv": ["/bin/echo", '{"ok":true,"score":1,"findings":[]}']}
    project.suite(runner=shell_runner(LOCKED_LINES[name]), scorers=[scorer], cases=[{"id": "a"}])

    done = call_unprivileged("run", "demo", "--run-id", "r", "--json")

    assert done.returncode == 0, done.stderr
    score = project.record("r", "a", "score.json")
    assert score["status"] == "pass", score["scores"]
    assert b"+x" in project.artifact("r", "a", "workspace.diff").read_bytes()


def test_workspaces_of_an_agent_that_locks_its_files_are_removed(
    project: Project, shell_runner: Shell, call_unprivileged: Callable[..., Any]
) -> None:
    line = 'mkdir -p "$HOME/d/e/f"; touch "$HOME/d/e/f/g"; chmod 000 "$HOME/d/e/f" "$HOME/d/e" "$HOME/d"; pwd'
    project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": ""}}])

    done = call_unprivileged("run", "demo", "--run-id", "r", "--json")

    workspace = Path(project.artifact("r", "a", "output.txt").read_text().strip())
    left = workspace.parent.exists()
    subprocess.run(["rm", "-rf", str(workspace.parent)], check=True)
    assert not left, done.stdout
