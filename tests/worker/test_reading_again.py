"""How a workspace is made and read again: every way gives the same record, and everything is read where that is asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.workspace.overlay import can_overlay

if TYPE_CHECKING:
    from tests.conftest import Project

FIXTURE = {f"fixtures/w/d{number % 4}/f{number}": f"{number}\n" for number in range(220)}
EDITS = """
set -e
printf 9 | dd of=d0/f0 conv=notrunc status=none; touch -r d0/f4 d0/f0
rm d1/f1; mv d2 moved; rm -r d3; echo file > d3; ln -s d0 link; chmod 755 d0/f8; mkfifo pipe; echo new > new
"""
BELOW = "for base in ../../*/b; do mount -o remount,bind,rw $base; echo tampered > $base/d0/f0; done"
SANDBOX = """
from evalwright.interfaces import LocalSession, Sandbox
from evalwright.processes import Supervisor
from dataclasses import replace


class RestoringSandbox(Sandbox):
    api = "sandbox/1.0"

    def __init__(self, config, host):
        super().__init__(config, host)
        self._supervisor = Supervisor()

    def open(self, request):
        return RestoringSession(request, self._supervisor)

    def close(self, deadline):
        self._supervisor.close()


class RestoringSession(LocalSession):
    restored = True

    def __init__(self, request, supervisor):
        super().__init__(request)
        self._supervisor = supervisor

    def execute(self, command):
        cwd = str(self.host_path(command.cwd or self.workspace))
        process = self._supervisor.start(replace(command, cwd=cwd))
        with self.running(process):
            return process.wait()
"""


@pytest.fixture
def overlays(tmp_path: Path) -> None:
    """Skip where overlays cannot be mounted; with EVALWRIGHT_REQUIRE_ALL=1 root must be able to."""
    if can_overlay(tmp_path):
        return
    if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1" and os.geteuid() == 0:
        pytest.fail("overlays cannot be mounted")
    pytest.skip("overlays cannot be mounted here")


def ran(project: Project, name: str, command: str, *flags: str, env: dict[str, str], **suite: Any) -> None:
    """Run a suite of one case whose agent is a shell line; the run has the suite's name."""
    files = FIXTURE | suite.pop("files", {})
    runner = {"shell": True, "command": command}
    scorers = [{"use": "exit-code", "exit_code": 0}]
    project.suite(name, runner=runner, files=files, cases=[{"id": "one"}], scorers=scorers, **suite)
    answer = project.call("run", name, "--run-id", name, *flags, "--format", "json", env=env)
    assert answer.exit_code == 0, answer.stdout
    assert answer.data["run"]["status_counts"]["pass"] == 1, answer.stdout


@pytest.mark.usefixtures("overlays")
def test_each_way_of_making_a_workspace_gives_the_same_record(project: Project) -> None:
    names = {"by-copy": "copy", "by-overlay": "overlay", "by-itself": "auto"}
    for name, way in names.items():
        ran(project, name, EDITS, env={"EVALWRIGHT_CLONE": way})

    artifacts = ("workspace-before.json", "workspace-after.json", "workspace-diff.json", "workspace.diff")
    contents = [[project.artifact(name, "one", artifact).read_bytes() for artifact in artifacts] for name in names]
    changed = {change["path"]: change["status"] for change in project.record("by-copy", "one", artifacts[2])["changed_paths"]}

    assert contents[0] == contents[1] == contents[2]
    assert (changed["d0/f0"], changed["d1/f1"], changed["d3"], changed["moved/f2"]) == (
        "modified",
        "deleted",
        "modified",
        "added",
    )


@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize(
    ("flags", "env", "sandbox"),
    [
        (["--paranoid"], {}, None),
        ([], {"EVALWRIGHT_PARANOID": "1"}, None),
        ([], {}, {"use": "restoring.py:RestoringSandbox"}),
    ],
    ids=["flag", "variable", "restored"],
)
def test_write_below_an_overlay_that_root_opened_by_force_is_seen_when_all_is_read_again(
    project: Project, flags: list[str], env: dict[str, str], sandbox: dict[str, str] | None
) -> None:
    suite: dict[str, Any] = {"files": {"restoring.py": SANDBOX}} | ({"sandbox": sandbox} if sandbox else {})

    ran(project, "demo", BELOW, *flags, env={"EVALWRIGHT_CLONE": "overlay", **env}, **suite)

    changed = [change["path"] for change in project.record("demo", "one", "workspace-diff.json")["changed_paths"]]
    assert changed == ["d0/f0"]


@pytest.mark.usefixtures("overlays")
@pytest.mark.parametrize(
    ("damage", "path"),
    [
        ("echo tampered > $base/d0/f0", "d0/f0"),
        ("rm $base/d0/f4", "d0/f4"),
        ("echo new > $base/d1/new", "d1/new"),
        ("echo new > $base/new", "new"),
    ],
)
def test_nothing_below_an_overlay_can_be_changed(project: Project, damage: str, path: str) -> None:
    begin = "cat d0/f0 > seen; ls -AlR d0 d1 | awk 'NF > 8 {print $1, $9}' >> seen; ls >> seen"
    damaged = f"for base in ../../*/b; do ({damage}) 2>> refused; done"
    cases = [{"id": "one"}, {"id": "two"}]
    runner = {"shell": True, "command": f"{begin}; {damaged}; exit 0"}
    project.suite(runner=runner, files=FIXTURE, cases=cases, scorers=[{"use": "exit-code", "exit_code": 0}])

    project.call("run", "demo", "--run-id", "r", "--jobs", "1", "--json", env={"EVALWRIGHT_CLONE": "overlay"})

    for case in ("one", "two"):
        changes = project.record("r", case, "workspace-diff.json")["changed_paths"]
        assert {change["path"] for change in changes} == {"refused", "seen"}, path
        assert "Read-only file system" in (project.run_dir("r") / "cases" / case / "workspace.diff").read_text()
    one, two = (
        next(c for c in project.record("r", case, "workspace-diff.json")["changed_paths"] if c["path"] == "seen")
        for case in ("one", "two")
    )
    assert one == two


def test_way_that_is_impossible_refuses_the_run_before_anything_starts(project: Project) -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or memory.stat().st_dev == project.path.stat().st_dev:
        pytest.skip("there is no second file system")
    project.suite(cases=[{"id": "one"}], scorers=[{"use": "exit-code", "exit_code": 0}])
    env = {"EVALWRIGHT_CLONE": "reflink", "EVALWRIGHT_WORKSPACES": str(memory)}

    answer = project.call("run", "demo", "--run-id", "r", "--format", "json", env=env)

    (error,) = answer.envelope["errors"]
    assert (answer.exit_code, error["code"]) == (1, "E_CASE_INVALID")
    assert "EVALWRIGHT_CLONE=reflink is impossible" in error["message"]
    assert "copy or auto" in error["hint"]
    assert not (project.path / "evals/runs/r").exists()
    assert project.call("run", "demo", "--run-id", "r", env=env | {"EVALWRIGHT_CLONE": "copy"}).exit_code == 0
