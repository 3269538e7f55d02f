"""The nine promises about processes, each seen from outside: a command line, files, and ``/proc``.

1 a background child does not delay its trial, 2 nor survive it; 3 a timeout ends whatever detached or ignores it; 4 a flood
of output takes bounded memory; 5 a runner's input is empty; 6 Ctrl-C exits 130, 7 and the run goes on; 8 a kill of the
harness leaves no orphan, 9 and the run goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
TASK = '. "$EVALWRIGHT_TASK_FILE"'
SLACK_SECONDS = 5.0
RUN = ("run", "demo", "--run-id", "r", "--json", "--jobs", "1")
RESUME = ("run", "--resume", "r", "--json")


def until(condition: Callable[[], object], seconds: float) -> bool:
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def living(pids: Path) -> list[int]:
    """Return those processes named in a file that still run; zombies do not."""
    found: list[int] = []
    for word in pids.read_text().split() if pids.exists() else ():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{word}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found.append(int(word))
    return found


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """Return a file in which runners note their pids; what still lives at the end of the test is killed."""
    file = tmp_path / "pids"
    yield file
    for pid in living(file):
        os.kill(pid, signal.SIGKILL)


def test_1_background_child_that_holds_the_output_does_not_delay_its_trial(project: Project, shell_runner: Shell) -> None:
    project.suite(runner=shell_runner("sleep 60 & echo done"), cases=[{"id": "a", "expect": {"exact": "done\n"}}])

    assert project.call(*RUN).data["run"]["status_counts"]["pass"] == 1

    assert project.record("r", "a", "runner.json")["duration_ms"] < SLACK_SECONDS * 1000


def test_2_background_child_does_not_survive_its_trial(project: Project, shell_runner: Shell, pids: Path) -> None:
    both = f"setsid sh -c 'echo $$ >> {pids}; sleep 60; sleep 60' & sleep 60 & echo $! >> {pids}"
    line = f"{both}; until [ $(wc -l < {pids}) = 2 ]; do :; done"
    project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": ""}}])

    assert project.call(*RUN).data["run"]["status_counts"]["pass"] == 1

    assert len(pids.read_text().split()) == 2
    assert living(pids) == []


def test_3_timeout_ends_detached_children_that_ignore_it_within_its_grace_time(
    project: Project, shell_runner: Shell, pids: Path
) -> None:
    child = f"setsid sh -c 'trap \"\" TERM INT HUP; echo $$ >> {pids}; sleep 60; sleep 60' &"
    line = f"trap '' TERM; {child} {child} echo $$ >> {pids}; sleep 60; sleep 60"
    project.suite(runner=shell_runner(line, timeout_seconds=2), cases=[{"id": "a", "expect": {"exact": ""}}])
    started = time.monotonic()

    assert project.call(*RUN).data["run"]["status_counts"]["error"] == 1

    assert time.monotonic() - started < 2 + 1 + SLACK_SECONDS
    assert project.record("r", "a", "runner.json")["timed_out"]
    assert len(pids.read_text().split()) == 3
    assert living(pids) == []


def peak_mib(project: Project, shell_runner: Shell, name: str, size: int) -> float:
    """Return the harness's own peak of memory after a trial with so much output, read while the next trial waits."""
    waits, go = project.path / f"{name}.waits", project.path / f"{name}.go"
    tasks = {"a": f"head -c {size} /dev/zero", "b": f"echo x > {waits}; until [ -e {go} ]; do sleep 0.05; done"}
    cases = [{"id": case, "task": task, "expect": {"exit_code": 0}} for case, task in tasks.items()]
    project.suite(name, runner=shell_runner(TASK, max_output_bytes=1000), cases=cases)
    process = project.start("run", name, "--run-id", name, "--json", "--jobs", "1")
    try:
        assert until(waits.exists, 25)
        (peak,) = (line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        go.touch()
        assert json.loads(process.communicate(timeout=120)[0])["data"]["run"]["status_counts"]["pass"] == 2
    finally:
        process.kill()
        process.communicate()
    assert project.record(name, "a", "runner.json")["stdout_bytes"] == size
    return int(peak.split()[1]) / 1024


def test_4_flood_of_300_mb_takes_no_more_memory_than_a_few_bytes(project: Project, shell_runner: Shell) -> None:
    small = peak_mib(project, shell_runner, "small", 2)

    large = peak_mib(project, shell_runner, "large", 300_000_000)

    assert large < 200
    assert large - small < 40


def test_5_runner_s_input_is_empty_and_the_caller_s_is_left_alone(project: Project, shell_runner: Shell) -> None:
    project.suite(runner=shell_runner("cat"), cases=[{"id": "a", "expect": {"exact": ""}}])
    reader, writer = os.pipe()
    os.write(writer, b"of the caller")
    os.close(writer)
    with open(reader, "rb") as given:
        command = [sys.executable, "-m", "evalwright", *RUN]
        done = subprocess.run(command, cwd=project.path, stdin=given, capture_output=True, timeout=120, check=True)

        assert given.read() == b"of the caller"
    assert json.loads(done.stdout)["data"]["run"]["status_counts"]["pass"] == 1


class Cut:
    """A run that hangs in its second trial, until the file ``go`` exists, beside a child that ignores every polite signal."""

    def __init__(self, project: Project, shell_runner: Shell, pids: Path) -> None:
        self.project = project
        go = project.path / "go"
        child = f"setsid sh -c 'trap \"\" TERM INT HUP; echo $$ >> {pids}; sleep 60; sleep 60' &"
        hang = f"[ -e {go} ] || {{ trap '' TERM INT; {child} echo $$ >> {pids}; sleep 60; sleep 60; }}"
        cases = [{"id": case, "task": task, "expect": {"exact": ""}} for case, task in (("a", "true"), ("b", hang))]
        project.suite(runner=shell_runner(TASK), cases=cases)
        self.process = project.start(*RUN)
        assert until(lambda: len(living(pids)) == 2, 20)
        go.touch()

    def end(self, number: signal.Signals) -> int:
        """Send the harness a signal and return its exit status."""
        self.process.send_signal(number)
        self.process.communicate(timeout=120)
        return self.process.returncode

    def resume(self) -> dict[str, int]:
        counts: dict[str, int] = self.project.call(*RESUME).data["run"]["status_counts"]
        return counts


@pytest.fixture
def cut(project: Project, shell_runner: Shell, pids: Path) -> Iterator[Cut]:
    run = Cut(project, shell_runner, pids)
    yield run
    run.process.kill()
    run.process.communicate()


def test_6_ctrl_c_exits_130_and_leaves_nothing(cut: Cut, pids: Path) -> None:
    assert cut.end(signal.SIGINT) == 130
    assert living(pids) == []


def test_7_interrupted_run_goes_on_at_once(cut: Cut) -> None:
    cut.end(signal.SIGINT)
    assert cut.resume() == {"pass": 2, "fail": 0, "error": 0}


def test_8_killed_harness_leaves_no_orphan(cut: Cut, pids: Path) -> None:
    assert cut.end(signal.SIGKILL) == -signal.SIGKILL
    assert until(lambda: not living(pids), 2)


def test_9_run_of_a_killed_harness_goes_on_at_once(cut: Cut, pids: Path) -> None:
    cut.end(signal.SIGKILL)
    assert cut.resume() == {"pass": 2, "fail": 0, "error": 0}
    assert living(pids) == []
