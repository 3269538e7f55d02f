"""Processes that stay behind, hang, flood or attack: no trial waits for them, and none of them lives when scoring starts."""

from __future__ import annotations

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

from evalwright.coordinate import RunRequest, Stop, run_suite
from evalwright.hooks import Observers
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.suite import load_suite
from evalwright.testing import soon

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
ABOVE = "read _ _ _ sup _ < /proc/$$/stat; read _ _ _ server _ < /proc/$sup/stat; echo $sup $server >> {pids}"
SUPERVISION = {"EVALWRIGHT_SUPERVISION": "process"}


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


def carry_out(project: Project, suite: Path) -> dict[str, str]:
    """Run a suite in this process and return each case's status."""
    evals = project.path / "evals"
    request = RunRequest(
        checked=load_suite(suite), layout=Layout(evals, evals / "runs"), settings=Settings(evals=evals, jobs=4), run_id="r"
    )
    outcome = run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=ignored)
    return {case.id: case.status for case in outcome.report.cases}


def living(file: Path) -> list[int]:
    """Return those processes named in a file that still run; zombies do not."""
    pids = [int(word) for word in file.read_text().split()] if file.exists() else []
    return [pid for pid in pids if state_of(pid) not in {"", "Z", "X"}]


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """Return a file in which runners note their pids; what still lives at the end of the test is killed."""
    file = tmp_path / "pids"
    yield file
    for pid in living(file):
        os.kill(pid, signal.SIGKILL)


def test_background_child_that_holds_stdout_delays_nothing_and_is_noted(
    project: Project, shell_runner: Shell, pids: Path
) -> None:
    runner = shell_runner(f"sleep 60 & echo $! >> {pids}; echo done; exit 0")
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "done\n"}}])
    started = time.monotonic()

    statuses = carry_out(project, suite)

    assert time.monotonic() - started < 6
    assert statuses == {"a": "pass"}
    record = project.record("r", "a", "runner.json")
    assert (record["exit_code"], record["timed_out"], record["leaked_processes"]) == (0, False, 1)
    assert living(pids) == []


@pytest.mark.parametrize(
    "line",
    [
        "(sleep 2; echo late > {late}) & exec sleep 60",
        "setsid sh -c 'echo $$ >> {pids}; sleep 2; echo late > {late}' & trap '' TERM; sleep 60; sleep 60",
        "(setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 2; echo late > {late}' &) ; sleep 60",
    ],
    ids=["background", "setsid", "double fork"],
)
def test_timed_out_trial_ends_in_time_and_nothing_of_it_acts_later(
    project: Project, shell_runner: Shell, pids: Path, line: str
) -> None:
    late = project.path / "late.txt"
    runner = shell_runner(line.format(late=late, pids=pids), timeout_seconds=0.5)
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": ""}}])
    started = time.monotonic()

    statuses = carry_out(project, suite)

    assert time.monotonic() - started < 5
    assert statuses == {"a": "error"}
    assert project.record("r", "a", "runner.json")["error_code"] == "E_RUNNER_TIMEOUT"
    assert living(pids) == []
    assert not soon(late.exists, 2.5)


def test_no_process_of_the_agent_is_alive_when_scoring_starts(project: Project, shell_runner: Shell, pids: Path) -> None:
    spoiler = f'setsid sh -c \'trap "" TERM; echo $$ >> {pids}; while :; do echo 1 > "$EVALWRIGHT_WORKSPACE/result"; done\' &'
    runner = shell_runner(f"{spoiler} until [ -s {pids} ]; do :; done")
    check = (
        f'alive=$(for p in $(cat {pids}); do test -e /proc/$p/fd/1 && echo $p; done); rm -f "$EVALWRIGHT_WORKSPACE/result"; '
        'i=0; while [ $i -lt 2000 ] && [ ! -e "$EVALWRIGHT_WORKSPACE/result" ]; do i=$((i+1)); done; '
        'if [ -z "$alive" ] && [ $i = 2000 ]; then echo \'{"ok":true,"score":1,"findings":[]}\'; '
        'else echo \'{"ok":false,"score":0,"findings":["still alive"]}\'; fi'
    )
    scorer = {"use": "command", "id": "probe", "shell": True, "command": check}
    suite = project.suite(runner=runner, scorers=[scorer], cases=[{"id": "a"}])

    assert carry_out(project, suite) == {"a": "pass"}


@pytest.mark.parametrize(
    "attack",
    ["kill -9 $sup", "kill -9 $server", "kill -9 $server $sup", "kill -STOP $sup", "kill -STOP $server $sup"],
    ids=["kill", "kill server", "kill both", "stop", "stop both"],
)
def test_agent_that_attacks_its_supervisor_gets_an_error_and_no_longer_life(
    project: Project, shell_runner: Shell, pids: Path, attack: str
) -> None:
    line = f"exec >/dev/null 2>&1; {ABOVE.format(pids=pids)}.above; echo $$ >> {pids}; {attack}; exec sleep 60"
    suite = project.suite(runner=shell_runner(line, timeout_seconds=1), cases=[{"id": "a", "expect": {"exact": ""}}])
    process = project.start("run", "demo", "--run-id", "r", "--json", env=SUPERVISION)
    try:
        answer = json.loads(process.communicate(timeout=120)[0])
        assert answer["data"]["run"]["status_counts"]["error"] == 1
        assert soon(lambda: not living(pids)), "the agent outlived its trial"
        assert suite.is_dir()
    finally:
        process.kill()
        process.communicate()
        for pid in living(pids.with_name("pids.above")):
            os.kill(pid, signal.SIGKILL)


def test_trial_after_an_attack_on_the_fork_server_runs_as_usual(
    project: Project, shell_runner: Shell, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*next(iter(SUPERVISION.items())))
    line = f'{ABOVE.format(pids=pids)}; case $(cat "$EVALWRIGHT_TASK_FILE") in evil) kill -9 $server $sup;; esac; echo ok'
    cases = [{"id": "a", "task": "evil", "expect": {"exact": "ok\n"}}]
    cases += [{"id": f"b{number}", "expect": {"exact": "ok\n"}} for number in range(3)]
    suite = project.suite(runner=shell_runner(line), cases=cases)
    evals = project.path / "evals"
    settings = Settings(evals=evals, jobs=1)
    request = RunRequest(checked=load_suite(suite), layout=Layout(evals, evals / "runs"), settings=settings, run_id="r")
    outcome = run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=ignored)

    assert {case.id: case.status for case in outcome.report.cases if case.id != "a"} == dict.fromkeys(
        ("b0", "b1", "b2"), "pass"
    )


def test_agent_cannot_forge_its_own_exit_status(project: Project) -> None:
    forgery = (
        'import json,os,sys\nr={"timed_out":False,"canceled":False,"leaked":0,"survivors":0,"status":0,"duration":0.1}\n'
        "for d in range(3,40):\n try: os.write(d,json.dumps(r).encode())\n except OSError: pass\nsys.exit(9)"
    )
    runner = {"argv": [sys.executable, "-c", forgery], "timeout_seconds": 9}
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exit_code": 9}}])

    assert carry_out(project, suite) == {"a": "pass"}


def test_runner_reads_no_input_of_the_harness(project: Project, shell_runner: Shell) -> None:
    project.suite(runner=shell_runner("cat"), cases=[{"id": "a", "expect": {"exact": ""}}])

    answer = project.call("run", "demo", "--run-id", "r", "--json", stdin=b"not for the runner")

    assert answer.data["run"]["status_counts"]["pass"] == 1


def test_scorer_that_leaves_a_detached_child_ends_in_time_and_the_child_dies(project: Project, pids: Path) -> None:
    line = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 60' & until [ -s {pids} ]; do :; done; sleep 60"
    scorer = {"use": "command", "id": "slow", "shell": True, "command": line, "timeout_seconds": 0.5}
    suite = project.suite(scorers=[scorer], cases=[{"id": "a"}])
    started = time.monotonic()

    statuses = carry_out(project, suite)

    assert time.monotonic() - started < 6
    assert statuses == {"a": "error"}
    assert living(pids) == []


MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kib(project: Project, run_id: str, env: dict[str, str]) -> int:
    """Run the suite by the command line and return its peak memory; a small parent keeps this process's own out of it."""
    command = [sys.executable, "-m", "evalwright", "run", "demo", "--run-id", run_id, "--json"]
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURED, *command],
        cwd=project.path,
        env={name: value for name, value in os.environ.items() if not name.startswith("EVAL")} | env,
        capture_output=True,
        timeout=120,
        check=True,
    )
    code, peak = done.stdout.split()
    assert code == b"0"
    return int(peak)


@pytest.mark.parametrize("env", [{}, {"API_TOKEN": "s3cret-s3cret-s3cret"}], ids=["plain", "redacted"])
def test_flood_of_output_takes_bounded_memory_and_the_total_is_recorded(
    project: Project, shell_runner: Shell, env: dict[str, str]
) -> None:
    runner = shell_runner("yes | head -c $(cat $EVALWRIGHT_TASK_FILE)", max_output_bytes=1000)
    cases = [{"id": "a", "task": "200000000", "expect": {"exact": "y\n" * 500}}]
    project.suite(runner=runner, cases=cases)
    (project.path / "evals/suites/demo/cases.jsonl").write_text(json.dumps(cases[0] | {"task": "2", "workspace": "fixtures/w"}))
    small = peak_kib(project, "small", env)
    (project.path / "evals/suites/demo/cases.jsonl").write_text(json.dumps(cases[0] | {"workspace": "fixtures/w"}))

    large = peak_kib(project, "r", env)

    assert large - small < 32 * 1024
    record = project.record("r", "a", "runner.json")
    assert (record["exit_code"], record["stdout_bytes"], record["stdout_truncated"]) == (0, 200_000_000, True)
    assert project.artifact("r", "a", "runner.stdout.txt").read_bytes() == b"y\n" * 500
    assert project.artifact("r", "a", "runner.stdout.tail.txt").read_bytes() == b"y\n" * 2048


def test_huge_answer_file_and_huge_workspace_file_take_bounded_memory(project: Project, shell_runner: Shell) -> None:
    line = 'truncate -s 400M big; truncate -s 400M "$EVALWRIGHT_OUTPUT_FILE"'
    project.suite(runner=shell_runner(line, max_output_bytes=1000), cases=[{"id": "a", "expect": {"exact": ""}}])

    peak = peak_kib(project, "r", {})

    assert peak < 200 * 1024
    entries = {entry["path"]: entry for entry in project.record("r", "a", "workspace-after.json")["entries"]}
    assert entries["big"]["size"] == 400 << 20
    record = project.record("r", "a", "runner.json")
    assert (record["output_bytes"], record["output_truncated"]) == (400 << 20, True)
