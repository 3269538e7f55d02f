"""Runs that are cut: by Ctrl-C, by TERM, by KILL, by two at once. Nothing lives on, nothing is lost, and the run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.ledger import read_events
from evalwright.testing import soon

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


def living(file: Path) -> list[int]:
    """Return those processes named in a file that still run; zombies do not."""
    pids = [int(word) for word in file.read_text().split()] if file.exists() else []
    return [pid for pid in pids if state_of(pid) not in {"", "Z", "X"}]


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


class Scene:
    """A suite of five cases: the first two end at once, the others hang until the file ``go`` exists."""

    def __init__(self, project: Project, shell_runner: Shell) -> None:
        self.project = project
        self.pids = project.path / "pids"
        self.go = project.path / "go"
        self.started = project.path / "started"
        self.scratch = project.path / "scratch"
        self.scratch.mkdir()
        line = (
            f'task=$(cat "$EVALWRIGHT_TASK_FILE"); echo $task >> {self.started}; echo x > new; '
            f"case $task in t0|t1) ;; *) if [ ! -e {self.go} ]; then echo $$ >> {self.pids}; "
            f"setsid sh -c 'trap \"\" TERM INT HUP; echo $$ >> {self.pids}; sleep 60' & trap '' TERM INT; sleep 60; sleep 60; "
            "fi;; esac; printf $task"
        )
        cases = [{"id": f"c{number}", "task": f"t{number}", "expect": {"exact": f"t{number}"}} for number in range(5)]
        project.suite(runner=shell_runner(line, timeout_seconds=100), scorers=[{"use": "exact"}], cases=cases)
        self.environment = EPOCH | {"EVALWRIGHT_WORKSPACES": str(self.scratch)}

    def start(self) -> subprocess.Popen[bytes]:
        """Start the run with two trials at once and return once the first two are done and two others hang."""
        process = self.project.start("run", "demo", "--run-id", "r", "--jobs", "2", "--json", env=self.environment)
        assert soon(lambda: self.finished() == {"c0", "c1"} and len(living(self.pids)) == 4, 15)
        return process

    def finished(self) -> set[str]:
        path = self.project.run_dir("r") / "ledger.jsonl"
        events = read_events(path) if path.exists() else []
        return {event["data"]["case"] for event in events if event["type"] == "TRIAL_FINISHED"}

    def resume(self) -> Any:
        self.go.touch()
        return self.project.call("run", "--resume", "r", "--json", env=self.environment)

    def manifest(self) -> bytes:
        return (self.project.run_dir("r") / "manifest.json").read_bytes()

    def whole_manifest(self) -> bytes:
        """Return the manifest of an uninterrupted run of the same id."""
        self.go.touch()
        self.project.run_dir("r").rename(self.project.path / "aside")
        words = ("run", "demo", "--run-id", "r", "--jobs", "2", "--json")
        assert self.project.call(*words, env=self.environment).exit_code == 0
        return self.manifest()

    def end(self) -> None:
        for pid in living(self.pids):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def scene(project: Project, shell_runner: Shell) -> Iterator[Scene]:
    scene = Scene(project, shell_runner)
    yield scene
    scene.end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_stopped_run_dispatches_nothing_more_leaves_nothing_alive_and_resumes_to_the_same_manifest(
    scene: Scene, number: signal.Signals
) -> None:
    process = scene.start()

    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)

    assert process.returncode == 130
    answer = json.loads(stdout)
    assert answer["ok"] is False
    assert "--resume r" in answer["errors"][0]["hint"]
    assert b"Traceback" not in stderr
    assert living(scene.pids) == []
    assert sorted(scene.started.read_text().split()) == ["t0", "t1", "t2", "t3"]
    assert scene.finished() == {"c0", "c1"}
    assert list(scene.scratch.glob("*/*")) == []
    resumed = scene.resume()
    assert resumed.exit_code == 0, resumed.stdout
    assert resumed.data["run"]["status_counts"]["pass"] == 5
    assert "W_RESERVATION_RECLAIMED" not in resumed.warning_codes
    assert sorted(scene.started.read_text().split()) == ["t0", "t1", "t2", "t2", "t3", "t3", "t4"]
    assert scene.manifest() == scene.whole_manifest()


def test_killed_harness_leaves_nothing_alive_and_the_run_is_reclaimed_and_finished(scene: Scene) -> None:
    process = scene.start()

    process.kill()
    process.communicate(timeout=120)

    assert soon(lambda: not living(scene.pids), 2)
    resumed = scene.resume()
    assert resumed.exit_code == 0, resumed.stdout
    assert "W_RESERVATION_RECLAIMED" in resumed.warning_codes
    assert resumed.data["run"]["status_counts"]["pass"] == 5
    assert sorted(scene.started.read_text().split()) == ["t0", "t1", "t2", "t2", "t3", "t3", "t4"]
    assert list(scene.scratch.glob("*/*")) == []
    assert scene.manifest() == scene.whole_manifest()


def test_second_interrupt_ends_at_once_and_still_leaves_nothing_alive(scene: Scene) -> None:
    process = scene.start()

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)

    assert process.returncode == 130
    assert soon(lambda: not living(scene.pids), 2)
    assert scene.resume().data["run"]["status_counts"]["pass"] == 5


def test_interrupt_of_the_whole_process_group_as_a_terminal_sends_it(scene: Scene) -> None:
    process = subprocess.Popen(
        ["setsid", "--wait", sys.executable, "-m", "evalwright", *("run", "demo", "--run-id", "r", "--jobs", "2", "--json")],
        cwd=scene.project.path,
        env=dict(os.environ) | scene.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert soon(lambda: scene.finished() == {"c0", "c1"} and len(living(scene.pids)) == 4, 15)
    leader = json.loads((scene.project.run_dir("r") / ".reservation.json").read_bytes())["pid"]

    os.killpg(os.getpgid(leader), signal.SIGINT)
    stdout, _ = process.communicate(timeout=120)

    assert json.loads(stdout)["errors"][0]["exit_code"] == 130
    assert living(scene.pids) == []


def test_interrupt_during_scoring_ends_the_scorer_and_runs_the_trial_again(project: Project, shell_runner: Shell) -> None:
    pids, go = project.path / "pids", project.path / "go"
    line = f'if [ ! -e {go} ]; then echo $$ >> {pids}; sleep 60; fi; echo \'{{"ok":true,"score":1,"findings":[]}}\''
    scorer = {"use": "command", "id": "slow", "shell": True, "command": line, "timeout_seconds": 100}
    project.suite(runner=shell_runner("true"), scorers=[scorer], cases=[{"id": "a"}])
    process = project.start("run", "demo", "--run-id", "r", "--json")
    try:
        assert soon(lambda: living(pids), 15)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 130
        assert living(pids) == []
    finally:
        process.kill()
        process.communicate()
    go.touch()

    assert project.call("run", "--resume", "r", "--json").data["run"]["status_counts"]["pass"] == 1


def test_of_two_simultaneous_resumes_exactly_one_runs(scene: Scene) -> None:
    process = scene.start()
    process.kill()
    process.communicate(timeout=120)
    assert soon(lambda: not living(scene.pids), 2)
    scene.go.touch()

    both = [scene.project.start("run", "--resume", "r", "--json", env=scene.environment) for _ in range(3)]
    answers = [json.loads(one.communicate(timeout=120)[0]) for one in both]

    codes = sorted(one.returncode for one in both)
    assert codes.count(0) >= 1
    assert set(codes) <= {0, 4}
    ran = [answer for answer in answers if answer["ok"] and not answer["data"].get("existing")]
    assert len(ran) == 1
    assert all(answer["errors"][0]["code"] == "E_RUN_BUSY" for answer in answers if not answer["ok"])
    assert sorted(scene.started.read_text().split()) == ["t0", "t1", "t2", "t2", "t3", "t3", "t4"]


def test_running_run_is_refused_to_a_resume_and_shown_as_running_under_a_frozen_clock(scene: Scene) -> None:
    process = scene.start()
    try:
        second = scene.project.call("run", "--resume", "r", "--json", env=scene.environment)
        assert (second.exit_code, second.error_codes) == (4, ["E_RUN_BUSY"])
        listed = scene.project.call("jobs", "list", "--json", env=scene.environment)
        (job,) = listed.data["runs"]
        assert job["state"] == "running"
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    assert soon(lambda: not living(scene.pids), 2)


def test_closed_output_pipe_does_not_leave_the_run_unfinished(project: Project, shell_runner: Shell) -> None:
    cases = [{"id": f"c{number}", "expect": {"exact": ""}} for number in range(3)]
    project.suite(runner=shell_runner("true"), cases=cases)
    process = project.start("run", "demo", "--run-id", "r")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()

    process.wait(20)

    assert (project.run_dir("r") / "manifest.json").is_file()
